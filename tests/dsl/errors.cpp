// What cannot be right is refused in the call that is wrong, with a message that names what it is about.
#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using Catch::Contains;
using cortex::Dim;
using cortex::Model;

/// The refusal of an operator `[node, hidden]` over words.
template <class F>
std::string refused(F&& lambda) {
  Words w;
  const std::size_t ops = w.m.graph().ops.size();
  const std::string message = refusal([&] { w.m.compute("x", w.H, [&](auto n, auto i) { return lambda(w, n, i); }); });
  CHECK(w.m.graph().ops.size() == ops);
  return message;
}

TEST_CASE("a reduction over more than 2^31 - 1 elements is refused", "[dsl]") {
  struct Node {
    float value;
    const Node* next;
  };
  const auto ones = [](std::int64_t extent) {
    return refusal([&] {
      cortex::Model<Node> m("ones", cortex::sequence);
      Dim Z("Z", extent);
      m.output<float>("o", [&](auto n) { return sum(Z, [&](auto) { return cortex::field<&Node::value>(n); }); });
    });
  };
  CHECK(ones((std::int64_t(1) << 31) - 1) == "");
  CHECK_THAT(ones(std::int64_t(1) << 31), Contains("'Z'") && Contains("2147483648"));
  CHECK_THAT(ones((std::int64_t(1) << 32) + 3), Contains("'Z'") && Contains("2147483647"));
}

TEST_CASE("an index variable of another dimension is refused, naming tensor and both dimensions") {
  CHECK_THAT(refused([](Words& w, auto, auto i) { return w.W(i, i); }),
             Contains("operator 'x'") && Contains("dimension 'input' of 'W' is indexed by a variable of 'hidden'"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.Emb(i, i) + w.leaf(n, i); }),
             Contains("dimension 'vocabulary' of 'Emb' is indexed by a variable of 'hidden'; its dimensions are "
                      "[vocabulary, hidden") &&
                 Contains("], and indices stand in their order"));
  CHECK_THAT(refused([](Words& w, auto n, auto) { return sum(w.E, [&](auto j) { return w.h(left(n), j); }); }),
             Contains("dimension 'hidden' of 'h' is indexed by a variable of 'input'"));
}

TEST_CASE("the first elements of a longer dimension are read by a number that is not its variable") {
  Words w;
  Dim gates{"gates", 4 * w.H.extent()};
  auto g = w.m.compute("g", gates, [&](auto n, auto) { return weight(n); });
  int tried = 0;
  const auto first = [&](auto&& index) {
    const std::string name = "x" + std::to_string(++tried);
    return refusal([&] { w.m.compute(name, w.H, [&](auto n, auto i) { return g(n, index(i)); }); });
  };
  CHECK_THAT(first([](auto i) { return i; }), Contains("'gates' of 'g' is indexed by a variable of 'hidden'; if its "
                                                       "first elements are meant, write i + 0"));
  for (const int gate : {0, 1, 3}) CHECK(first([&](auto i) { return i + gate * int(w.H.extent()); }) == "");
  CHECK(first([](auto i) { return 0 + i; }) == "");
  CHECK(first([](auto i) { return i - 0; }) == "");
  CHECK(first([](auto i) { return 1 * i; }) == "");
  CHECK(first([](auto i) { return max(i, 0); }) == "");
}

TEST_CASE("dimensions of one name and extent that differ are said to be others, and what to do") {
  const auto another = [] { return Dim("hidden", 8); };
  const Dim H = another();
  Model<Word> m("words", cortex::tree);
  auto below = m.placeholder<float>("below", another());
  auto one = m.compute("one", H, [](auto n, auto) { return age(n); });
  auto two = m.compute("two", another(), [](auto n, auto) { return age(n); });
  const std::string what = "[hidden 8], but another of that name; use one Dim object, or copies of it, for both";
  CHECK_THAT(refusal([&] {
               m.if_then_else(
                   "either", [](auto n) { return is_leaf(n); }, one, two);
             }),
             Contains("branch 'two' has other dimensions: " + what));
  CHECK_THAT(refusal([&] { m.recursion_op(below, one); }),
             Contains("'one' cannot be the body of 'below': its dimensions are " + what));
}

