// Sums whose operands have few values beside the number of places at which they are read: windows that go over a grid,
// and sums over several axes.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "support/compile.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Step {
  int word = 0;
  const Step* before = nullptr;
  std::array<int, 128> places{};
};
constexpr auto word = cortex::field<&Step::word>;
constexpr auto before = cortex::child<&Step::before>;
constexpr auto places_of = cortex::field<&Step::places>;

constexpr int words = 4, channels = 3, height = 5, width = 9, window = 3;
constexpr int places = height * width, kernel = channels * window * window;

/// h = tanh(W * x + U * h(before) + b), a convolution with what is 0 beyond the edges of the grid; how that is written.
enum class Written : std::uint8_t { in_the_sum, around_the_products, padded, padded_together };

template <Written written>
auto convolution() {
  const Dim V("vocabulary", words), C("channels", channels), Y("y", height), X("x", width), DY("dy", window),
      DX("dx", window), both("both", 2 * channels), PY("padded_y", height + 2), PX("padded_x", width + 2);
  Model<Step> m("convolution", sequence);
  auto Emb = m.input<float>("Emb", V, C, Y, X);
  auto K = m.input<float>("K", C, both, DY, DX);
  auto b = m.input<float>("b", C);
  auto h = m.placeholder<float>("h", C, Y, X);
  const auto at = [](auto i, int extent) { return min(max(i - 1, 0), extent - 1); };
  const auto is_inside = [](auto y, auto x) { return y >= 1 && y <= height && x >= 1 && x <= width; };
  const auto windows = [&](const auto& channel, auto product) {
    return sum(channel, [&](auto c) {
      return sum(DY, [&](auto dy) { return sum(DX, [&](auto dx) { return product(c, dy, dx); }); });
    });
  };
  const auto finished = [&](auto convolved) {
    return m.recursion_op(h, m.compute("body", C, Y, X, [&](auto n, auto o, auto y, auto x) {
      return tanh(b(o) + convolved(n, o, y, x));
    }));
  };
  if constexpr (written == Written::padded_together) {
    auto padded = m.compute("padded", both, PY, PX, [&](auto n, auto c, auto y, auto x) {
      return select(is_inside(y, x),
                    select(c < channels, Emb(word(n), min(c, channels - 1), at(y, height), at(x, width)),
                           h(before(n), max(c - channels, 0), at(y, height), at(x, width))),
                    0.0F);
    });
    return finished([&](auto n, auto o, auto y, auto x) {
      return windows(both, [&](auto c, auto dy, auto dx) { return K(o, c, dy, dx) * padded(n, c, y + dy, x + dx); });
    });
  } else if constexpr (written == Written::padded) {
    auto of_word = m.compute("of_word", C, PY, PX, [&](auto n, auto c, auto y, auto x) {
      return select(is_inside(y, x), Emb(word(n), c, at(y, height), at(x, width)), 0.0F);
    });
    auto of_state = m.compute("of_state", C, PY, PX, [&](auto n, auto c, auto y, auto x) {
      return select(is_inside(y, x), h(before(n), c, at(y, height), at(x, width)), 0.0F);
    });
    return finished([&](auto n, auto o, auto y, auto x) {
      return windows(C, [&](auto c, auto dy, auto dx) { return K(o, c + 0, dy, dx) * of_word(n, c, y + dy, x + dx); }) +
             windows(C, [&](auto c, auto dy, auto dx) {
               return K(o, c + channels, dy, dx) * of_state(n, c, y + dy, x + dx);
             });
    });
  } else {
    return finished([&](auto n, auto o, auto y, auto x) {
      return windows(C, [&](auto c, auto dy, auto dx) {
        const auto inside = is_inside(y + dy, x + dx);
        const auto of_word = Emb(word(n), c, at(y + dy, height), at(x + dx, width));
        const auto of_state = h(before(n), c, at(y + dy, height), at(x + dx, width));
        const auto w = K(o, c + 0, dy, dx), u = K(o, c + channels, dy, dx);
        if constexpr (written == Written::around_the_products)
          return select(inside, w * of_word + u * of_state, 0.0F);
        else
          return w * select(inside, of_word, 0.0F) + u * select(inside, of_state, 0.0F);
      });
    });
  }
}

std::vector<float> random_weights(const std::string& name) {
  if (name == "Emb") return uniform(words * channels * places, 1, 1);
  if (name == "K") return uniform(channels * 2 * kernel, 0.3F, 2);
  return uniform(channels, 0.3F, 3);
}

