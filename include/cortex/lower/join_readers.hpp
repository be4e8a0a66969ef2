// What reads a large state at the node itself, after its recursion, is computed in the recursion, while the state is in
// the cache: where the state is no result of calls, nothing reads it later then, and its rows serve other nodes
// (`pass/recycle_states.hpp`). So a recursion over matrices, as of linear attention, keeps those of two steps.
//
//   for b: for n: S[n,d,e] = f(n) * S[prev(n),d,e] + k[n,d] * v[n,e];  for n: y[n,e] = sum(d, q[n,d] * S[n,d,e])
//     ->
//   for b: for n: {S[n,d,e] = f(n) * S[prev(n),d,e] + k[n,d] * v[n,e]; y[n,e] = sum(d, q[n,d] * S[n,d,e])}
//
// Only if all that reads the state later can move, but for readouts of the roots' own. Before reductions are split.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

namespace detail {

/// Moves what reads one state of a recursion.
class ReaderMover {
 public:
  ReaderMover(Vector<Recursion>& recursions, std::size_t recursion, const ir::Buffer& state)
      : recursions_(recursions), recursion_(recursion), state_(state) {}

  void run() {
    Vector<Move> moves;
    for (std::size_t later = recursion_ + 1; later < recursions_.size(); ++later) {
      Move move{later, {}, {}};
      if (!plan(move)) return;
      if (!move.readers.empty()) moves.push_back(std::move(move));
    }
    for (const Move& move : moves) make(move);
  }

 private:
  /// What moves from a later recursion, by number among its definitions: what reads the state, and all that this and
  /// that itself are made of, in order.
  struct Move {
    std::size_t from;
    Vector<bool> readers, needed;
  };

  /// Whether what reads the state in the recursion `move.from` can move, and what it is.
  bool plan(Move& move) const {
    const Recursion& later = recursions_[move.from];
    const auto reads_state = [&](const Definition& d) { return reads(d, state_); };
    if (later.direction == ra::Direction::roots)
      return all_of(later.versions, [&](const Version& v) {
        return all_of(v.definitions, [&](const Definition& d) { return !reads_state(d) || reads_at_node(d); });
      });
    const bool any = any_of(later.versions, [&](const Version& v) { return any_of(v.definitions, reads_state); });
    if (!any) return true;
    if (later.direction != ra::Direction::none || later.versions.size() != 1 || later.versions[0].number >= 0)
      return false;
    const Vector<Definition>& definitions = later.versions[0].definitions;
    for (const Definition& d : definitions) {
      move.readers.push_back(reads_state(d));
      if (move.readers.back() && !reads_at_node(d)) return false;
    }
    move.needed = move.readers;
    for (std::size_t i = definitions.size(); i-- > 0;)
      if (move.needed[i] && !can_stand_in_recursion(definitions, i, move.needed)) return false;
    return true;
  }

  static bool reads(const Definition& d, const ir::Buffer& buffer) {
    bool found = false;
    for_each_read(d.body, [&](const ir::Load& load) { found |= load.buffer == buffer; });
    return found;
  }
  bool reads_at_node(const Definition& d) const {
    bool at_node = true;
    for_each_read(
        d.body, [&](const ir::Load& load) { at_node &= !(load.buffer == state_) || load.indices[0].same_as(d.node); });
    return at_node;
  }

  /// Whether a definition can be evaluated in the recursion; marks as needed what it reads of those before it.
  bool can_stand_in_recursion(const Vector<Definition>& definitions, std::size_t number, Vector<bool>& needed) const {
    const Definition& d = definitions[number];
    bool can = !d.guard && !d.child && d.node && is_as_in_recursion(d);
    for (std::size_t i = 0; i < definitions.size(); ++i) can &= i == number || !(definitions[i].buffer == d.buffer);
    for_each_read(d.body, [&](const ir::Load& load) {
      if (load.buffer->role == ir::Role::state) can &= is_computed(load);
      for (std::size_t i = 0; i < number; ++i)
        if (definitions[i].buffer == load.buffer) needed[i] = true;
    });
    return can;
  }
  /// Whether what a state's load reads is there once the node's own states are.
  bool is_computed(const ir::Load& load) const {
    for (std::size_t r = 0; r <= recursion_; ++r)
      for (const ir::Buffer& state : recursions_[r].states) {
        if (!(state == load.buffer)) continue;
        const auto* step = load.indices[0].as<ir::UfCall>();
        return r < recursion_ || !step || step->uf.kind == ir::UfKind::child;
      }
    return false;
  }
  /// Whether each version of the recursion has the same definition of that tensor, or none has any.
  bool is_as_in_recursion(const Definition& d) const {
    const Vector<Version>& versions = recursions_[recursion_].versions;
    const auto defines = [&](const Version& v, bool same) {
      return any_of(v.definitions,
                    [&](const Definition& own) { return own.buffer == d.buffer && (!same || same_values(own, d)); });
    };
    return all_of(versions, [&](const Version& v) { return defines(v, true); }) ||
           !any_of(versions, [&](const Version& v) { return defines(v, false); });
  }

  void make(const Move& move) {
    Recursion &to = recursions_[recursion_], &from = recursions_[move.from];
    Vector<Definition>& definitions = from.versions[0].definitions;
    Vector<Definition> left;
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      const Definition& d = definitions[i];
      if (move.needed[i])
        for (Version& version : to.versions)
          if (!any_of(version.definitions, [&](const Definition& own) { return own.buffer == d.buffer; }))
            version.definitions.push_back(d);
      if (!move.readers[i]) left.push_back(d);
      if (move.readers[i] && d.buffer->role == ir::Role::state) {
        to.states.push_back(d.buffer);
        erase_where(from.states, [&](const ir::Buffer& state) { return state == d.buffer; });
      }
    }
    definitions = left;
    for (std::size_t i = definitions.size(); i-- > 0;) {  // what nothing that is left is made of
      const ir::Buffer own = definitions[i].buffer;
      if (own->role == ir::Role::temp && !any_of(definitions, [&](const Definition& d) { return reads(d, own); }))
        definitions.erase(definitions.begin() + std::ptrdiff_t(i));
    }
  }

  Vector<Recursion>& recursions_;
  const std::size_t recursion_;
  const ir::Buffer state_;
};

}  // namespace detail

/// Moves what reads states that are large, of recursions upwards, and no results. Loops by hand are about those that
/// the model's operators give.
inline void join_readers(Vector<Recursion>& recursions, const ra::Graph& graph, const Schedule& schedule) {
  if (graph.results < 0 || schedule.by_hand) return;
  for (std::size_t s = std::size_t(graph.results); s < graph.states.size(); ++s) {
    const ir::Buffer& state = graph.ops[std::size_t(graph.states[s].placeholder)].buffer;
    const std::size_t r = std::size_t(graph.states[s].recursion);
    const bool up = recursions[r].direction == ra::Direction::up && !recursions[r].unrolled;
    if (up && ir::has_large_rows(*state)) detail::ReaderMover(recursions, r, state).run();
  }
}

}  // namespace cortex::lower