TEST_CASE("two dimensions of one name are told apart") {
  CHECK_THAT(
      refused([](Words& w, auto n, auto) { return sum(Dim("hidden", 8), [&](auto j) { return w.leaf(n, j); }); }),
      Contains("indexed by a variable of another dimension of that name; use one Dim object"));
  CHECK_THAT(
      refused([](Words& w, auto n, auto) { return sum(Dim("hidden", 16), [&](auto j) { return w.leaf(n, j); }); }),
      Contains("dimension 'hidden' of 'leaf', whose extent is 8, is indexed by a variable of another dimension of that "
               "name, whose extent is 16; give them different names"));
}

TEST_CASE("an index whose values are known lies inside its dimension") {
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i + 1); }),
             Contains("dimension 'hidden' of 'leaf' is indexed by 1 to 8, but has 8 elements; keep the index inside "
                      "with min and max"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i - 1); }), Contains("is indexed by -1 to 6"));
  CHECK_THAT(refused([](Words& w, auto n, auto) { return w.leaf(n, 8); }),
             Contains("is indexed by 8, but has 8 elements"));
  CHECK_THAT(refused([](Words& w, auto, auto i) { return w.Emb(-1, i); }),
             Contains("dimension 'vocabulary' of 'Emb' is indexed by -1, but has"));
  CHECK_THAT(refused([](Words& w, auto n, auto) { return w.leaf(n, max(word(n), 8)); }),
             Contains("is indexed by 8 to ..., but has 8 elements"));
  CHECK_THAT(refused([](Words& w, auto n, auto) { return w.leaf(n, min(word(n), -1)); }),
             Contains("is indexed by ... to -1"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * ids(n)[i]; }),
             Contains("field 'ids' of the node is indexed by 0 to 7, but has 3 elements"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * ids(n)[3]; }), Contains("field 'ids'"));
}

TEST_CASE("arithmetic on index variables that leaves 32 bits is no index, wherever it would end") {
  const auto indexed = [](auto&& index) {
    Words w;
    const Dim T{"table", 6}, L{"long", 5000};
    const auto t = w.m.input<float>("T", T);
    return refusal([&] { w.m.compute("x", L, [&](auto, auto i) { return t(index(i)); }); });
  };
  const auto leaves = Contains("dimension 'table' of 'T' is indexed by arithmetic that leaves 32 bits on the way");
  CHECK_THAT(indexed([](auto i) { return (i * 1000003) % 6; }), leaves);
  CHECK_THAT(indexed([](auto i) { return min(i * 1000003, 5); }), leaves);
  CHECK_THAT(indexed([](auto i) { return max(i * -1000003, 0); }), leaves);
  CHECK_THAT(indexed([](auto i) { return min(i + 2000000000 + 2000000000, 5); }), leaves);
  CHECK_THAT(indexed([](auto i) { return (i * 1000003) / 1000000000; }), leaves);
  CHECK_THAT(indexed([](auto i) { return select(i < 7, 1, min(i * i * i, 5)); }), leaves);
  CHECK(indexed([](auto i) { return (i * 1009) % 6; }) == "");
  CHECK(indexed([](auto i) { return min(i + 2000000000, 5); }) == "");

  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * ids(n)[(i * 2000000000) % 3]; }),
             Contains("field 'ids' of the node is indexed by arithmetic that leaves 32 bits"));
  Nodes t;
  CHECK_THAT(
      refusal([&] { t.m.compute("x", t.H, [&](auto n, auto i) { return t.h(kids(n)[(i * 2000000000) % 2], i); }); }),
      Contains("is indexed by arithmetic that leaves 32 bits"));
}

TEST_CASE("an index whose values are known, and inside, is accepted whatever it is made of") {
  Words w;
  auto x = w.m.compute("x", w.E, [&](auto n, auto i) {
    return w.leaf(n, i + 4) + w.leaf(n, 2 * i) + w.leaf(n, 7 - i) + w.leaf(n, max(i - 1, 0)) + w.leaf(n, (i + 8) % 8) +
           w.leaf(n, (3 * i + 12) / 3) + w.leaf(n, word(n)) + w.leaf(n, word(n) % 8) + w.Emb(word(n) + 100, 0) +
           w.leaf(n, -i + 3);
  });
  CHECK(x.name() == "x");
}

