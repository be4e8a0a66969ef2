// What a call on a GPU gives: states on the device, copied to the host when they are asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_counters.hpp"
#include "cortex/runtime/cuda_loaded.hpp"
#include "cortex/runtime/cuda_pointer.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/output.hpp"

namespace cortex::cuda {

/// A stream of the driver or of CUDA's runtime API, which are the same; null is the default stream that all threads
/// have in common, the legacy one, also in programs that are built with `--default-stream per-thread`. There each
/// thread's own is `cudaStreamPerThread`.
using Stream = void*;

/// What a call has done, and how long it took.
using Counters = runtime::CudaCounters;

/// What a call gives: the states of its nodes, on the device. It holds the memory of the call; rows are as dense on the
/// device as they are here. Move-only.
class Result {
 public:
  Result(runtime::CudaCall call, std::size_t roots) : call_(std::move(call)), roots_(roots) {}
  Result(Result&& other) noexcept : call_(std::move(other.call_)), roots_(std::exchange(other.roots_, 0)) {}
  Result& operator=(Result&& other) noexcept {
    std::swap(call_, other.call_), std::swap(roots_, other.roots_);
    return *this;
  }

  std::size_t num_roots() const { return roots_; }
  /// How many nodes the groups' roots have reached, and how many of these were computed: equal subtrees of a group are
  /// one where the schedule shares them.
  std::size_t num_nodes() const {
    std::size_t sum = 0;
    for (std::size_t g = 0; call_ && g < call_->num_groups(); ++g) sum += std::size_t(call_->nodes(g).num_reached());
    return sum;
  }
  std::size_t num_computed() const {
    std::size_t sum = 0;
    for (std::size_t g = 0; call_ && g < call_->num_groups(); ++g) sum += std::size_t(call_->arrays(g).num_nodes);
    return sum;
  }
  /// Until the results are there. Throws what went wrong on the device, and as all that follows on a call
  /// `Error{invalid_argument}` for one that was prepared and never launched.
  void wait() { launched()->wait(); }
  bool ready() const { return launched()->progress().ready(); }
  /// What `stream` is given from now on waits for the results; the host does not. Throws `Error{invalid_argument}` for
  /// a stream that is being captured: a graph does not wait for what is outside.
  void let_wait(Stream stream) const {
    if (launched().loaded().device()->is_capturing(stream))
      throw Error(
          Code::invalid_argument,
          "a stream that is being captured cannot wait for a call outside of its graph: wait before the graph is "
          "launched, on the stream that it is launched on");
    call_->progress().let_wait(stream);
  }

  /// Makes the call, once more: sends it to `stream` without waiting, after what this object has sent to other
  /// streams. In a stream that is captured it becomes a part of the graph, which needs this object as long as it is
  /// launched.
  void launch(Stream stream) {
    held();
    call_.launch(stream);
  }
  /// Lets `wait` wait for all that `stream` has been given: for a graph that holds the call, after its launch. Throws
  /// `Error{invalid_argument}` for a stream that is being captured.
  void record(Stream stream) {
    if (launched().loaded().device()->is_capturing(stream))
      throw Error(Code::invalid_argument,
                  "a stream that is being captured does nothing yet that could be waited for: record after the launch "
                  "of its graph");
    call_->progress().record(stream);
  }

  /// Writes a state of all roots to memory of the device's from address `to` on, dense and row-major [root, dims...],
  /// in elements of the state's type: on `stream`, after the call and without waiting; it can be captured as `launch`.
  /// `bytes` is how much room there is. Throws `Error{invalid_argument}` if that is too little, or the memory not the
  /// device's.
  void roots_into(std::uint64_t to, std::size_t bytes, Stream stream, std::string_view state = {}) {
    write_roots(to, bytes, stream, view_of(state));
  }
  void roots_into(std::uint64_t to, std::size_t bytes, Stream stream, const runtime::StateHandle auto& state) {
    write_roots(to, bytes, stream, view_of(state));
  }
  /// The same to a pointer, behind which there is room for `count` elements of its type.
  template <class T>
  void roots_into(T* to, std::size_t count, Stream stream, std::string_view state = {}) {
    write_roots(reinterpret_cast<std::uint64_t>(to), bytes_of<T>(count), stream, view_as<T>(state));
  }
  template <runtime::StateHandle S>
  void roots_into(typename S::Element* to, std::size_t count, Stream stream, const S& state) {
    write_roots(reinterpret_cast<std::uint64_t>(to), bytes_of<typename S::Element>(count), stream, view_of(state));
  }

