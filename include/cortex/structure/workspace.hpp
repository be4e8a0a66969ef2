// The memory of the linearizer: everything it writes, kept from call to call so that a warm call allocates nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/memory.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/partition.hpp"

namespace cortex::structure {

/// An array that begins at a cache line, grows geometrically and never shrinks, readable `slack_bytes` past its
/// capacity. Fresh memory is zero, so reading ahead of what was written yields old or zero values and nothing
/// indeterminate.
template <class T>
class Block {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Block() = default;
  Block(Block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Block() { release(data_); }

  /// Room for `count` elements, whose values are unspecified.
  T* reserve(std::size_t count) { return count < capacity_ ? data_ : extend(count, 0); }

  /// Room for `count` elements; the first `used` keep their values. Throws `Error{out_of_memory}`; all is as it was
  /// then.
  T* extend(std::size_t count, std::size_t used) {
    if (count < capacity_) return data_;
    used = std::min(used, capacity_);
    const std::size_t larger = count + count / 2 + 64;
    const std::size_t bytes = larger * sizeof(T) + slack_bytes;
    T* fresh = allocate(bytes);
    if (used > 0) std::memcpy(static_cast<void*>(fresh), data_, used * sizeof(T));
    std::memset(static_cast<void*>(fresh + used), 0, bytes - used * sizeof(T));
    release(data_);
    data_ = fresh;
    capacity_ = larger;
    return data_;
  }

  T* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  static T* allocate(std::size_t bytes) {
    try {
      return static_cast<T*>(::operator new(bytes, std::align_val_t(cache_line)));
    } catch (const std::bad_alloc&) {
      no_memory(double(bytes));
    }
  }
  static void release(T* data) { ::operator delete(static_cast<void*>(data), std::align_val_t(cache_line)); }
  T* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// A view of the hash table from node to place, held in registers during the walk. A slot holds (stamp << 32 | place)
/// and counts as empty unless its stamp is the current one, so no call has to clear what the calls before it wrote.
struct Probe {
  std::uint64_t* entries = nullptr;
  std::uint64_t stamp = 0;
  std::uint32_t mask = 0;
  int shift = 63;

  std::uint32_t home(const void* node) const {
    // Fibonacci hashing: nodes allocated one after the other spread evenly, whatever their stride.
    return std::uint32_t((reinterpret_cast<std::uintptr_t>(node) * 0x9E3779B97F4A7C15u) >> shift);
  }

  /// Enters a node at `place` and returns 0; if the node is there already, returns its place.
  std::int32_t insert(const void* node, std::int32_t place, const void* const* nodes) const {
    for (std::uint32_t at = home(node);; at = (at + 1) & mask) {
      const std::uint64_t slot = entries[at];
      if ((slot >> 32) != stamp) {
        entries[at] = stamp << 32 | std::uint32_t(place);
        return 0;
      }
      if (nodes[std::uint32_t(slot)] == node) return std::int32_t(std::uint32_t(slot));
    }
  }

  /// The place of a node, or 0.
  std::int32_t find(const void* node, const void* const* nodes) const {
    for (std::uint32_t at = home(node);; at = (at + 1) & mask) {
      const std::uint64_t slot = entries[at];
      if ((slot >> 32) != stamp) return 0;
      if (nodes[std::uint32_t(slot)] == node) return std::int32_t(std::uint32_t(slot));
    }
  }
};

/// A visit of a node that was visited before.
struct Repeat {
  std::int32_t place;
  std::int32_t original;
};

/// What one walk knows. A place is one visit, numbered in breadth-first order from 1, roots first; place 0 stands for
/// "no node". In a forest every node has one place; a node that is reached again has further places, listed in
/// `repeat`, whose children are not visited again.
struct WalkState {
  Block<const void*> node;          // [place]
  Block<std::int32_t> parent;       // [place] place of the node it was reached from; 0 for roots; never decreases
  Vector<Block<std::int32_t>> row;  // [named child][place]: its place or 0; then per container: first place, count
  Block<Repeat> repeat;
  Block<std::uint64_t> entries;
  std::int32_t tail = 1;  // one past the last place
  std::int32_t num_roots = 0;
  std::int32_t num_repeats = 0;
  std::int32_t limit = 0;  // the walk has room for places below it
  std::int32_t max_visits = 0;
  std::int32_t expected = 0;  // a decaying maximum of recent sizes: what the table is sized to at first
  std::int32_t num_named = 0, num_containers = 0;
  int table_bits = 0;
  std::uint32_t stamp = 0;
  bool finished = false;
  bool cut_short = false;  // a container's last children were not read, since it is refused in any case
  bool aliased = false;    // some places are of nodes, or of values, that stand at other places: alias[place]

  Block<std::int32_t> height, number;                                   // [place]
  Block<std::int32_t> order;                                            // [number] the place
  Block<std::int32_t> cursor, cursor_end;                               // [batch], or [part of a batch]: numbers left
  Block<std::int32_t> room;                                             // [batch]
  Block<std::int32_t> batch;                                            // [place], only where there are pieces
  Block<std::int32_t> alias, first_edge, num_edges, open_edges, queue;  // [place], only where nodes are shared
  Block<std::int32_t> last_reader, next_of_level, open_rows;            // [number], only where states are recycled
  Block<std::int32_t> only_parent;                                      // [number], likewise
  Block<std::int32_t> first_of_level;                                   // [level], likewise
  Block<std::int32_t> part, num_parents;                                // [place], only where batches have parts
  Block<std::int32_t> leader, first_of_value, single, inner_places;     // [place], only where equal nodes are shared
  Block<std::uint64_t> hash;                                            // [place], likewise
  Block<std::uint64_t> value_slots;                                     // from hash to place, as `entries`
  std::uint32_t value_stamp = 0;

  // What `arrays` points to.
  Block<std::int32_t> batch_begin, batch_length, part_begin, part_length, root, piece_batch, piece_root;
  Block<std::int32_t> part_offset, part_list, state_row;
  Block<std::int32_t> group_begin, group_node, inner_begin, inner_child;
  Vector<Block<std::int32_t>> child, csr_begin, csr_child;
  Vector<Block<std::byte>> field_data;
  Vector<const std::int32_t*> child_table;
  Vector<Csr> csr_table;
  Vector<FieldArray> field_table;
  Arrays arrays;

  Probe probe() const {
    return {entries.data(), stamp, std::uint32_t((std::uint64_t(1) << table_bits) - 1), 64 - table_bits};
  }

  /// Forgets the last run and makes the lists as long as the accessor set needs.
  void begin(std::size_t named, std::size_t containers, std::size_t derived, std::size_t fields) {
    finished = cut_short = aliased = false;
    arrays = Arrays{};
    tail = 1;
    num_roots = num_repeats = 0;
    num_named = std::int32_t(named);
    num_containers = std::int32_t(containers);
    const std::size_t rows = named + 2 * containers;
    if (row.size() < rows) row.resize(rows);
    if (child.size() < named) child.resize(named);
    if (csr_begin.size() < containers + derived) csr_begin.resize(containers + derived);
    if (csr_child.size() < containers + derived) csr_child.resize(containers + derived);  // the other may have thrown
    if (field_data.size() < fields) field_data.resize(fields);
    child_table.resize(named);
    csr_table.resize(containers + derived);
    field_table.resize(fields);
    make_room(0, 0);
  }

  /// Room for `more` places from `tail` on, of which places 1 .. entered are in the table. The caller has made sure
  /// that no more than `max_visits` places are in use.
  void make_room(std::int32_t entered, std::int64_t more) {
    const std::int64_t wanted = std::max<std::int64_t>(tail + more, std::max(expected, 256));
    const std::size_t places = std::size_t(wanted) + std::size_t(spare_places);
    node.extend(places, std::size_t(tail));
    parent.extend(places, std::size_t(tail));
    std::size_t smallest = std::min(node.capacity(), parent.capacity());
    for (auto& r : row) {
      r.extend(places, std::size_t(tail));
      smallest = std::min(smallest, r.capacity());
    }
    size_table(wanted, entered);
    const std::int64_t by_table = (std::int64_t(1) << table_bits) / slots_per_place;
    limit = std::int32_t(
        std::min<std::int64_t>({std::int64_t(smallest) - spare_places, by_table, std::int64_t(max_visits) + 1}));
  }

  /// The first place of the node, or of the value, at `place`.
  std::int32_t first_place(std::int32_t place) const { return aliased ? alias.data()[place] : place; }
  bool is_first(std::int32_t place) const { return first_place(place) == place; }

  /// Writes how many nodes, each at its first place, each root is the first to visit: [num_roots] to `counts`.
  /// `root_of`: room for [place] whose visit it is of.
  void count_by_root(std::int32_t* root_of, std::int32_t* counts) const {
    for (std::int32_t place = 1; place <= num_roots; ++place)
      root_of[place] = place, counts[place - 1] = is_first(place);
    for (std::int32_t place = num_roots + 1; place < tail; ++place) {
      root_of[place] = root_of[parent.data()[place]];
      counts[root_of[place] - 1] += is_first(place);
    }
  }

  /// How much memory all of it takes, as far as it has grown.
  std::size_t bytes() const {
    std::size_t sum = 0;
    const auto add = [&](const auto& block) {
      if (block.data()) sum += block.capacity() * sizeof(*block.data()) + slack_bytes;
    };
    const auto add_all = [&](const auto& blocks) {
      for (const auto& block : blocks) add(block);
    };
    add(node), add(parent), add_all(row), add(repeat), add(entries);
    add(height), add(number), add(order), add(cursor), add(cursor_end), add(room), add(batch);
    add(alias), add(first_edge), add(num_edges), add(open_edges), add(queue), add(part), add(num_parents);
    add(leader), add(first_of_value), add(single), add(inner_places), add(hash), add(value_slots);
    add(batch_begin), add(batch_length), add(part_begin), add(part_length), add(root), add(piece_batch),
        add(piece_root), add(part_offset), add(part_list), add(state_row);
    add(last_reader), add(next_of_level), add(open_rows), add(first_of_level);
    add(group_begin), add(group_node), add(inner_begin), add(inner_child);
    add_all(child), add_all(csr_begin), add_all(csr_child), add_all(field_data);
    return sum;
  }

  /// Remembers the size of this run for the next one's table: one that fits the load stays in the cache.
  void remember_size() { expected = std::max(tail, expected - expected / 8); }

  static constexpr std::int32_t slots_per_place = 4;

 private:
  /// Sizes the table to `wanted` places and enters the first `entered` again if it changed.
  void size_table(std::int64_t wanted, std::int32_t entered) {
    int bits = 10;
    while (bits < 32 && (std::int64_t(1) << bits) < wanted * slots_per_place) ++bits;
    if (entered > 0 && bits <= table_bits) return;
    table_bits = bits;
    entries.reserve(std::size_t(1) << bits);
    if (++stamp == 0) {  // after 2^32 calls a stale slot could look current
      std::memset(entries.data(), 0, entries.capacity() * sizeof(std::uint64_t));
      stamp = 1;
    }
    const Probe table = probe();
    for (std::int32_t place = 1; place <= entered; ++place) table.insert(node.data()[place], place, node.data());
  }
};

/// The addresses of nodes, for others to ask whether one may be among them: a bit for each 64 bytes of memory, modulo
/// as many as there are. Where nodes stand near each other their bits do, so that a thread which asks for those of
/// another fetches few lines from its cache; the hash table would be one for each node.
class AddressFilter {
 public:
  /// Forgets all, and has room for so many addresses that few others share their bits.
  void reset(std::size_t addresses) {
    const std::size_t words = std::bit_ceil(addresses / 4 + 8);
    std::fill_n(words_.reserve(words), words, 0);
    mask_ = words * 64 - 1;
  }
  void add(const void* address) { words_.data()[bit(address) / 64] |= std::uint64_t(1) << bit(address) % 64; }
  bool may_contain(const void* address) const { return words_.data()[bit(address) / 64] >> bit(address) % 64 & 1; }

  std::size_t bytes() const { return words_.capacity() * sizeof(std::uint64_t); }

 private:
  std::size_t bit(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) / 64 & mask_; }

  Block<std::uint64_t> words_;
  std::size_t mask_ = 0;
};

/// Memory for one call at a time; a server keeps one per thread. It grows to the largest call it has seen and
/// then allocates nothing. After an exception it can be used again at once.
class Workspace {
 public:
  /// `max_visits` bounds how many nodes, counted once for each link that leads to them, one call may have (at most
  /// about 2^31 in any case), and how many members its roots have together, where these are listed; a larger call gets
  /// Code::out_of_range.
  explicit Workspace(std::int32_t max_visits = most_visits) { state_.max_visits = max_visits; }
  Workspace(Workspace&& other) noexcept
      : state_(std::exchange(other.state_, fresh(other))),
        partition_(other.partition_),
        subtree_depth_(other.subtree_depth_),
        level_fill_(other.level_fill_),
        piece_nodes_(other.piece_nodes_),
        piece_width_(other.piece_width_),
        rows_apart_(other.rows_apart_),
        overwrites_children_(other.overwrites_children_),
        shares_(other.shares_),
        hash_mask_(other.hash_mask_) {}
  Workspace& operator=(Workspace&& other) noexcept {
    if (this != &other) {
      state_ = std::exchange(other.state_, fresh(other));
      partition_ = other.partition_;
      subtree_depth_ = other.subtree_depth_;
      level_fill_ = other.level_fill_;
      piece_nodes_ = other.piece_nodes_;
      piece_width_ = other.piece_width_;
      rows_apart_ = other.rows_apart_;
      overwrites_children_ = other.overwrites_children_;
      shares_ = other.shares_;
      hash_mask_ = other.hash_mask_;
    }
    return *this;
  }

