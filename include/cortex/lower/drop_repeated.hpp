// What a recursion has computed at all nodes, those after it read, and do not compute again.
//
//   x[n] = silu(sum(j, W[i,j] * e[n,j])); h[n] = a * h[child(n)] + x[n];  then x[n] = ..; y[n] = h[n] + l * x[n]
//     ->
//   x[n] = silu(sum(j, W[i,j] * e[n,j])); h[n] = a * h[child(n)] + x[n];  then y[n] = h[n] + l * x[n]
//
// While definitions are still those of the model's operators: what steps make of them has a tensor of its own in each
// version. What is the same for all nodes stays: it is computed once for all recursions (`hoist`).
#pragma once

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

namespace detail {

/// Whether a version has rows of what `d` defines: computes it, and not the same for all of its nodes.
inline bool has_rows(const Version& version, const Definition& d) {
  PointerSet same;  // for all nodes
  bool found = false;
  for (const Definition& own : version.definitions) {
    bool differs = own.buffer->role != ir::Role::temp || own.guard;
    ir::visit_with(
        own.body, [&](const ir::UfCall&) { differs = true; },
        [&](const ir::Load& load) {
          differs |= load.buffer->role != ir::Role::weight && !same.contains(load.buffer.id());
        });
    if (!differs) same.insert(own.buffer.id());
    found |= differs && same_definition(d, own);
  }
  return found;
}

}  // namespace detail

/// Drops definitions that an earlier recursion has evaluated already, at all the nodes of the version. They may read
/// anything that is complete by then, so they read the same now. Where a recursion is cut, workers have tensors of
/// their own of what stands behind the cut.
inline void drop_repeated(Vector<Recursion>& recursions, const Schedule& schedule) {
  if (!schedule.refactored.empty()) return;
  const auto has = [](const Recursion& r, Part part, const Definition& d) {
    return any_of(r.versions,
                  [&](const Version& v) { return v.part == part && v.number < 0 && detail::has_rows(v, d); });
  };
  const auto is_repeated = [&](std::size_t r, Part part, const Definition& d) {
    if (d.buffer->role != ir::Role::temp || !d.node) return false;
    for (std::size_t before = 0; before < r; ++before) {
      const Recursion& b = recursions[before];
      if (b.direction == ra::Direction::roots) continue;
      const bool halves = has(b, Part::leaves, d) && has(b, Part::internal, d);
      if (has(b, Part::all, d) || halves || (part != Part::all && has(b, part, d))) return true;
    }
    return false;
  };
  for (std::size_t r = 1; r < recursions.size(); ++r)
    for (Version& version : recursions[r].versions) {
      PointerSet anew;  // tensors of which something is computed: as a whole then, as some are for sides of branches
      for (const Definition& d : version.definitions)
        if (!is_repeated(r, version.part, d)) anew.insert(d.buffer.id());
      erase_where(version.definitions, [&](const Definition& d) { return !anew.contains(d.buffer.id()); });
    }
}

}  // namespace cortex::lower
