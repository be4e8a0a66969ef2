// Decides what each worker of a call does: a slice of the innermost output dimension of every nest, the same slice in
// all of them, so that a worker's weights stay in its own cache over all batches and calls (O2).
//
//   for n: for i: h[n,i] = ...        ->   for n: parallel for i: h[n,i] = ...
//   for n: for i: s[n,i] = sum(k, ..) ->   unchanged, and s one copy per worker
//   for n: for f: for i: p[n,f,i] = ..->   for n: parallel for f: for i: p[n,f,i] = ...
//
// A matrix per node is sliced by rows: a row of a product with weights needs that row of the children alone, which the
// same worker has written.
//
// A loop over slices of a dimension (`lower/refactor.hpp`) is what workers share of its nest, and all loops over that
// dimension are then shared in pieces of a slice. A nest that writes what is each worker's own is left whole.
// A nest without contraction whose result others read whole is cheaper to compute again on each worker than to wait
// for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/named.hpp"

namespace cortex::schedule {

namespace detail {

/// What one nest writes, and whether each worker may compute all of it.
struct Written {
  Vector<ir::Buffer> buffers;
  bool cheap = true;    // no contraction, and temporaries alone
  bool wanted = false;  // some of it is read whole, or there is nothing to slice
};

/// The temporaries that each worker computes for itself: wanted whole, and cheap in every nest that writes them. Nests
/// that write several tensors tie these to each other.
inline PointerMap<ir::Buffer> replicated(const ir::Stmt& body) {
  const auto whole = read_whole(body);
  Vector<Written> nests;
  for_each_nest(
      body,
      [&](const Nest& nest) {
        Written written;
        written.cheap = !has_contraction(nest.inner) && !has_shared_loop(nest) && !is_one_workers(nest);
        written.wanted = !slice_var(nest);
        for (const Access& access : accesses_of(nest.inner)) {
          if (!access.write || access.buffer->scope == ir::Scope::worker) continue;
          written.buffers.push_back(access.buffer);
          written.cheap &= access.buffer->role == ir::Role::temp;
          written.wanted |= whole.contains(access.buffer.id());
        }
        nests.push_back(std::move(written));
      },
      SharedWhole::not_those);
  ir::visit_with(body, [&](const ir::For& loop) {
    if (!is_shared_whole(ir::handle_of(loop))) return;
    Written part;  // of it each worker computes no more
    part.cheap = false;
    ir::visit_with(loop.body, [&](const ir::Store& store) { part.buffers.push_back(store.buffer); });
    nests.push_back(std::move(part));
  });
  // What one nest says of a tensor holds in all that write it, and for all that those write.
  for (bool changed = true; changed;) {
    changed = false;
    for (Written& a : nests)
      for (const Written& b : nests) {
        const auto common = std::find_first_of(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end());
        if (common == a.buffers.end()) continue;
        changed |= (a.cheap && !b.cheap) || (!a.wanted && b.wanted);
        a.cheap &= b.cheap;
        a.wanted |= b.wanted;
      }
  }
  PointerMap<ir::Buffer> own;
  for (const Written& written : nests)
    for (const ir::Buffer& buffer : written.buffers) {
      if (!written.cheap || !written.wanted || own.contains(buffer.id())) continue;
      ir::BufferInfo info = *buffer;
      info.scope = ir::Scope::worker;
      own.emplace(buffer.id(), ir::Buffer(std::move(info)));
    }
  return own;
}

/// Where some nest runs over slices of a dimension.
struct Pieces {
  PointerMap<std::int64_t> elements;  // of a slice of each dimension
  PointerSet of_rows;                 // dimensions of which slices are rows of matrices
};

inline Pieces pieces_of(const ir::Stmt& body) {
  Pieces result;
  for_each_nest(body, [&](const Nest& nest) {
    for (const Access& access : accesses_of(nest.inner))
      for (std::size_t d = 0; d < access.indices.size(); ++d) {
        const std::int64_t piece = piece_of(nest, access.indices[d]);
        if (!piece) continue;
        result.elements.insert_or_assign(access.buffer->dims[d].id(), piece);
        if (d >= 1 && d + 2 == access.indices.size()) result.of_rows.insert(access.buffer->dims[d].id());
      }
  });
  return result;
}

}  // namespace detail

/// Whether `node` is the top of a subtree that an unrolled recursion takes at a time.
inline bool is_top_of_group(const ir::Expr& node) {
  const auto* call = node.as<ir::UfCall>();
  return call && call->uf.kind == ir::UfKind::group_node;
}

/// `body` with its loops over subtrees shared: each subtree is one worker's, and so is what is temporary in it.
inline ir::Stmt give_subtrees_to_workers(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    const auto* let = loop.body.as<ir::LetStmt>();
    if (!let || !is_top_of_group(let->value)) return self.children(loop);
    ir::visit_with(loop.body, [&](const ir::For& inner) {
      if (inner.loop == ir::ForKind::parallel)
        refuse("loop '" + name_of(inner) + "', which is parallel, stands in loop '" + name_of(loop) +
               "' over subtrees, each of which is one worker's; leave out one of the two");
    });
    PointerMap<ir::Buffer> own;
    const auto home = [&](const ir::Buffer& buffer) {
      const bool dense = buffer->role == ir::Role::temp && buffer->scope == ir::Scope::shared &&
                         !buffer->dims.empty() &&
                         (buffer->dims[0] == dims::batch || buffer->dims[0] == dims::batch_edge);
      if (!dense) return buffer;
      ir::Buffer& copy = own[buffer.id()];
      if (!copy) {
        ir::BufferInfo info = *buffer;
        info.scope = ir::Scope::worker;
        copy = ir::Buffer(std::move(info));
      }
      return copy;
    };
    const ir::Stmt inner = ir::with_buffers(loop.body, home);
    return ir::For::make(loop.var, loop.dim, loop.extent, ir::ForKind::parallel, inner);
  });
}

