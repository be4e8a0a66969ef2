// Recursive refactoring (paper section 3.1, S4): the back edge of a recursion moves to a contraction that the user
// names. What follows from the contraction at a node, A2, joins what the node's parents begin with, A1, on the same
// side of a barrier.
//
//   t[n,j] = ..                                    t[n,j] = ..                        # A1: shared, in slices of j
//   x[n,i] = sum_j U[i,j] * t[n,j]           ->    p[n,f,i] = sum_c U[i,f*C+c] * t[n,f*C+c]
//   h[n,i] = tanh(x[n,i])                          x[n,i] = p[n,0,i] + p[n,1,i] + ..  # A2: per worker, whole
//                                                  own_h[n,i] = tanh(x[n,i])
//                                                  h[n,i] = own_h[n,i]
//   .. h[child(n),j] ..                            .. own_h[child(n),j] ..
//
// A worker multiplies its own slice of t with its own columns of U, which needs nobody else's t; after one barrier it
// adds up the partial sums and computes A2 for itself, whole, so that the parents' A1 needs no second barrier. How many
// slices there are is a matter of the schedule and of shapes, since it decides where sums are divided: one for each
// worker that the schedule asks for, and where it leaves their number to the pool, mostly four. Any number of workers
// may take part: one owns several slices, or none.
//
// Runs after reductions are split and before anything is hoisted. Where barriers then stand is for `insert_barriers` to
// find out: nothing here relies on it.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/names.hpp"
#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

namespace detail {

/// Whether `d` reads one of `buffers`.
inline bool reads_any(const Definition& d, const PointerSet& buffers) {
  bool found = false;
  for_each_read(d.body, [&](const ir::Load& load) { found |= buffers.contains(load.buffer.id()); });
  return found;
}

[[noreturn]] inline void refuse_cut(const ra::Graph& graph, const std::string& what) {
  throw Error(Code::invalid_schedule, "refactor: model '" + graph.name + "': " + what);
}

/// Moves the back edge of one recursion.
class Refactorer {
 public:
  Refactorer(const ra::Graph& graph, int op, const Schedule& schedule, Recursion& recursion)
      : graph_(graph), op_(op), schedule_(schedule), recursion_(recursion) {}

  /// False if the operator contracts over nothing that depends on the recursion.
  bool run() {
    for (const Version& version : recursion_.versions) plans_.push_back(plan_of(version));
    if (all_of(plans_, [](const Plan& p) { return p.cuts.empty(); })) return false;
    choose_slices();
    if (slices_ == 1) return true;
    choose_own_states();
    for (std::size_t v = 0; v < plans_.size(); ++v) rewrite(recursion_.versions[v], plans_[v]);
    append(recursion_.states, own_states_);
    return true;
  }

 private:
  /// What becomes of a version's definitions, by their numbers.
  struct Plan {
    Vector<bool> cut;             // a contraction that is cut
    Vector<bool> after;           // A2: depends on one, or is one
    Vector<bool> heavy;           // contracts where that is not hoisted out of the recursion, or depends on what does
    Vector<ir::ReduceAxis> cuts;  // the axis of each contraction that is cut, in order
    PointerSet after_buffers;
  };

  const std::string& name() const { return graph_.ops[std::size_t(op_)].name(); }

