// Puts the value of an elementwise temporary in place of its reads, where that computes nothing twice.
//
//   for i: lh[node,i] = rnn[left(node),i]
//   for i: rnn[node,i] = tanh(lh[node,i] + rh[node,i])
//     ->
//   for i: rnn[node,i] = tanh(rnn[left(node),i] + rnn[right(node),i])
//
// Runs first: it makes fewer and larger nests for the passes that place and fuse them. A copy is inlined everywhere, so
// that children's states are gathered inside the reductions that read them, unless it repeats what a weight has, for
// all nodes; anything else only where it is read once and by a nest that runs over no further dimension. The stores
// left without reads go with `remove_dead`. Paper section 4.1: temporaries are explicit, then removed where fusion
// allows. A copy that reads a row around its end stays.
#pragma once

#include <optional>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

/// Matches the index with which a temporary is stored against the one with which it is read, binding the store's
/// variables.
inline bool match_index(const ir::Expr& stored, const ir::Expr& read, ir::Substitution& bound) {
  if (stored.as<ir::Var>()) {
    const auto [it, fresh] = bound.emplace(stored.get(), read);
    return fresh || ir::equal(it->second, read);
  }
  const auto *a = stored.as<ir::UfCall>(), *b = read.as<ir::UfCall>();
  if (!a || !b || !(a->uf == b->uf) || a->args.size() != b->args.size()) return ir::equal(stored, read);
  for (std::size_t i = 0; i < a->args.size(); ++i)
    if (!match_index(a->args[i], b->args[i], bound)) return false;
  return true;
}

struct TempUse {
  const ir::Store* store = nullptr;
  int stores = 0;
  bool in_local_scope = false;  // the stored value reads a local accumulator: a reduction
  bool guarded = false;
  int loads = 0;
  bool recomputed = false;  // some load lies in a loop whose variable is not in its index
  bool replicated = false;  // some load lies in what each worker computes for itself
};

/// Collects, for each temporary, how it is stored and read.
class TempUses {
 public:
  explicit TempUses(const ir::Stmt& body) { walk(body, false, false); }
  PointerMap<TempUse> uses;

 private:
  void walk(const ir::Stmt& stmt, bool local, bool guarded) {
    switch (stmt->kind) {
      case ir::StmtKind::for_: {
        const auto& loop = *stmt.as<ir::For>();
        const DimKind kind = loop.dim.kind();
        const bool counts = kind == DimKind::dense || kind == DimKind::child || kind == DimKind::slice;
        if (counts) loops_.push_back(loop.var);
        walk(loop.body, local, guarded);
        if (counts) loops_.pop_back();
        break;
      }
      case ir::StmtKind::let:  // the node or edge of a row
        loops_.push_back(stmt.as<ir::LetStmt>()->var);
        walk(stmt.as<ir::LetStmt>()->body, local, guarded);
        loops_.pop_back();
        break;
      case ir::StmtKind::alloc: walk(stmt.as<ir::Alloc>()->body, true, guarded); break;
      case ir::StmtKind::block:
        for (const ir::Stmt& s : stmt.as<ir::Block>()->stmts) walk(s, local, guarded);
        break;
      case ir::StmtKind::if_:
        walk(stmt.as<ir::If>()->then_body, local, true);
        if (stmt.as<ir::If>()->else_body) walk(stmt.as<ir::If>()->else_body, local, true);
        break;
      case ir::StmtKind::store: store(*stmt.as<ir::Store>(), local, guarded); break;
      case ir::StmtKind::mma:
      case ir::StmtKind::tile_rows:
      case ir::StmtKind::tile_product:
      case ir::StmtKind::join:
      case ir::StmtKind::barrier:
      case ir::StmtKind::prefetch: break;
    }
  }

  void store(const ir::Store& s, bool local, bool guarded) {
    TempUse& use = uses[s.buffer.id()];
    use.store = &s;
    ++use.stores;
    use.in_local_scope |= local;
    use.guarded |= guarded;
    ir::visit_with(s.value, [&](const ir::Load& load) {
      TempUse& read = uses[load.buffer.id()];
      ++read.loads;
      read.replicated |= s.buffer->scope == ir::Scope::worker;
      for (const ir::Expr& loop : loops_) {
        bool indexed = false;
        for (const ir::Expr& index : load.indices) indexed |= ir::uses(index, loop);
        read.recomputed |= !indexed;
      }
    });
  }

  Vector<ir::Expr> loops_;
};

/// Whether `value` is a copy that goes round: it has in one piece what lanes would gather.
inline bool wraps(const ir::Expr& value) {
  bool found = false;
  if (const auto* copy = value.as<ir::Load>())
    for (const ir::Expr& index : copy->indices)
      ir::visit_with(index, [&](const ir::Binary& n) { found |= n.op == ir::BinaryOp::mod; });
  return found;
}

/// Whether an index has so many terms that it stays where it is: one that has its variable twice doubles with each copy
/// of a copy.
inline bool is_long(const ir::Expr& index) {
  int terms = 0;
  ir::visit_with(index, [&](const ir::Var&) { ++terms; });
  return terms > 32;
}

/// Puts the value of each temporary that `chosen` holds for in place of its reads.
template <class Chosen>
ir::Stmt inline_chosen(const ir::Stmt& body, Chosen chosen) {
  const TempUses found(body);
  PointerMap<const ir::Store*> inlined;
  ir::visit_with(body, [&](const ir::Store& s) {
    const TempUse& use = found.uses.find(s.buffer.id())->second;
    const bool temp = s.buffer->role == ir::Role::temp && s.buffer->scope != ir::Scope::local;
    if (temp && use.stores == 1 && !use.in_local_scope && !wraps(s.value) && chosen(s, use))
      inlined.emplace(s.buffer.id(), &s);
  });
  if (inlined.empty()) return body;
  return ir::mutate_with(body, [&](auto& self, const ir::Load& load) -> ir::Expr {
    const auto it = inlined.find(load.buffer.id());
    if (it == inlined.end()) return self.children(load);
    ir::Substitution bound;
    for (std::size_t i = 0; i < load.indices.size(); ++i)
      if (is_long(load.indices[i]) || !match_index(it->second->indices[i], self(load.indices[i]), bound))
        return self.children(load);
    return self(ir::substitute(it->second->value, bound));
  });
}

/// Whether a copy that is the same for all nodes has elements of a weight several times: those who read it need not ask
/// where each is.
inline bool repeats_elements(const ir::Store& copy) {
  return ir::kind_of_rows(*copy.buffer) == DimKind::dense &&
         ir::dense_elements(*copy.buffer) > ir::dense_elements(*copy.value.as<ir::Load>()->buffer);
}

}  // namespace detail

inline ir::Stmt inline_temporaries(const ir::Stmt& body) {
  // Copies first: they decide how often what they copy is read.
  const ir::Stmt copied = detail::inline_chosen(body, [](const ir::Store& s, const detail::TempUse& use) {
    return (s.value.as<ir::Load>() && !(use.recomputed && detail::repeats_elements(s))) || s.value.as<ir::FloatImm>();
  });
  return detail::inline_chosen(copied, [](const ir::Store& s, const detail::TempUse& use) {
    const bool shared = use.replicated && s.buffer->scope != ir::Scope::worker;  // work that workers share stays so
    return use.loads == 1 && !use.recomputed && !shared;
  });
}

}  // namespace cortex::pass