TEST_CASE("an index that nodes have a say in is left to calls, unless none of its values is inside") {
  Words w;
  auto x = w.m.compute("x", w.E, [&](auto n, auto i) {
    const auto c = max(word(n), 0) % 10;
    return w.leaf(n, min(word(n), 8)) + w.leaf(n, c - c % 2) + w.leaf(n, select(c > 4, c - 5, c + 3)) +
           w.leaf(n, i - c) + cast<float>(ids(n)[c]);
  });
  CHECK(x.name() == "x");
  CHECK_THAT(refused([](Words& w, auto n, auto) { return w.leaf(n, max(word(n), 0) % 10 + 8); }),
             Contains("is indexed by 8 to 17, but has 8 elements"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * ids(n)[max(word(n), 0) % 10 - 10]; }),
             Contains("field 'ids' of the node is indexed by -10 to -1, but has 3 elements"));
}

TEST_CASE("f32 and f64 do not mix, and the message names both") {
  Words w;
  auto D = w.m.input<double>("D", w.H);
  const auto mixed = [&](auto&& f) { return refusal([&] { w.m.compute("x", w.H, f); }); };
  CHECK_THAT(
      mixed([&](auto n, auto i) { return w.leaf(n, i) * D(i); }),
      Contains(
          "operator 'x': 'leaf' (f32) meets 'D' (f64): f32 and f64 do not mix; convert one side with cast<float>"));
  CHECK_THAT(mixed([&](auto n, auto i) { return select(w.leaf(n, i) > 0, D(i), w.leaf(n, i)); }),
             Contains("f32 and f64 do not mix"));
  CHECK_THAT(mixed([&](auto n, auto i) { return max(tanh(w.leaf(n, i)), D(i)); }),
             Contains("a value of type f32 meets 'D' (f64)"));
  CHECK(mixed([&](auto n, auto i) { return w.leaf(n, i) * cortex::cast<float>(D(i)); }) == "");
}

TEST_CASE("conditions are no numbers, and numbers no conditions") {
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * is_leaf(n); }),
             Contains("choose values by a condition with select"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) > 0; }),
             Contains("a condition stands where a number is expected"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return tanh(w.leaf(n, i) > 0); }),
             Contains("a condition stands where a number is expected"));
  CHECK_THAT(
      refused([](Words& w, auto n, auto i) { return sum(w.H, [&](auto j) { return w.leaf(n, j) > w.leaf(n, i); }); }),
      Contains("a condition stands"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return select(w.leaf(n, i), w.leaf(n, i), 0); }),
             Contains("compare it, as in x > 0"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * (is_leaf(n) + 1); }),
             Contains("a condition meets the number 1"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i > 3); }),
             Contains("select(condition, 1, 0) makes an integer of it"));
}

TEST_CASE("numbers that do not fit are refused") {
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i) * 1e300; }), Contains("does not fit f32"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, word(n) + 5000000000) + w.leaf(n, i); }),
             Contains("the integer 5000000000 does not fit 32 bits"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return select(word(n) == SIZE_MAX, w.leaf(n, i), 0); }),
             Contains("the integer 18446744073709551615 does not fit 32 bits"));
}

TEST_CASE("integers are divided by what is positive, and are not negative") {
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i / word(n)); }),
             Contains("divided by what may be 0 or negative; keep the divisor positive with max(..., 1)"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, i % 0); }), Contains("divided by what may be 0"));
  CHECK_THAT(refused([](Words& w, auto n, auto i) { return w.leaf(n, (i - 8) / 2); }),
             Contains("an integer that may be negative is divided"));
  CHECK(refused([](Words& w, auto n, auto i) {
          return throw cortex::Error(cortex::Code::invalid_model, "reached"), w.leaf(n, i / max(word(n), 1));
        }) == "operator 'x': reached");
}

