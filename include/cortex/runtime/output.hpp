// The result of a call: views of states in the workspace that it leases.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/runtime/compiled_model.hpp"

namespace cortex {

namespace runtime {

/// A contiguous container or span of floats or doubles that can be written to.
template <class T>
concept OutputRange = requires(T& out) {
  std::span(out);
  requires std::same_as<typename decltype(std::span(out))::element_type, float> ||
      std::same_as<typename decltype(std::span(out))::element_type, double>;
};

template <OutputRange Out>
auto writable(Out& out) {
  return std::span<typename decltype(std::span(out))::element_type>(out);
}

/// A handle to a placeholder: it knows its element type and its buffer in the operator graph.
template <class S>
concept StateHandle = requires(const S& state) {
  typename S::Element;
  { state.buffer() } -> std::convertible_to<const ir::Buffer&>;
  { state.name() } -> std::convertible_to<std::string_view>;
};

namespace detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void invalid(const std::string& what) {
  throw Error(Code::invalid_argument, what);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void no_root(std::size_t root, std::size_t count) {
  invalid("root " + std::to_string(root) + " is asked for, but the call had " + std::to_string(count) +
          " roots, counted from 0");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void no_node() {
  invalid("a node is asked for that was not in the call: only nodes that the roots reach have states");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void no_readout(const StateSpec& state) {
  invalid("readout '" + state.name + "' is asked for at a node that is no root: it has a value for each root alone");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void not_kept(const StateSpec& state) {
  invalid("state '" + state.name +
          "' is asked for at a node that is no root, and is none of the program's results: of a state so large, roots "
          "alone keep theirs; list it, as in model.program(result, " +
          state.name + ")");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void no_state(const Executable& executable, std::string_view name) {
  std::string all;
  for (const StateSpec& state : executable.states) all += (all.empty() ? "'" : ", '") + state.name + "'";
  invalid("model '" + executable.graph.name + "' has no state '" + std::string(name) + "'; its states are " + all);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void wrong_element(const StateSpec& state, DType asked) {
  invalid("state '" + state.name + "' holds " + std::string(to_string(state.dtype)) +
          " elements, but is asked for as " + std::string(to_string(asked)));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void not_computed(const StateSpec& state) {
  invalid("state '" + state.name +
          "' is asked for, but nodes were numbered alone and no state computed: call the model in place of number()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void in_pieces(const StateSpec& state) {
  invalid("state '" + state.name +
          "' is not stored row by row without gaps: use copy_root or copy_node in place of a view");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void small_span(const StateSpec& state, std::size_t needed,
                                                              std::size_t given) {
  invalid("the output needs room for " + std::to_string(needed) + " elements of state '" + state.name +
          "', but the span has " + std::to_string(given));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void other_roots(const Executable& executable, std::size_t counted,
                                                               std::size_t called) {
  invalid("model '" + executable.graph.name + "': the range of roots gave " + std::to_string(counted) +
          " of them when they were counted and then " + std::to_string(called) +
          ": give a range that can be gone through twice, such as a vector");
}

/// The number of the state of that name.
inline std::size_t find_state(const Executable& executable, std::string_view name) {
  for (std::size_t s = 0; s < executable.states.size(); ++s)
    if (executable.states[s].name == name) return s;
  no_state(executable, name);
}
/// The number of the state that a placeholder stands for; one of another model is refused even if it has the same name.
template <StateHandle S>
std::size_t find_state(const Executable& executable, const S& state) {
  const ra::Graph& graph = executable.graph;
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    if (graph.ops[std::size_t(graph.states[s].placeholder)].buffer == state.buffer()) return s;
  for (const StateSpec& own : executable.states)
    if (own.name == state.name())
      invalid("state '" + own.name + "' belongs to another model than '" + graph.name +
              "', which has one of that name: ask for it by the name, or by its own handle");
  no_state(executable, state.name());
}

}  // namespace detail

/// Writes a row of a state as a dense row-major tensor.
template <class T>
void copy_dense(const StateView& state, const std::byte* row, T* out) {
  const T* const from = reinterpret_cast<const T*>(row);
  if (state.runs.length == 1) {  // by columns: a call for each of so many numbers takes longer than to copy it
    for (const std::int64_t begin : state.runs.begin) *out++ = from[begin];
    return;
  }
  for (const std::int64_t begin : state.runs.begin) {
    std::memcpy(out, from + begin, std::size_t(state.runs.length) * sizeof(T));
    out += state.runs.length;
  }
}

}  // namespace runtime

/// What a call gives: the states of all its nodes, until the object is destroyed. Move-only: it holds the memory of the
/// call, which the functor then uses for another. It may outlive the functor, and the user's nodes. `First` is the
/// element type of the first state.
///
/// Views are of a state's dense tensor in row-major order; a tensor of several dimensions whose rows are stored with
/// gaps can only be copied. A view holds as long as the output does: after `auto h = model(root)[0];` it is gone
/// already, so keep the output. Errors are `Error{invalid_argument}`.
template <class Node, class First = float>
class Output {
 public:
  /// An output without roots.
  Output() = default;
  explicit Output(runtime::Lease lease) : lease_(std::move(lease)) {}
  Output(Output&&) noexcept = default;
  Output& operator=(Output&&) noexcept = default;

  /// How many roots the call had, repeated ones included.
  std::size_t size() const { return lease_ ? lease_->num_roots() : 0; }
  bool empty() const { return size() == 0; }
  /// How many nodes the roots reached.
  std::size_t num_nodes() const { return lease_ ? lease_->num_reached() : 0; }
  /// How many of them were computed: of nodes that are equal, where the schedule shares them, one in each group of
  /// workers.
  std::size_t num_computed() const { return lease_ ? lease_->num_computed() : 0; }
  /// How many groups of workers computed a share of the roots each.
  int num_groups() const { return lease_ ? lease_->num_groups() : 0; }

  /// The first state at root `i`, in the order in which the roots were given.
  std::span<const First> operator[](std::size_t i) const CORTEX_VIEW_OF_THIS {
    return view<First>(0, place_of_root(i));
  }

  /// A state at root `i`: `r.root(0, c)` by placeholder, `r.root<float>(0, "c")` by name.
  template <runtime::StateHandle S>
  std::span<const typename S::Element> root(std::size_t i, const S& state) const CORTEX_VIEW_OF_THIS {
    return view<typename S::Element>(number_of(i, state), place_of_root(i));
  }
  template <class T = First>
  std::span<const T> root(std::size_t i, std::string_view state) const CORTEX_VIEW_OF_THIS {
    return view<T>(number_of(i, state), place_of_root(i));
  }

  /// A state at any node of the call, named by its address: `r.node(&word, c)`; the first state if none is named.
  std::span<const First> node(const Node* node) const CORTEX_VIEW_OF_THIS {
    return view<First>(0, at_node(0, node, place_of(node)));
  }
  template <runtime::StateHandle S>
  std::span<const typename S::Element> node(const Node* node, const S& state) const CORTEX_VIEW_OF_THIS {
    const Place place = place_of(node);
    const std::size_t number = runtime::detail::find_state(executable(), state);
    return view<typename S::Element>(number, at_node(number, node, place));
  }
  template <class T = First>
  std::span<const T> node(const Node* node, std::string_view state) const CORTEX_VIEW_OF_THIS {
    const Place place = place_of(node);
    const std::size_t number = runtime::detail::find_state(executable(), state);
    return view<T>(number, at_node(number, node, place));
  }

  /// Writes a state, named by placeholder or by name, as a dense row-major tensor to a contiguous container or span,
  /// which needs room for all of it.
  template <class S, runtime::OutputRange Out>
  void copy_root(std::size_t i, const S& state, Out&& out) const {
    copy(number_of(i, state), place_of_root(i), runtime::writable(out));
  }
  template <class S, runtime::OutputRange Out>
  void copy_node(const Node* node, const S& state, Out&& out) const {
    const Place place = place_of(node);
    const std::size_t number = runtime::detail::find_state(executable(), state);
    copy(number, at_node(number, node, place), runtime::writable(out));
  }

  /// What the call needed of memory, and what is held for it and later ones; nothing for an output without a call.
  CallMemory memory() const { return lease_ ? lease_->memory() : CallMemory{}; }

  /// What the call computed with, for code that stands above results, such as the tuner; only for an output of a call.
  const runtime::Workspace& workspace() const { return *lease_; }

  /// How long the call took to number the nodes, and then to compute, in nanoseconds; 0 unless
  /// `CompileOptions::timings` was set.
  std::int64_t linearize_ns() const { return lease_ ? lease_->linearize_ns : 0; }
  std::int64_t execute_ns() const { return lease_ ? lease_->execute_ns : 0; }

 private:
  using Place = runtime::Workspace::Place;

  const runtime::Executable& executable() const { return *lease_->plan().executable; }

  Place place_of_root(std::size_t i) const {
    if (i >= size()) [[unlikely]]
      runtime::detail::no_root(i, size());
    return lease_->root(i);
  }
  template <class S>
  std::size_t number_of(std::size_t i, const S& state) const {
    if (i >= size()) [[unlikely]]
      runtime::detail::no_root(i, size());
    return runtime::detail::find_state(executable(), state);
  }
  Place place_of(const Node* node) const {
    const Place place = lease_ ? lease_->find(node, [](const Place&) { return true; }) : Place{};
    if (place.number < 0) [[unlikely]]
      runtime::detail::no_node();
    return place;
  }

  static bool is_root(const Place& at) {
    const structure::Arrays& arrays = at.group->arrays();
    return std::find(arrays.root, arrays.root + arrays.num_roots, at.number) != arrays.root + arrays.num_roots;
  }

  /// Where `state` has a value of a node that is at `place`: a readout has one at roots alone, and so has a state whose
  /// rows serve several nodes.
  Place at_node(std::size_t state, const Node* node, Place place) const {
    const runtime::StateSpec& spec = executable().states[state];
    if (!spec.at_roots && !lease_->plan().states[state].recycled) [[likely]]
      return place;
    place = lease_->find(node, is_root);
    if (place.number < 0) spec.at_roots ? runtime::detail::no_readout(spec) : runtime::detail::not_kept(spec);
    return place;
  }

  template <class T>
  std::span<const T> view(std::size_t state, const Place& node) const {
    const runtime::StateView& shape = lease_->plan().states[state];
    if (!lease_->computed) [[unlikely]]
      runtime::detail::not_computed(executable().states[state]);
    if (shape.dtype != dtype_of<T>) [[unlikely]]
      runtime::detail::wrong_element(executable().states[state], dtype_of<T>);
    if (!shape.runs.contiguous()) [[unlikely]]
      runtime::detail::in_pieces(executable().states[state]);
    return {reinterpret_cast<const T*>(node.group->row(shape, node.number)) + shape.runs.begin[0],
            std::size_t(shape.size)};
  }

  template <class T>
  void copy(std::size_t state, const Place& node, std::span<T> out) const {
    const runtime::StateView& shape = lease_->plan().states[state];
    if (!lease_->computed) runtime::detail::not_computed(executable().states[state]);
    if (shape.dtype != dtype_of<T>) runtime::detail::wrong_element(executable().states[state], dtype_of<T>);
    if (out.size() < std::size_t(shape.size))
      runtime::detail::small_span(executable().states[state], std::size_t(shape.size), out.size());
    runtime::copy_dense(shape, node.group->row(shape, node.number), out.data());
  }

  runtime::Lease lease_;
};

}  // namespace cortex