/// The state after the last of these words, by the equations.
std::vector<double> by_hand(const std::vector<int>& sentence) {
  const std::vector<float> Emb = random_weights("Emb"), K = random_weights("K"), b = random_weights("b");
  std::vector<double> h(channels * places, 0);
  for (const int w : sentence) {
    std::vector<double> next(h.size());
    for (int o = 0; o < channels; ++o)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          double sum = b[std::size_t(o)];
          for (int c = 0; c < 2 * channels; ++c)
            for (int dy = 0; dy < window; ++dy)
              for (int dx = 0; dx < window; ++dx) {
                const int v = y + dy - 1, u = x + dx - 1, of = c % channels * places + v * width + u;
                if (v < 0 || v >= height || u < 0 || u >= width) continue;
                sum += double(K[std::size_t(((o * 2 * channels + c) * window + dy) * window + dx)]) *
                       (c < channels ? double(Emb[std::size_t(w * channels * places + of)]) : h[std::size_t(of)]);
              }
          next[std::size_t(o * places + y * width + x)] = std::tanh(sum);
        }
    h = next;
  }
  return h;
}

template <class Program>
void check_convolution(const Program& program) {
  const std::vector<int> sentence{2, 0, 3, 1};
  std::vector<Step> steps;
  for (const int w : sentence) steps.push_back({w});
  for (std::size_t s = 1; s < steps.size(); ++s) steps[s].before = &steps[s - 1];
  const std::vector<double> expected = by_hand(sentence);
  for (const Target& target : all_targets())
    for (const int workers : {1, 2}) {
      CAPTURE(target.cpu, workers);
      auto model = compile_here(program, Schedule::standard().workers(workers), target);
      model.use(std::make_shared<Workers>(1));
      for (const char* name : {"Emb", "K", "b"}) model.bind(name, random_weights(name));
      std::vector<float> state(expected.size());
      model(steps.back()).copy_root(0, "h", state);
      for (std::size_t i = 0; i < state.size(); ++i) CHECK(state[i] == Approx(expected[i]).margin(1e-5));
    }
}

/// How often a sum makes a choice at each step.
template <class Program>
int choices_in_sums(const Program& program) {
  const std::string text = ir::print(lower::lower(program.graph(), Schedule::standard()).body);
  int found = 0;
  for (std::size_t at = text.find("fma("); at != text.npos; at = text.find("fma(", at + 1))
    found += text.substr(at, text.find('\n', at) - at).find("select(") != text.npos;
  CHECK(count(text, "fma(") > 0);
  return found;
}

template <Written written>
void check_written() {
  const auto program = convolution<written>();
  check_convolution(program);
  CHECK(choices_in_sums(program) == 0);
}

/// A recursion h = tanh(z), z(n, i) = f(m, H, h, n, i) for 32 elements. Without fields it gives what its equations
/// give.
template <class F>
std::string lowered_sum(F f) {
  const Dim H("hidden", 32);
  Model<Step> m("sums", sequence);
  auto h = m.placeholder<float>("h", H);
  auto z = m.compute("z", H, [&](auto n, auto i) { return f(m, H, h, n, i); });
  auto b = m.input<float>("b", H);  // or all states would be 0
  const auto program = m.recursion_op(h, m.compute("body", H, [&](auto n, auto i) { return tanh(z(n, i) + b(i)); }));
  if (program.graph().fields.empty()) CHECK(lowered_difference(program.graph()) == "");
  return ir::print(lower::lower(program.graph(), Schedule{}.dynamic_batch()));
}

/// How many elements a window of 9 that reads the state at `index(i, d)` sees, which are computed once; empty: each is
/// computed where it is read.
template <class Index>
std::string seen(Index index) {
  const std::string text = lowered_sum([&](auto& m, auto&, auto& h, auto n, auto i) {
    const Dim D("window", 9);
    auto K = m.template input<float>("K", D);
    return sum(D, [&](auto d) { return K(d) * relu(h(before(n), index(i, d))); });
  });
  const std::size_t at = text.find("_seen=");
  return at == text.npos ? std::string() : text.substr(at + 6, text.find_first_of(",]", at) - at - 6);
}

}  // namespace