  Plan plan_of(const Version& version) const {
    const Vector<Definition>& all = version.definitions;
    Plan plan{Vector<bool>(all.size()), Vector<bool>(all.size()), Vector<bool>(all.size()), {}, {}};
    PointerSet recurrent, heavy;
    for (const ir::Buffer& state : recursion_.states) recurrent.insert(state.id());
    for (std::size_t d = 0; d < all.size(); ++d) {
      const bool depends = reads_any(all[d], recurrent), contracts = has_contraction(all[d].body);
      if (depends) recurrent.insert(all[d].buffer.id());
      plan.cut[d] = all[d].op == op_ && contracts && depends;
      const bool hoisted = !depends && version.part != Part::leaves && version.number < 0;
      plan.heavy[d] = (contracts && !hoisted) || reads_any(all[d], heavy);
      if (plan.heavy[d] && all[d].buffer->role == ir::Role::temp) heavy.insert(all[d].buffer.id());
    }
    // Of contractions within each other the last is cut.
    PointerSet needed;
    for (std::size_t d = all.size(); d-- > 0;) {
      const bool feeds = needed.contains(all[d].buffer.id());
      if (feeds) plan.cut[d] = false;
      if (!feeds && !plan.cut[d]) continue;
      for_each_read(all[d].body, [&](const ir::Load& load) {
        if (load.buffer->role == ir::Role::temp) needed.insert(load.buffer.id());
      });
    }
    for (std::size_t d = 0; d < all.size(); ++d) {
      plan.after[d] = plan.cut[d] || reads_at_node(all[d], plan.after_buffers);
      if (!plan.after[d]) continue;
      plan.after_buffers.insert(all[d].buffer.id());
      if (plan.cut[d]) {
        plan.cuts.push_back(checked_axis(all[d], recurrent));
      } else if (has_contraction(all[d].body)) {
        refuse_rest(all[d]);
      }
    }
    return plan;
  }

  /// Whether `d` reads one of `buffers` elsewhere than at a child: a child's state is complete.
  static bool reads_at_node(const Definition& d, const PointerSet& buffers) {
    bool found = false;
    for_each_read(d.body,
                  [&](const ir::Load& load) { found |= buffers.contains(load.buffer.id()) && !is_of_child(load); });
    return found;
  }
  static bool is_of_child(const ir::Load& load) {
    const auto* step = load.indices.empty() ? nullptr : load.indices[0].as<ir::UfCall>();
    return step && ir::is_child(step->uf.kind);
  }

  [[noreturn]] void refuse_rest(const Definition& d) const {
    const std::string other = d.op < 0 ? d.buffer->name : graph_.ops[std::size_t(d.op)].name();
    refuse_cut(graph_, "what follows the contraction of '" + name() + "' at a node holds that of '" + other +
                           "', which every worker would compute whole; cut the recursion at '" + other + "'");
  }

  // ---- the axis that is cut ----

  /// The axis of the contraction that indexes the last dimension of what it reads of the recursion, which is the one
  /// that workers own slices of; null if there is none.
  static const ir::ReduceAxis* axis_of(const Definition& d, const PointerSet& recurrent) {
    const ir::ReduceAxis* found = nullptr;
    ir::visit_with(d.body, [&](const ir::Reduce& reduce) {
      if (found || reduce.axis.dim.kind() != DimKind::dense) return;
      bool last = false, elsewhere = false;
      for_each_read(d.body, [&](const ir::Load& load) {
        if (!recurrent.contains(load.buffer.id())) return;
        for (std::size_t i = 0; i < load.indices.size(); ++i) {
          const bool at_end = i + 1 == load.indices.size() && load.indices[i].same_as(reduce.axis.var);
          (at_end ? last : elsewhere) |= ir::uses(load.indices[i], reduce.axis.var);
        }
      });
      if (last && !elsewhere) found = &reduce.axis;
    });
    return found;
  }

  ir::ReduceAxis checked_axis(const Definition& d, const PointerSet& recurrent) const {
    const ir::ReduceAxis* axis = axis_of(d, recurrent);
    if (!axis)
      refuse_cut(graph_,
                 "the contraction of '" + name() +
                     "' runs over no last dimension of what it reads of the recursion, and that is the one that "
                     "workers own slices of; write the tensor with the contracted dimension last");
    return *axis;
  }

  // ---- slices ----

