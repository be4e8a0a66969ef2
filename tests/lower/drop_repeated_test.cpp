// What a recursion has computed at all nodes, and recursions after it read as well, is computed once.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/lowering.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int hidden = 8;

/// h = a sum(h of the children) + x, y = h + l x, where x is `of(product, n, i)` of a product of the node's word.
template <class Of>
auto read_twice(Of of) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("read_twice", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H);
  auto a = m.input<float>("a", H), l = m.input<float>("l", H);
  auto h_of = m.placeholder<float>("h", H);
  auto x = m.compute(
      "x", H, [&](auto n, auto i) { return of(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }), n, i); });
  auto body = m.compute(
      "body", H, [&](auto n, auto i) { return a(i) * sum(kids(n), [&](auto k) { return h_of(k, i); }) + x(n, i); });
  auto h = m.recursion(h_of, body);
  return m.program(m.output<float>("y", H, [&](auto n, auto i) { return h(n, i) + l(i) * x(n, i); }), h);
}

template <class Program>
int products(const Program& program, const Schedule& schedule) {
  return count(ir::print(lower::lower(program.graph(), schedule)), "fma(W[");
}

template <class Program>
std::vector<float> values(const Program& program, const Schedule& schedule, const Target& target) {
  auto model = compile(program, schedule, CompileOptions{}.on(target));
  model.bind_together([&] {
    model.bind("Emb", uniform(num_words * hidden, 1, 1)).bind("W", uniform(hidden * hidden, 0.3f, 2));
    model.bind("a", uniform(hidden, 0.5f, 3)).bind("l", uniform(hidden, 1, 4));
  });
  Random random(3);
  const Forest forest = random_forest(random, {ra::StructureKind::tree}, 30);
  const auto result = model(forest.roots);
  std::vector<float> all;
  for (const auto& vertex : forest.all) {
    const auto own = result.node(vertex.get());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

template <class Program>
void check(const Program& program) {
  CHECK(products(program, Schedule::standard()) == 1);
  CHECK(products(program, Schedule{}.dynamic_batch()) == 1);
  const std::vector<float> expected = values(program, Schedule{}, Target::interpreter());
  const std::vector<float> own = values(program, Schedule::standard(), best_target());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(own[i] == Approx(expected[i]).margin(1e-5));
}

}  // namespace

TEST_CASE("a product that a recursion and an output after it read is made once", "[lower]") {
  check(read_twice([](auto product, auto, auto) { return product; }));
  check(read_twice([](auto product, auto, auto) { return silu(product); }));
  check(read_twice([](auto product, auto n, auto) { return product * cast<float>(word(n)); }));
}