/// What workers own of matrices. Threads of a GPU's block take columns, so its blocks do too.
enum class SlicesOfMatrices : std::uint8_t { rows, columns };

inline ir::Stmt share_work(const ir::Stmt& whole, SlicesOfMatrices slices = SlicesOfMatrices::rows) {
  const ir::Stmt body = give_subtrees_to_workers(whole);
  const auto own = detail::replicated(body);
  const auto pieces = detail::pieces_of(body);
  const ir::Stmt shared = map_nests(
      body,
      [&](const Nest& nest) {
        bool replicate = is_replicated(nest);
        for (const Access& access : accesses_of(nest.inner))
          replicate |= access.write && own.contains(access.buffer.id());
        Nest result = nest;
        if (replicate || has_shared_loop(nest) || is_one_workers(nest)) return ir::Stmt();
        const LoopHeader* rows = slices == SlicesOfMatrices::rows ? matrix_rows(nest) : nullptr;
        const bool by_rows =
            rows && (!pieces.elements.contains(rows->dim.id()) || pieces.of_rows.contains(rows->dim.id()));
        if (const LoopHeader* own_share = by_rows ? rows : shared_loop(nest)) {
          LoopHeader& loop = result.loops[std::size_t(own_share - nest.loops.data())];
          const auto piece = pieces.elements.find(loop.dim.id());
          loop.kind = ir::ForKind::parallel;
          if (piece != pieces.elements.end()) loop.piece = piece->second;
        } else {
          // Nothing to slice: the first worker alone.
          const ir::Expr first = ir::binary(ir::BinaryOp::eq, ir::worker(), ir::imm(0));
          result.guard = ir::both(first, nest.guard);
        }
        return build_nest(result);
      },
      SharedWhole::not_those);
  return own.empty() ? shared : ir::with_buffers(shared, own);
}

}  // namespace cortex::schedule
