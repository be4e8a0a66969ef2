// Index checks on expressions of the structure, made before the kernel runs.
#include <catch2/catch.hpp>

#include "runtime/hand_made.hpp"
#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

ir::Expr id_of(const ir::Expr& node) { return ir::call(ir::UfKind::field, "id", {node}, 0); }
ir::Expr child_of(int accessor, const ir::Expr& node) {
  return ir::call(ir::UfKind::child, accessor ? "right" : "left", {node}, accessor);
}
ir::Expr leaf(const ir::Expr& node) { return ir::call(ir::UfKind::is_leaf, "is_leaf", {node}); }

const ra::Indexed of_table{"Emb", Dim("vocabulary"), 0, 0};

/// The model "sum" without limits on the field, and with this check on Emb's first dimension.
runtime::Executable guarded(runtime::GuardedCheck check) {
  runtime::Executable e = sum_executable();
  e.fields[0] = {structure::Where::all, -1, -1, {}};
  e.kernel = [](const codegen::KernelArgs*) {};
  check.where = "leaf";
  e.guarded = {std::move(check)};
  return e;
}

std::string refusal(const runtime::Executable& e, const Word& root, int vocabulary = 10) {
  const auto m = functor(e).bind("Emb", embedding(vocabulary));
  return error_of(Code::out_of_range, [&] { m(root); });
}

struct Pair {
  Word a{3}, b{4}, top{0, &a, &b};
};

/// A node with a container of children.
struct Bush {
  int id;
  std::vector<const Bush*> kids;
};
using Kids = structure::Children<&Bush::kids>;
using BushId = structure::Field<&Bush::id>;
using BushSet = structure::Accessors<BushId, Kids>;

}  // namespace

TEST_CASE("an index that is computed from a field is checked at every node", "[runtime]") {
  const ir::Expr n = ir::Var::make("n");
  const auto e = guarded({n, {}, {}, id_of(n) * 2 + 1, of_table, {}});
  const Pair p;
  CHECK(refusal(e, p.top) == "");
  CHECK_THAT(
      refusal(e, p.top, 9),
      Contains(
          "operator 'leaf' of model 'sum' reads 'Emb' at index 9 of dimension 'vocabulary', which has 9 elements"));
  const Word negative{-1};
  CHECK_THAT(refusal(e, negative), Contains("at index -1") && Contains("correct field 'id' of node 0 (-1), or"));
  const auto m = functor(e).bind("Emb", embedding(9));
  CHECK(m.try_call(p.top).error().node == &p.b);
}

TEST_CASE("an index is checked only where its guard holds", "[runtime]") {
  const ir::Expr n = ir::Var::make("n");
  const Pair p;  // at the top, id 0 becomes index -5
  const ir::Expr index = ir::Select::make(leaf(n), id_of(n), id_of(n) - 5);
  CHECK(refusal(guarded({n, {}, leaf(n), index, of_table, {}}), p.top) == "");
  CHECK_THAT(refusal(guarded({n, {}, {}, index, of_table, {}}), p.top),
             Contains("node 0 of the call") && Contains("at index -5"));
  const ir::Expr internal = ir::Unary::make(ir::UnaryOp::logical_not, leaf(n));
  CHECK_THAT(refusal(guarded({n, {}, internal, index, of_table, {}}), p.top), Contains("at index -5"));
  CHECK(refusal(guarded({n, {}, ir::Binary::make(ir::BinaryOp::logical_and, internal, leaf(n)), index, of_table, {}}),
                p.top) == "");
}

TEST_CASE("an index may read the fields of named children", "[runtime]") {
  const ir::Expr n = ir::Var::make("n");
  const ir::Expr internal = ir::Unary::make(ir::UnaryOp::logical_not, leaf(n));
  const auto e = guarded({n, {}, internal, id_of(child_of(0, n)) + id_of(child_of(1, n)), of_table, {}});
  const Pair p;
  CHECK(refusal(e, p.top, 8) == "");
  CHECK_THAT(refusal(e, p.top, 7), Contains("node 0 of the call (numbered parents first): operator") &&
                                       Contains("at index 7") &&
                                       Contains("correct field 'id' of node 2 (3) and field 'id' of node 1 (4), or"));
}

TEST_CASE("an index may range over dense dimensions", "[runtime]") {
  const ir::Expr n = ir::Var::make("n"), i = ir::Var::make("i"), j = ir::Var::make("j");
  const auto e = guarded({n, {{i, ir::imm(3)}, {j, ir::imm(2)}}, {}, id_of(n) + i * 2 + j, of_table, {}});
  const Pair p;
  CHECK(refusal(e, p.top, 10) == "");
  CHECK_THAT(refusal(e, p.top, 9), Contains("at index 9"));
}

