// The memory of one call. It grows to the largest call that it has served, and then allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/counts.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/memory.hpp"
#include "cortex/runtime/plan.hpp"
#include "cortex/runtime/published.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/runtime/workers.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::runtime {

class CompiledModel;

/// The nodes that a call may visit if so many workers share its rows: the cut of the last one's share, that number of
/// workers times that of rows (`schedule::share_of`), is computed in 32 bits.
constexpr std::int32_t most_visits(int workers) { return INT32_MAX / workers - structure::spare_places; }

/// Everything that a call writes: the linearizer's arrays, the tensors of the program, and the pointers that the kernel
/// is given. Used by one call at a time; the result of the call reads from it until it lets go.
class alignas(128) Workspace {
 public:
  explicit Workspace(std::shared_ptr<const Plan> plan)
      : nodes(most_visits(plan->executable->schedule.max_workers)), plan_(std::move(plan)) {
    memory_.resize(plan_->storage.size());
    pointers_.resize(plan_->num_buffers());
    checks_ = first_checks();
    if (!plan_->partition.empty()) nodes.set_partition(&plan_->partition);
    nodes.set_subtree_depth(plan_->executable->subtree_depth);
    nodes.fill_levels(plan_->executable->level_fill);
    nodes.set_pieces(plan_->executable->piece_nodes, plan_->executable->piece_width);
    nodes.share_subtrees(plan_->executable->shares_subtrees);
    nodes.recycle_rows(plan_->executable->rows_apart, plan_->executable->overwrites_children);
  }

  structure::Workspace nodes;  // of the linearizer
  std::int64_t linearize_ns = 0, execute_ns = 0;
  bool computed = false;  // whether states are those of the nodes: not where these were numbered alone

  // ---- groups ----
  //
  // Where a call's roots are divided among groups, each has a workspace with arrays and tensors of its own. This one is
  // the first group's, and the others come and go with it.

  /// A node's place in the results: its group, and its number there; -1 for a node that is not in the call.
  struct Place {
    const Workspace* group = nullptr;
    std::int32_t number = -1;
  };

  /// Of the last call.
  int num_groups() const { return num_groups_; }
  const Workspace& group(int g) const { return g == 0 ? *this : *others_[std::size_t(g - 1)]; }
  Workspace& group(int g) { return g == 0 ? *this : *others_[std::size_t(g - 1)]; }
  /// From here on the results are those of so many groups, which have been made room for.
  void set_groups(int count) {
    num_groups_ = count;
    if (count == 1) division.by_size = false;
  }
  /// Makes room for so many groups.
  void make_groups(int count) {
    while (int(others_.size()) < count - 1) others_.push_back(std::make_unique<Workspace>(plan_));
  }

  /// How many roots the call had, repeated ones included.
  std::size_t num_roots() const {
    return sum_of_groups([](const Workspace& group) { return group.arrays().num_roots; });
  }
  /// How many nodes the roots reached.
  std::size_t num_reached() const {
    return sum_of_groups(
        [](const Workspace& group) { return group.nodes.num_reached() - group.division.num_repeated; });
  }
  /// How many of them were computed, in each group.
  std::size_t num_computed() const {
    return sum_of_groups([](const Workspace& group) { return group.arrays().num_nodes; });
  }
  Place root(std::size_t i) const {
    if (num_groups_ == 1) [[likely]]
      return {this, arrays().root[i]};
    const RootPlace place = root_place(i);
    const Workspace& in = group(int(place.group));
    return {&in, in.arrays().root[place.number]};
  }
  /// The group of a root, and its number among that group's roots.
  RootPlace root_place(std::size_t i) const {
    return division.by_size ? division.places.data()[i] : place_of_root(i, std::size_t(num_groups_));
  }
  /// A node by its address, where `is_wanted(place)`.
  template <class IsWanted>
  Place find(const void* node, IsWanted is_wanted) const {
    for (int g = 0; g < num_groups_; ++g) {
      const Place place{&group(g), group(g).nodes.find(node)};
      if (place.number >= 0 && is_wanted(place)) return place;
    }
    return {};
  }