  /// Sorts the batches of later runs into the parts of `partition`, which has to outlive them; null: no parts.
  void set_partition(const Partition* partition) { partition_ = partition; }

  /// Groups the inner nodes of later runs into subtrees of `depth` levels; 0: does not.
  void set_subtree_depth(std::int32_t depth) { subtree_depth_ = depth; }

  /// Fills batches of later runs, but the leaves', up to `nodes` nodes with nodes from below that nobody above waits
  /// for; 1: every batch is of one height. Where subtrees are grouped, batches are of one height.
  void fill_levels(std::int32_t nodes) { level_fill_ = nodes; }

  /// Divides later runs into pieces of about `nodes` nodes and more, where they have twice as many and several roots,
  /// and batches then have `width` nodes on average; 0: does not. Where subtrees are grouped, a run is one piece.
  void set_pieces(std::int32_t nodes, std::int32_t width = 0) { piece_nodes_ = nodes, piece_width_ = width; }

  /// Gives nodes of later runs rows of recycled states (structure/state_rows.hpp), which others get so many levels
  /// after their last use; 0: does not. `overwrites`: a node may take the row of a child at once.
  void recycle_rows(std::int32_t apart, bool overwrites) { rows_apart_ = apart, overwrites_children_ = overwrites; }

  /// Gives nodes of later runs that are the same value one number. That holds for programs that go from children to
  /// parents alone; where subtrees are grouped, each node keeps its own. `hash_mask` says which bits of the nodes'
  /// hashes to use: tests take few, so that they collide.
  void share_subtrees(bool on, std::uint64_t hash_mask = ~std::uint64_t(0)) {
    shares_ = on;
    hash_mask_ = hash_mask;
  }

