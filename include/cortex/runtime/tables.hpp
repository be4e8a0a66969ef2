// Tables of what a program computes from words and weights alone: made by the program itself when weights are bound.
//
// A table has a row for each value of the fields that it is for, and the program is run once over as many nodes, one
// for each value, that have no children: its own nests compute the rows, so they are the bits that a call would
// compute. Where its indices have to be checked before each run, bounds have to show that they are inside at these
// nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/index_bounds.hpp"
#include "cortex/runtime/run_kernel.hpp"
#include "cortex/runtime/storage.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::runtime {

/// The tables of one tabulation, immutable.
struct Tables {
  Vector<std::int64_t> extents;                 // [keys] how many values each field may have
  Vector<std::shared_ptr<const Block>> blocks;  // [results_of] rows as the program lays them out
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents) product *= extent;
    return product;
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& block : blocks) sum += block->size();
    return sum;
  }
};

/// The buffers of the program that hold a tabulation's results: states, then temporaries.
inline Vector<int> results_of(const ir::Program& program, const ir::Tabulation& tabulation) {
  Vector<int> result = tabulation.states;
  for (const int kept : tabulation.temps)
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (program.buffers[b]->kept == kept) result.push_back(int(b));
  return result;
}

/// The bytes of a row of `buffer`, or of all of it where it has no rows.
inline std::size_t row_bytes_of(const ir::BufferInfo& buffer) {
  const ir::Layout layout = layout_of(buffer);
  return std::size_t(std::max(layout.row_size, layout.fixed_size)) * size_of(buffer.dtype);
}

/// How many values the fields of a tabulation may have under weights of these shapes, [weights][dimensions].
inline Vector<std::int64_t> extents_of(const Executable& executable, const ir::Tabulation& tabulation,
                                       const Vector<Vector<std::int64_t>>& shapes) {
  Vector<std::int64_t> result;
  for (const ir::Tabulation::Key& key : tabulation.keys) {
    std::int64_t least = INT64_MAX;
    for (const auto& bound : key.bounds)
      least = std::min(least, shapes[std::size_t(bound.weight)][std::size_t(bound.dim)]);
    const FieldSpec& field = executable.fields[std::size_t(key.field)];
    if (field.limit >= 0) least = std::min(least, field.limit);
    if (field.weight >= 0) least = std::min(least, shapes[std::size_t(field.weight)][0]);
    result.push_back(least);
  }
  return result;
}

/// The bytes of a tabulation's tables, or SIZE_MAX if they are more than a table may take in any case.
inline std::size_t table_bytes(const Executable& executable, const ir::Tabulation& tabulation,
                               const Vector<std::int64_t>& extents) {
  constexpr std::int64_t most_rows = std::int64_t(1) << 28;
  std::int64_t rows = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > most_rows / rows) return SIZE_MAX;
    rows *= extent;
  }
  std::size_t bytes = 0;
  for (const int buffer : results_of(executable.program, tabulation)) {
    const std::size_t row = row_bytes_of(*executable.program.buffers[std::size_t(buffer)]);
    bytes += tabulation.rows == ir::Tabulation::Rows::once ? row : row * (std::size_t(rows) + 1);
  }
  return bytes;
}

namespace detail {

/// Nodes that stand for the values of a tabulation's fields, one for each, as a program sees them: all, or `count` of
/// them from the `first` on.
class TableNodes {
 public:
  TableNodes(const ir::Program& program, const ir::Tabulation& tabulation, Vector<std::int64_t> extents)
      : program_(program), tabulation_(tabulation), extents_(std::move(extents)) {
    for (const std::int64_t extent : extents_) rows_ *= extent;
  }
  TableNodes(const TableNodes& all, std::int64_t first, std::int64_t count) : TableNodes(all) {
    first_ = first, rows_ = count;
  }

  const Vector<std::int64_t>& extents() const { return extents_; }
  std::int64_t rows() const { return rows_; }

  /// How large a state or a temporary is for a run over these nodes.
  std::size_t bytes_of(const ir::BufferInfo& buffer) const { return row_bytes_of(buffer) * rows_of(buffer); }
  /// How many rows that is; a buffer of nodes has one more, of a node that is not there. No table has a state whose
  /// rows serve several nodes: all of them write the same one.
  std::size_t rows_of(const ir::BufferInfo& buffer) const {
    if (buffer.recycled) return 1;
    switch (ir::kind_of_rows(buffer)) {
      case DimKind::node: return std::size_t(rows_) + 1;
      case DimKind::batch: return std::size_t(rows_);
      default: return 1;  // all of it; or of edges, of which there are none
    }
  }

