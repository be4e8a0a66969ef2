// Outputs whose last dimension is short: tiles of several of them go side by side.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Step {
  int word = 0;
  const Step* before = nullptr;
};
constexpr auto word = cortex::field<&Step::word>;
constexpr auto before = cortex::optional_child<&Step::before>;

constexpr int words = 5;

/// h = tanh(x + U h(before)) for states [parts, width].
auto rnn(int parts, int width) {
  const Dim V("vocabulary", words), P("parts", parts), D("width", width);
  Model<Step> m("rnn", sequence);
  auto Emb = m.input<float>("Emb", V, P, D);
  auto U = m.input<float>("U", P, D, P, D);
  auto h = m.placeholder<float>("h", P, D);
  return m.recursion_op(h, m.compute("body", P, D, [&](auto n, auto p, auto d) {
    return tanh(Emb(word(n), p, d) +
                sum(P, [&](auto q) { return sum(D, [&](auto e) { return U(p, d, q, e) * h(before(n), q, e); }); }));
  }));
}

std::vector<float> last_state(int parts, int width, const Target& target, int workers) {
  auto model = compile_here(rnn(parts, width), Schedule::standard().workers(workers), target);
  model.use(std::make_shared<Workers>(1));
  const int size = parts * width;
  model.bind("Emb", uniform(std::size_t(words * size), 1, 1)).bind("U", uniform(std::size_t(size * size), 0.2F, 2));
  std::vector<Step> steps(4);
  for (int s = 0; s < 4; ++s) steps[std::size_t(s)] = {s, s ? &steps[std::size_t(s) - 1] : nullptr};
  std::vector<float> state(static_cast<std::size_t>(size));
  model(steps.back()).copy_root(0, "h", state);
  return state;
}

/// How many iterations of the loop over parts go side by side for a single row.
int at_once(int parts, int width) {
  const std::string text = text_after("tile_nests", rnn(parts, width).graph(), Schedule::standard(), machine(32));
  int most = 1;
  for (int several = 2; several <= parts; ++several)
    if (text.find(" * " + std::to_string(several) + " + " + std::to_string(several - 1) + ",") != text.npos)
      most = several;
  return most;
}

}  // namespace

TEST_CASE("tiles of few sums go side by side, so many that additions need not wait for each other", "[schedule]") {
  CHECK(at_once(16, 8) == 8);   // one vector each
  CHECK(at_once(16, 16) == 4);  // two vectors
  CHECK(at_once(15, 8) == 5);   // which divides them
  CHECK(at_once(13, 8) == 1);
  CHECK(at_once(4, 64) == 1);  // eight vectors
}

TEST_CASE("tiles that go side by side compute what the others do", "[schedule][equality]") {
  for (const auto& [parts, width] : {std::pair(16, 4), std::pair(16, 8), std::pair(6, 20), std::pair(5, 3)}) {
    const std::vector<float> expected = last_state(parts, width, Target::interpreter(), 1);
    for (const Target& target : all_targets())
      for (const int workers : {1, 2}) {
        CAPTURE(parts, width, target.cpu, workers);
        const std::vector<float> values = last_state(parts, width, target, workers);
        for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
      }
  }
}
