// Arithmetic where it is easy to get wrong: integers that are negative or too large, deep expressions, and threads
// whose floating-point settings are not the usual ones.
#include <array>
#include <catch2/catch.hpp>
#include <cfenv>
#include <climits>
#include <cmath>
#include <memory>
#include <vector>

#include "support/compile.hpp"

using namespace cortex;
using Catch::Matchers::Contains;

namespace {

struct Step {
  int a = 0, b = 0;
  const Step* next = nullptr;
};
constexpr auto a = field<&Step::a>;
constexpr auto b = field<&Step::b>;
constexpr auto next = optional_child<&Step::next>;

constexpr int hidden = 16, rows = 10;

/// The sum over a sequence of what row `index(n)` of a table of ten has; row r holds 100 + r.
template <class Index>
auto reader(const Index& index) {
  Dim V{"rows"}, H{"hidden", hidden};
  Model<Step> m("reader", sequence);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return Emb(index(n), i) + h(next(n), i); });
  auto model = test::compile_here(m.recursion_op(h, body));
  std::vector<float> table;
  for (int r = 0; r < rows; ++r) table.insert(table.end(), hidden, float(100 + r));
  return model.bind("Emb", table);
}

/// What the model says of a lone step, as text where that is refused.
template <class Model>
std::string answer(const Model& model, const Step& step) {
  auto result = model.try_call(step);
  return result ? std::to_string(int((*result)[0][0])) : result.error().message;
}

#if defined(__x86_64__)
constexpr unsigned flush_to_zero = 0x8000, toward_zero = 0x6000, traps_unmasked = 0x1f80 & ~0x0680u;

/// While it lives, this thread computes with these bits of MXCSR changed.
class Settings {
 public:
  explicit Settings(unsigned set, unsigned clear = 0) { __builtin_ia32_ldmxcsr((kept_ | set) & ~clear & ~0x3fu); }
  ~Settings() { __builtin_ia32_ldmxcsr(kept_); }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  const unsigned kept_ = __builtin_ia32_stmxcsr();
};
#endif

}  // namespace

TEST_CASE("an index that overflows on the way to its value is refused, though its value would not be", "[integers]") {
  const auto product = reader([](auto n) { return min(a(n) * b(n), 5); });
  CHECK(answer(product, {2, 2}) == "104");
  CHECK(answer(product, {70, 70}) == "105");
  CHECK_THAT(answer(product, {65536, 32768}),
             Contains("reads 'Emb' at an index that does not fit 32 bits on the way to its value") &&
                 Contains("field 'a' of node 0 (65536) and field 'b' of node 0 (32768)"));
  CHECK_THAT(answer(product, {INT_MIN, INT_MIN}), Contains("does not fit 32 bits"));
  const auto negated = reader([](auto n) { return min(-a(n), 9); });
  CHECK(answer(negated, {-7}) == "107");
  CHECK_THAT(answer(negated, {INT_MIN}), Contains("does not fit 32 bits"));
  const auto chosen = reader([](auto n) { return select(a(n) * a(n) < 0, b(n), 3); });
  CHECK(answer(chosen, {4, 1000}) == "103");
  CHECK_THAT(answer(chosen, {46341, 1000}), Contains("does not fit 32 bits"));
  CHECK(answer(product, {2, 2}) == "104");  // and it works on
}