  /// An array of the linearizer: nodes without children, all leaves or all inner nodes.
  std::shared_ptr<Block> array_of(const ir::BufferInfo& buffer) const {
    const std::int32_t rows = std::int32_t(rows_);
    const std::int32_t internal = tabulation_.rows == ir::Tabulation::Rows::internal ? rows : 0;
    const int slot = buffer.slot;
    if (slot >= ir::slot_of::field) return field_of(buffer, slot - ir::slot_of::field);
    if (slot >= ir::slot_of::edge_child) return array({}, 1, 0);
    if (slot >= ir::slot_of::edge_begin) return array({}, rows_ + 1, 0);
    if (slot >= ir::slot_of::child) return array({}, rows_, rows);
    switch (slot) {
      case ir::slot_of::counts: {
        ir::Counts counts = ir::counts_of_whole(rows, internal);
        counts[std::size_t(ir::Count::batches)] = 1;
        return array(Vector<std::int32_t>(counts.begin(), counts.end()), std::int64_t(counts.size()), 0);
      }
      case ir::slot_of::batch_begin: return array({internal}, 1, 0);
      case ir::slot_of::batch_length: return array({rows - internal}, 1, 0);
      case ir::slot_of::part_length: {
        const std::shared_ptr<Block> block = array({}, std::max(program_.parts, 1), 0);
        if (tabulation_.parts.count) reinterpret_cast<std::int32_t*>(block->data())[tabulation_.parts.first] = rows;
        return block;
      }
      case ir::slot_of::part_offset:
        return array(Vector<std::int32_t>(std::size_t(tabulation_.parts.first) + 1, 0),
                     program_.parts + std::int64_t(1), tabulation_.parts.count ? rows : 0);
      case ir::slot_of::part_list: {
        const std::shared_ptr<Block> block = array({}, rows_ + 1, 0);
        auto* const list = reinterpret_cast<std::int32_t*>(block->data());
        std::iota(list, list + rows, 0);
        return block;
      }
      case ir::slot_of::computes: return array({}, std::int64_t(program_.tabulations.size()), 1);
      case ir::slot_of::inner_begin:
      case ir::slot_of::state_row: return array({}, rows_ + 1, 0);
      default: return array({}, std::max(program_.parts, 1), 0);  // parts, roots, subtrees: none
    }
  }

 private:
  /// `first`, and `rest` up to `count` elements.
  static std::shared_ptr<Block> array(const Vector<std::int32_t>& first, std::int64_t count, std::int32_t rest) {
    auto block = std::make_shared<Block>(std::size_t(count) * sizeof(std::int32_t), Block::store_less);
    auto* const data = reinterpret_cast<std::int32_t*>(block->data());
    std::fill(data, data + count, rest);
    std::copy(first.begin(), first.end(), data);
    return block;
  }

  /// The values of a field: of a key each with each of the others', the last changing fastest; else 0.
  std::shared_ptr<Block> field_of(const ir::BufferInfo& buffer, int field) const {
    const std::int64_t stride = buffer.dims.size() > 1 ? std::max<std::int64_t>(layout_of(buffer).row_size, 1) : 1;
    std::shared_ptr<Block> block = array({}, rows_ * stride, 0);
    auto* const data = reinterpret_cast<std::int32_t*>(block->data());
    std::int64_t step = 1;
    const Vector<ir::Tabulation::Key>& keys = tabulation_.keys;
    for (std::size_t k = keys.size(); k-- > 0; step *= extents_[k])
      for (std::int64_t row = 0; keys[k].field == field && row < rows_; ++row)
        data[row * stride] = std::int32_t((first_ + row) / step % extents_[k]);
    return block;
  }

  const ir::Program& program_;
  const ir::Tabulation& tabulation_;
  const Vector<std::int64_t> extents_;
  std::int64_t first_ = 0, rows_ = 1;
};

/// An executable's kernel run over such nodes: over so many at a time that what a call has beside its results, such as
/// states that are matrices, stays small.
class TableRun {
 public:
  static constexpr std::size_t bytes_at_once = std::size_t(64) << 20;

