// Random structures for differential tests, reproducible from a seed: trees, graphs and sequences of vertices.
#pragma once

#include <array>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cortex/dsl/model.hpp"
#include "cortex/structure/accessors.hpp"

namespace cortex::test {

/// A node with every way to reach children that random models use. `first` and `second` are the first two of `kids`.
struct Vertex {
  int word = 0;
  const Vertex* first = nullptr;
  const Vertex* second = nullptr;
  std::vector<const Vertex*> kids;
  std::array<float, 6> feature{};
};

using VertexSet = structure::Accessors<structure::OptionalChild<&Vertex::first>,
                                       structure::OptionalChild<&Vertex::second>, structure::Children<&Vertex::kids>,
                                       structure::Field<&Vertex::word>, structure::Field<&Vertex::feature>,
                                       structure::Parents<cortex::children<&Vertex::kids>>, structure::Members>;

inline constexpr int num_words = 12;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return int(engine_() % std::uint64_t(n)); }
  bool chance(double p) { return uniform(0, 1) < p; }
  double uniform(double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(engine_); }

 private:
  std::mt19937_64 engine_;
};

/// Vertices and the roots of one call.
struct Forest {
  std::vector<std::unique_ptr<Vertex>> all;
  std::vector<const Vertex*> roots;

  Vertex* add(Random& random) {
    all.push_back(std::make_unique<Vertex>());
    all.back()->word = random.below(num_words);
    for (float& f : all.back()->feature) f = float(random.uniform(-1, 1));
    return all.back().get();
  }
  static void link(Vertex* parent, const Vertex* child) {
    parent->kids.push_back(child);
    if (parent->kids.size() == 1) parent->first = child;
    if (parent->kids.size() == 2) parent->second = child;
  }
  /// Adds what is in another one.
  void take(Forest other) {
    for (auto& vertex : other.all) all.push_back(std::move(vertex));
    roots.insert(roots.end(), other.roots.begin(), other.roots.end());
  }
};

/// What structures are declared to be: a kind, and how many children nodes have at most, if that is bounded.
struct Declared {
  Declared(ra::StructureKind k) : kind(k) {}
  Declared(const ra::Graph& graph) : kind(graph.structure), most_children(graph.max_children) {}
  bool allows_another(const Vertex& parent) const {
    return most_children == 0 || parent.kids.size() < std::size_t(most_children);
  }

  ra::StructureKind kind;
  int most_children = 0;
};

/// Up to `most` vertices under one to three roots: chains, trees or graphs that share children.
inline Forest random_forest(Random& random, const Declared& declared, int most) {
  const ra::StructureKind kind = declared.kind;
  Forest forest;
  const int roots = 1 + random.below(3);
  for (int r = 0; r < roots; ++r) {
    const int count = 1 + random.below(most);
    std::vector<Vertex*> vertices{forest.add(random)};
    const bool deep = random.chance(0.3);
    for (int v = 1; v < count; ++v) {
      const int last = int(vertices.size()) - 1;
      Vertex* parent = vertices[std::size_t(kind == ra::StructureKind::sequence ? last
                                            : deep && random.chance(0.7)        ? last
                                                                                : random.below(last + 1))];
      if (!declared.allows_another(*parent)) parent = vertices.back();
      Vertex* child = forest.add(random);
      Forest::link(parent, child);
      // In a graph, further parents: earlier vertices only, so that there is no cycle.
      if (kind == ra::StructureKind::dag && random.chance(0.4)) {
        Vertex* other = vertices[std::size_t(random.below(last + 1))];
        if (other != parent && declared.allows_another(*other)) Forest::link(other, child);
      }
      vertices.push_back(child);
    }
    forest.roots.push_back(vertices[0]);
    if (random.chance(0.15))
      forest.roots.push_back(vertices[std::size_t(random.below(int(vertices.size())))]);  // a root inside, or twice
  }
  return forest;
}

/// Random structures of up to so many vertices each, which have none in common.
inline Forest random_forests(Random& random, const Declared& declared, const std::vector<int>& sizes) {
  Forest result;
  for (const int most : sizes) result.take(random_forest(random, declared, most));
  return result;
}

}  // namespace cortex::test