  /// What `CallInGroups` keeps of a group.
  struct Division {
    structure::Block<const void*> roots;  // of the whole call, in its first group
    std::size_t num_roots = 0;
    structure::Block<std::int32_t> sizes, order;  // [root of the call] nodes that it reaches; by these
    structure::Block<RootPlace> places;           // [root of the call], likewise in its first group
    bool by_size = false;                         // whether they hold
    structure::Block<const void*> own_roots;      // of the group
    int calls_in_one = 0;                         // so many calls to come have one group
    Flag numbered;                                // set as the numbering of the group's nodes goes on
    structure::AddressFilter addresses;           // of the group's nodes
    std::int32_t num_repeated = 0;                // nodes that stand in a group before this one as well
  } division;

  // ---- what a call computes with ----

  const Plan& plan() const { return *plan_; }
  const structure::Arrays& arrays() const { return nodes.arrays(); }
  /// [field accessors, in the set's order] for the linearizer.
  const Vector<structure::FieldCheck>& checks() const { return checks_; }

  /// The weights that the next call computes with.
  const WeightSet& weights() const { return *weights_.value; }
  Workers* workers() const { return workers_.value.get(); }

  /// Makes the weights and workers those that are published now.
  void refresh(const Published<const WeightSet>& weights, const Published<Workers>& workers) {
    if (!weights.is_current(weights_)) {
      weights.refresh(weights_);
      use_weights();
    }
    workers.refresh(workers_);
  }

  /// Makes the weights those that `first` has, as the group of that number and of so many workers reads them.
  void use_weights_of(const Workspace& first, int group, int size) {
    const bool has_own = size >= plan_->executable->size_with_weights;
    if (weights_.version == first.weights_.version && has_own == has_own_weights_) return;
    if (this != &first) weights_ = first.weights_;  // the other groups are reading the first one's at this moment
    has_own_weights_ = has_own;
    use_weights();
    const std::size_t copy = has_own ? std::size_t(group) % (weights().copies.size() + 1) : 0;
    if (copy == 0) return;
    const auto& own = weights().copies[copy - 1];
    for (std::size_t b = 0; b < own.size(); ++b)
      if (own[b]) pointers_[b] = own[b]->data();
  }

  /// Whether it has weights or workers that have been replaced.
  bool has_replaced(const Published<const WeightSet>& weights, const Published<Workers>& workers) const {
    return (weights_.value && !weights.is_current(weights_)) || (workers_.value && !workers.is_current(workers_)) ||
           any_of(others_, [&](const auto& other) { return other->has_replaced(weights, workers); });
  }
  /// Lets go of these, so that a workspace at rest does not keep their memory.
  void forget_replaced(const Published<const WeightSet>& weights, const Published<Workers>& workers) {
    if (!weights.is_current(weights_)) weights_ = {};
    if (!workers.is_current(workers_)) workers_ = {};
    for (const auto& other : others_) other->forget_replaced(weights, workers);
  }

  /// Gives every buffer its memory for a call on `arrays()` by at most `num_workers` workers, and zeroes row num_nodes
  /// of every tensor over the nodes, which is what absent children read.
  void prepare(int num_workers) {
    const structure::Arrays& in = arrays();
    num_workers_ = num_workers;
    counts_.resize(std::size_t(in.num_pieces));
    for (std::int32_t p = 0; p < in.num_pieces; ++p) counts_[std::size_t(p)] = counts_of(in, p);
    for (const Link& link : plan_->links)
      pointers_[std::size_t(link.buffer)] = const_cast<void*>(target_of(link, in, 0));
    if (num_workers > 1 && pointers_.size() < plan_->num_buffers() * std::size_t(num_workers))
      pointers_.resize(plan_->num_buffers() * std::size_t(num_workers));
    for (std::size_t s = 0; s < memory_.size(); ++s) provide(plan_->storage[s], memory_[s], in, num_workers);
    for (int w = 1; w < num_workers; ++w) copy_table(w);
  }