TEST_CASE("names are there and are used once") {
  Words w;
  CHECK_THAT(refusal([] { Model<Word>("", cortex::tree); }), Contains("a model needs a name"));
  CHECK_THAT(refusal([&] { w.m.input<float>("", w.H); }),
             Contains("model '" + w.m.name() + "': an operator needs a name"));
  CHECK_THAT(refusal([&] { w.m.input<float>("leaf", w.H); }),
             Contains("operator 'leaf' of model 'words': the name is used twice"));
  CHECK_THAT(refusal([&] { w.m.placeholder<float>("Emb", w.H); }), Contains("the name is used twice"));
  CHECK_THAT(refusal([&] { w.m.compute("h", w.H, [&](auto n, auto i) { return w.leaf(n, i); }); }),
             Contains("the name is used twice"));
  CHECK_THAT(refusal([&] {
               w.m.if_then_else(
                   "h", [](auto n) { return is_leaf(n); }, w.leaf, w.leaf);
             }),
             Contains("the name is used twice"));
}

TEST_CASE("who takes the name that an output has taken for its body is told so") {
  Words w;
  auto state = w.m.recursion(w.h, w.leaf);
  w.m.output("score", w.H, [&](auto n, auto i) { return state(n, i); });
  CHECK_THAT(refusal([&] { w.m.compute("score_body", w.H, [](auto n, auto) { return age(n); }); }),
             Contains("the name is used twice; give each operator its own: output has taken it for its body"));
}

TEST_CASE("extents are at least 1, and only the first dimension of an input is open") {
  Words w;
  CHECK_THAT(refusal([&] { w.m.input<float>("A", Dim("none", 0)); }),
             Contains("dimension 'none' has extent 0; the least is 1"));
  CHECK_THAT(refusal([&] { w.m.placeholder<float>("A", Dim("none", -3)); }), Contains("has extent -3"));
  CHECK_THAT(refusal([&] { w.m.input<float>("A", w.H, w.V); }),
             Contains("only the first dimension of an input can be open"));
  CHECK_THAT(refusal([&] { w.m.placeholder<float>("A", w.V); }),
             Contains("only the first dimension of an input can be open"));
  CHECK_THAT(refusal([&] { w.m.compute("A", w.V, [&](auto n, auto) { return w.leaf(n, 0); }); }),
             Contains("only the first dimension of an input can be open"));
  CHECK_THAT(refusal([&] { w.m.input<float>("A", cortex::dims::node); }),
             Contains("'d_node' has no extent: it is open, or the compiler's own"));
  CHECK_THAT(refusal([&] { w.m.input<float>("A", Dim("a", 1 << 20), Dim("b", 1 << 20)); }),
             Contains("more than 2^31 - 1 elements"));
  CHECK_THAT(refused([](Words& x, auto, auto i) { return sum(x.V, [&](auto v) { return x.Emb(v, i); }); }),
             Contains("a reduction over 'vocabulary', which has no extent"));
  CHECK_THAT(refused([](Words& x, auto n, auto i) { return sum(Dim("none", 0), [&](auto) { return x.leaf(n, i); }); }),
             Contains("dimension 'none' has extent 0"));
}

TEST_CASE("fields declared as data have the extents that they have") {
  Words w;
  CHECK_THAT(refusal([&] { w.m.field("x", features, w.H); }),
             Contains("its dimensions hold 8 elements, but field 'features' of the node has 4"));
  CHECK(refusal([&] { w.m.field("x", features, Dim("a", 2), Dim("b", 2)); }) == "");
}

TEST_CASE("a row of each node's own length has one length") {
  struct Node {
    std::vector<float> row;
    const Node* next;
  };
  constexpr auto row = cortex::field<&Node::row>;
  cortex::Model<Node> m("rows", cortex::sequence);
  CHECK_THAT(refusal([&] { m.field("open", row, Dim("open")); }), Contains("'open' has no extent"));
  CHECK_THAT(refusal([&] { m.field("huge", row, Dim("a", 1 << 20), Dim("b", 1 << 20)); }),
             Contains("more than 2^31 - 1 elements"));
  CHECK(refusal([&] { m.field("x", row, Dim("a", 2), Dim("b", 3)); }) == "");
  CHECK(m.graph().fields.at(0).components == 6);
  CHECK(refusal([&] { m.field("flat", row, Dim("c", 6)); }) == "");
  CHECK_THAT(
      refusal([&] { m.field("y", row, Dim("a", 5)); }),
      Contains("its dimensions hold 5 elements, but field 'row' was declared with 6 before, and a field has one"));
}