  /// `weights`: [buffers of the program] the weights' blocks. `wanted`: the buffers whose rows are results.
  TableRun(const Executable& executable, const Vector<std::shared_ptr<const Block>>& weights,
           const ir::Tabulation& tabulation, const Vector<std::int64_t>& extents, const Vector<int>& wanted,
           std::size_t at_once = bytes_at_once)
      : executable_(executable), weights_(weights), nodes_(executable.program, tabulation, extents) {
    const std::int64_t rows = std::max<std::int64_t>(std::int64_t(at_once / bytes_of_row()), 1);
    if (rows >= nodes_.rows()) {
      results_ = run(nodes_);
      return;
    }
    results_.resize(weights.size());
    for (const int b : wanted) results_[std::size_t(b)] = zeros(nodes_.bytes_of(buffer(std::size_t(b))));
    for (std::int64_t first = 0; first < nodes_.rows(); first += rows) {
      const TableNodes some(nodes_, first, std::min(rows, nodes_.rows() - first));
      const Vector<std::shared_ptr<Block>> blocks = run(some);
      for (const int b : wanted) {
        const std::size_t row = row_bytes_of(buffer(std::size_t(b)));
        const bool has_rows = nodes_.rows_of(buffer(std::size_t(b))) > 1;
        std::memcpy(results_[std::size_t(b)]->data() + (has_rows ? std::size_t(first) * row : 0),
                    blocks[std::size_t(b)]->data(), some.bytes_of(buffer(std::size_t(b))));
      }
    }
  }

  std::shared_ptr<const Tables> take(const ir::Tabulation& tabulation) {
    auto tables = std::make_shared<Tables>();
    if (tabulation.rows != ir::Tabulation::Rows::once) tables->extents = nodes_.extents();
    for (const int b : results_of(executable_.program, tabulation))
      tables->blocks.push_back(std::move(results_[std::size_t(b)]));
    return tables;
  }

 private:
  const ir::BufferInfo& buffer(std::size_t b) const { return *executable_.program.buffers[b]; }

  std::size_t bytes_of_row() const {
    std::size_t bytes = 1;
    for (std::size_t b = 0; b < weights_.size(); ++b)
      if (!weights_[b] && buffer(b).role != ir::Role::index && nodes_.rows_of(buffer(b)) > 1)
        bytes += row_bytes_of(buffer(b));
    return bytes;
  }

  static std::shared_ptr<Block> zeros(std::size_t bytes) {
    auto block = std::make_shared<Block>(bytes, Block::store_less);
    std::memset(block->data(), 0, block->size());
    return block;
  }

  /// The memory of one run that is over.
  Vector<std::shared_ptr<Block>> run(const TableNodes& nodes) const {
    Vector<std::shared_ptr<Block>> blocks;
    Vector<void*> pointers;
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      const bool index = buffer(b).role == ir::Role::index;
      blocks.push_back(weights_[b] ? nullptr : index ? nodes.array_of(buffer(b)) : zeros(nodes.bytes_of(buffer(b))));
      pointers.push_back(weights_[b] ? weights_[b]->data() : blocks[b]->data());
    }
    run_kernel(executable_, {pointers.data(), &no_barrier, nullptr, 0, 1});
    return blocks;
  }

  const Executable& executable_;
  const Vector<std::shared_ptr<const Block>>& weights_;
  const TableNodes nodes_;
  Vector<std::shared_ptr<Block>> results_;  // [buffers of the program]
};

/// What is known of the nodes that stand for a table's rows: they have no children, and but for the table's fields,
/// each below its extent, no data.
class NodesOfTable {
 public:
  NodesOfTable(const ir::Tabulation& tabulation, const Vector<std::int64_t>& extents)
      : tabulation_(tabulation), extents_(extents) {}

  Interval field(int accessor, bool own) const {
    for (std::size_t k = 0; own && k < extents_.size(); ++k)
      if (tabulation_.keys[k].field == accessor) return {0, extents_[k] - 1};
    return {0, 0};
  }
  Interval num_children(int) const { return {0, 0}; }
  Interval is_leaf(bool own) const {
    const bool leaf = !own || tabulation_.rows != ir::Tabulation::Rows::internal;
    return {leaf, leaf};
  }

 private:
  const ir::Tabulation& tabulation_;
  const Vector<std::int64_t>& extents_;
};

inline bool same_fields(const ir::Tabulation& a, const ir::Tabulation& b) {
  return std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(),
                    [](const auto& x, const auto& y) { return x.field == y.field; });
}

}  // namespace detail

/// The row of tables of these extents that stands for a node's fields, whose values lie below them.
inline std::size_t table_row(const ir::Tabulation& tabulation, const Vector<std::int64_t>& extents,
                             const structure::Arrays& arrays, const Vector<int>& field_positions, std::int64_t node) {
  std::int64_t row = 0;
  for (std::size_t k = 0; k < tabulation.keys.size(); ++k) {
    const structure::FieldArray& field = arrays.field[field_positions[std::size_t(tabulation.keys[k].field)]];
    row = row * extents[k] + static_cast<const std::int32_t*>(field.data)[node * field.stride];
  }
  return std::size_t(row);
}

/// Which nodes of a piece of a call have rows in tables: inner ones, and leaves; or those at such positions of `list`.
struct TabulatedNodes {
  std::array<structure::NodeNumbers, 2> ranges;
  const std::int32_t* list = nullptr;

