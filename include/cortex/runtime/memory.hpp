// What a model takes of memory: what a call's tensors follow from, and what one call needed.
#pragma once

#include <cstddef>
#include <new>

#include "cortex/base/error.hpp"
#include "cortex/runtime/plan.hpp"

namespace cortex {

/// Bytes of tensors, by what decides in a call how many rows there are of them.
struct RowBytes {
  std::size_t fixed = 0;       // the same in every call
  std::size_t node = 0;        // a row for each node, and one more, of zeros, which absent children read
  std::size_t recycled = 0;    // a row for each node that is still needed, of states that are no results of calls
  std::size_t batch = 0;       // a row for each node of the largest batch
  std::size_t edge = 0;        // a row for each pair of a node and its child, of whichever container
  std::size_t batch_edge = 0;  // a row for each such pair of the batch that has the most
  friend bool operator==(const RowBytes&, const RowBytes&) = default;
};

/// What a compiled model takes of memory. Temporaries that lie in the same memory count once.
struct ModelMemory {
  RowBytes states;           // the results at every node
  RowBytes temporaries;      // of a call
  RowBytes own_temporaries;  // of each worker that takes part in a call
  std::size_t weights = 0;   // the weights bound now, in the layouts that the code reads
  std::size_t tables = 0;    // of what follows from them and a node's fields alone, made when they were bound
};

/// What one call needed, in bytes.
struct CallMemory {
  std::size_t states = 0, temporaries = 0;  // of tensors
  std::size_t arrays = 0;  // of the linearizer: its arrays, and what it numbers nodes with, as large as they have grown
  std::size_t held = 0;    // all that the workspace holds for this call and later ones: it has grown ahead
  std::size_t peak() const { return states + temporaries + arrays; }
};

namespace runtime {

/// What `work` gives. Where memory does not suffice for it, `drop` comes before the error goes on: what a workspace has
/// grown to is free for smaller calls then.
template <class Drop, class Work>
auto in_memory(const Drop& drop, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code == Code::out_of_memory) drop();
    throw;
  } catch (const std::bad_alloc&) {
    drop();
    throw;
  }
}

/// How many rows a tensor has in the call that `in` describes.
inline std::size_t rows_of(const Storage& storage, const structure::Arrays& in) {
  switch (storage.rows) {
    case Rows::fixed: return 1;
    case Rows::node: return std::size_t(in.num_nodes) + 1;
    case Rows::recycled: return std::size_t(in.num_state_rows) + 1;
    case Rows::batch: return std::size_t(in.max_batch);
    case Rows::batch_edge: return std::size_t(in.children[storage.container].max_batch_edges);
    case Rows::edge: return std::size_t(in.children[storage.container].num_edges);
  }
  return 0;
}

/// Whether it is a result, and not a worker's own copy of one.
inline bool is_state(const Plan& plan, const Storage& storage) {
  return !storage.per_worker && plan.executable->program.buffers[std::size_t(storage.buffer)]->role == ir::Role::state;
}

/// All but the weights.
inline ModelMemory memory_of(const Plan& plan) {
  ModelMemory result;
  for (const Storage& storage : plan.storage) {
    RowBytes& bytes = storage.per_worker        ? result.own_temporaries
                      : is_state(plan, storage) ? result.states
                                                : result.temporaries;
    switch (storage.rows) {
      case Rows::fixed: bytes.fixed += storage.row_bytes; break;
      case Rows::node: bytes.node += storage.row_bytes; break;
      case Rows::recycled: bytes.recycled += storage.row_bytes; break;
      case Rows::batch: bytes.batch += storage.row_bytes; break;
      case Rows::batch_edge: bytes.batch_edge += storage.row_bytes; break;
      case Rows::edge: bytes.edge += storage.row_bytes; break;
    }
  }
  return result;
}

}  // namespace runtime
}  // namespace cortex