namespace {

struct Bush {
  int word = 0;
  std::vector<const Bush*> kids;
};
constexpr auto bush_word = field<&Bush::word>;
constexpr auto bush_kids = children<&Bush::kids>;

/// What row `index(n)` of a table of six has, at inner nodes, and 0 at leaves, each with the sum over the children; row
/// r holds 100 + r.
template <class Index>
auto inner_reader(const Index& index, const Schedule& schedule, const Target& target) {
  Dim R{"rows", 6}, H{"hidden", hidden};
  Model<Bush> m("inner_reader", tree.with_max_children(6));
  auto T = m.input<float>("T", R, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto, auto i) { return 0 * T(0, i); });
  auto inner = m.compute(
      "inner", H, [&](auto n, auto i) { return T(index(n), i) + sum(bush_kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  auto model = compile(m.recursion_op(h, body), schedule, CompileOptions{}.on(target));
  std::vector<float> table;
  for (int r = 0; r < 6; ++r) table.insert(table.end(), hidden, float(100 + r));
  return model.bind("T", table);
}

/// A node of so many leaves.
struct Broom {
  explicit Broom(int count, int word = 0) : leaves(std::size_t(count)), root{word, {}} {
    for (const Bush& leaf : leaves) root.kids.push_back(&leaf);
  }
  Broom(const Broom&) = delete;
  Broom& operator=(const Broom&) = delete;

  std::vector<Bush> leaves;
  Bush root;
};

}  // namespace

TEST_CASE("an index whose interval is wider than its values is taken, and checked in calls where it is read",
          "[integers]") {
  const auto count = [](auto n) { return num_children(bush_kids(n)); };
  for (const Target& target : {test::best_target(), Target::interpreter()})
    for (const Schedule& schedule : {Schedule{}, Schedule::standard()}) {
      INFO((schedule.batched ? "in batches, " : "node by node, ")
           << (target.backend == Backend::interpreter ? "interpreter" : "compiled"));
      const auto reads = [&](auto index, auto expected) {
        const auto model = inner_reader(index, schedule, target);
        for (int c = 1; c <= 6; ++c) {
          INFO(c << " children");
          const Broom broom(c, 2 * c);
          const auto result = model.try_call(broom.root);
          const int row = expected(c, 2 * c);
          if (row >= 0 && row < 6) {
            REQUIRE(result);
            CHECK((*result)[0][0] == float(100 + row));
          } else {
            REQUIRE(!result);
            CHECK(result.error().code == Code::out_of_range);
            CHECK(result.error().node == &broom.root);
            CHECK_THAT(result.error().message, Contains("operator 'inner' of model 'inner_reader' reads 'T' at index " +
                                                        std::to_string(row) + " of dimension 'rows', which has 6"));
          }
        }
      };
      reads([&](auto n) { return count(n) - 1; }, [](int c, int) { return c - 1; });  // which leaves do not read
      reads([&](auto n) { return count(n); }, [](int c, int) { return c; });
      reads([&](auto n) { return count(n) * (6 - count(n)) / 2; }, [](int c, int) { return c * (6 - c) / 2; });
      reads([&](auto n) { return select(count(n) > 3, count(n) - 3, count(n) + 2); },
            [](int c, int) { return c > 3 ? c - 3 : c + 2; });
      reads([&](auto n) { return count(n) - count(n) / 2 * 2 + 4; }, [](int c, int) { return c % 2 + 4; });
      reads([&](auto n) { return max(bush_word(n), 0) % 6 - max(bush_word(n), 0) % 6 % 4; },
            [](int, int word) { return word % 6 - word % 6 % 4; });
    }
}

TEST_CASE("a child before the first is absent in code for leaves too, which know how many children they have",
          "[integers]") {
  constexpr auto above = parents<bush_kids>;
  Dim H{"hidden", hidden};
  Model<Bush> m("only_children", tree);
  auto h = m.placeholder<float>("h", H);
  const auto of_parent = [&](auto k) {
    return [=](auto n, auto i) { return 1 + cast<float>(bush_word(n)) + h(above(n)[k(n)], i); };
  };
  const auto number = [](auto n) { return num_children(bush_kids(n)) - 1; };
  auto leaf = m.compute("leaf", H, of_parent(number)), inner = m.compute("inner", H, of_parent(number));
  auto down = m.recursion(h, m.if_then_else(
                                 "body", [](auto n) { return is_leaf(n); }, leaf, inner));
  const auto model = test::compile_here(m.program(down));
  Bush left{1, {}}, right{2, {}}, stem{4, {&left}}, root{8, {&stem, &right}};
  const auto result = model(root);
  CHECK(result[0][0] == 9);
  CHECK(result.node(&stem)[0] == 5 + 9);  // of one child: it reads its first parent
  CHECK(result.node(&left)[0] == 2);
  CHECK(result.node(&right)[0] == 3);
}

TEST_CASE("the last child is read by its number, and absent where there is none", "[integers]") {
  Dim H{"hidden", hidden};
  for (const Structure& kind : {Structure(tree), tree.with_max_children(6)}) {
    Model<Bush> m("last", kind);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return cast<float>(bush_word(n)) + h(bush_kids(n)[num_children(bush_kids(n)) - 1], i);
    });
    const auto model = test::compile_here(m.recursion_op(h, body));
    Bush a{1, {}}, b{2, {}}, c{4, {&a, &b}}, root{8, {&c}};
    CHECK(model(root)[0][0] == 8 + 4 + 2);
    CHECK(model(a)[0][0] == 1);
  }
}