  void choose_slices() {
    std::int64_t extent = 0;  // what slices of one size divide of every contraction that is cut
    for (const Plan& plan : plans_)
      for (const ir::ReduceAxis& axis : plan.cuts) extent = std::gcd(extent, axis.dim.extent());
    slices_ = schedule_.fewer_workers ? slices_of(extent) : schedule_.max_workers;
    if (slices_ == 0)
      refuse_slices([](std::int64_t n) { return slices_of(n) == 0; },
                    "cannot be cut into 2 to 7 slices of one size; leave out refactor");
    if (extent % slices_)
      refuse_slices([&](std::int64_t n) { return n % slices_ != 0; },
                    std::to_string(slices_) +
                        " workers, or blocks of a GPU, cannot own equal slices of; choose a number that "
                        "divides it, with workers(n) or, on a GPU, GpuSchedule::blocks");
    slice_dim_ = Dim("slice", slices_, DimKind::slice);
  }

  /// Four slices or two where that leaves each 16 elements or more, since fewer terms are not worth a partial sum, or
  /// another number where it must be. Every worker adds up as many sums as there are slices: on two threads a tree of a
  /// SimpleTreeGRU of 256 takes 5 % longer with four slices than with two, and 14 % with eight. 0: none are of one
  /// size.
  static int slices_of(std::int64_t extent) {
    for (const int slices : {4, 2, 3, 5, 7})
      if (extent % slices == 0 && extent / slices >= 16) return slices;
    for (const int slices : {2, 3, 5, 7})
      if (extent % slices == 0) return slices;
    return 0;
  }

  /// Names a dimension whose extent is `at_fault`, or all of them: they cannot be cut alike.
  [[noreturn]] void refuse_slices(FunctionRef<bool(std::int64_t)> at_fault, const std::string& why) const {
    std::string all;
    for (const Plan& plan : plans_)
      for (const ir::ReduceAxis& axis : plan.cuts) {
        const std::string dim = "'" + axis.dim.name() + "' of " + std::to_string(axis.dim.extent()) + " elements";
        if (at_fault(axis.dim.extent()))
          refuse_cut(graph_, "operator '" + name() + "' contracts over dimension " + dim + ", which " + why);
        all += (all.empty() ? "" : " and ") + dim;
      }
    refuse_cut(graph_, "operator '" + name() + "' contracts over dimensions " + all + ", which together " + why);
  }

  // ---- states of which each worker has a copy ----

  /// The states that some A2 writes and some definition of the recursion reads.
  void choose_own_states() {
    for (const ir::Buffer& state : recursion_.states) {
      bool after = false, read = false;
      for (std::size_t v = 0; v < plans_.size(); ++v) {
        after |= plans_[v].after_buffers.contains(state.id());
        for (const Definition& d : recursion_.versions[v].definitions) read |= reads_any(d, {state.id()});
      }
      if (!after || !read) continue;
      ir::BufferInfo info = *state;
      info.name = "own_" + info.name;
      info.scope = ir::Scope::worker;
      copied_.push_back(state);
      own_states_.push_back(ir::Buffer(std::move(info)));
    }
  }
  ir::Buffer own_state(const ir::Buffer& buffer) const {
    for (std::size_t s = 0; s < copied_.size(); ++s)
      if (copied_[s] == buffer) return own_states_[s];
    return {};
  }
  ir::Buffer own_temp(const ir::Buffer& buffer) {
    auto& own = own_temps_[buffer.id()];
    if (!own) {
      ir::BufferInfo info = *buffer;
      info.scope = ir::Scope::worker;
      own = ir::Buffer(std::move(info));
    }
    return own;
  }

  // ---- rewriting ----