  /// The memory of the call, for what looks at all of it, as the tuner does.
  runtime::CudaWorkspace& workspace() { return *held().operator->(); }

  /// What the call has done so far, and how long it took. Waits for it.
  Counters counters() {
    wait();
    return call_->counters();
  }

  /// Where on the device the first element of a root's state is once the call is done. Elements lie as they do for
  /// CPUs: the last dimension padded to whole cache lines.
  std::uint64_t device_pointer(std::size_t root, std::string_view state = {}) const {
    return address_of(root, view_of(state));
  }
  std::uint64_t device_pointer(std::size_t root, const runtime::StateHandle auto& state) const {
    return address_of(root, view_of(state));
  }

  /// The state of a root, copied to the host, dense and row-major. Waits for it. As all that takes a state, by name or
  /// by placeholder, the first one if none is said: `r.root(0)`, `r.root<float>(0, "c")`, `r.root(0, c)`.
  template <class T = float>
  Vector<T> root(std::size_t root, std::string_view state = {}) {
    return root_of<T>(root, view_as<T>(state));
  }
  template <runtime::StateHandle S>
  Vector<typename S::Element> root(std::size_t root, const S& state) {
    return root_of<typename S::Element>(root, view_of(state));
  }
  /// The same of all roots, one after the other, and with one wait.
  template <class T = float>
  Vector<T> roots(std::string_view state = {}) {
    return roots_of<T>(view_as<T>(state));
  }
  template <runtime::StateHandle S>
  Vector<typename S::Element> roots(const S& state) {
    return roots_of<typename S::Element>(view_of(state));
  }
  /// The same of any node of the call. Throws `Error{invalid_argument}` for one that was not in it, and where a readout
  /// is asked for at a node that is no root. Of a node that several groups reach, the first one's: they are equal.
  template <class T = float, class Node>
  Vector<T> node(const Node* node, std::string_view state = {}) {
    return node_of<T>(node, view_as<T>(state));
  }
  template <class Node, runtime::StateHandle S>
  Vector<typename S::Element> node(const Node* node, const S& state) {
    return node_of<typename S::Element>(node, view_of(state));
  }

