// Nodes that write a large state where their child's stands: only where no element of that one is read afterwards.
#include <catch2/catch.hpp>

#include "cortex/ra/schedule_text.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int width = 33;  // a row of width x width numbers takes more than 4 KB

struct Step {
  int word;
  const Step* before;
};
constexpr auto before = cortex::optional_child<&Step::before>;
constexpr auto word_of = cortex::field<&Step::word>;

/// What a recursion over matrices reads of its children.
enum class Read {
  same_element,
  products_before,
  all_products_before,
  below_later,
  next_column,
  transposed,
  rows_of_one_child
};

/// S is of the children's S, k and v, and y is read of S; with `kept`, S is a result too, so that each node has a row.
template <Read read, bool kept>
auto matrices(Structure structure) {
  Dim V("vocabulary"), D("width", width);
  Model<Vertex> m("matrices", structure);
  auto Emb = m.input<float>("Emb", V, D), K = m.input<float>("K", V, D);
  auto S = m.placeholder<float>("S", D, D);
  auto y = m.placeholder<float>("y", D);
  auto u = m.compute("u", D, [&](auto n, auto e) {
    return sum(kids(n), [&](auto c) {
      return sum(D, [&](auto d) {
        if constexpr (read == Read::all_products_before)
          return K(word(n), d) * S(c, d, e) + K(word(n), e) * S(c, e, d);
        else
          return K(word(n), d) * S(c, d, e);
      });
    });
  });
  auto body = m.compute("body", D, D, [&](auto n, auto d, auto e) {
    const auto below = [&](auto row, auto column) {
      if constexpr (read == Read::rows_of_one_child)
        return 0.5f * sum(kids(n), [&](auto c) { return S(c, 3, column) + 0 * S(c, row, column); });
      else
        return 0.5f * sum(kids(n), [&](auto c) { return S(c, row, column); });
    };
    const auto added = K(word(n), d) * Emb(word(n), e);
    if constexpr (read == Read::products_before || read == Read::all_products_before)
      return below(d, e) + K(word(n), d) * (Emb(word(n), e) - 0.1f * u(n, e));
    else if constexpr (read == Read::next_column)
      return below(d, (e + 1) % width) + added;
    else if constexpr (read == Read::transposed)
      return below(e, d) + added;
    else
      return below(d, e) + added;
  });
  auto out = m.compute("out", D, [&](auto n, auto e) {
    auto own = sum(D, [&](auto d) { return Emb(word(n), d) * body(n, d, e); });
    if constexpr (read == Read::below_later)
      return own + sum(kids(n), [&](auto c) { return sum(D, [&](auto d) { return body(n, d, e) * S(c, d, e); }); });
    else
      return own + 0.0f;
  });
  auto [all, result] = m.recursion(S, body, y, out);
  if constexpr (kept)
    return m.program(result, all);
  else
    return m.program(result);
}

template <class Program>
auto compiled(const Program& program, const Schedule& schedule, const Target& target) {
  auto options = CompileOptions{}.on(target);
  if (schedule.max_workers > 1) options = options.with_workers(std::make_shared<Workers>(schedule.max_workers - 1));
  auto model = compile(program, schedule, options);
  model.bind("Emb", uniform(num_words * width, 1, 1));
  model.bind("K", uniform(num_words * width, 0.3f, 2));
  return model;
}

/// Holds what is computed in overwritten rows against what is computed in a row for each node.
template <Read read>
void check(Structure structure, const Schedule& schedule, bool overwrites) {
  const ra::StructureKind kind = matrices<read, true>(structure).graph().structure;
  auto expected = compiled(matrices<read, true>(structure), Schedule{}, Target::interpreter());
  for (const Target& target : {Target::interpreter(), best_target()}) {
    INFO(to_string(schedule) << " on " << (target.backend == Backend::interpreter ? "the interpreter" : "this CPU"));
    auto model = compiled(matrices<read, false>(structure), schedule, target);
    CHECK(model.executable().rows_apart > 0);
    CHECK(model.executable().overwrites_children == overwrites);
    for (unsigned seed = 0; seed < 3; ++seed) {
      Random random(seed);
      const Forest forest = random_forest(random, {kind}, 30);
      const auto right = expected(forest.roots), result = model(forest.roots);
      for (const auto& vertex : forest.all)
        for (std::size_t i = 0; i < width; ++i)
          REQUIRE(result.node(vertex.get())[i] == Approx(right.node(vertex.get())[i]).epsilon(1e-4).margin(1e-4));
      for (std::size_t r = 0; r < forest.roots.size(); ++r) {
        std::vector<float> own(width * width), kept(width * width);
        result.copy_root(r, "S", own), right.copy_root(r, "S", kept);
        for (std::size_t i = 0; i < own.size(); ++i) REQUIRE(own[i] == Approx(kept[i]).epsilon(1e-4).margin(1e-4));
      }
    }
  }
}