  /// A1; A2 for each worker; and from it the workers' slices of the states.
  void rewrite(Version& version, const Plan& plan) {
    Vector<Definition> before, after, slices;
    PointerSet own;  // states that each worker computes for itself before the cut too
    for (const ir::Buffer& state : recursion_.states) {
      if (!own_state(state)) continue;
      bool cheap = true;
      for (std::size_t d = 0; d < plan.heavy.size(); ++d)
        cheap &= plan.after[d] || !plan.heavy[d] || !(version.definitions[d].buffer == state);
      if (cheap) own.insert(state.id());
    }
    std::size_t next_cut = 0;
    for (std::size_t i = 0; i < version.definitions.size(); ++i) {
      Definition d = version.definitions[i];
      const ir::Buffer target = d.buffer, own_target = own_state(target);
      const bool ours = plan.after[i] || own.contains(target.id());
      const bool among_after = plan.after_buffers.contains(target.id());
      d.body = over_own(d.body, plan, own, plan.after[i] && !plan.cut[i]);
      if (plan.cut[i]) before.push_back(cut(d, plan.cuts[next_cut++]));
      if (own_target && ours) {
        d.buffer = own_target;
        (plan.after[i] ? after : before).push_back(d);
        slices.push_back(copy(d, own_target, target));
      } else if (own_target) {  // computed in slices, and then collected
        before.push_back(d);
        after.push_back(copy(d, target, own_target));
      } else if (plan.after[i]) {
        if (target->role == ir::Role::temp) d.buffer = own_temp(target);
        after.push_back(d);
      } else if (among_after && target->role == ir::Role::temp) {  // one side of a branch, not after the cut
        before.push_back(d);
        after.push_back(copy(d, target, own_temp(target)));
      } else {
        before.push_back(d);
      }
    }
    append(before, after);
    append(before, slices);
    version.definitions = std::move(before);
  }

  /// `e`, of A2 if `after`, with reads of what each worker has for itself.
  ir::Expr over_own(const ir::Expr& e, const Plan& plan, const PointerSet& own, bool after) {
    return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const ir::Expr inner = self.children(load);
      const Vector<ir::Expr>& indices = inner.as<ir::Load>()->indices;
      if (const ir::Buffer state = own_state(load.buffer))
        return after || is_of_child(load) || own.contains(load.buffer.id()) ? ir::Load::make(state, indices) : inner;
      const bool temp = after && load.buffer->role == ir::Role::temp && plan.after_buffers.contains(load.buffer.id());
      return temp ? ir::Load::make(own_temp(load.buffer), indices) : inner;
    });
  }

  /// `to[..] = from[..]` wherever `like` defines its buffer.
  static Definition copy(const Definition& like, const ir::Buffer& from, const ir::Buffer& to) {
    Definition result = like;
    result.buffer = to;
    for (IndexVar& index : result.indices) index.var = ir::Var::make(index.var.as<ir::Var>()->name);
    result.body = ir::Load::make(from, store_indices(result));
    return result;
  }

  /// The partial sums of `d`; `d` itself becomes the sum of them.
  Definition cut(Definition& d, const ir::ReduceAxis& axis) {
    const std::int64_t piece = axis.dim.extent() / slices_;
    const ir::Expr f = ir::Var::make("f"), c = ir::Var::make("c");
    Definition partial = d;
    ir::BufferInfo info = *d.buffer;
    info.name += "_partial";
    info.role = ir::Role::temp;
    info.dims.insert(info.dims.begin() + 1, slice_dim_);
    partial.buffer = ir::Buffer(std::move(info));
    ir::Substitution to{{axis.var.get(), f * piece + c}};
    for (IndexVar& index : partial.indices) {
      const ir::Expr var = ir::Var::make(index.var.as<ir::Var>()->name);
      to.emplace(index.var.get(), var);
      index.var = var;
    }
    partial.indices.insert(partial.indices.begin(), {f, slice_dim_});
    partial.body = ir::substitute(over_piece(d.body, axis, {c, piece_dim(axis.dim, piece), ir::imm(piece)}), to);
    ir::Expr sum;
    for (int s = 0; s < slices_; ++s) {
      Vector<ir::Expr> indices = store_indices(d);
      indices.insert(indices.begin() + 1, ir::imm(s));
      const ir::Expr part = ir::Load::make(partial.buffer, std::move(indices));
      sum = sum ? ir::combine(d.body.as<ir::Reduce>()->op, sum, part) : part;
    }
    d.body = sum;
    return partial;
  }

  /// The nested reductions `e` with `axis` replaced by a piece of it.
  static ir::Expr over_piece(const ir::Expr& e, const ir::ReduceAxis& axis, const ir::ReduceAxis& piece) {
    const auto* reduce = e.as<ir::Reduce>();
    if (!reduce) return e;
    const bool here = reduce->axis.var.same_as(axis.var);
    return ir::Reduce::make(reduce->op, here ? piece : reduce->axis, over_piece(reduce->body, axis, piece));
  }

  Dim piece_dim(const Dim& dim, std::int64_t piece) {
    const auto [found, fresh] = piece_dims_.emplace(dim.id(), Dim(dim.name() + "_slice", piece));
    return found->second;
  }

  const ra::Graph& graph_;
  const int op_;
  const Schedule& schedule_;
  Recursion& recursion_;
  int slices_ = 1;
  Dim slice_dim_{"slice", 1, DimKind::slice};
  Vector<Plan> plans_;                      // [versions]
  Vector<ir::Buffer> copied_, own_states_;  // of each state of which workers have copies, and the copies
  PointerMap<ir::Buffer> own_temps_;
  PointerMap<Dim> piece_dims_;
};