TEST_CASE("where the ends of a range decide, the first value that is refused is named all the same", "[runtime]") {
  const ir::Expr n = ir::Var::make("n"), i = ir::Var::make("i"), j = ir::Var::make("j");
  // 4 - 2 i + j at a node of number 4, for i to 3 and j to 1: -2 to 5
  const Vector<runtime::GuardedCheck::Range> ranges{{i, ir::imm(4), true}, {j, ir::imm(2), true}};
  const ir::Expr index = id_of(n) - i * 2 + j;
  const Word four{4}, nine{9};
  CHECK_THAT(refusal(guarded({n, ranges, {}, index, of_table, {}}), four), Contains("at index -2"));
  CHECK(refusal(guarded({n, ranges, {}, index, of_table, {}}), nine, 11) == "");
  CHECK_THAT(refusal(guarded({n, ranges, {}, index, of_table, {}}), nine, 9), Contains("at index 9"));
  CHECK(refusal(guarded({n, ranges, ir::Unary::make(ir::UnaryOp::logical_not, leaf(n)), index, of_table, {}}), four) ==
        "");
}

TEST_CASE("an index may range over any number of dimensions", "[runtime]") {
  const ir::Expr n = ir::Var::make("n");
  Vector<runtime::GuardedCheck::Range> ranges;
  ir::Expr index = id_of(n);
  for (int r = 0; r < 40; ++r) {
    const ir::Expr i = ir::Var::make("i" + std::to_string(r));
    ranges.push_back({i, ir::imm(r % 8 ? 1 : 2)});
    index = index + i;
  }
  const auto e = guarded({n, ranges, {}, index, of_table, {}});
  const Pair p;
  CHECK(refusal(e, p.top, 10) == "");
  CHECK_THAT(refusal(e, p.top, 9), Contains("at index 9"));
}

TEST_CASE("where no node says the index, the weight is at fault that lacks the element", "[runtime]") {
  const ir::Expr n = ir::Var::make("n"), i = ir::Var::make("i");
  const auto e = guarded({n, {{i, ir::imm(3), true}}, {}, i * 3 + 1, of_table, {}});
  const Pair p;
  functor(e).bind("Emb", embedding(8))(p.top);
  const auto model = functor(e).bind("Emb", embedding(7));
  const auto result = model.try_call(p.top);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::invalid_weights);
  CHECK(result.error().node == nullptr);
  CHECK_THAT(result.error().message, Contains("reads 'Emb' at index 7, whatever the nodes, but 7 elements of dimension "
                                              "'vocabulary' are bound"));
  CHECK_THAT(refusal(guarded({n, {}, leaf(n), ir::imm(7), of_table, {}}), p.top, 7), Contains("at index 7"));
}

TEST_CASE("an index may range over the children of a container", "[runtime]") {
  const ir::Expr n = ir::Var::make("n"), k = ir::Var::make("k");
  runtime::Executable e = guarded({n,
                                   {{k, ir::call(ir::UfKind::num_children, "num_children", {n}, 0)}},
                                   {},
                                   id_of(ir::call(ir::UfKind::kth_child, "kids", {n, k}, 0)) + k,
                                   of_table,
                                   {}});
  e.graph.children_named.clear();
  e.graph.containers = {{"kids", dsl::accessor_key<Kids>()}};
  e.graph.fields[0].key = dsl::accessor_key<BushId>();
  e.program.buffers.resize(3);
  Functor<Bush, BushSet> m(std::make_shared<const runtime::Executable>(e));
  const Bush a{7, {}}, b{6, {}}, c{8, {}}, top{99, {&a, &b, &c}};
  m.bind("Emb", embedding(11));
  CHECK(m.try_call(top));
  m.bind("Emb", embedding(10));
  const Error error = m.try_call(top).error();
  CHECK_THAT(error.message, Contains("node 3 of the call (numbered parents first), read by node 0: operator") &&
                                Contains("at index 10") && Contains("correct field 'id' of node 3 (8), or"));
  CHECK(error.node == &c);  // and not the parent, which reads it
}

TEST_CASE("a child chosen by a number of the node's is absent where there is none of that number", "[runtime]") {
  struct Chooser {
    int which;
    std::vector<const Chooser*> kids;
  };
  constexpr auto kids = cortex::children<&Chooser::kids>;
  cortex::Dim one("one", 1);
  cortex::Model<Chooser> m("chooser", cortex::tree);
  auto h = m.placeholder<float>("h", one);
  auto body = m.compute("body", one, [&](auto n, auto i) {
    return 1 + cortex::cast<float>(cortex::field<&Chooser::which>(n)) * 0 +
           h(kids(n)[cortex::field<&Chooser::which>(n)], i);
  });
  auto model = cortex::test::compile_here(m.recursion_op(h, body));
  const Chooser leaf{0, {}}, inner{0, {&leaf}}, other{0, {}};
  for (const auto& [which, sum] :
       {std::pair(0, 3.f), {1, 2.f}, {2, 1.f}, {-1, 1.f}, {-100000, 1.f}, {INT32_MIN, 1.f}}) {
    CAPTURE(which);
    CHECK(model(Chooser{which, {&inner, &other}})[0][0] == sum);
  }
}

