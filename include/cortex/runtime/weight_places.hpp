// Where a GPU's threads find the matrices of a model: in registers, in shared memory, or in the L2 cache.
#pragma once

#include <cstdint>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::runtime {

/// Elements of a matrix that a thread has in registers, and whether they are all that the levels read of it.
struct InRegisters {
  std::string name;
  std::int64_t elements = 0;
  bool all = false;
};

/// Names of matrices, each in the order of its first use. What registers hold in part is in another list, too.
struct WeightPlaces {
  Vector<InRegisters> in_registers;
  Vector<ir::Buffer> on_chip;  // slices in shared memory, and what is spread over that of a cluster's blocks
  Vector<std::string> on_chip_names, spread_names, streamed;
};

/// The weight of which a buffer on chip holds a slice.
inline std::string name_of_slice(const ir::Buffer& buffer) {
  return buffer->name.substr(0, buffer->name.rfind(buffer->fragments ? "_fragments" : "_packed"));
}

namespace detail {

/// Whether loops that carry the recursion read the matrix from elsewhere.
inline bool levels_read(const ir::Stmt& body, const std::string& name) {
  bool found = false;
  ir::visit_with(body, [&](const ir::For& loop) {
    if (!schedule::carries_recursion(loop)) return true;
    ir::visit_with(loop.body, [&](const ir::Load& load) {
      const ir::Buffer& buffer = load.buffer;
      if (buffer->scope == ir::Scope::local) return;
      const bool slice = ir::keeps_weights(buffer->scope);
      found |= slice ? name_of_slice(buffer) == name : buffer->packed_from && buffer->packed_from->name == name;
    });
    return false;
  });
  return found;
}

}  // namespace detail

/// `tiled`: the program when its threads share the work.
inline WeightPlaces weight_places(const ir::Program& tiled) {
  WeightPlaces places;
  Vector<std::string> kept;
  ir::visit_with(tiled.body, [&](const ir::Alloc& alloc) {
    if (alloc.buffer->role != ir::Role::weight) return;
    const ir::Buffer& weight = alloc.buffer->packed_from;
    const std::string name = weight->packed_from ? weight->packed_from->name : weight->name;
    const std::int64_t elements = alloc.buffer->dims[0].extent();
    for (InRegisters& known : places.in_registers)
      if (known.name == name) return void(known.elements += elements);
    places.in_registers.push_back({name, elements, !detail::levels_read(alloc.body, name)});
    if (places.in_registers.back().all) kept.push_back(name);
  });
  for (const ir::Buffer& buffer : tiled.buffers) {
    if (!ir::keeps_weights(buffer->scope)) continue;
    const bool spread = buffer->scope == ir::Scope::spread;
    places.on_chip.push_back(buffer);
    (spread ? places.spread_names : places.on_chip_names).push_back(name_of_slice(buffer));
    kept.push_back(name_of_slice(buffer));
  }
  for (const ir::Buffer& buffer : tiled.buffers)
    if (buffer->role == ir::Role::weight && buffer->packed_from && !contains(kept, buffer->packed_from->name))
      places.streamed.push_back(buffer->packed_from->name);
  return places;
}

}  // namespace cortex::runtime