TEST_CASE("operators of another model, and variables of another lambda, are refused") {
  Words w, other;
  CHECK_THAT(refusal([&] { w.m.compute("x", w.H, [&](auto n, auto i) { return other.leaf(n, i); }); }),
             Contains("'leaf' belongs to model 'words', but is read in model 'words'"));
  CHECK_THAT(refusal([&] { w.m.compute("x", w.H, [&](auto, auto i) { return other.W(i, 0); }); }),
             Contains("reads 'W', which is not part of this model"));
  CHECK_THAT(refusal([&] {
               w.m.if_then_else(
                   "x", [](auto n) { return is_leaf(n); }, w.leaf, other.leaf);
             }),
             Contains("'leaf' is not part of model 'words'"));
  CHECK_THAT(refusal([&] { w.m.recursion_op(other.h, w.leaf); }), Contains("'h' is not part of model 'words'"));
  cortex::dsl::Structural<> stray{};
  w.m.compute("first", w.H, [&](auto n, auto i) { return stray = i, w.leaf(n, i); });
  CHECK_THAT(refusal([&] { w.m.compute("second", w.H, [&](auto n, auto) { return w.leaf(n, stray); }); }),
             Contains("operator 'second'") && Contains("variable 'i' belongs to another operator or reduction"));
}

TEST_CASE("branches are alike") {
  Words w;
  auto narrow = w.m.compute("narrow", w.E, [&](auto n, auto i) { return w.leaf(n, i + 4); });
  auto precise = w.m.compute("precise", w.H, [&](auto n, auto i) { return cortex::cast<double>(w.leaf(n, i)); });
  auto x = w.m.field("x", features, w.E);
  const auto branch = [&](const auto& a, const auto& b) {
    return refusal([&] {
      w.m.if_then_else(
          "b", [](auto n) { return is_leaf(n); }, a, b);
    });
  };
  CHECK_THAT(
      branch(w.leaf, narrow),
      Contains("operator 'b' of model 'words': branch 'narrow' has other dimensions: [input 4], not [hidden 8]"));
  CHECK_THAT(branch(w.leaf, precise), Contains("branch 'precise' is f64, not f32"));
  CHECK_THAT(branch(w.leaf, x), Contains("branch 'x_read' has other dimensions: [input 4], not [hidden 8]"));
}

TEST_CASE("a dimension has a name") {
  try {
    cortex::Dim("", 4);
    FAIL("it needs none");
  } catch (const cortex::Error& error) {
    CHECK(error.code == cortex::Code::invalid_argument);
    CHECK(error.message == "a Dim has no name; errors name it, as in Dim(\"hidden\", 256)");
  }
}

TEST_CASE("states are defined once each, by operators of their dimensions and type") {
  const auto with = [](auto&& f) {
    Words w;
    auto c = w.m.placeholder<float>("c", w.E);
    auto c_body = w.m.compute("c_body", w.E, [&](auto n, auto i) { return c(left(n), i); });
    return f(w, c, c_body);
  };
  CHECK_THAT(with([](Words& w, auto&, auto&) { return refusal([&] { w.m.recursion_op(w.h, w.leaf); }); }),
             Contains("placeholder 'c' is never defined"));
  CHECK_THAT(
      with([](Words& w, auto& c, auto& b) { return refusal([&] { w.m.recursion_op(w.h, w.leaf, c, b, c, b); }); }),
      Contains("placeholder 'c' is defined twice"));
  CHECK_THAT(with([](Words& w, auto& c, auto& b) { return refusal([&] { w.m.recursion_op(w.h, b, c, b); }); }),
             Contains("'c_body' cannot be the body of 'h': its dimensions are [input 4], not [hidden 8]"));
  CHECK_THAT(with([](Words& w, auto& c, auto& b) {
               auto d = w.m.compute("d", w.H, [&](auto n, auto i) { return cortex::cast<double>(w.leaf(n, i)); });
               return refusal([&] { w.m.recursion_op(w.h, d, c, b); });
             }),
             Contains("one is f64, the other f32"));
  CHECK_THAT(with([](Words& w, auto& c, auto&) {
               auto x = w.m.field("x", features, w.E);
               return refusal([&] { w.m.recursion_op(w.h, w.leaf, c, x); });
             }),
             Contains("'x' cannot be the body of 'c': it is not computed"));
}

