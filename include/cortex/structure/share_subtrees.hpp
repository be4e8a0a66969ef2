// Finds the nodes of a call that are the same value (hash-consing): nodes whose data, as far as the model reads it, are
// equal bit for bit, and whose children are the same nodes or the same values. All of them get the number of the first,
// so each value is computed once.
//
// before: places with heights, and how many nodes have each
// after:  alias[place] is the first place of the value, and heights are counted by values
//
// A hash only says where to look: nodes are compared before one takes the number of the other. It is of a fixed key, so
// someone who chooses the nodes may make hashes collide: after `most_probes` of them a node counts as no other's equal,
// which costs a computation and no more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cortex/structure/workspace.hpp"

namespace cortex::structure::sharing {

inline constexpr int most_probes = 64;

/// A hash of what was added, in order.
struct Hash {
  std::uint64_t value = 0;
  void add(std::uint64_t more) {
    value = (value ^ more) * 0x9E3779B97F4A7C15u;
    value ^= value >> 29;
  }
};

namespace detail {

/// The walk's arrays, as values of the loop over the places.
template <class Data>
class Merger {
 public:
  Merger(WalkState& walk, const Data& data, std::uint64_t mask)
      : walk_(walk), data_(data), mask_(mask), repeats_(walk.num_repeats > 0) {
    const std::size_t count = std::size_t(walk.tail) + 1;
    if (!repeats_) walk.alias.reserve(count);
    alias_ = walk.alias.data();
    leader_ = walk.leader.reserve(count);
    first_ = walk.first_of_value.reserve(count);
    hash_ = walk.hash.reserve(count);
    height_ = walk.height.data();
    int bits = 8;
    while (bits < 32 && (std::int64_t(1) << bits) < 2 * std::int64_t(walk.tail)) ++bits;
    slots_ = walk.value_slots.reserve(std::size_t(1) << bits);
    if (++walk.value_stamp == 0) {  // after 2^32 calls a stale slot could look current
      std::memset(slots_, 0, walk.value_slots.capacity() * sizeof(std::uint64_t));
      walk.value_stamp = 1;
    }
    stamp_ = walk.value_stamp;
    wrap_ = std::uint32_t((std::uint64_t(1) << bits) - 1);
    shift_ = 64 - bits;
    single_ = walk.single.reserve(count);
    leader_[0] = first_[0] = single_[0] = 0;
  }

  void run() {
    if (repeats_) {
      const std::int32_t* const parents_first = walk_.queue.data();  // as `resolve_sharing` has left it
      for (std::int32_t at = walk_.tail - 2 - walk_.num_repeats; at >= 0; --at) {
        const std::int32_t place = parents_first[at];
        height_[place] == 0 ? visit<true>(place) : visit<false>(place);
      }
    } else {
      visit_forest();
    }
    if (merged_ > 0) publish();
  }

 private:
  /// Leaves first, then inner nodes, the last place first: no predictor could guess which of them a place is.
  void visit_forest() {
    const std::int32_t tail = walk_.tail;
    std::int32_t* const leaves = walk_.queue.reserve(std::size_t(tail) + 1);
    std::int32_t* const inner = walk_.inner_places.reserve(std::size_t(tail) + 1);
    std::int32_t num_leaves = 0, num_inner = 0;
    for (std::int32_t place = tail - 1; place > 0; --place) {
      leaves[num_leaves] = inner[num_inner] = place;
      num_leaves += height_[place] == 0;
      num_inner += height_[place] != 0;
    }
    const auto prefetch = [&](const std::int32_t* places, std::int32_t at, std::int32_t count) {
      __builtin_prefetch(walk_.node.data()[places[std::min(at + 8, count - 1)]]);
    };
    for (std::int32_t at = 0; at < num_leaves; ++at) prefetch(leaves, at, num_leaves), visit<true>(leaves[at]);
    for (std::int32_t at = 0; at < num_inner; ++at) prefetch(inner, at, num_inner), visit<false>(inner[at]);
  }

  /// The value of the node at `place`, which a link leads to; 0 for no node.
  std::int32_t value_of(std::int32_t place) const { return leader_[repeats_ ? alias_[place] : place]; }

