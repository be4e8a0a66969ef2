// How the buffers of a program get their memory: worked out once, followed by every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/accessor_order.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/storage.hpp"
#include "cortex/runtime/tables.hpp"

namespace cortex::runtime {

/// What decides how many rows a tensor has in a call.
enum class Rows : std::uint8_t { fixed, node, recycled, batch, batch_edge, edge };

/// A buffer whose memory belongs to the workspace.
struct Storage {
  int buffer = 0;
  Rows rows = Rows::fixed;
  int container = -1;         // rows over edges: the position of the container's arrays
  std::size_t row_bytes = 0;  // fixed: of the whole tensor
  bool per_worker = false;
  int tabulation = -1;  // fixed: whose table it is, where there is one
  int result = 0;       // and which of its results
};

/// A tensor whose rows are put in place from a table.
struct PlacedRows {
  int buffer = 0, tabulation = 0, result = 0;
  std::size_t row_bytes = 0;
  bool per_worker = false;
};

/// An array of the linearizer that a buffer stands for.
enum class Source : std::uint8_t {
  counts,
  batch_begin,
  batch_length,
  part_begin,
  part_length,
  part_offset,
  part_list,
  state_row,
  root,
  group_begin,
  group_node,
  inner_begin,
  inner_child,
  computes,
  child,
  edge_begin,
  edge_child,
  field
};

/// A buffer whose memory is an array of the linearizer.
struct Link {
  int buffer = 0;
  Source source = Source::counts;
  int position = 0;         // of the accessor's arrays
  std::int64_t stride = 0;  // fields: what the code takes a row to be, in elements
};

/// How a state's row becomes a dense tensor.
struct StateView {
  int buffer = 0;
  DType dtype = DType::f32;
  std::size_t row_bytes = 0;
  std::int64_t size = 0;  // elements of the dense tensor
  Runs runs;              // within a row
  int leaf_rows = -1;     // the buffer whose rows are the leaves', where that is a weight
  int leaf_field = -1;    // the position of the field that chooses them
  bool recycled = false;  // rows serve several nodes: after a call only roots have theirs
};

/// The plan of an executable, immutable. Throws `Error{internal}` for a program that the runtime cannot serve.
class Plan {
 public:
  Plan(std::shared_ptr<const Executable> compiled, AccessorOrder accessors)
      : executable(std::move(compiled)),
        order(std::move(accessors)),
        partition(in_order(executable->partition, order)) {
    for (const FieldSpec& field : executable->fields) field_guards.push_back(in_order(field.guard, order));
    const Vector<ir::Buffer>& buffers = executable->program.buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) add(int(b), *buffers[b]);
    for (const StateSpec& state : executable->states) states.push_back(view_of(state));
    for (std::size_t t = 0; t < executable->program.tabulations.size(); ++t) add_results(int(t));
  }

  const std::shared_ptr<const Executable> executable;
  const AccessorOrder order;
  const structure::Partition partition;  // of the linearizer's batches
  Vector<structure::Key> field_guards;   // [Executable::fields]
  Vector<Storage> storage;
  Vector<Link> links;
  Vector<StateView> states;  // [Executable::states]
  Vector<PlacedRows> placed;

  std::size_t num_buffers() const { return executable->program.buffers.size(); }

 private:
  /// `key` with accessors by their places among the linearizer's.
  static structure::Key in_order(structure::Key key, const AccessorOrder& order) {
    using Op = structure::KeyStep::Op;
    for (structure::KeyStep& step : key) {
      if (step.op == Op::field) step.position = order.field.at(std::size_t(step.position));
      if (step.op == Op::num_children) step.position = order.children.at(std::size_t(step.position));
    }
    return key;
  }
  static structure::Partition in_order(structure::Partition partition, const AccessorOrder& order) {
    for (structure::Selector& selector : partition.selectors) {
      selector.key = in_order(std::move(selector.key), order);
      selector.guard = in_order(std::move(selector.guard), order);
    }
    return partition;
  }

