// Sums over what is put together of several tensors, and loops over it.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using cortex::test::count;

namespace {

struct Cell {
  int word = 0;
  const Cell *left = nullptr, *right = nullptr;
  std::vector<const Cell*> kids;
};
constexpr auto word = cortex::field<&Cell::word>;
constexpr auto left = cortex::optional_child<&Cell::left>;
constexpr auto right = cortex::optional_child<&Cell::right>;
constexpr auto kids = cortex::children<&Cell::kids>;

constexpr int hidden = 20, input = 12;

/// h = tanh(W [x, a, b] + g), of a word's vector, the left child's state and the sum of the children's; how that is
/// written.
enum class Written : std::uint8_t { apart, in_the_sum, in_an_operator };

auto cell(Written written) {
  Dim V{"vocabulary"}, X("input", input), H("hidden", hidden), D("all", input + 2 * hidden);
  Model<Cell> m("cell", cortex::tree);
  auto Emb = m.input<float>("Emb", V, X), W = m.input<float>("W", H, D);
  auto h = m.placeholder<float>("h", H);
  const auto children = [=](auto n, auto j) { return sum(kids(n), [=](auto k) { return h(k, j); }); };
  const auto all = [=](auto n, auto j) {
    return select(j < input, Emb(word(n), min(j, input - 1)),
                  select(input + hidden > j, h(left(n), min(max(j - input, 0), hidden - 1)),
                         children(n, max(j - (input + hidden), 0))));
  };
  if (written == Written::apart)
    return m.recursion_op(h, m.compute("body", H, [&](auto n, auto i) {
      return tanh(sum(X, [&](auto j) { return W(i, j + 0) * Emb(word(n), j); }) +
                  sum(H, [&](auto j) { return W(i, j + input) * h(left(n), j); }) +
                  sum(H, [&](auto j) { return W(i, j + (input + hidden)) * children(n, j); }));
    }));
  if (written == Written::in_the_sum)
    return m.recursion_op(h, m.compute("body", H, [&](auto n, auto i) {
      return tanh(sum(D, [&](auto j) { return W(i, j) * all(n, j); }));
    }));
  auto made = m.compute("made", D, [&](auto n, auto j) { return all(n, j); });
  return m.recursion_op(h, m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(D, [&](auto j) { return W(i, j) * made(n, j); }));
  }));
}

}  // namespace

TEST_CASE("a sum over what is put together is as many sums", "[lower]") {
  const Cell a{3}, b{1}, c{4}, inner{2, &a, &b, {&a, &b}}, top{0, &inner, &c, {&c, &inner}};
  for (const Schedule& schedule : {Schedule(), Schedule::standard(), Schedule::standard().workers(2)}) {
    std::vector<float> first;
    std::string loops;
    for (const Written written : {Written::apart, Written::in_the_sum, Written::in_an_operator}) {
      CompileOptions options;
      options.target = cortex::test::best_target();
      auto model = compile(cell(written), schedule, options);
      model.bind("Emb", cortex::test::uniform(5 * input, 1, 1));
      model.bind("W", cortex::test::uniform(hidden * (input + 2 * hidden), 0.3f, 2));
      const auto output = model(top);
      const std::vector<float> values(&output[0][0], &output[0][0] + hidden);
      const std::string scheduled = ir::print(model.executable().scheduled.body);
      INFO(scheduled);
      if (written == Written::apart) first = values, loops = scheduled;
      // The interpreter rounds to f32 only what goes to memory, and which sums do is another matter in each form.
      if (cortex::test::built_with_llvm()) CHECK(values == first);
      for (std::size_t i = 0; i < first.size(); ++i) CHECK(values[i] == Approx(first[i]).margin(1e-6));
      CHECK(count(scheduled, "select") == 0);
      CHECK(count(scheduled, "for ") == count(loops, "for "));
      if (!(schedule == Schedule())) CHECK(count(scheduled, "made[") == 0);
    }
  }
}

namespace {

/// A state of `first` and `second` elements after each other, each made by a function of two of the children.
std::string scheduled_halves(int first, int second, bool functions) {
  Dim H("hidden", first + second);
  Model<Cell> m("halves", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  const auto plain = [&](auto n, auto i) { return select(i < first, 1 + h(left(n), i) * 2, h(right(n), i) * 0.5f); };
  const auto dear = [&](auto n, auto i) { return select(i < first, 1 + tanh(h(left(n), i)), sin(h(right(n), i))); };
  auto body = functions ? m.compute("body", H, dear) : m.compute("body", H, plain);
  return cortex::test::text_after("cut_ranges", m.recursion_op(h, body).graph(), Schedule::standard(),
                                  cortex::test::machine(64));
}

}  // namespace

TEST_CASE("a loop over elements is cut where its condition changes", "[lower]") {
  const std::string halves = scheduled_halves(20, 12, false);
  INFO(halves);
  CHECK(count(halves, "select") == 0);
  CHECK(count(halves, "h[node.2,i.4] = 1.0 + h[left(node.2),i.4] * 2.0") == 1);
  CHECK(count(halves, "h[node.2,i.5 + 20] = h[right(node.2),i.5 + 20] * 0.5") == 1);
  CHECK(count(scheduled_halves(32, 5, true), "select") == 0);
  // Functions of part of a vector cost as much as those of a whole one.
  CHECK(count(scheduled_halves(20, 12, true), "= select(") == 1);
}

TEST_CASE("branches are specialized by the graph as it is written, which is what calls sort nodes by", "[lower]") {
  // Cut at r = 3 the sum is of two products with u, so that a side is worth a version of its own that was not before.
  Dim A("a", 33), B("b", 2), R("r", 4), Q("q", 4);
  Model<Cell> m("sides", cortex::dag);
  auto u = m.input<float>("u", A, B, Q), v = m.input<float>("v", A, B, Q);
  auto w = m.input<float>("w", A, B, R, Q);
  auto t = m.placeholder<float>("t", B);
  auto s = m.placeholder<float>("s", A, B);
  auto one = m.compute("one", A, B, [&](auto, auto i, auto) { return 0.5F + 0.0F * cast<float>(i); });
  auto other = m.compute("other", A, B, [&](auto, auto i, auto j) {
    return sum(R, [&](auto r) {
      return sum(Q,
                 [&](auto q) { return u(i, j, q) * select(r < 3 && i < 1, 0.5F, 0.0F) - v(i, j, q) - w(i, j, r, q); });
    });
  });
  auto tree = m.recursion(
      t, m.compute("below", B, [&](auto n, auto j) { return 0.5F + sum(kids(n), [&](auto k) { return t(k, j); }); }));
  auto sides = m.recursion(s, m.if_then_else(
                                  "side", [&](auto n) { return word(n) == 2; }, one, other));
  const auto program = m.program(sides, tree);
  CHECK(lower::lower(program.graph(), Schedule::standard()).parts ==
        ra::questions(program.graph(), Schedule::standard()).parts());
  auto model = test::compile_here(program);
  model.bind("u", std::vector<float>(33 * 8, 0.5F)).bind("v", std::vector<float>(33 * 8, 0.5F));
  model.bind("w", std::vector<float>(33 * 32, 0.25F));
  const Cell leaf{1}, top{3, nullptr, nullptr, {&leaf}};
  std::vector<float> values(66);
  model(top).copy_root(0, "s", values);
  CHECK(values[0] == Approx(3 * 4 * 0.25 - 8 - 4));
  CHECK(values[65] == Approx(-8 - 4));
}