TEST_CASE("a convolution chooses what is beyond the edges once, however it is written", "[lower]") {
  check_written<Written::in_the_sum>();
  check_written<Written::around_the_products>();
  check_written<Written::padded>();
  check_written<Written::padded_together>();
}

TEST_CASE("windows have their values in common at any stride and in any direction", "[lower]") {
  CHECK(seen([](auto i, auto d) { return min(i + d, 31); }) == "40");
  CHECK(seen([](auto i, auto d) { return max(i - d, 0); }) == "40");
  CHECK(seen([](auto i, auto d) { return min(max(d - 4 + i, 0), 31); }) == "40");
  CHECK(seen([](auto i, auto d) { return min(i * 2 + d, 31); }) == "71");
  CHECK(seen([](auto i, auto d) { return min(i + d * 3, 31); }) == "56");
  CHECK(seen([](auto i, auto d) { return min(i * 8 + d, 31); }).empty());  // of 288 places 257 differ
  CHECK(seen([](auto i, auto d) { return min(i + d, 31 - i); }).empty());  // of no sum alone
  CHECK(seen([](auto i, auto d) { return min(max(i + d, i - d), 31); }).empty());
}

TEST_CASE("what is summed over two axes is computed once for all outputs", "[lower]") {
  const std::string text = lowered_sum([](auto& m, auto& H, auto& h, auto n, auto i) {
    const Dim A("a", 4), B("b", 8);
    auto W = m.template input<float>("W", H, A, B);
    return sum(A, [&](auto a) { return sum(B, [&](auto b) { return W(i, a, b) * tanh(h(before(n), a * 8 + b)); }); });
  });
  INFO(text);
  CHECK(count(text, "tanh(h[") == 1);
  CHECK(text.find("fma(W[i") != text.npos);
  CHECK(count(text, "tanh(") == 2);  // of the state, and the state itself
  CHECK(text.find("z_pre[") < text.find("fma("));
}

TEST_CASE("a mask of a weight's own elements stays with the products", "[lower]") {
  const std::string text = lowered_sum([](auto& m, auto& H, auto& h, auto n, auto i) {
    auto W = m.template input<float>("W", H, H);
    return sum(H, [&](auto j) { return select(j <= i, W(i, j) * h(before(n), j), 0.0F); });
  });
  CHECK_THAT(text, Catch::Contains("select(") && !Catch::Contains("_pre"));
  CHECK_THAT(text, !Catch::Contains("fma(W["));  // as a factor of a choice among what it multiplies
}

TEST_CASE("what lies beyond the edges is 0 in either place of a choice", "[lower]") {
  const auto summed = [](auto choice) {
    return lowered_sum([&](auto& m, auto&, auto& h, auto n, auto i) {
      const Dim D("window", 9);
      auto K = m.template input<float>("K", D);
      return sum(D, [&](auto d) { return choice(i + d, K(d) * h(before(n), min(i + d, 31))); });
    });
  };
  for (const std::string& text : {summed([](auto at, auto product) { return select(at < 32, product, 0.0F); }),
                                  summed([](auto at, auto product) { return select(at >= 32, 0.0F, product); })})
    CHECK_THAT(text, Catch::Contains("fma(K[r],z_pre[") && Catch::Contains("select("));
}

TEST_CASE("what a node says of places between those that a window sees is not followed", "[lower]") {
  const auto looked_up = [](int stride) {
    return lowered_sum([&](auto& m, auto& H, auto& h, auto n, auto i) {
      const Dim D("window", 16);
      auto Emb = m.template input<float>("Emb", Dim("vocabulary"), H);
      auto K = m.template input<float>("K", D);
      return h(before(n), i) +
             sum(D, [&](auto d) { return K(d) * relu(Emb(places_of(n)[i * stride + d * stride], 3)); });
    });
  };
  CHECK_THAT(looked_up(1), Catch::Contains("_seen=47"));
  CHECK_THAT(looked_up(2), !Catch::Contains("_seen="));
}

TEST_CASE("a product of weights alone with what leaves its sum is one", "[lower]") {
  const std::string text = lowered_sum([](auto& m, auto& H, auto& h, auto n, auto i) {
    const Dim D("window", 8);
    auto K = m.template input<float>("K", H, D);
    auto v = m.template input<float>("v", D);
    return sum(D, [&](auto d) { return h(before(n), i) * K(i, d) * v(d); });
  });
  CHECK_THAT(text, Catch::Contains("fma("));
}