TEST_CASE("a model is as it was after states that are refused") {
  Words w;
  auto d = w.m.compute("d", w.H, [&](auto n, auto i) { return cortex::cast<double>(w.leaf(n, i)); });
  CHECK_FALSE(refusal([&] { w.m.recursion_op(w.h, d); }).empty());
  CHECK(refusal([&] { w.m.recursion_op(w.h, w.leaf); }).empty());
}

TEST_CASE("a complete model takes nothing more") {
  Words w;
  w.m.recursion_op(w.h, w.leaf);
  CHECK_THAT(refusal([&] { w.m.recursion_op(w.h, w.leaf); }),
             Contains("recursion_op or program is the last call on it"));
  CHECK_THAT(refusal([&] { w.m.input<float>("late", w.H); }),
             Contains("recursion_op or program is the last call on it"));
  CHECK_THAT(refusal([&] { w.m.compute("late", w.H, [&](auto n, auto i) { return w.leaf(n, i); }); }),
             Contains("recursion_op or program is the last call on it"));
}

TEST_CASE("a model that was moved from says so") {
  Words w;
  Model<Word> other = std::move(w.m);
  CHECK_THROWS_AS(w.m.input<float>("late", w.H), cortex::Error);
}

TEST_CASE("dimensions and handles that were moved from are as they were; a value says so") {
  Words w;
  const cortex::Dim H = std::move(w.H);
  const auto moved = std::move(w.leaf);
  const auto handle = std::move(w.h);
  CHECK(w.H == H);
  CHECK(refusal([&] {
          w.m.compute("x", w.H, [&](auto n, auto i) { return w.leaf(n, i) + moved(n, i) + w.h(left(n), i); });
        }) == "");
  CHECK(w.h.name() == handle.name());
  CHECK_THAT(refusal([&] {
               w.m.compute("y", H, [&](auto n, auto i) {
                 auto value = w.leaf(n, i) + 1;
                 const auto taken = std::move(value);
                 return taken + value;
               });
             }),
             Contains("a value is used after it was moved from"));
}

TEST_CASE("what was moved from, or is no value yet, is refused wherever it stands; a node is what it was") {
  const auto no_value = Contains("a value is used after it was moved from, or without having been given one");
  CHECK_THAT(refused([](Words& w, auto n, auto i) {
               auto value = w.leaf(n, i);
               const auto taken = std::move(value);
               return value;
             }),
             no_value);
  CHECK_THAT(refused([](Words& w, auto n, auto i) {
               decltype(w.leaf(n, i)) value;
               return value;
             }),
             no_value);
  CHECK_THAT(refused([](Words& w, auto n, auto i) {
               return sum(w.E, [&](auto) {
                 auto value = w.leaf(n, i);
                 const auto taken = std::move(value);
                 return value;
               });
             }),
             no_value);
  CHECK_THAT(refused([](Words& w, auto n, auto i) {
               const auto taken = std::move(i);
               return w.leaf(n, i);
             }),
             no_value);
  Words w;
  CHECK_THAT(refusal([&] {
               w.m.if_then_else(
                   [](auto n) {
                     auto leaf = is_leaf(n);
                     const auto taken = std::move(leaf);
                     return leaf;
                   },
                   w.leaf, w.leaf);
             }),
             no_value);
  CHECK_THAT(refusal([&] {
               w.m.switch_(
                   "cell",
                   [](auto n) {
                     auto key = word(n);
                     const auto taken = std::move(key);
                     return key;
                   },
                   cortex::when(0, w.leaf), cortex::otherwise(w.leaf));
             }),
             no_value);
  CHECK(refusal([&] {
          w.m.compute("x", w.H, [&](auto n, auto i) {
            const auto taken = std::move(n);
            return w.leaf(n, i) + w.h(left(n), i) * w.Emb(word(n), i);
          });
        }) == "");
}

