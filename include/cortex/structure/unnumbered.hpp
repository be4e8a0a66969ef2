// What nodes say of themselves before they have a number: keys ask it, and nodes that are equal say the same.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cortex/structure/accessor_set.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/failures.hpp"
#include "cortex/structure/key.hpp"
#include "cortex/structure/share_subtrees.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure::detail {

/// What a key is told of a field behind a null pointer. A guard may ask it at nodes at which nothing reads it.
enum class Unreachable : std::uint8_t { zero, refused };

/// A node that has a place but no number yet, as keys see it.
template <class Node, class Set>
class Unnumbered {
 public:
  Unnumbered(const WalkState& walk, std::int32_t place, Unreachable unreachable)
      : walk_(walk), place_(place), unreachable_(unreachable) {}

  std::int64_t field(int position, int component) const { return field_in(position, component, FieldAccessors<Set>{}); }
  std::int64_t num_children(int position) const {
    return walk_.row[ChildAccessors<Set>::size + 2 * std::size_t(position) + 1].data()[place_];
  }
  std::int64_t num_parents() const { return walk_.num_parents.data()[place_]; }
  std::int64_t is_leaf() const { return walk_.height.data()[place_] == 0; }
  std::int64_t is_root() const { return place_ <= walk_.num_roots; }

 private:
  template <class... Fs>
  std::int64_t field_in([[maybe_unused]] int position, [[maybe_unused]] int component, Accessors<Fs...>) const {
    std::int64_t value = 0;
    [[maybe_unused]] int at = 0;
    ((at++ == position ? void(value = read<Fs>(component)) : void()), ...);
    return value;
  }
  template <class A>
  std::int64_t read([[maybe_unused]] int component) const {
    const Node& node = *static_cast<const Node*>(walk_.node.data()[place_]);
    if (!A::is_reachable(node)) [[unlikely]] {
      if (unreachable_ == Unreachable::zero) return 0;
      fail::unreachable_field(walk_, place_, A::name());
    }
    auto&& value = A::get(node);
    if constexpr (A::template is_vector<Node>())
      return std::int64_t(value[std::size_t(component)]);
    else
      return std::int64_t(value);
  }

  const WalkState& walk_;
  const std::int32_t place_;
  const Unreachable unreachable_;
};

/// Whether `guard` holds at a node; an empty one does at all.
template <class Node, class Set>
bool holds(std::span<const KeyStep> guard, const WalkState& walk, std::int32_t place) {
  return guard.empty() || evaluate(guard, Unnumbered<Node, Set>(walk, place, Unreachable::zero)) != 0;
}

/// The fields of nodes, where the model reads them, bit for bit: what `sharing::merge_equal` compares.
template <class Node, class Set>
class ReadFields {
  using Fields = FieldAccessors<Set>;

 public:
  ReadFields(const WalkState& walk, std::span<const FieldCheck> checks) : walk_(walk), checks_(checks) {}

  template <bool leaf>
  bool add_to(sharing::Hash& hash, std::int32_t place) const {
    return for_each_field(leaf, Fields{}, [&](auto field, const FieldCheck& check) {
      using A = decltype(field);
      const Node& node = node_at(place);
      if (!is_read(check, place)) return true;
      if (A::template components<Node>() == 0 || !A::is_reachable(node)) return false;
      for (int k = 0; k < A::template components<Node>(); ++k) hash.add(bits<A>(node, k));
      return true;
    });
  }
  template <bool leaf>
  bool equal(std::int32_t a, std::int32_t b) const {
    return for_each_field(leaf, Fields{}, [&](auto field, const FieldCheck& check) {
      using A = decltype(field);
      const bool read = is_read(check, a);
      if (read != is_read(check, b)) return false;
      for (int k = 0; read && k < A::template components<Node>(); ++k)
        if (bits<A>(node_at(a), k) != bits<A>(node_at(b), k)) return false;
      return true;
    });
  }

 private:
  const Node& node_at(std::int32_t place) const { return *static_cast<const Node*>(walk_.node.data()[place]); }
  bool is_read(const FieldCheck& check, std::int32_t place) const {
    return holds<Node, Set>(check.guard, walk_, place);
  }

  /// Whether `f` holds for each field that is read at some leaves, or at some inner nodes.
  template <class... Fs, class F>
  bool for_each_field([[maybe_unused]] bool is_leaf, Accessors<Fs...>, [[maybe_unused]] F f) const {
    [[maybe_unused]] const int here = int(is_leaf ? Where::leaves : Where::internal);
    [[maybe_unused]] std::size_t at = 0;
    return (... && [&] {
      const FieldCheck& check = checks_[at++];
      return !(int(check.where) & here) || f(Fs{}, check);
    }());
  }

  template <class A>
  static std::uint64_t bits(const Node& node, [[maybe_unused]] int k) {
    auto&& value = A::get(node);
    if constexpr (A::template is_vector<Node>())
      return bits_of(value[std::size_t(k)]);
    else
      return bits_of(value);
  }
  template <class T>
  static std::uint64_t bits_of(T value) {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<std::uint32_t>(value);
    else if constexpr (std::is_same_v<T, double>)
      return std::bit_cast<std::uint64_t>(value);
    else
      return std::uint64_t(value);
  }

  const WalkState& walk_;
  const std::span<const FieldCheck> checks_;
};

}  // namespace cortex::structure::detail