/// Two matrices in one loop, of which the second reads what the first one was at the step before, or the first one
/// reads that with rows for columns.
template <bool kept, bool turned>
auto two_matrices() {
  Dim V("vocabulary"), D("width", width);
  Model<Step> m("two", cortex::sequence);
  auto K = m.input<float>("K", V, D), Q = m.input<float>("Q", V, D);
  auto S_of = m.placeholder<float>("S", D, D), T_of = m.placeholder<float>("T", D, D);
  auto next_S = m.compute("next_S", D, D, [&](auto n, auto d, auto e) {
    if constexpr (turned)
      return 0.5f * S_of(before(n), e, d) + K(word_of(n), d) * Q(word_of(n), e);
    else
      return 0.5f * S_of(before(n), d, e) + K(word_of(n), d) * Q(word_of(n), e);
  });
  auto next_T = m.compute("next_T", D, D, [&](auto n, auto d, auto e) {
    if constexpr (turned)
      return 0.5f * T_of(before(n), d, e) + next_S(n, d, e);
    else
      return 0.5f * T_of(before(n), d, e) + next_S(n, d, e) * S_of(before(n), d, e);
  });
  auto [S, T] = m.recursion(S_of, next_S, T_of, next_T);
  auto y = m.output<float>("y", D, [&](auto n, auto e) { return maximum(D, [&](auto d) { return T(n, d, e); }); });
  if constexpr (kept)
    return m.program(y, S, T);
  else
    return m.program(y);
}

const Schedule standard = Schedule::standard().share_no_subtrees();

}  // namespace

TEST_CASE("a state overwrites its child's where each element is read before", "[runtime][equality]") {
  for (const Structure structure : {cortex::sequence, cortex::tree, cortex::dag}) {
    check<Read::same_element>(structure, standard, true);
    check<Read::products_before>(structure, standard, true);
    check<Read::all_products_before>(structure, standard, true);
  }
  check<Read::same_element>(cortex::dag, standard.pieces(5), true);
}

TEST_CASE("a state stays where its child's is read afterwards, or by others than who writes it",
          "[runtime][equality]") {
  for (const Structure structure : {cortex::sequence, cortex::dag}) {
    check<Read::below_later>(structure, standard, false);
    check<Read::next_column>(structure, standard, false);
    check<Read::transposed>(structure, standard, false);
    check<Read::rows_of_one_child>(structure, standard, false);
    check<Read::same_element>(structure, standard.workers(2), false);  // whose columns are summed by others
  }
}

TEST_CASE("workers overwrite a child's state where each has its own columns throughout", "[runtime][equality]") {
  Dim V("vocabulary"), D("width", width);
  Model<Step> m("attention", cortex::sequence);
  auto K = m.input<float>("K", V, D), Q = m.input<float>("Q", V, D);
  auto S_of = m.placeholder<float>("S", D, D);
  auto S = m.recursion(S_of, m.compute("body", D, D, [&](auto n, auto d, auto e) {
    return 0.9f * S_of(before(n), d, e) + K(word_of(n), d) * Q(word_of(n), e);
  }));
  const auto program = m.program(m.output<float>(
      "y", D, [&](auto n, auto e) { return sum(D, [&](auto d) { return Q(word_of(n), d) * S(n, d, e); }); }));
  const std::vector<float> k = uniform(num_words * width, 1, 3), q = uniform(num_words * width, 1, 4);
  std::vector<Step> steps(40);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = {int(i % num_words), i ? &steps[i - 1] : nullptr};
  for (const int workers : {1, 2, 3}) {
    auto options = CompileOptions{}.on(best_target());
    if (workers > 1) options = options.with_workers(std::make_shared<Workers>(workers - 1));
    auto model = compile(program, standard.workers(workers), options);
    model.bind("K", k), model.bind("Q", q);
    CHECK(model.executable().overwrites_children);
    const auto result = model(steps.back());
    std::vector<double> matrix(width * width);
    for (const Step& step : steps) {
      const std::size_t at = std::size_t(step.word) * width;
      for (std::size_t e = 0; e < width; ++e) {
        double y = 0;
        for (std::size_t d = 0; d < width; ++d) {
          double& element = matrix[d * width + e];
          element = 0.9 * element + double(k[at + d]) * double(q[at + e]);
          y += double(q[at + d]) * element;
        }
        REQUIRE(result.node(&step)[e] == Approx(y).epsilon(1e-4).margin(1e-4));
      }
    }
  }
}

TEST_CASE("a state stays where its child's is read later, or elsewhere, in the same loop", "[runtime][equality]") {
  std::vector<Step> steps(40);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = {int(i % num_words), i ? &steps[i - 1] : nullptr};
  const auto results = [&](const auto& program, const Schedule& schedule, const Target& target) {
    auto model = compile(program, schedule, CompileOptions{}.on(target));
    model.bind("K", uniform(num_words * width, 1, 3)), model.bind("Q", uniform(num_words * width, 1, 4));
    CHECK_FALSE(model.executable().overwrites_children);
    const auto result = model(steps.back());
    std::vector<float> values;
    for (const Step& step : steps)
      for (const float value : result.node(&step)) values.push_back(value);
    return values;
  };
  const auto check_same = [&](const auto& kept, const auto& recycled) {
    const auto expected = results(kept, Schedule{}, Target::interpreter());
    for (const Target& target : {Target::interpreter(), best_target()}) {
      const auto values = results(recycled, standard, target);
      for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(values[i] == Approx(expected[i]).margin(1e-4));
    }
  };
  check_same(two_matrices<true, false>(), two_matrices<false, false>());
  check_same(two_matrices<true, true>(), two_matrices<false, true>());
}