namespace {

struct Data {
  int id;
  std::array<float, 4> x;
  std::array<int, 4> ids;
  const Data* next;
};
constexpr auto data_id = cortex::field<&Data::id>;
constexpr auto data_next = cortex::optional_child<&Data::next>;

/// h(n) = x(n) + what `read(m, x, h)` gives: a function of (node, i).
template <class Read>
auto reading(const Read& read) {
  cortex::Dim four("four", 4);
  cortex::Model<Data> m("indexed", cortex::sequence);
  auto x = m.field("x", cortex::field<&Data::x>, four);
  auto h = m.placeholder<float>("h", four);
  const auto rest = read(m, four, x, h);
  auto body = m.compute("body", four, [&](auto n, auto i) { return x(n, i) + rest(n); });
  return cortex::test::compile_here(m.recursion_op(h, body));
}

/// What a call on two nodes says, whose first has this number.
template <class F>
std::string answer(const F& model, int value) {
  const Data last{0, {1, 2, 3, 4}, {5, 6, 7, 8}, nullptr}, first{value, {1, 2, 3, 4}, {5, 6, 7, 8}, &last};
  const auto result = model.try_call(first);
  return result ? std::to_string(int((*result)[0][0])) : result.error().message;
}

}  // namespace

TEST_CASE("a number of the node's that indexes anything at all is checked", "[runtime]") {
  const auto check = [](const auto& model, int good) {
    CHECK(answer(model, 2) == std::to_string(good));
    for (const int value : {INT32_MIN, -100000000, -1, 4, 100, 100000000, INT32_MAX}) {
      CAPTURE(value);
      CHECK_THAT(answer(model, value), Contains("'id'") && Contains(std::to_string(value)) && Contains("0 to 3"));
    }
  };
  SECTION("a state of a child") {
    check(reading([](auto&, auto, auto, auto h) { return [=](auto n) { return h(data_next(n), data_id(n)); }; }),
          1 + 3);
  }
  SECTION("an operator") {
    check(reading([](auto& m, auto four, auto x, auto h) {
            auto q = m.compute("q", four, [=](auto n, auto i) { return 2 * x(n, i) + h(data_next(n), i); });
            return [=](auto n) { return q(n, data_id(n)); };
          }),
          1 + 6 + 5);
  }
  SECTION("a field of floating-point numbers") {
    check(reading([](auto&, auto, auto x, auto h) {
            return [=](auto n) { return x(n, data_id(n)) + 0 * h(data_next(n), 0); };
          }),
          1 + 3);
  }
  SECTION("a field of integers") {
    check(reading([](auto&, auto, auto, auto h) {
            return [=](auto n) {
              return cortex::cast<float>(cortex::field<&Data::ids>(n)[data_id(n)]) + 0 * h(data_next(n), 0);
            };
          }),
          1 + 7);
  }
}

TEST_CASE("arithmetic on a node's numbers wraps, and divides by any number", "[runtime]") {
  const auto held = [](auto index) {
    return reading([=](auto&, auto, auto x, auto h) {
      return [=](auto n) { return x(n, min(max(index(data_id(n)), 0), 3)) + 0 * h(data_next(n), 0); };
    });
  };
  const auto square = held([](auto id) { return id * id; });
  const auto above = held([](auto id) { return id + 2147483647; });
  const auto below = held([](auto id) { return -id; });
  // Divisors that are positive but for what wraps: 0 at 2^30, -1 at 858993459, where what is divided is the least.
  const auto by_zero = held([](auto id) { return id / (max(id, 1) * 4); });
  const auto by_minus_one = held([](auto id) { return (id - 858993459 - 2147483647 - 1) / (max(id, 1) * 5); });
  const auto rest = held([](auto id) { return (id - 858993459 - 2147483647 - 1) % (max(id, 1) * 5); });
  for (const int value : {INT32_MIN, INT32_MIN + 1, -46341, -1, 0, 1, 2, 46341, 1 << 30, 858993459, INT32_MAX}) {
    CAPTURE(value);
    for (const auto* model : {&square, &above, &below, &by_zero, &by_minus_one, &rest}) {
      const std::string got = answer(*model, value);
      CHECK((got == "2" || got == "3" || got == "4" || got == "5" || got.find("32 bits") != std::string::npos));
    }
  }
  CHECK(answer(square, 1) == "3");
  CHECK(answer(square, 2) == "5");  // of [0, 3]
  CHECK(answer(below, -2) == "4");
}