  /// How many nodes the roots of the last run reached; `arrays().num_nodes` is how many values these are.
  std::int32_t num_reached() const { return state_.finished ? state_.tail - 1 - state_.num_repeats : 0; }

  /// The node that has a number in the last run; of equal ones that share it, the first.
  const void* node(std::int32_t number) const { return state_.node.data()[state_.order.data()[number]]; }

  /// Makes `filter` one of the addresses of these nodes.
  void list_addresses(AddressFilter& filter) const {
    const std::int32_t end = state_.finished ? state_.tail : 1;
    filter.reset(std::size_t(end));
    for (std::int32_t place = 1; place < end; ++place) filter.add(state_.node.data()[place]);
  }

  /// How many of these nodes `is_known`, a function of a node's address, says yes to.
  template <class IsKnown>
  std::int32_t count_nodes(IsKnown is_known) const {
    std::int32_t count = 0;
    for (std::int32_t place = 1; state_.finished && place < state_.tail; ++place) {
      const void* const node = state_.node.data()[place];
      if (!is_known(node)) continue;
      count += state_.num_repeats == 0 || state_.probe().find(node, state_.node.data()) == place;
    }
    return count;
  }

  /// Writes how many nodes of the last run, of equal ones that share a number the first, each root reaches before any
  /// other does: [num_roots] to `counts`.
  void count_by_root(std::int32_t* counts) {
    state_.count_by_root(state_.queue.reserve(std::size_t(state_.tail) + 1), counts);
  }