TEST_CASE("arithmetic on a child's position that overflows is refused where there are so many children", "[integers]") {
  struct Node {
    std::vector<const Node*> kids;
  };
  constexpr auto kids = children<&Node::kids>;
  Dim V{"rows", rows}, H{"hidden", hidden};  // of known extents: only arithmetic on the position needs a check
  Model<Node> m("positions", tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return 1 + sum(kids(n), [&](auto k, auto position) { return h(k, i) * Emb(min(position * 1000003, 5), i); });
  });
  auto model = test::compile_here(m.recursion_op(h, body));
  model.bind("Emb", std::vector<float>(rows * hidden, 1.0f));
  const std::vector<Node> leaves(3000);
  Node root;
  for (const Node& leaf : leaves) root.kids.push_back(&leaf);
  auto result = model.try_call(root);
  REQUIRE(!result);
  CHECK_THAT(result.error().message, Contains("does not fit 32 bits"));
  root.kids.resize(2000);
  CHECK(model(root)[0][0] == 2001);
}

TEST_CASE("a child before the first is absent, however its number is reached", "[integers]") {
  struct Node {
    std::vector<const Node*> kids;
  };
  constexpr auto kids = children<&Node::kids>;
  Dim H{"hidden", hidden};
  Model<Node> m("chosen", tree);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return 1 + h(kids(n)[2 - num_children(kids(n))], i) + h(kids(n)[num_children(kids(n)) * 1000003], i) +
           h(kids(n)[num_children(kids(n)) + 2147483000], i);
  });
  const auto model = test::compile_here(m.recursion_op(h, body));
  const std::vector<Node> leaves(3000);
  Node root;
  for (const Node& leaf : leaves) {
    root.kids.push_back(&leaf);
    if (root.kids.size() < 4 || root.kids.size() > 2998) {
      INFO(root.kids.size());
      CHECK(model(root)[0][0] == (root.kids.size() == 1 ? 1 : root.kids.size() == 2 ? 2 : 1));
    }
  }
}

TEST_CASE("arrays of nodes that share a name have checks of their own", "[integers]") {
  struct Long {
    std::array<int, 64> ids{};
  };
  struct Short {
    std::array<int, 3> ids{};
  };
  struct Node {
    int at = 0;
    Long x;
    Short y;
    const Node* next = nullptr;
  };
  constexpr auto x_ids = field<&Node::x, &Long::ids>;
  constexpr auto y_ids = field<&Node::y, &Short::ids>;
  constexpr auto at = field<&Node::at>;
  Dim H{"hidden", hidden};
  Model<Node> m("arrays", sequence);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return cast<float>(x_ids(n)[at(n)] + 1000 * y_ids(n)[at(n)]) + h(optional_child<&Node::next>(n), i);
  });
  const auto model = test::compile_here(m.recursion_op(h, body));
  Node node;
  node.x.ids.fill(2), node.y.ids.fill(1);
  node.at = 2;
  CHECK(model(node)[0][0] == 1002);
  for (const int past : {3, 17, 63, 64, -1}) {
    node.at = past;
    const auto result = model.try_call(node);
    INFO(past);
    REQUIRE(!result);
    CHECK_THAT(result.error().message, Contains("field 'at' of node 0"));
  }
}

TEST_CASE("negative fields are divided as in C++", "[integers]") {
  const auto bucket = reader([](auto n) { return a(n) % 5 + 4; });
  const auto half = reader([](auto n) { return a(n) / 4 + 5; });
  for (const int value : {-9, -8, -7, -5, -4, -1, 0, 3, 14}) {
    CHECK(answer(bucket, {value}) == std::to_string(100 + value % 5 + 4));
    CHECK(answer(half, {value}) == std::to_string(100 + value / 4 + 5));
  }
  CHECK_THAT(answer(bucket, {14}), Contains("108"));

  Dim H{"hidden", hidden};
  Model<Step> m("data", sequence);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute(
      "body", H, [&](auto n, auto i) { return cast<float>(a(n) / 2) + 100 * cast<float>(a(n) % 7) + h(next(n), i); });
  const auto model = test::compile_here(m.recursion_op(h, body));
  for (const int value : {-5, -14, -1, 0, 1, 22})
    CHECK(model(Step{value})[0][hidden - 1] == float(value / 2) + 100 * float(value % 7));
}

