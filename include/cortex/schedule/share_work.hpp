// Decides what each worker of a call does: a slice of the innermost output dimension of every nest, the same slice in
// all of them, so that a worker's weights stay in its own cache over all batches and calls (O2).
//
//   for n: for i: h[n,i] = ...        ->   for n: parallel for i: h[n,i] = ...
//   for n: for i: s[n,i] = sum(k, ..) ->   unchanged, and s one copy per worker
//
// A nest without contraction whose result others read whole is cheaper to compute again on each worker than to wait
// for.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cortex/schedule/access.hpp"

namespace cortex::schedule {

inline ir::Stmt share_work(const ir::Stmt& body) {
  const auto whole = read_whole(body);
  std::unordered_map<const void*, ir::Buffer> own;
  const ir::Stmt shared = map_nests(body, [&](const Nest& nest) {
    bool replicate = !has_contraction(nest.inner), sliced = bool(slice_var(nest)), wanted_whole = !sliced;
    for (const Access& access : accesses_of(nest.inner)) {
      if (!access.write) continue;
      replicate &= access.buffer->role == ir::Role::temp;
      wanted_whole |= whole.count(access.buffer.id()) > 0;
    }
    Nest result = nest;
    if (replicate && wanted_whole) {
      for (const Access& access : accesses_of(nest.inner))
        if (access.write && !own.count(access.buffer.id())) {
          ir::BufferInfo info = *access.buffer;
          info.scope = ir::Scope::worker;
          own.emplace(access.buffer.id(), ir::Buffer(std::move(info)));
        }
    } else if (sliced) {
      result.loops.back().kind = ir::ForKind::parallel;
    } else {
      // Nothing to slice: the first worker alone.
      const ir::Expr first = ir::binary(ir::BinaryOp::eq, ir::call(ir::UfKind::worker, "worker"), ir::imm(0));
      result.guard = nest.guard ? ir::Binary::make(ir::BinaryOp::logical_and, first, nest.guard) : first;
    }
    return build_nest(result);
  });
  const auto home = [&](const ir::Buffer& buffer) {
    const auto it = own.find(buffer.id());
    return it == own.end() ? buffer : it->second;
  };
  return ir::mutate_with(
      shared,
      [&](auto& self, const ir::Load& load) -> ir::Expr {
        const ir::Expr inner = self.children(load);
        return own.count(load.buffer.id()) ? ir::Load::make(home(load.buffer), inner.as<ir::Load>()->indices) : inner;
      },
      [&](auto& self, const ir::Store& store) -> ir::Stmt {
        const ir::Stmt inner = self.children(store);
        const auto* s = inner.as<ir::Store>();
        return own.count(store.buffer.id()) ? ir::Store::make(home(store.buffer), s->indices, s->value) : inner;
      });
}

}  // namespace cortex::schedule