/// The number of the operator `name`, at which a recursion can be cut.
inline int cut_operator(const ra::Graph& graph, const std::string& name) {
  const int op = graph.find(name);
  if (op < 0)
    refuse_cut(graph, "there is no operator " + in_quotes(name) + "; " +
                          near_names(name, names_of(graph, ra::OpKind::compute)));
  if (graph.ops[std::size_t(op)].kind != ra::OpKind::compute)
    refuse_cut(graph,
               "'" + name + "' is no computed operator; name the one whose contraction the recursion is to be cut at");
  return op;
}

}  // namespace detail

/// Moves the back edges that the schedule names. Throws `invalid_schedule` where that cannot be, or would not pay.
inline void refactor(Vector<Recursion>& recursions, const ra::Graph& graph, const Schedule& schedule) {
  if (schedule.refactored.empty()) return;
  if (graph.structure == ra::StructureKind::dag)
    detail::refuse_cut(graph,
                       "it is declared for DAGs, where a node has several parents, and what follows the cut would be "
                       "computed again with each of them; only trees and sequences are refactored");
  Vector<std::string> cut_in(recursions.size());  // the operator each is cut at; empty: none
  Vector<std::string> named;
  for (const std::string& name : schedule.refactored) {
    if (contains(named, name)) continue;  // said twice
    named.push_back(name);
    const int op = detail::cut_operator(graph, name);
    bool up = false, down = false, done = false;
    for (int r = 0; r < int(recursions.size()) && !done; ++r) {
      const ra::Direction direction = recursions[std::size_t(r)].direction;
      if (!ra::operators_of(graph, r)[std::size_t(op)]) continue;
      up |= direction == ra::Direction::up;
      down |= direction == ra::Direction::down;
      if (direction != ra::Direction::up) continue;
      if (recursions[std::size_t(r)].unrolled)
        detail::refuse_cut(graph, "'" + name +
                                      "' is in a recursion that is unrolled, whose subtrees are one worker's each, so "
                                      "that no barrier is there to save; leave out unroll or refactor");
      if (const std::string& other = cut_in[std::size_t(r)]; !other.empty())
        detail::refuse_cut(graph, "'" + other + "' and '" + name +
                                      "' are in the same recursion, which has one back edge; name one of them");
      done = detail::Refactorer(graph, op, schedule, recursions[std::size_t(r)]).run();
      if (done) cut_in[std::size_t(r)] = name;
    }
    if (done) continue;
    if (!up && down)
      detail::refuse_cut(
          graph, "'" + name +
                     "' is in a recursion from parents to children, and what follows the cut would "
                     "be computed again for each child; only recursions from children to parents are refactored");
    if (!up) detail::refuse_cut(graph, "'" + name + "' is in no recursion: no node reads what is computed at another");
    detail::refuse_cut(graph, "'" + name +
                                  "' contracts over nothing that depends on the recursion, so there is nothing to "
                                  "cut it at; name the operator of a matrix product with what the children give");
  }
}

}  // namespace cortex::lower