TEST_CASE("what decides a branch may be nested, and where it is too much to specialize that is said", "[deep]") {
  const auto branch = [](int depth) {
    Dim H{"hidden", hidden};
    Model<Step> m("branch", sequence);
    auto w = m.input<float>("w", H);
    auto h = m.placeholder<float>("h", H);
    auto even = m.compute("even", H, [&](auto n, auto i) { return w(i) + h(next(n), i); });
    auto odd = m.compute("odd", H, [&](auto n, auto i) { return w(i) * 3 + h(next(n), i); });
    auto body = m.if_then_else(
        "parity",
        [&](auto n) {
          auto key = a(n) % 2;
          for (int k = 0; k < depth; ++k) key = a(n) - (a(n) - key);
          return key == 0;
        },
        even, odd);
    auto model = test::compile_here(m.recursion_op(h, body), Schedule{}.dynamic_batch().specialize_if_else("parity"));
    model.bind("w", std::vector<float>(hidden, 1));
    const Step last{2}, middle{3, 0, &last}, first{5, 0, &middle};
    return model(first)[0][1];
  };
  CHECK(branch(1) == 7);
  CHECK(branch(25) == 7);
  CHECK_THROWS_WITH(branch(40), Contains("a branch holds more than 64 values at once and cannot be specialized"));
}

TEST_CASE("expressions of hundreds of terms, and hundreds of operators in a row, compile", "[deep]") {
  Dim H{"hidden", hidden};
  {
    Model<Step> m("terms", sequence);
    auto w = m.input<float>("w", H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      auto sum = w(i) + h(next(n), i);
      for (int k = 1; k < 300; ++k) sum = sum + w(i) * float(k);
      return sum;
    });
    auto model = test::compile_here(m.recursion_op(h, body));
    model.bind("w", std::vector<float>(hidden, 1));
    CHECK(model(Step{})[0][3] == Approx(1 + 299 * 300 / 2));
  }
  Model<Step> m("operators", sequence);
  auto w = m.input<float>("w", H);
  auto h = m.placeholder<float>("h", H);
  auto value = m.compute("begin", H, [&](auto n, auto i) { return w(i) + h(next(n), i); });
  for (int k = 0; k < 60; ++k)
    value = m.compute("step" + std::to_string(k), H,
                      [&, from = value](auto n, auto i) { return from(n, i) * 0.5f + w(i); });
  auto model = test::compile_here(m.recursion_op(h, value));
  model.bind("w", std::vector<float>(hidden, 1));
  CHECK(model(Step{})[0][3] == Approx(2));
}

TEST_CASE("a branch between numbers is a state and is read, under every schedule", "[branch]") {
  Dim H{"hidden", hidden};
  Model<Step> m("numbers", sequence);
  auto w = m.input<float>("w", H);
  auto h = m.placeholder<float>("h"), g = m.placeholder<float>("g");
  auto even = m.compute("even", [&](auto n) { return w(0) + h(next(n)); });
  auto odd = m.compute("odd", [&](auto n) { return w(1) * 3 + g(next(n)); });
  auto pick = m.if_then_else(
      "pick", [](auto n) { return a(n) % 2 == 0; }, even, odd);
  auto twice = m.compute("twice", [&](auto n) { return pick(n) * 2; });
  const auto program = m.recursion_op(h, pick, g, twice);
  const Step last{2}, middle{3, 0, &last}, first{4, 0, &middle};
  for (const Schedule& schedule : {Schedule::standard(), Schedule(), Schedule().dynamic_batch()}) {
    auto model = test::compile_here(program, schedule);
    model.bind("w", std::vector<float>(hidden, 1));
    const auto result = model(first);
    CHECK(result.root(0, h)[0] == 6);  // 1 + (3 + 2 * 1)
    CHECK(result.root(0, g)[0] == 12);
  }
}