  /// Makes the pointers for a worker those of a piece, after `prepare`, which makes them those of the first.
  void enter_piece(int worker, std::int32_t piece) {
    void** const table = pointers_.data() + std::size_t(worker) * plan_->num_buffers();
    for (const Link& link : plan_->links)
      if (link.source <= Source::root) table[link.buffer] = const_cast<void*>(target_of(link, arrays(), piece));
  }

  /// Whether some of what the program computes is in tables.
  bool has_tables() const {
    const Vector<std::int32_t>& computes = weights().computes;
    return contains(computes, 0);
  }

  /// Puts the rows of a piece in place that tables have, after `prepare`: this worker's share of them, or all where it
  /// has a copy of its own.
  void place_rows(int worker, int num_workers, std::int32_t piece) {
    for (const PlacedRows& placed : plan_->placed) {
      const Tables* const tables = tables_of(placed.tabulation);
      if (!tables) continue;
      const ir::Tabulation& tabulation = plan_->executable->program.tabulations[std::size_t(placed.tabulation)];
      const structure::Arrays& in = arrays();
      auto* const to = static_cast<std::byte*>(pointers(worker)[placed.buffer]);
      const std::byte* const from = tables->blocks[std::size_t(placed.result)]->data();
      const TabulatedNodes tabulated(tabulation, in, piece);
      for (structure::NodeNumbers range : tabulated.ranges) {
        if (!placed.per_worker) range = share_of(range, worker, num_workers);
        for (std::int64_t position = range.first; position < range.first + range.count; ++position)
          std::memcpy(to + std::size_t(tabulated[position]) * placed.row_bytes,
                      from + table_row(tabulation, tables->extents, in, plan_->order.field, tabulated[position]) *
                                 placed.row_bytes,
                      placed.row_bytes);
      }
    }
  }

  /// [buffers of the program] the pointers for that worker, after `prepare`.
  void* const* pointers(int worker) const { return pointers_.data() + std::size_t(worker) * plan_->num_buffers(); }

  /// What the last call needed, and what is held since the largest one.
  CallMemory memory() const {
    CallMemory result;
    for (int g = 0; g < num_groups_; ++g) group(g).add_memory_to(result);
    for (std::size_t g = std::size_t(num_groups_); g <= others_.size(); ++g) result.held += group(int(g)).held();
    return result;
  }

  /// Row `node` of a state, of this group alone.
  const std::byte* row(const StateView& state, std::int32_t node) const {
    int buffer = state.buffer;
    if (state.leaf_rows >= 0 && node >= arrays().num_internal) {
      const structure::FieldArray& field = arrays().field[state.leaf_field];
      node = static_cast<const std::int32_t*>(field.data)[std::size_t(node) * std::size_t(field.stride)];
      buffer = state.leaf_rows;
    } else if (state.recycled) {
      node = arrays().state_row[node];
    }
    return static_cast<const std::byte*>(pointers_[std::size_t(buffer)]) + std::size_t(node) * state.row_bytes;
  }

 private:
  static structure::NodeNumbers share_of(const structure::NodeNumbers& range, std::int64_t worker, int num_workers) {
    const auto before = [&](std::int64_t workers) { return std::int32_t(range.count * workers / num_workers); };
    return {range.first + before(worker), before(worker + 1) - before(worker)};
  }

  template <class Count>
  std::size_t sum_of_groups(Count count) const {
    std::size_t sum = 0;
    for (int g = 0; g < num_groups_; ++g) sum += std::size_t(count(group(g)));
    return sum;
  }

