// A model of one state, from which tests of steps of lowering make theirs, and what becomes of it.
#pragma once

#include <random>
#include <string>

#include "support/lowering.hpp"
#include "support/node_tables.hpp"
#include "support/odd_models.hpp"

namespace cortex::test {

inline const Schedule apart = Schedule::standard().exact_activations();
inline const Schedule together = Schedule{}.dynamic_batch().exact_activations();

inline std::string lowered(const ra::Graph& graph, const Schedule& schedule) {
  const ir::Program program = lower::lower(graph, schedule);
  ir::verify(program, ir::Level::loops);
  return ir::print(program);
}

/// "" if the lowered program gives what the recursion as written gives.
inline std::string difference(const ra::Graph& graph, const Schedule& schedule) {
  std::mt19937 random(5);
  const NodeTable table = random_table(20, 3, 9, random);
  const Linear linear(table, 2);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
  return reference.difference(lower::lower(graph, schedule));
}

/// A model of one state h [hidden = 4] with the inputs Emb [vocabulary, hidden], W [hidden, hidden] and b [hidden].
struct OneState : odd::Odd {
  OneState() : Odd("model", 4) {}
  int Emb = input("Emb", {V, H}), W = input("W", {H, H}), b = input("b", {H}), h = placeholder("h", {H});
  E emb(const E& n, const E& i) { return at(Emb, {word_of(n), i}); }
  E sum_of_kids(const E& n, const E& i) {
    return over_kids(n, [&](auto kid) { return at(h, {kid, i}); });
  }
  template <class Value>
  E product(const E& i, Value value) {
    return dot(H, [&](auto& r) { return at(W, {i, r}) * value(r); });
  }
  ra::Graph with(int body) {
    recursion_op(h, body);
    return done();
  }
};

}  // namespace cortex::test