TEST_CASE("the branches of a switch have names that are free, and its key is asked for once") {
  Words w;
  w.m.compute("cell_1", w.H, [&](auto n, auto i) { return 2 * w.leaf(n, i); });
  int asked = 0;
  const auto key = [&](auto n) {
    ++asked;
    return word(n);
  };
  CHECK(refusal([&] {
          w.m.switch_("cell", key, cortex::when(0, w.leaf), cortex::when(1, w.leaf), cortex::when(2, w.leaf));
        }) == "");
  CHECK(w.m.graph().find("cell") >= 0);
  CHECK(w.m.graph().find("cell_1_2") >= 0);
  CHECK(asked == 1);
}

TEST_CASE("a case that no node's kind can have is refused") {
  Words w;
  const auto cases = [&](auto value) {
    return refusal([&] {
      w.m.switch_(
          "cell", [](auto n) { return word(n); }, cortex::when(value, w.leaf), cortex::otherwise(w.leaf));
    });
  };
  enum class Huge : unsigned long long { most = ~0ull };
  CHECK_THAT(cases(~0ull), Contains("case 18446744073709551615 of a switch does not fit 32 bits"));
  CHECK_THAT(cases(Huge::most), Contains("case 18446744073709551615 of a switch does not fit 32 bits"));
  CHECK_THAT(cases(std::int64_t(1) << 40), Contains("case 1099511627776 does not fit 32 bits"));
  CHECK_THAT(cases(0xffffffffu), Contains("case 4294967295 does not fit 32 bits"));
  CHECK(cases(INT32_MIN) == "");
}

TEST_CASE("children are chosen by numbers that can be theirs") {
  Nodes t;
  const auto chosen = [&](auto&& k) {
    return refusal([&] { t.m.compute("x", t.H, [&](auto n, auto i) { return t.h(kids(n)[k(n, i)], i); }); });
  };
  CHECK_THAT(chosen([](auto, auto) { return -1; }),
             Contains("a child is chosen by a number that may be negative; keep it from below with max(..., 0)"));
  CHECK_THAT(chosen([](auto, auto i) { return i - 1; }), Contains("a number that may be negative"));
  CHECK_THAT(chosen([](auto n, auto) { return min(num_children(kids(n)), 3) - 4; }),
             Contains("a number that may be negative"));
  CHECK(chosen([](auto n, auto) { return num_children(kids(n)) - 1; }) == "");  // the last one, or none
  Model<Node> m("m", cortex::tree.with_max_children(2));
  auto h = m.placeholder<float>("h", t.H);
  CHECK_THAT(refusal([&] { m.compute("x", t.H, [&](auto n, auto i) { return h(kids(n)[2], i); }); }),
             Contains("child 2 is read, but nodes have at most 2 children"));
}

TEST_CASE("the position of a child has a bound only if the structure declares one") {
  Nodes t;
  CHECK_THAT(refusal([&] {
               t.m.compute("x", t.H, [&](auto n, auto i) {
                 return sum(kids(n), [&](auto k, auto p) { return t.U(p, i) * t.h(k, i); });
               });
             }),
             Contains("dimension 'hidden' of 'U' is indexed by the position of a child, which has no bound; declare "
                      "one with with_max_children"));
  Model<Node> m("m", cortex::tree.with_max_children(4));
  auto h = m.placeholder<float>("h", t.H);
  auto U = m.input<float>("U", Dim("position", 3), t.H);
  CHECK_THAT(refusal([&] {
               m.compute("x", t.H, [&](auto n, auto i) {
                 return sum(kids(n), [&](auto k, auto p) { return U(p, i) * h(k, i); });
               });
             }),
             Contains("is indexed by 0 to 3, but has 3 elements"));
}

TEST_CASE("a call that fails adds nothing, not even accessors or the fields that it read") {
  Words w;
  const std::size_t fields = w.m.graph().fields.size();
  CHECK_FALSE(refusal([&] {
                w.m.compute("x", w.H, [&](auto n, auto i) { return w.h(left(n), i) * age(n) * word(n) + w.W(i, 9); });
              }).empty());
  CHECK(w.m.graph().ops.size() == 4);
  CHECK(w.m.graph().fields.size() == fields);
  CHECK(w.m.graph().children_named.empty());
}

}  // namespace
