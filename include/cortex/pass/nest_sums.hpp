// Sums that only a sum over a further dimension reads, each once, are made inside of it, and are no tensors.
//
//   for i: for a: {s = 0; for b: s += T[i,a,b] * r[b]; t[node,i,a] = s}
//   for i: {y = 0; for a: y += l[a] * t[node,i,a]; x[node,i] = y}
//     ->
//   for i: {y = 0; for a: {s = 0; for b: s += T[i,a,b] * r[b]; y += l[a] * s}; x[node,i] = y}
//
// So a bilinear form for each output, as of a recursive neural tensor network, has no matrix of sums for each node,
// which a level's nodes would write to memory and read again.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/pass/inline_temporaries.hpp"

namespace cortex::pass {

namespace detail {

class SumNester {
 public:
  explicit SumNester(const ir::Stmt& body) : uses_(body) {
    ir::visit_with(body, [&](const ir::For& loop) {
      if (loop.dim.kind() == DimKind::dense) find_sum(loop), find_reader(loop);
    });
  }

  ir::Stmt run(const ir::Stmt& body) const {
    if (readers_.empty()) return body;
    return ir::mutate_with(
        body,
        [&](auto& self, const ir::For& loop) -> ir::Stmt {
          return moved_.contains(&loop) ? ir::nothing() : self.children(loop);
        },
        [&](auto& self, const ir::Store& store) -> ir::Stmt {
          return readers_.contains(&store) ? with_sums(store) : self.children(store);
        });
  }

 private:
  /// Loops that compute one sum for each value of their variables.
  struct Sum {
    const ir::For* loops;
    Vector<ir::Buffer> locals;
    Vector<ir::Stmt> stmts;  // all but the last, which stores the sum
    const ir::Store* store;
  };

  void find_sum(const ir::For& outermost) {
    Sum sum{&outermost, {}, {}, nullptr};
    std::size_t loops = 1;
    ir::Stmt work = outermost.body;
    for (const auto* loop = work.as<ir::For>(); loop; loop = work.as<ir::For>()) work = ir::Stmt(loop->body), ++loops;
    for (const auto* alloc = work.as<ir::Alloc>(); alloc; alloc = work.as<ir::Alloc>()) {
      sum.locals.push_back(alloc->buffer);
      work = ir::Stmt(alloc->body);
    }
    sum.stmts = schedule::stmts_of(work);
    if (sum.locals.empty() || sum.stmts.empty()) return;
    sum.store = sum.stmts.back().as<ir::Store>();
    sum.stmts.pop_back();
    if (!sum.store || sum.store->buffer->scope == ir::Scope::local || loops < 2) return;
    const ir::Buffer& buffer = sum.store->buffer;
    const TempUse& use = uses_.uses.find(buffer.id())->second;
    if (buffer->role == ir::Role::temp && sum.store->indices.size() == loops + 1 && use.stores == 1 && use.loads == 1 &&
        !use.recomputed && !use.guarded)
      sums_.push_back(std::move(sum));
  }

  /// The sum that is read, at the node itself and for each value of variables: any other index may have some twice.
  const Sum* sum_in(const ir::Load& load) const {
    for (const Sum& sum : sums_)
      if (sum.store->buffer == load.buffer && sum.store->indices[0].same_as(load.indices[0]) &&
          all_of(load.indices, [](const ir::Expr& index) { return index.as<ir::Var>() != nullptr; }))
        return &sum;
    return nullptr;
  }

  /// Whether the innermost of sums over several dimensions reads some.
  void find_reader(const ir::For& loop) {
    const auto* store = loop.body.as<ir::Store>();
    if (!store || store->buffer->scope != ir::Scope::local) return;
    ir::visit_with(store->value, [&](const ir::Load& load) {
      if (const Sum* sum = sum_in(load)) moved_.insert(sum->loops), readers_.insert(store);
    });
  }

  ir::Stmt with_sums(const ir::Store& reader) const {
    Vector<ir::Buffer> locals;
    Vector<ir::Stmt> stmts;
    const ir::Expr value = ir::mutate_with(reader.value, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const Sum* const sum = sum_in(load);
      if (!sum) return self.children(load);
      ir::Substitution at;
      for (std::size_t d = 1; d < load.indices.size(); ++d) at.emplace(sum->store->indices[d].get(), load.indices[d]);
      append(locals, sum->locals);
      for (const ir::Stmt& stmt : sum->stmts) stmts.push_back(ir::substitute(run(stmt), at));
      return ir::substitute(sum->store->value, at);
    });
    stmts.push_back(ir::Store::make(reader.buffer, reader.indices, value));
    return ir::with_allocs(locals, ir::Block::make(stmts));
  }

  const TempUses uses_;
  Vector<Sum> sums_;
  PointerSet moved_, readers_;  // loops of sums, and the stores that read these
};

}  // namespace detail

/// Of nests as lowering writes them, one for each tensor. A tensor that something else reads, too, stays.
inline ir::Stmt nest_sums(const ir::Stmt& body) { return detail::SumNester(body).run(body); }

}  // namespace cortex::pass