  /// What this group has needed.
  void add_memory_to(CallMemory& result) const {
    result.arrays += array_bytes();
    result.held += held();
    for (std::size_t s = 0; s < memory_.size() && arrays().num_nodes > 0; ++s) {
      const Storage& storage = plan_->storage[s];
      const std::size_t copies = storage.per_worker ? std::size_t(num_workers_) : 1;
      (is_state(*plan_, storage) ? result.states : result.temporaries) +=
          copies * rows_of(storage, arrays()) * storage.row_bytes;
    }
  }
  std::size_t array_bytes() const {
    return nodes.bytes() + (division.roots.capacity() + division.own_roots.capacity()) * sizeof(void*) +
           (division.sizes.capacity() + division.order.capacity()) * sizeof(std::int32_t) +
           division.places.capacity() * sizeof(RootPlace) + division.addresses.bytes();
  }
  std::size_t held() const {
    std::size_t sum = array_bytes();
    for (const Memory& memory : memory_)
      for (const Block& block : memory.blocks) sum += block.size() + slack_bytes;
    return sum;
  }

  friend class CompiledModel;
  friend class Lease;

  /// The memory of one buffer; one block for each worker if they do not share it.
  struct Memory {
    Vector<Block> blocks;
    std::size_t rows = 0;
  };

  void provide(const Storage& storage, Memory& memory, const structure::Arrays& in, int num_workers) {
    if (const Tables* tables = tables_of(storage.tabulation)) {  // the program does not write it
      pointers_[std::size_t(storage.buffer)] = tables->blocks[std::size_t(storage.result)]->data();
      return;
    }
    const std::size_t copies = storage.per_worker ? std::size_t(num_workers) : 1;
    const std::size_t rows = rows_of(storage, in);
    if (rows > memory.rows || copies > memory.blocks.size()) [[unlikely]]
      grow(storage, memory, rows, copies);
    pointers_[std::size_t(storage.buffer)] = memory.blocks[0].data();
    if (storage.rows != Rows::node && storage.rows != Rows::recycled) return;
    for (std::size_t copy = 0; copy < copies; ++copy)  // the last row
      std::memset(memory.blocks[copy].data() + (rows - 1) * storage.row_bytes, 0, storage.row_bytes);
  }

  /// Memory is zeroed once, which also maps its pages: what follows costs the same from the first call on, and vectors
  /// that reach past a row meet no indeterminate values. Where there is not enough, nothing is held afterwards: the
  /// next call asks for what it needs itself.
  [[gnu::noinline]] static void grow(const Storage& storage, Memory& memory, std::size_t rows, std::size_t copies) {
    try {
      if (rows > memory.rows) {
        memory.blocks.clear();
        memory.rows = storage.rows == Rows::fixed ? rows : std::max(rows, std::size_t(32)) + rows / 2;
      }
      while (memory.blocks.size() < copies) {
        if (memory.rows > SIZE_MAX / 4 / storage.row_bytes) no_memory(double(memory.rows) * double(storage.row_bytes));
        memory.blocks.emplace_back(memory.rows * storage.row_bytes);
        std::memset(memory.blocks.back().data(), 0, memory.blocks.back().size());
      }
    } catch (...) {
      memory = Memory();
      throw;
    }
  }

  /// The tables that a tabulation has under the weights of this call, or null.
  const Tables* tables_of(int tabulation) const {
    if (tabulation < 0 || weights().tables.empty()) return nullptr;
    return weights().tables[std::size_t(tabulation)].get();
  }

  void copy_table(int worker) {
    void** const table = pointers_.data() + std::size_t(worker) * plan_->num_buffers();
    std::memcpy(table, pointers_.data(), plan_->num_buffers() * sizeof(void*));
    for (std::size_t s = 0; s < memory_.size(); ++s)
      if (plan_->storage[s].per_worker && !tables_of(plan_->storage[s].tabulation))
        table[plan_->storage[s].buffer] = memory_[s].blocks[std::size_t(worker)].data();
  }

