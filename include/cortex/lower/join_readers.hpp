// What reads a large state at the node itself, after its recursion, is computed in the recursion, while the state is in
// the cache: where the state is no result of calls, nothing reads it later then, and its rows serve other nodes
// (`pass/recycle_states.hpp`). So a recursion over matrices, as of linear attention, keeps those of two steps.
//
//   for b: for n: S[n,d,e] = f(n) * S[prev(n),d,e] + k[n,d] * v[n,e];  for n: y[n,e] = sum(d, q[n,d] * S[n,d,e])
//     ->
//   for b: for n: {S[n,d,e] = f(n) * S[prev(n),d,e] + k[n,d] * v[n,e]; y[n,e] = sum(d, q[n,d] * S[n,d,e])}
//
// Only if all that reads the state later can move, but for readouts of the roots' own, and multiplies it with no
// weight: such a product is faster for all nodes at once. Outputs that it reads beside the state move along. Before
// reductions are split.
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
    std::size_t known = 0;
    do {  // until no more outputs move along
      known = along_.size();
      moves.clear();
      for (std::size_t later = recursion_ + 1; later < recursions_.size(); ++later)
        for (Version& version : recursions_[later].versions) {
          Move move{later, &version, {}, {}, {}};
          if (!plan(move)) return;
          if (!move.to.empty()) moves.push_back(std::move(move));
        }
    } while (along_.size() != known);
    for (const Move& move : moves)
      if (!takes_whole_states(move, moves)) return;
    for (const Move& move : moves) make(move);
  }

 private:
  /// What moves from a version of a later recursion to those of this one that are for the same nodes, by number among
  /// its definitions: what reads the state or moves along, and all that this and that itself are made of.
  struct Move {
    std::size_t recursion;
    Version* from;
    Vector<Version*> to;
    Vector<bool> readers, needed;
  };

  /// Whether what reads the state in the version `move.from` can move, and what it is.
  bool plan(Move& move) {
    const Recursion& later = recursions_[move.recursion];
    const Vector<Definition>& definitions = move.from->definitions;
    for (const Definition& d : definitions) {
      move.readers.push_back(reads(d, state_) || contains(along_, d.buffer));
      if (move.readers.back() && (!reads_at_node(d) || multiplies_by_weights(d))) return false;
    }
    if (later.direction == ra::Direction::roots || !contains(move.readers, true)) return true;
    if (later.direction != ra::Direction::none || move.from->number >= 0) return false;
    for (Version& own : recursions_[recursion_].versions) {
      if (own.part == Part::all && move.from->part != Part::all) return false;
      if (own.part == move.from->part || move.from->part == Part::all) move.to.push_back(&own);
    }
    move.needed = move.readers;
    for (std::size_t i = definitions.size(); i-- > 0;)
      if (move.needed[i] && !can_stand_in_recursion(move, i)) return false;
    return true;
  }

  /// Whether states that move do so in all versions of their recursion.
  bool takes_whole_states(const Move& move, const Vector<Move>& moves) const {
    for (std::size_t i = 0; i < move.readers.size(); ++i) {
      const ir::Buffer& buffer = move.from->definitions[i].buffer;
      if (!move.readers[i] || buffer->role != ir::Role::state) continue;
      for (const Version& version : recursions_[move.recursion].versions) {
        const bool moves_too = any_of(moves, [&](const Move& other) {
          bool found = false;
          for (std::size_t d = 0; d < other.readers.size(); ++d)
            found |= other.readers[d] && other.from->definitions[d].buffer == buffer;
          return other.from == &version && found;
        });
        if (!moves_too) return false;
      }
    }
    return true;
  }

  static bool reads(const Definition& d, const ir::Buffer& buffer) {
    bool found = false;
    for_each_read(d.body, [&](const ir::Load& load) { found |= load.buffer == buffer; });
    return found;
  }
  /// Whether a sum of it is of products of the state with a weight, in which elements of the state come more than once;
  /// of what moves along, of anything.
  bool multiplies_by_weights(const Definition& d) const {
    bool found = false;
    const Vector<ir::Expr> outputs = vars_of(d.indices);
    ir::visit_with(d.body, [&](const ir::Reduce& sum) {
      bool of_state = false, of_weight = false;
      ir::visit_with(
          sum.body, [](const ir::Reduce&) { return false; },
          [&](const ir::Load& load) {
            const ir::Expr e = ir::handle_of(load);
            of_state |= (load.buffer == state_ && !uses_all(e, outputs)) || contains(along_, d.buffer);
            of_weight |= is_matrix(e, outputs, {sum.axis.var});
          });
      found |= of_state && of_weight;
    });
    return found;
  }
  bool reads_at_node(const Definition& d) const {
    bool at_node = true;
    for_each_read(
        d.body, [&](const ir::Load& load) { at_node &= !(load.buffer == state_) || load.indices[0].same_as(d.node); });
    return at_node;
  }

  /// Whether a definition can be evaluated in the recursion; marks as needed what it reads of those before it.
  bool can_stand_in_recursion(Move& move, std::size_t number) {
    const Vector<Definition>& definitions = move.from->definitions;
    const Definition& d = definitions[number];
    bool can = !d.guard && !d.child && d.node && is_as_in_recursion(d, move.to);
    for (std::size_t i = 0; i < definitions.size(); ++i) can &= i == number || !(definitions[i].buffer == d.buffer);
    for_each_read(d.body, [&](const ir::Load& load) {
      if (load.buffer->role == ir::Role::state) can &= is_computed(load) || moves_along(load, d);
      for (std::size_t i = 0; i < number; ++i)
        if (definitions[i].buffer == load.buffer) move.needed[i] = true;
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
  /// Whether what a state's load reads is an output at the node, which moves along.
  bool moves_along(const ir::Load& load, const Definition& reader) {
    for (std::size_t r = recursion_ + 1; r < recursions_.size(); ++r) {
      if (!contains(recursions_[r].states, load.buffer)) continue;
      if (recursions_[r].direction != ra::Direction::none || !load.indices[0].same_as(reader.node)) return false;
      if (!contains(along_, load.buffer)) along_.push_back(load.buffer);
      return true;
    }
    return false;
  }
  /// Whether none of the versions defines that tensor otherwise.
  static bool is_as_in_recursion(const Definition& d, const Vector<Version*>& versions) {
    return all_of(versions, [&](const Version* version) {
      return all_of(version->definitions,
                    [&](const Definition& own) { return !(own.buffer == d.buffer) || same_values(own, d); });
    });
  }

  void make(const Move& move) {
    Recursion &to = recursions_[recursion_], &from = recursions_[move.recursion];
    Vector<Definition> left;
    for (std::size_t i = 0; i < move.needed.size(); ++i) {
      const Definition& d = move.from->definitions[i];
      const auto defines = [&](const Definition& own) { return own.buffer == d.buffer; };
      for (Version* version : move.to)
        if (move.needed[i] && !any_of(version->definitions, defines)) version->definitions.push_back(d);
      if (!move.readers[i]) left.push_back(d);
      if (move.readers[i] && d.buffer->role == ir::Role::state && !contains(to.states, d.buffer)) {
        to.states.push_back(d.buffer);
        erase_where(from.states, [&](const ir::Buffer& state) { return state == d.buffer; });
      }
    }
    move.from->definitions = left;
    drop_unread(move.from->definitions);
  }

  /// Drops what nothing that is left is made of.
  static void drop_unread(Vector<Definition>& definitions) {
    for (std::size_t i = definitions.size(); i-- > 0;) {
      const ir::Buffer own = definitions[i].buffer;
      if (own->role == ir::Role::temp && !any_of(definitions, [&](const Definition& d) { return reads(d, own); }))
        definitions.erase(definitions.begin() + std::ptrdiff_t(i));
    }
  }

  Vector<Recursion>& recursions_;
  const std::size_t recursion_;
  const ir::Buffer state_;
  Vector<ir::Buffer> along_;  // outputs
};

}  // namespace detail

/// Moves what reads states of recursions upwards whose rows nodes may share. Where the recursion is cut, nothing
/// may come behind the place.
inline void join_readers(Vector<Recursion>& recursions, const ra::Graph& graph, const Schedule& schedule) {
  if (!schedule.refactored.empty()) return;
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const std::size_t r = std::size_t(graph.states[s].recursion);
    const bool up = recursions[r].direction == ra::Direction::up && !recursions[r].unrolled;
    if (!up || !ra::may_share_rows(graph, s)) continue;
    detail::ReaderMover(recursions, r, graph.ops[std::size_t(graph.states[s].placeholder)].buffer).run();
  }
}

}  // namespace cortex::lower