TEST_CASE("a sum may be summed again beside itself", "[deep]") {
  Dim H{"hidden", hidden};
  Model<Step> m("again", sequence);
  auto w = m.input<float>("w", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    auto s = sum(H, [&](auto j) { return w(j) + h(next(n), j); });
    return s * sum(H, [&](auto) { return s; }) + w(i);
  });
  const auto program = m.recursion_op(h, body);
  for (const Schedule& schedule : {Schedule::standard(), Schedule()}) {
    auto model = test::compile_here(program, schedule);
    model.bind("w", std::vector<float>(hidden, 0.25f));
    CHECK(model(Step{})[0][0] == 4 * (hidden * 4) + 0.25f);
  }
}

TEST_CASE("a mean over no children is 0, and a sum divided by their number is 0 / 0, under every schedule",
          "[children]") {
  struct Many {
    std::vector<const Many*> in;
  };
  constexpr auto in = children<&Many::in>;
  Dim H{"hidden", hidden};
  Model<Many> m("means", tree);
  auto w = m.input<float>("w", H);
  auto h = m.placeholder<float>("h", H), g = m.placeholder<float>("g", H);
  auto mean_body = m.compute("mean_body", H, [&](auto n, auto i) {
    return w(i) + mean(in(n), [&](auto k) { return h(k, i); }) + mean(H, [&](auto j) { return w(j); });
  });
  auto divided = m.compute("divided", H, [&](auto n, auto i) {
    return w(i) + sum(in(n), [&](auto k) { return g(k, i); }) / num_children(in(n));
  });
  const auto program = m.recursion_op(h, mean_body, g, divided);
  const Many leaf, other, top{{&leaf, &other}};
  for (const Schedule& schedule :
       {Schedule::standard(), Schedule(), Schedule().dynamic_batch(), Schedule().dynamic_batch().specialize_leaves(),
        Schedule::standard().unroll("h", 2)}) {
    auto model = test::compile_here(program, schedule);
    model.bind("w", std::vector<float>(hidden, 3));
    const auto result = model(top);
    CHECK(result.node(&leaf, h)[0] == 6);
    CHECK(result.node(&top, h)[0] == 12);
    CHECK(std::isnan(result.node(&leaf, g)[0]));
    CHECK(std::isnan(result.node(&top, g)[0]));
  }
}

TEST_CASE("a lambda may use its own values again and again", "[deep]") {
  const auto steps = [](auto e) {
    for (int k = 0; k < 25; ++k) e = e * sigmoid(e) + 0.4f;
    return e;
  };
  Dim H{"hidden", hidden};
  Model<Step> m("steps", sequence);
  auto w = m.input<float>("w", H, H);
  auto h = m.placeholder<float>("h", H);
  auto joined = m.compute("joined", H, [&](auto n, auto i) {
    return steps(sum(H, [&](auto j) { return w(i, j) * steps(h(next(n), j)); }));
  });
  auto state = m.recursion(h, joined);
  auto mean =
      m.readout<float>("mean", [&](auto r) { return steps(sum(H, [&](auto i) { return steps(state(r, i)); })); });
  auto model = test::compile_here(m.program(state, mean));
  const std::vector<float> weights = test::uniform(hidden * hidden, 0.5f, 1);
  model.bind("w", weights);
  const auto by_hand = [](double e) {
    for (int k = 0; k < 25; ++k) e = e / (1 + std::exp(-e)) + double(0.4f);
    return e;
  };
  std::vector<double> expected(hidden, 0), below(hidden);
  for (int step = 0; step < 3; ++step) {
    below = expected;
    for (int i = 0; i < hidden; ++i) {
      double sum = 0;
      for (int j = 0; j < hidden; ++j)
        sum += double(weights[std::size_t(i * hidden + j)]) * by_hand(below[std::size_t(j)]);
      expected[std::size_t(i)] = by_hand(sum);
    }
  }
  const Step last{}, middle{0, 0, &last}, first{0, 0, &middle};
  const auto result = model(first);
  double sum = 0;
  for (int i = 0; i < hidden; ++i) {
    CHECK(result[0][std::size_t(i)] == Approx(expected[std::size_t(i)]).epsilon(1e-4));
    sum += by_hand(expected[std::size_t(i)]);
  }
  CHECK(result.root(0, mean)[0] == Approx(by_hand(sum)).epsilon(1e-4));
}