  TabulatedNodes(const ir::Tabulation& tabulation, const structure::Arrays& arrays, std::int32_t piece = 0) {
    using Rows = ir::Tabulation::Rows;
    const auto [part, parts] = tabulation.parts;
    if (parts && tabulation.rows == Rows::leaves) {
      const std::int64_t p = std::int64_t(arrays.piece_batch[piece]) * arrays.num_parts + part;
      ranges[1] = {arrays.part_begin[p], arrays.part_length[p]};
    } else if (parts) {
      const std::int32_t* const offset = arrays.part_offset + std::int64_t(piece) * (arrays.num_parts + 1) + part;
      ranges[0] = {offset[0], offset[parts] - offset[0]};
      list = arrays.part_list;
    } else {
      if (tabulation.rows != Rows::leaves) ranges[0] = structure::inner_of(arrays, piece);
      if (tabulation.rows != Rows::internal) ranges[1] = structure::leaves_of(arrays, piece);
    }
  }

  std::int64_t operator[](std::int64_t position) const { return list ? list[position] : position; }
};

/// Whether the nodes that stand for a tabulation's rows pass the checks that calls make of their nodes; of roots there
/// are none.
inline bool pass_checks(const Executable& executable, std::size_t number, const Vector<std::int64_t>& extents,
                        const Vector<Vector<std::int64_t>>& shapes) {
  const ir::Tabulation& tabulation = executable.program.tabulations[number];
  const detail::NodesOfTable known(tabulation, extents);
  IndexBounds bounds(known);
  return all_of(
      tabulation.parts.count ? executable.table_checks[number] : executable.guarded,
      [&](const GuardedCheck& check) { return check.at_roots || bounds.are_inside(check, extent_of(check, shapes)); });
}

/// Makes those of `tables`, [tabulations], that are null, whose rows pass the checks and that fit the schedule's
/// budget, in the tabulations' order, until memory runs out: calls compute what the others would hold.
/// `start(tabulation, extents, wanted)` runs the program for the values of that tabulation's fields, for what the
/// buffers `wanted` hold then, and gives what has `take(tabulation)` for each tabulation that is made in the same run.
template <class AnyTables, class Start>
void make_tables(const Executable& executable, const Vector<Vector<std::int64_t>>& shapes,
                 Vector<std::shared_ptr<const AnyTables>>& tables, const Start& start) {
  using Rows = ir::Tabulation::Rows;
  const Vector<ir::Tabulation>& all = executable.program.tabulations;
  const std::size_t budget = std::size_t(executable.schedule.table_megabytes) << 20;
  Vector<Vector<std::int64_t>> extents;
  Vector<bool> fits;
  std::size_t bytes = 0;
  for (const ir::Tabulation& tabulation : all) {
    extents.push_back(extents_of(executable, tabulation, shapes));
    const std::size_t own = table_bytes(executable, tabulation, extents.back());
    fits.push_back(own <= budget - bytes && pass_checks(executable, fits.size(), extents.back(), shapes));
    if (fits.back())
      bytes += own;
    else
      tables[fits.size() - 1] = nullptr;
  }
  for (std::size_t t = 0; t < all.size(); ++t) {
    if (tables[t] || !fits[t]) continue;
    Vector<std::size_t> made;
    Vector<int> wanted;
    for (std::size_t u = t; u < all.size(); ++u) {
      const bool inside = (all[u].rows == Rows::internal) == (all[t].rows == Rows::internal);
      const bool along = u == t || all[u].rows == Rows::once ||
                         (inside && extents[u] == extents[t] && detail::same_fields(all[u], all[t]) &&
                          (!all[u].parts.count || all[u].parts == all[t].parts));
      if (!along || !fits[u] || tables[u]) continue;
      made.push_back(u);
      for (const int buffer : results_of(executable.program, all[u])) wanted.push_back(buffer);
    }
    try {
      auto run = start(all[t], extents[t], wanted);
      for (const std::size_t u : made) tables[u] = run.take(all[u]);
    } catch (const Error& error) {
      if (error.code != Code::out_of_memory) throw;
      return;
    }
  }
}

/// The same by the executable's own kernel, of `weights`: [buffers of the program] the weights' blocks.
inline void make_tables(const Executable& executable, const Vector<std::shared_ptr<const Block>>& weights,
                        const Vector<Vector<std::int64_t>>& shapes, Vector<std::shared_ptr<const Tables>>& tables) {
  make_tables(executable, shapes, tables,
              [&](const ir::Tabulation& tabulation, const Vector<std::int64_t>& extents, const Vector<int>& wanted) {
                return detail::TableRun(executable, weights, tabulation, extents, wanted);
              });
}

}  // namespace cortex::runtime