  [[noreturn]] static void fail(const ir::BufferInfo& buffer, const char* what) {
    throw Error(Code::internal, "buffer '" + buffer.name + "' of a compiled program " + what);
  }

  void add(int number, const ir::BufferInfo& buffer) {
    if (ir::is_on_chip(buffer.scope)) return;  // no memory of a call's
    switch (buffer.role) {
      case ir::Role::weight: return;  // of the weight set
      case ir::Role::state:
      case ir::Role::temp: return storage.push_back(storage_of(number, buffer));
      case ir::Role::index: return links.push_back(index_link(number, buffer));
      case ir::Role::field:
        return links.push_back({number, Source::field, position(order.field, buffer.slot, buffer), stride_of(buffer)});
    }
  }

  void add_results(int tabulation) {
    const Vector<int> results =
        results_of(executable->program, executable->program.tabulations[std::size_t(tabulation)]);
    for (std::size_t r = 0; r < results.size(); ++r) {
      for (Storage& s : storage) {
        if (s.buffer != results[r]) continue;
        if (s.rows == Rows::fixed)
          s.tabulation = tabulation, s.result = int(r);
        else if (s.rows != Rows::node)
          fail(*executable->program.buffers[std::size_t(s.buffer)], "has rows in a table, but none for nodes");
        else
          placed.push_back({s.buffer, tabulation, int(r), s.row_bytes, s.per_worker});
      }
    }
  }

  static int position(const Vector<int>& positions, int accessor, const ir::BufferInfo& buffer) {
    if (accessor < 0 || std::size_t(accessor) >= positions.size() || positions[std::size_t(accessor)] < 0)
      fail(buffer, "names an accessor that the linearizer does not read");
    return positions[std::size_t(accessor)];
  }

  static std::int64_t stride_of(const ir::BufferInfo& buffer) {
    const ir::Layout layout = layout_of(buffer);
    return layout.row_size ? layout.row_size : 1;
  }

  Link index_link(int number, const ir::BufferInfo& buffer) const {
    const int slot = buffer.slot;
    if (slot >= ir::slot_of::field)
      return {number, Source::field, position(order.field, slot - ir::slot_of::field, buffer),
              buffer.dims.size() > 1 ? stride_of(buffer) : 1};
    if (slot >= ir::slot_of::edge_child)
      return {number, Source::edge_child, position(order.children, slot - ir::slot_of::edge_child, buffer)};
    if (slot >= ir::slot_of::edge_begin)
      return {number, Source::edge_begin, position(order.children, slot - ir::slot_of::edge_begin, buffer)};
    if (slot >= ir::slot_of::child)
      return {number, Source::child, position(order.child, slot - ir::slot_of::child, buffer)};
    if (slot == ir::slot_of::counts) return {number, Source::counts};
    if (slot == ir::slot_of::batch_begin) return {number, Source::batch_begin};
    if (slot == ir::slot_of::batch_length) return {number, Source::batch_length};
    if (slot == ir::slot_of::part_begin) return {number, Source::part_begin};
    if (slot == ir::slot_of::part_length) return {number, Source::part_length};
    if (slot == ir::slot_of::part_offset) return {number, Source::part_offset};
    if (slot == ir::slot_of::part_list) return {number, Source::part_list};
    if (slot == ir::slot_of::state_row) return {number, Source::state_row};
    if (slot == ir::slot_of::root) return {number, Source::root};
    if (slot == ir::slot_of::group_begin) return {number, Source::group_begin};
    if (slot == ir::slot_of::group_node) return {number, Source::group_node};
    if (slot == ir::slot_of::inner_begin) return {number, Source::inner_begin};
    if (slot == ir::slot_of::inner_child) return {number, Source::inner_child};
    if (slot == ir::slot_of::computes) return {number, Source::computes};
    fail(buffer, "is an index array that the linearizer does not make");
  }