  const void* target_of(const Link& link, const structure::Arrays& in, std::int32_t piece) const {
    const std::ptrdiff_t batch = in.piece_batch[piece], part = batch * in.num_parts;
    switch (link.source) {
      case Source::counts: return counts_.data() + piece;
      case Source::batch_begin: return in.batch_begin + batch;
      case Source::batch_length: return in.batch_length + batch;
      case Source::part_begin: return in.part_begin + part;
      case Source::part_length: return in.part_length + part;
      case Source::part_offset: return in.part_offset + std::ptrdiff_t(piece) * (in.num_parts + 1);
      case Source::part_list: return in.part_list;
      case Source::state_row: return in.state_row;
      case Source::root: return in.root + in.piece_root[piece];
      case Source::group_begin: return in.subtrees.group_begin;
      case Source::group_node: return in.subtrees.group_node;
      case Source::inner_begin: return in.subtrees.inner_begin;
      case Source::inner_child: return in.subtrees.inner_child;
      case Source::computes: return weights().computes.data();
      case Source::child: return in.child[link.position];
      case Source::edge_begin: return in.children[link.position].begin;
      case Source::edge_child: return in.children[link.position].child;
      case Source::field: break;
    }
    const structure::FieldArray& field = in.field[link.position];
    if (field.stride != link.stride) [[unlikely]]
      wrong_stride(link, field.stride);
    return field.data;
  }

  [[noreturn, gnu::noinline]] void wrong_stride(const Link& link, std::int32_t stride) const {
    throw Error(Code::internal, "buffer '" + plan_->executable->program.buffers[std::size_t(link.buffer)]->name +
                                    "' takes rows of " + std::to_string(link.stride) +
                                    " elements, but the linearizer writes rows of " + std::to_string(stride));
  }

  /// Each field's checks, without the limits that bound weights give.
  Vector<structure::FieldCheck> first_checks() const {
    const Executable& executable = *plan_->executable;
    std::size_t count = 0;
    for (const int position : plan_->order.field) count = std::max(count, std::size_t(position + 1));
    Vector<structure::FieldCheck> result(count, structure::FieldCheck{structure::Where::nowhere, -1, nullptr});
    for (std::size_t f = 0; f < plan_->order.field.size() && f < executable.fields.size(); ++f) {
      const FieldSpec& spec = executable.fields[f];
      if (plan_->order.field[f] < 0) continue;
      result[std::size_t(plan_->order.field[f])] = {spec.where, spec.limit,
                                                    spec.table.empty() ? nullptr : spec.table.c_str(),
                                                    executable.graph.fields[f].components, plan_->field_guards[f]};
    }
    return result;
  }

  [[gnu::noinline]] void use_weights() {
    const Executable& executable = *plan_->executable;
    const WeightSet& set = weights();
    for (std::size_t b = 0; b < set.blocks.size(); ++b)
      if (set.blocks[b]) pointers_[b] = set.blocks[b]->data();
    for (std::size_t f = 0; f < plan_->order.field.size() && f < executable.fields.size(); ++f) {
      const FieldSpec& spec = executable.fields[f];
      if (plan_->order.field[f] < 0 || spec.weight < 0 || set.shapes[std::size_t(spec.weight)].empty()) continue;
      const std::int64_t extent = set.shapes[std::size_t(spec.weight)][0];
      checks_[std::size_t(plan_->order.field[f])].limit = spec.limit < 0 ? extent : std::min(spec.limit, extent);
    }
  }

  const std::shared_ptr<const Plan> plan_;
  Vector<Memory> memory_;   // [Plan::storage]
  Vector<void*> pointers_;  // [workers, buffers of the program]
  Vector<structure::FieldCheck> checks_;
  Vector<Counts> counts_;  // [pieces]
  Published<const WeightSet>::View weights_;
  bool has_own_weights_ = false;  // of a group, and not the first one's
  Published<Workers>::View workers_;
  int num_workers_ = 1;                        // of the last call
  int num_groups_ = 1;                         // likewise
  Vector<std::unique_ptr<Workspace>> others_;  // of the groups after the first
  CompiledModel* owner_ = nullptr;
};

}  // namespace cortex::runtime
