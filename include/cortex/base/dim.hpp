// Named dimensions: what relates loops to the dimensions of tensors (paper section 5 and appendix A.2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/handle.hpp"

namespace cortex {

/// What a dimension ranges over. Users make dense ones; the compiler makes the others when it lowers recursion.
enum class DimKind : std::uint8_t {
  dense,        // 0 .. extent, known when the model is compiled: hidden, input
  open,         // 0 .. extent, known when weights are bound: a vocabulary
  node,         // every node of the call's inputs
  child,        // the children of one node
  edge,         // every (node, child) pair, ordered by node
  all_batches,  // the batches in dependence order: this loop carries the dependence
  batch,        // the nodes of one batch, or of the leaves: independent of each other
  batch_edge,   // the edges of one batch: independent of each other
  sequence,     // the nodes one by one in dependence order: this loop carries the dependence
  worker,       // the workers of a group
  slice,        // equal parts of a dense dimension, which workers own
};

/// A named dimension. Two dimensions are the same only if one was copied from the other, whatever their names, so
/// a tensor indexed by the loop of another dimension is refused even where the extents happen to be equal.
class Dim {
 public:
  /// A dimension of `extent` elements. Throws `Error{invalid_argument}` without a name; an extent below 1 is refused
  /// by the first operator that has it.
  Dim(std::string name, std::int64_t extent) : Dim(std::move(name), extent, DimKind::dense) {}
  /// An open dimension, such as a vocabulary: its extent is that of the weights bound. Only the first dimension of
  /// an input can be open.
  explicit Dim(std::string name) : Dim(std::move(name), 0, DimKind::open) {}
  Dim(std::string name, std::int64_t extent, DimKind kind) : node_(new Info(std::move(name), extent, kind)) {
    if (info().name.empty())
      throw Error(Code::invalid_argument, "a Dim has no name; errors name it, as in Dim(\"hidden\", 256)");
  }

  // Moving copies: what is left behind is a dimension still.
  Dim(const Dim&) = default;
  Dim& operator=(const Dim&) = default;

  const std::string& name() const { return info().name; }
  std::int64_t extent() const { return info().extent; }
  DimKind kind() const { return info().kind; }

  friend bool operator==(const Dim& a, const Dim& b) { return a.id() == b.id(); }
  const void* id() const { return node_.get(); }

 private:
  struct Info : Counted {
    Info(std::string n, std::int64_t e, DimKind k) : name(std::move(n)), extent(e), kind(k) {}
    std::string name;
    std::int64_t extent;
    DimKind kind;
  };
  const Info& info() const { return static_cast<const Info&>(*node_.get()); }

  Handle node_;
};

/// The dimensions that the compiler itself makes, one object each.
namespace dims {
inline const Dim node{"d_node", 0, DimKind::node};
inline const Dim child{"d_child", 0, DimKind::child};
inline const Dim edge{"d_edge", 0, DimKind::edge};
inline const Dim all_batches{"d_all_batches", 0, DimKind::all_batches};
inline const Dim batch{"d_batch", 0, DimKind::batch};
inline const Dim batch_edge{"d_batch_edge", 0, DimKind::batch_edge};
inline const Dim sequence{"d_sequence", 0, DimKind::sequence};
inline const Dim worker{"d_worker", 0, DimKind::worker};
}  // namespace dims

}  // namespace cortex
