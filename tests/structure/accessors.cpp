// Accessor types: names, what fits which node, sets of them.
#include "support.hpp"

using namespace structure_test;

namespace {

struct Outer {
  Word word;
  const Outer* kid_1;
  double score;
  int counts[4];
  std::string text;
  const Outer* next() const { return kid_1; }
};

constexpr auto lambda = [](const Word& word) { return word.left; };

/// What a reference to a node of the DSL does with an accessor, in small.
struct Ref {
  template <class A>
  constexpr auto through(A) const {
    return A::kind;
  }
};

using A = cs::Child<&Word::left>;
using B = cs::Child<&Word::right>;
using K = cs::Children<&Word::left, &Word::right>;
using F = cs::Field<&Word::id>;

template <class X, class Y>
constexpr bool same = std::is_same_v<X, Y>;

}  // namespace

TEST_CASE("an accessor is named after its member", "[structure]") {
  CHECK(cs::Child<&Word::left>::name() == "left");
  CHECK(cs::OptionalChild<&Outer::kid_1>::name() == "kid_1");
  CHECK(cs::Field<&Word::id>::name() == "id");
  CHECK(cs::Child<&Outer::next>::name() == "next");
}

TEST_CASE("a path is named after its last member", "[structure]") {
  CHECK(cs::Field<&Outer::word, &Word::id>::name() == "id");
}

TEST_CASE("a children accessor of several members joins their names", "[structure]") {
  CHECK(K::name() == "left_right");
}

TEST_CASE("a lambda is named after its kind", "[structure]") {
  CHECK(cs::Child<lambda>::name() == "child");
  CHECK(cs::Children<lambda>::name() == "children");
  CHECK(cs::Field<lambda>::name() == "field");
}

TEST_CASE("names are known at compile time", "[structure]") {
  static_assert(cs::Child<&Word::left>::name() == "left");
  static_assert(K::name() == "left_right");
}

TEST_CASE("an accessor gives the member by reference", "[structure]") {
  const Word leaf{3, nullptr, nullptr}, top{4, &leaf, nullptr};
  const Outer outer{top, nullptr, 0, {}, {}};
  CHECK(&A::get(top) == &top.left);
  CHECK(&cs::Field<&Outer::word, &Word::id>::get(outer) == &outer.word.id);
  CHECK(cs::Field<&Outer::word, &Word::left, &Word::id>::get(outer) == 3);
}

TEST_CASE("a null pointer on the way makes a path unreachable", "[structure]") {
  using Deep = cs::Field<&Word::left, &Word::left, &Word::id>;
  const Word leaf, middle{0, &leaf, nullptr}, top{0, &middle, nullptr};
  CHECK(Deep::is_reachable(top));
  CHECK_FALSE(Deep::is_reachable(middle));
  CHECK_FALSE(Deep::is_reachable(leaf));
}

TEST_CASE("an accessor fits only the nodes that have its member", "[structure]") {
  static_assert(cs::AccessorOf<A, Word>);
  static_assert(!cs::AccessorOf<A, Item>);
  static_assert(!cs::AccessorOf<F, Outer>);
  static_assert(cs::AccessorOf<cs::Child<lambda>, Word>);
  static_assert(!cs::AccessorOf<cs::Child<lambda>, Item>);
  static_assert(!cs::AccessorOf<int, Word>);
  struct Derived : Word {};
  static_assert(cs::AccessorOf<F, Derived>);
  static_assert(!cs::AccessorOf<A, Derived>, "left leads to a Word, which need not be a Derived");
}

TEST_CASE("a child must lead to the node type", "[structure]") {
  static_assert(!cs::AccessorOf<cs::Child<&Outer::word>, Outer>);
  static_assert(!cs::AccessorOf<cs::Child<&Outer::score>, Outer>);
  static_assert(!cs::AccessorOf<cs::Children<&Outer::text>, Word>);
  static_assert(cs::AccessorOf<cs::Child<&Outer::next>, Outer>);
}

TEST_CASE("a field must be a number or a fixed array of numbers", "[structure]") {
  static_assert(!cs::AccessorOf<cs::Field<&Outer::text>, Outer>);
  static_assert(!cs::AccessorOf<cs::Field<&Outer::kid_1>, Outer>);
  static_assert(cs::AccessorOf<cs::Field<&Outer::counts>, Outer>);
}

TEST_CASE("a field tells its element type and its number of elements", "[structure]") {
  using Counts = cs::Field<&Outer::counts>;
  using Vector = cs::Field<&Item::vector>;
  static_assert(Counts::dtype<Outer>() == cortex::DType::i32 && Counts::components<Outer>() == 4 &&
                Counts::is_vector<Outer>());
  static_assert(Vector::dtype<Item>() == cortex::DType::f32 && Vector::components<Item>() == 3);
  static_assert(cs::Field<&Outer::score>::dtype<Outer>() == cortex::DType::f64 &&
                !cs::Field<&Outer::score>::is_vector<Outer>());
}

TEST_CASE("applied to a node reference, an accessor hands itself over", "[structure]") {
  static_assert(cortex::child<&Word::left>(Ref{}) == cs::AccessorKind::child);
  static_assert(cortex::optional_child<&Word::left>(Ref{}) == cs::AccessorKind::optional_child);
  static_assert(cortex::children<&Item::kids>(Ref{}) == cs::AccessorKind::children);
  static_assert(cortex::field<&Word::id>(Ref{}) == cs::AccessorKind::field);
}

TEST_CASE("a union keeps the order of first appearance and drops duplicates", "[structure]") {
  using cs::Accessors, cs::Union;
  static_assert(same<Union<Accessors<A, F>, Accessors<F, B, A, K>>, Accessors<A, F, B, K>>);
  static_assert(same<Union<Accessors<>, Accessors<>>, Accessors<>>);
  static_assert(same<Union<Accessors<>, Accessors<A, A>>, Accessors<A>>);
}

TEST_CASE("an accessor is numbered within its own group", "[structure]") {
  using Set = cs::Accessors<F, A, K, cs::OptionalChild<&Word::right>>;
  static_assert(cs::index_of<F, Set> == 0);
  static_assert(cs::index_of<A, Set> == 0);
  static_assert(cs::index_of<K, Set> == 0);
  static_assert(cs::index_of<cs::OptionalChild<&Word::right>, Set> == 1);
  static_assert(cs::index_of<B, Set> == -1);
  static_assert(same<cs::ChildAccessors<Set>, cs::Accessors<A, cs::OptionalChild<&Word::right>>>);
  static_assert(same<cs::FieldAccessors<Set>, cs::Accessors<F>>);
}

TEST_CASE("a declared kind keeps its bound on children", "[structure]") {
  static_assert(cortex::tree.with_max_children(5).max_children == 5);
  static_assert(cortex::tree.with_max_children(5).kind == cs::Kind::tree);
  static_assert(cortex::sequence.child_bound() == 1);
}