#if defined(__x86_64__)
TEST_CASE("results do not depend on how the calling thread rounds, nor on whether it keeps subnormal numbers",
          "[floating_point]") {
  Dim H{"hidden", hidden};
  Model<Step> m("sums", sequence);
  auto w = m.input<float>("w", H, H);
  auto x = m.input<float>("x", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H,
                        [&](auto n, auto i) { return x(i) + sum(H, [&](auto j) { return w(i, j) * h(next(n), j); }); });
  const auto program = m.recursion_op(h, body);
  for (const int threads : {0, 1}) {
    CompileOptions options = CompileOptions{}.on(test::best_target());
    if (threads) options = options.with_workers(std::make_shared<Workers>(threads));
    auto model = compile(program, Schedule::standard().workers(threads + 1), options);
    for (const bool subnormal : {false, true}) {
      const auto values = [&](std::size_t count, unsigned seed) {
        return test::uniform(count, subnormal ? 1e-20f : 0.3f, seed);
      };
      model.bind("w", values(hidden * hidden, 1)).bind("x", values(hidden, 2));
      const Step last{}, middle{0, 0, &last}, first{0, 0, &middle};
      const auto call = [&] {
        std::vector<float> out(hidden);
        model(first, out);
        return out;
      };
      const std::vector<float> expected = call();
      for (const unsigned set : {flush_to_zero, toward_zero}) {
        const Settings settings(set);
        const std::vector<float> got = call();
        CHECK((__builtin_ia32_stmxcsr() & set) == set);  // the thread's own are back
        CHECK(got == expected);
      }
      const Settings settings(0, traps_unmasked ^ 0x1f80);
      CHECK(call() == expected);
    }
    model.bind("x", std::vector<float>(hidden, 3e38f)).bind("w", std::vector<float>(hidden * hidden, 3e38f));
    const Settings settings(0, traps_unmasked ^ 0x1f80);
    const Step last{}, first{0, 0, &last};
    CHECK(model(first)[0][0] == INFINITY);  // and no signal
  }
}

TEST_CASE("models are built and weights rounded alike however the thread rounds", "[floating_point]") {
  Dim H{"hidden", hidden};
  const auto made = [&](DType stored) {
    Model<Step> m("sums", sequence);
    auto w = m.input<float>("w", H, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute(
        "body", H, [&](auto n, auto i) { return 0.7 + sum(H, [&](auto j) { return w(i, j) * h(next(n), j); }); });
    return compile(m.recursion_op(h, body), Schedule::standard().store_weights(stored),
                   CompileOptions{}.on(test::best_target()));
  };
  const std::vector<float> weights = test::uniform(hidden * hidden, 0.3f, 3);
  const auto bound = [&](auto model) { return model.bind("w", weights); };
  const Step last{}, first{0, 0, &last};
  const auto states = [&](const auto& model) {
    std::vector<float> out(hidden);
    model(first, out);
    return out;
  };
  constexpr unsigned upward = 0x4000;
  for (const DType stored : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    INFO(to_string(stored));
    const std::vector<float> expected = states(bound(made(stored)));
    for (const unsigned set : {upward, toward_zero}) {
      const Settings settings(set);
      CHECK(states(bound(made(stored))) == expected);
    }
  }
}
#endif

TEST_CASE("the greatest of vectors is found by logic at every level of x86-64") {
  test::need_llvm();
  const Dim H{"hidden", hidden};
  Model<Step> m("greatest", sequence);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return max(h(next(n), i), cast<float>(a(n))); });
  const auto program = m.recursion_op(h, body);
  for (const int level : {2, 3, 4}) {
    if (Target::x86_64(level).vector_bytes > test::best_target().vector_bytes) continue;  // which this CPU does not run
    CAPTURE(level);
    const auto model = compile(program, Schedule::standard(), CompileOptions{}.on(Target::x86_64(level)));
    const std::string text = model.print("llvm");
    CHECK_THAT(text, Contains("fcmp ogt") && !Contains("@llvm.maximum.v"));
    CHECK((text.find("pternlog") != text.npos) == (level == 4));
  }
}