  Storage storage_of(int number, const ir::BufferInfo& buffer) const {
    const ir::Layout layout = layout_of(buffer);
    Storage result;
    result.buffer = number;
    result.per_worker = buffer.scope == ir::Scope::worker;
    result.rows = rows_of(buffer);
    if (result.rows == Rows::batch_edge || result.rows == Rows::edge)
      result.container = position(order.children, buffer.slot, buffer);
    const std::int64_t elements = result.rows == Rows::fixed ? layout.fixed_size : layout.row_size;
    if (elements < 1) fail(buffer, "has no size in its layout");
    result.row_bytes = std::size_t(elements) * size_of(buffer.dtype);
    return result;
  }

  static Rows rows_of(const ir::BufferInfo& buffer) {
    switch (ir::kind_of_rows(buffer)) {
      case DimKind::dense: return Rows::fixed;
      case DimKind::node: return buffer.recycled ? Rows::recycled : Rows::node;
      case DimKind::batch: return Rows::batch;
      case DimKind::batch_edge: return Rows::batch_edge;
      case DimKind::edge: return Rows::edge;
      default: fail(buffer, "has an outermost dimension that no memory is planned for");
    }
  }

  /// The buffer's layout, by the dimensions of the model's state.
  static ir::Layout as_the_model_has_it(const ir::BufferInfo& buffer) {
    ir::Layout layout = layout_of(buffer);
    const int last = int(buffer.dims.size()) - 1;
    for (ir::Axis& axis : layout.axes)
      if (buffer.transposed && axis.source >= last - 1) axis.source = 2 * last - 1 - axis.source;
    return layout;
  }

  StateView view_of(const StateSpec& state) const {
    if (state.buffer < 0 || std::size_t(state.buffer) >= num_buffers())
      throw Error(Code::internal, "state '" + state.name + "' has no buffer");
    const ir::BufferInfo& buffer = *executable->program.buffers[std::size_t(state.buffer)];
    if (ir::kind_of_rows(buffer) != DimKind::node) fail(buffer, "is a state without a row per node");
    const ir::Layout layout = as_the_model_has_it(buffer);
    Vector<std::int64_t> extents;
    for (const Dim& dim : state.dims) extents.push_back(dim.extent());
    constexpr std::int64_t most = 1 << 24;  // a list of as many, for states of a GB a node
    if (const std::int64_t runs = most_runs(layout, 1, extents); runs > most)
      throw Error(Code::invalid_model, "state '" + state.name + "' of model '" + executable->graph.name + "' has " +
                                           std::to_string(runs) + " rows that are stored with gaps between them, and " +
                                           std::to_string(most) + " is the most; make its last dimension the long one");
    StateView view{state.buffer, state.dtype, std::size_t(layout.row_size) * size_of(buffer.dtype), 0,
                   runs_of(layout, 1, extents)};
    view.size = view.runs.size();
    view.recycled = buffer.recycled;
    if (reach_of(view.runs) > layout.row_size || offset_along(layout, 0, 1) != layout.row_size)
      fail(buffer, "is a state whose rows do not hold it");
    for (const ir::InPlace& in_place : executable->program.in_place)
      if (in_place.state == state.buffer) read_in_place(in_place, buffer, view);
    return view;
  }

  void read_in_place(const ir::InPlace& in_place, const ir::BufferInfo& state, StateView& view) const {
    const Vector<ir::Buffer>& buffers = executable->program.buffers;
    view.leaf_field = position(order.field, in_place.field, state);
    Vector<ir::Axis> axes = layout_of(state).axes;
    for (ir::Axis& axis : axes) axis.source = in_place.dims.at(std::size_t(axis.source));
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const ir::BufferInfo& rows = *buffers[b];
      if (rows.role == ir::Role::weight && rows.slot == in_place.weight && layout_of(rows).axes == axes)
        view.leaf_rows = int(b);
    }
    if (view.leaf_rows < 0) fail(state, "has rows in a weight that the program does not read, or in another layout");
  }
};

}  // namespace cortex::runtime