 private:
  const runtime::CudaCall& held() const {
    if (!call_)
      runtime::detail::invalid("a result is asked for what another holds now: it was moved from, and has no call");
    return call_;
  }
  const runtime::CudaCall& launched() const {
    if (!held()->is_sent())
      runtime::detail::invalid(
          "a call was prepared and never launched, so that there are no results of it yet: `launch` it on a stream "
          "first");
    return call_;
  }
  const runtime::Plan& plan() const { return *held().loaded().source().plan; }
  const runtime::Executable& executable() const { return *plan().executable; }
  /// The room of `count` elements; of ever so many, as much as there can be.
  template <class T>
  static constexpr std::size_t bytes_of(std::size_t count) {
    return count > std::size_t(-1) / sizeof(T) ? std::size_t(-1) : count * sizeof(T);
  }
  void write_roots(std::uint64_t to, std::size_t bytes, Stream stream, const runtime::StateView& view) {
    const std::string& name = spec_of(view).name;
    const std::size_t needed = roots_ * std::size_t(view.size) * size_of(view.dtype);
    if (bytes < needed)
      throw Error(Code::invalid_argument, "the output needs room for " + std::to_string(needed) + " bytes of state '" +
                                              name + "', but has " + std::to_string(bytes));
    if (!needed) return;
    const std::string fault = runtime::fault_of_memory(*launched().loaded().device(), to, needed, size_of(view.dtype));
    if (!fault.empty()) throw Error(Code::invalid_argument, "the output of state '" + name + "' " + fault);
    call_.gather(view, to, stream);
  }
  template <class T>
  Vector<T> root_of(std::size_t root, const runtime::StateView& view) {
    const auto [group, number] = find(root);
    wait();
    if (const std::byte* const landed = landed_of(view)) {
      Vector<T> dense(std::size_t(view.size));
      runtime::copy_dense(view, landed + root * view.row_bytes, dense.data());
      return dense;
    }
    return row<T>(group, call_->arrays(group).root[number], view);
  }
  template <class T>
  Vector<T> roots_of(const runtime::StateView& view) {
    wait();
    if (const std::byte* const landed = landed_of(view)) {
      Vector<T> all(roots_ * std::size_t(view.size));
      for (std::size_t r = 0; r < roots_; ++r)
        runtime::copy_dense(view, landed + r * view.row_bytes, all.data() + r * std::size_t(view.size));
      return all;
    }
    Vector<jit::CudaPointer> rows(roots_);
    for (std::size_t r = 0; r < roots_; ++r) rows[r] = address_of(r, view);
    const runtime::CudaTransfers transfers(rows, view.row_bytes);  // roots of different groups lie apart
    if (!transfers.are_many()) return dense<T>(view, transfers);
    Vector<T> all(roots_ * std::size_t(view.size));
    std::memcpy(all.data(), call_.gather_back(view), all.size() * sizeof(T));
    return all;
  }
  /// A readout has a value at roots alone, so in a group that has the node among them.
  template <class T, class Node>
  Vector<T> node_of(const Node* node, const runtime::StateView& view) {
    const bool at_roots = spec_of(view).at_roots;
    bool found = false;
    for (std::size_t g = 0; g < call_->num_groups(); ++g) {
      const std::int32_t number = call_->nodes(g).find(node);
      if (number < 0) continue;
      const structure::Arrays& arrays = call_->arrays(g);
      const std::int32_t* const end = arrays.root + arrays.num_roots;
      if (!at_roots || std::find(arrays.root, end, number) != end) return row<T>(g, number, view);
      found = true;
    }
    if (found) runtime::detail::no_readout(spec_of(view));
    runtime::detail::no_node();
  }
  template <class T>
  const runtime::StateView& view_as(std::string_view state) const {
    const runtime::StateView& view = view_of(state);
    if (view.dtype != dtype_of<T>) runtime::detail::wrong_element(spec_of(view), dtype_of<T>);
    return view;
  }
  template <class T>
  Vector<T> row(std::size_t group, std::int32_t node, const runtime::StateView& view) {
    wait();
    const jit::CudaPointer at = call_->state(group, view) + std::uint64_t(node) * view.row_bytes;
    return dense<T>(view, {{&at, 1}, view.row_bytes});
  }
  /// Rows of the device, copied to the host one after the other without what pads them.
  template <class T>
  Vector<T> dense(const runtime::StateView& view, const runtime::CudaTransfers& transfers) {
    Vector<T> all(transfers.at.size() * std::size_t(view.size));
    call_->copy_back(transfers, [&](std::size_t i, const std::byte* row) {
      runtime::copy_dense(view, row, all.data() + i * std::size_t(view.size));
    });
    return all;
  }
  /// The rows of a state at the roots, if the kernel has written them to the host.
  const std::byte* landed_of(const runtime::StateView& view) const {
    return &view == plan().states.data() ? call_->landed() : nullptr;
  }
  const runtime::StateView& view_of(std::string_view state) const {
    return plan().states[state.empty() ? 0 : runtime::detail::find_state(executable(), state)];
  }
  const runtime::StateView& view_of(const runtime::StateHandle auto& state) const {
    return plan().states[runtime::detail::find_state(executable(), state)];
  }
  const runtime::StateSpec& spec_of(const runtime::StateView& view) const {
    return executable().states[std::size_t(&view - plan().states.data())];
  }
  std::uint64_t address_of(std::size_t root, const runtime::StateView& view) const {
    const auto [group, number] = find(root);
    const std::int32_t node = call_->arrays(group).root[number];
    return call_->state(group, view) + std::uint64_t(node) * view.row_bytes;
  }
  /// The group that has a root, and its number there.
  std::pair<std::size_t, std::size_t> find(std::size_t root) const {
    if (root >= roots_) runtime::detail::no_root(root, roots_);
    const runtime::RootPlace place = runtime::place_of_root(root, call_->num_groups());
    return {place.group, place.number};
  }

  runtime::CudaCall call_;
  std::size_t roots_;
};

}  // namespace cortex::cuda
