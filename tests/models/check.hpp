// Random structures, random weights, and the comparison of a model of the zoo with its equations by hand.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "models/oracles.hpp"
#include "support/compile.hpp"

namespace cortex::test {

inline constexpr auto kids = cortex::children<&Item::kids>;
inline constexpr auto left = cortex::child<&Item::left>;
inline constexpr auto right = cortex::child<&Item::right>;
inline constexpr auto by_position = std::tuple{
    cortex::optional_child<&Item::left>, cortex::optional_child<&Item::right>, cortex::optional_child<&Item::third>};
inline constexpr auto before = cortex::optional_child<&Item::before>;
inline constexpr auto word = cortex::field<&Item::word>;
inline constexpr auto features = cortex::field<&Item::features>;
inline constexpr int vocabulary = 23;

enum class Shape { ragged, binary, positional, dag, sequence };

/// Roots and all that they reach.
struct Items {
  std::deque<Item> all;
  std::vector<const Item*> roots;

  /// In a sequence the step after `n`, null at its end.
  const Item* next(const Item* n) const {
    const auto found = after.find(n);
    return found == after.end() ? nullptr : found->second;
  }
  std::map<const Item*, const Item*> after;
};

/// Builds structures of one shape.
class Builder {
 public:
  Builder(Shape shape, unsigned seed) : shape_(shape), random_(seed) {}

  Items items;

  int below(int n) { return int(random_() % unsigned(n)); }

  Item* add() {
    Item& item = items.all.emplace_back();
    item.word = below(vocabulary);
    for (float& x : item.features) x = float(below(2001)) / 1000 - 1;
    return &item;
  }
  void join(Item* parent, const std::array<const Item*, 3>& slots) {
    parent->left = slots[0], parent->right = slots[1], parent->third = slots[2];
    for (const Item* k : slots)
      if (k) parent->kids.push_back(k);
  }

  /// A tree of about `size` nodes.
  const Item* tree(int size) {
    if (size <= 1 && !(shape_ == Shape::binary && size > 1)) return add();
    if (shape_ == Shape::binary) {
      const int leaves = (size + 1) / 2, l = 1 + below(leaves > 2 ? leaves - 1 : 1);
      const Item *a = tree(2 * l - 1), *b = tree(2 * std::max(1, leaves - l) - 1);
      Item* parent = add();
      join(parent, {a, b, nullptr});
      return parent;
    }
    if (shape_ == Shape::positional) {
      std::array<const Item*, 3> slots{};
      const int some = below(3);
      for (int k = 0; k < 3; ++k)
        if (k == some || below(2)) slots[std::size_t(k)] = tree((size - 1) / (1 + below(3)));
      Item* parent = add();
      join(parent, slots);
      return parent;
    }
    std::vector<const Item*> children;
    for (int left = size - 1, most = 1 + below(5); left > 0 && most > 0; --most) {
      const int part = most == 1 ? left : 1 + below(left);
      children.push_back(tree(part));
      left -= part;
    }
    Item* parent = add();
    parent->kids = children;
    return parent;
  }

  /// A graph whose nodes share children; its last node reaches most of it.
  const Item* dag(int size) {
    std::vector<Item*> nodes;
    for (int n = 0; n < size; ++n) {
      Item* item = add();
      std::set<int> picked;
      if (n > 0) picked.insert(n - 1 - below(std::min(n, 3)));
      if (n > 0 && below(2)) picked.insert(below(n));
      for (const int k : picked) item->kids.push_back(nodes[std::size_t(k)]);
      nodes.push_back(item);
    }
    return nodes.back();
  }
  const Item* grid(int rows, int columns) {
    std::vector<Item*> nodes;
    for (int n = 0; n < rows * columns; ++n) {
      Item* item = add();
      if (n % columns) item->kids.push_back(nodes[std::size_t(n - 1)]);
      if (n >= columns) item->kids.push_back(nodes[std::size_t(n - columns)]);
      nodes.push_back(item);
    }
    return nodes.back();
  }

  const Item* sequence(int length) {
    Item* last = nullptr;
    for (int n = 0; n < length; ++n) {
      Item* item = add();
      item->before = last;
      if (last) item->kids = {last}, items.after[last] = item;
      last = item;
    }
    return last;
  }

  const Item* one(int size) {
    return shape_ == Shape::dag ? dag(size) : shape_ == Shape::sequence ? sequence(size) : tree(size);
  }
  void batch(int roots, int largest) {
    for (int r = 0; r < roots; ++r) items.roots.push_back(one(1 + below(largest)));
  }

 private:
  Shape shape_;
  std::mt19937 random_;
};

inline Items forest(Shape shape, int roots, int largest, unsigned seed) {
  Builder builder(shape, seed);
  builder.batch(roots, largest);
  return std::move(builder.items);
}

/// Weights for every input of the graph, exact in float: embeddings of size 1, matrices so small that states settle,
/// however long the structure.
inline NamedNumbers random_weights(const ra::Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  NamedNumbers weights;
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    std::size_t count = 1;
    for (const Dim& dim : op.dims) count *= std::size_t(dim.kind() == DimKind::open ? vocabulary : dim.extent());
    const bool is_table = op.name().rfind("Emb", 0) == 0 && op.dims.size() == 2;
    const double scale = is_table ? 1 : op.dims.size() == 1 ? 0.5 : 1 / std::sqrt(double(op.dims.back().extent()));
    std::uniform_real_distribution<float> draw(-float(scale), float(scale));
    for (std::size_t i = 0; i < count; ++i) weights[op.name()].push_back(double(draw(random)));
  }
  return weights;
}