  template <bool leaf>
  void visit(std::int32_t place) {
    if constexpr (!leaf)
      if (!repeats_ && has_single_child(place)) {
        single_[place] = 1;
        return alone(place);
      }
    Hash hash;
    if (!data_.template add_to<leaf>(hash, place)) [[unlikely]]
      return void(single_[place] = 1), alone(place);  // data that cannot be read is refused later, in words of its own
    if constexpr (!leaf) {
      for (std::size_t k = 0; k < std::size_t(walk_.num_named); ++k)
        hash.add(std::uint32_t(value_of(walk_.row[k].data()[place])));
      for (std::size_t c = 0; c < std::size_t(walk_.num_containers); ++c) {
        const std::int32_t begin = container(c, 0)[place], size = container(c, 1)[place];
        hash.add(std::uint32_t(size));
        for (std::int32_t k = begin; k < begin + size; ++k) hash.add(std::uint32_t(value_of(k)));
      }
    }
    find<leaf>(place, hash.value & mask_);
  }

  /// Whether some child is surely no other node's equal: then neither is its parent, since in a forest a node has one.
  bool has_single_child(std::int32_t place) const {
    std::int32_t single = 0;
    for (std::size_t k = 0; k < std::size_t(walk_.num_named); ++k)
      single |= single_[leader_[walk_.row[k].data()[place]]];
    for (std::size_t c = 0; c < std::size_t(walk_.num_containers); ++c) {
      const std::int32_t begin = container(c, 0)[place], end = begin + container(c, 1)[place];
      for (std::int32_t k = begin; k < end; ++k) single |= single_[leader_[k]];
    }
    return single != 0;
  }

  template <bool leaf>
  void find(std::int32_t place, std::uint64_t hash) {
    hash_[place] = hash;
    std::uint32_t at = std::uint32_t(hash >> shift_);
    for (int probe = 0; probe < most_probes; ++probe, at = (at + 1) & wrap_) {
      const std::uint64_t slot = slots_[at];
      if ((slot >> 32) != stamp_) {
        slots_[at] = stamp_ << 32 | std::uint32_t(place);
        single_[place] = leaf;  // so far: all leaves are visited before the first inner node asks
        return alone(place);
      }
      const std::int32_t other = std::int32_t(std::uint32_t(slot));
      if (hash_[other] != hash || !same<leaf>(place, other)) continue;
      leader_[place] = other;
      first_[other] = std::min(first_[other], place);
      single_[other] = 0;
      ++merged_;
      return;
    }
    single_[place] = 1;
    alone(place);
  }

  void alone(std::int32_t place) { leader_[place] = first_[place] = place; }

  template <bool leaf>
  bool same(std::int32_t a, std::int32_t b) const {
    if (leaf != (height_[b] == 0) || !data_.template equal<leaf>(a, b)) return false;
    if constexpr (leaf) return true;
    for (std::size_t k = 0; k < std::size_t(walk_.num_named); ++k)
      if (value_of(walk_.row[k].data()[a]) != value_of(walk_.row[k].data()[b])) return false;
    for (std::size_t c = 0; c < std::size_t(walk_.num_containers); ++c) {
      const std::int32_t size = container(c, 1)[a], at_a = container(c, 0)[a], at_b = container(c, 0)[b];
      if (size != container(c, 1)[b]) return false;
      for (std::int32_t k = 0; k < size; ++k)
        if (value_of(at_a + k) != value_of(at_b + k)) return false;
    }
    return true;
  }

  /// Of a container the first places (0) or the counts (1).
  const std::int32_t* container(std::size_t c, std::size_t which) const {
    return walk_.row[std::size_t(walk_.num_named) + 2 * c + which].data();
  }

  void publish() {
    std::int32_t* const length = walk_.batch_length.data();
    for (std::int32_t place = 1; place < walk_.tail; ++place) {
      const std::int32_t node = repeats_ ? alias_[place] : place;
      alias_[place] = first_[leader_[node]];
      if (node == place && alias_[place] != place) --length[height_[place]];
    }
    alias_[0] = 0;
    walk_.aliased = true;
  }

  WalkState& walk_;
  const Data& data_;
  const std::uint64_t mask_;
  const bool repeats_;  // some node was reached more than once
  std::int32_t *alias_, *leader_, *first_, *single_;
  const std::int32_t* height_;
  std::uint64_t *hash_, *slots_;
  std::uint64_t stamp_;
  std::uint32_t wrap_;
  int shift_;
  std::int32_t merged_ = 0;
};

}  // namespace detail

/// `data` is what the model reads of the nodes beside children, at leaves or at inner nodes: `add_to<leaf>(hash,
/// place)`, false if it cannot be read, and `equal<leaf>(place, place)`, bit for bit.
template <class Data>
void merge_equal(WalkState& walk, const Data& data, std::uint64_t hash_mask) {
  detail::Merger<Data>(walk, data, hash_mask).run();
}

}  // namespace cortex::structure::sharing