  /// The arrays of the last run; empty before the first and after a failed one.
  const Arrays& arrays() const { return state_.arrays; }

  /// How many bytes it holds.
  std::size_t bytes() const { return state_.bytes(); }

  /// The number of a node of the last run, or -1 if it was not in it. `node` is the node's address as a pointer to the
  /// linearizer's Node type (in an arena, that of the element) and is not dereferenced. Valid until the next run.
  std::int32_t find(const void* node) const {
    if (!state_.finished || node == nullptr) return -1;
    const std::int32_t place = state_.probe().find(node, state_.node.data());
    return place == 0 ? -1 : state_.number.data()[place];
  }

 private:
  template <class Node, class Set>
  friend class Linearizer;
  static WalkState fresh(const Workspace& like) noexcept {
    WalkState state;
    state.max_visits = like.state_.max_visits;
    return state;
  }
  WalkState state_;
  const Partition* partition_ = nullptr;
  std::int32_t subtree_depth_ = 0;
  std::int32_t level_fill_ = 1;
  std::int32_t piece_nodes_ = 0, piece_width_ = 0;
  std::int32_t rows_apart_ = 0;
  bool overwrites_children_ = false;
  bool shares_ = false;
  std::uint64_t hash_mask_ = ~std::uint64_t(0);
};

}  // namespace cortex::structure