/// What makes models of one's own out of one cell, `cell(model, x, shape)`, whose inputs are the words' vectors.
template <class Kind, class Cell>
auto own_model(Kind kind, const Cell& cell) {
  return [=](int inputs, int hidden) {
    Dim D("input", inputs), H("hidden", hidden);
    Model<Item> m("own", kind);
    auto Emb = m.template input<float>("Emb", Dim("vocabulary"), D);
    auto x = [&](auto n, auto j) { return Emb(word(n), j); };
    return m.program(cell(m, x, models::CellShape{.input = D, .hidden = H}));
  };
}

/// The greatest error of a result, in units of what is allowed: at most 1 where all is right.
///
/// In float each gate is a sum of at most some hundred products of numbers of about 1 / sqrt(H) and 1, so that rounding
/// leaves some 1e-7, and the approximate activations add a few units in the last place, 2e-7. States feed back through
/// maps that shrink differences (see `random_weights`), which bounds what accumulates by a small multiple. So 1e-6 of
/// the largest element of the state, or of 1, and 1e-5 of each element; a wrong weight, child or gate is off by 1e-2.
template <class T, class Output>
double error_of(const Output& result, const Items& items, const Oracle& oracle) {
  const double scale = std::is_same_v<T, float> ? 1 : 1e-7;
  double worst = 0;
  std::vector<const Item*> open(items.roots);
  std::set<const Item*> seen(open.begin(), open.end());
  while (!open.empty()) {
    const Item* n = open.back();
    open.pop_back();
    for (const Item* k : n->kids)
      if (seen.insert(k).second) open.push_back(k);
    for (const auto& [name, right] : oracle(n)) {
      std::vector<T> values(right.size());
      result.copy_node(n, name, values);
      double largest = 1;
      for (const double x : right) largest = std::max(largest, std::abs(x));
      for (std::size_t i = 0; i < right.size(); ++i) {
        const double error =
            std::abs(double(values[i]) - right[i]) / (scale * (1e-5 * std::abs(right[i]) + 1e-6 * largest));
        if (!(error <= worst) && !std::isnan(worst)) worst = error;  // a NaN stays
      }
    }
  }
  return worst;
}

/// Binds weights to a compiled model, as `T`.
template <class T, class F>
void bind_all(F& model, const NamedNumbers& weights) {
  for (const auto& [name, values] : weights) model.bind(name, std::vector<T>(values.begin(), values.end()));
}

struct NamedSchedule {
  const char* name;
  Schedule schedule;
};
inline std::vector<NamedSchedule> all_schedules() {
  return {{"node by node", Schedule{}},
          {"batched", Schedule{}.dynamic_batch()},
          {"specialized", Schedule{}.specialize_if_else().specialize_leaves()},
          {"standard", Schedule::standard()},
          {"standard, two workers", Schedule::standard().workers(2)}};
}

/// Holds a program against its equations: forests of 1 to 10 roots, of one node, of none, nodes that are roots twice
/// and inside other roots' structures. `oracle(weights, items)` gives the equations over those items.
template <class T, class Program, class MakeOracle>
void check_model(const Program& program, Shape shape, std::size_t D, std::size_t H, const MakeOracle& oracle,
                 const std::vector<NamedSchedule>& schedules, int large = 40, const Target& target = best_target()) {
  const Weights weights{random_weights(program.graph(), unsigned(H)), D, H};
  for (const auto& [name, schedule] : schedules) {
    auto model = compile_here(program, schedule, target);
    if (schedule.max_workers > 1) model.use(std::make_shared<Workers>(1));
    bind_all<T>(model, weights.values);
    CAPTURE(program.name(), name, H, target.cpu);
    CHECK(model(std::vector<const Item*>()).size() == 0);
    for (const int roots : {1, 1, 2, 3, 7, 10}) {
      Items items = forest(shape, roots, roots == 1 ? 1 : large, unsigned(100 * roots) + unsigned(H));
      if (roots == 3) items.roots.push_back(items.roots[1]);
      if (roots == 7 && shape != Shape::sequence)
        for (const Item* k : items.roots[2]->kids) items.roots.push_back(k);
      CAPTURE(roots);
      CHECK(error_of<T>(model(items.roots), items, oracle(weights, items)) <= 1);
    }
  }
}

/// The same for several sizes: an odd small one under all schedules, larger ones as models are compiled by default, the
/// first of these for narrower vectors, too.
/// What names its own larger size is a variant, and has the first and the last of the schedules.
template <class T = float, class MakeProgram, class MakeOracle>
void check_sizes(const MakeProgram& make, Shape shape, bool has_input, const MakeOracle& oracle,
                 std::vector<int> hidden = {33, 64}) {
  const auto run = [&](int H, const std::vector<NamedSchedule>& schedules, const Target& target = best_target()) {
    const int D = has_input ? 5 : H;
    check_model<T>(make(D, H), shape, std::size_t(D), std::size_t(H), oracle, schedules, H < 64 ? 40 : 12, target);
  };
  const std::vector<NamedSchedule> all = all_schedules();
  run(7, hidden.size() > 1 ? all : std::vector{all.front(), all.back()});
  if (!built_with_llvm()) hidden = {16};  // the interpreter takes its time
  for (const int H : hidden) run(H, {{"standard", Schedule::standard()}});
  for (const Target& target : narrower_targets())
    if (!hidden.empty()) run(hidden[0], {{"standard", Schedule::standard()}}, target);
}

}  // namespace cortex::test
