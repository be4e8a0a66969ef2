// Interprets an ILIR program of any level in double: the oracle that every pass is held against.
//
// Tensors are kept in row-major order of their logical dimensions, whatever the level: a program of device level is
// given copies in the layouts that it asks for, and its results are put back. An index out of range, a variable that is
// not bound, and reading what nothing was stored to throw `Error{internal}` that names the buffer and the index.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cortex/base/memory.hpp"
#include "cortex/ir/machine.hpp"
#include "cortex/ir/stored.hpp"

namespace cortex::ir {

/// One row of field values per node: element k of node n is data[n * stride + k], in the type of the field.
struct FieldRows {
  const void* data = nullptr;
  std::int32_t stride = 1;
};

/// What the interpreter knows of the nodes: counts, and the linearizer's arrays by the number of the accessor. Made
/// from structure::Arrays, which stand on a floor above; where a graph numbers its accessors otherwise than the
/// linearizer, the three functions are the place to say so.
struct StructureEnv {
  std::int32_t num_nodes = 0, num_internal = 0, num_roots = 0, num_batches = 0, max_batch = 0;
  const std::int32_t* batch_begin = nullptr;
  const std::int32_t* batch_length = nullptr;
  std::int32_t num_parts = 1;
  const std::int32_t* part_begin = nullptr;
  const std::int32_t* part_length = nullptr;
  const std::int32_t* part_offset = nullptr;
  const std::int32_t* part_list = nullptr;
  const std::int32_t* root = nullptr;
  vm::SubtreeArrays subtrees;
  std::int32_t child_step = 0;
  std::function<const std::int32_t*(int)> child;
  std::function<vm::EdgeArrays(int)> edges;
  std::function<FieldRows(int)> field;

  StructureEnv() = default;

  /// `arrays`: a structure::Arrays or anything with its members; it has to outlive this.
  template <class Arrays>
  requires requires(const Arrays& a) { a.children->max_batch_edges; }
  StructureEnv(const Arrays& arrays)
      : num_nodes(arrays.num_nodes),
        num_internal(arrays.num_internal),
        num_roots(arrays.num_roots),
        num_batches(arrays.num_batches),
        max_batch(arrays.max_batch),
        batch_begin(arrays.batch_begin),
        batch_length(arrays.batch_length),
        num_parts(arrays.num_parts),
        part_begin(arrays.part_begin),
        part_length(arrays.part_length),
        part_offset(arrays.part_offset),
        part_list(arrays.part_list),
        root(arrays.root),
        subtrees{arrays.subtrees.num_groups, arrays.subtrees.group_begin, arrays.subtrees.group_node,
                 arrays.subtrees.inner_begin, arrays.subtrees.inner_child},
        child_step(arrays.child_step) {
    child = [&arrays](int a) { return arrays.child[a]; };
    edges = [&arrays](int a) {
      const auto& csr = arrays.children[a];
      return vm::EdgeArrays{csr.begin, csr.child, csr.num_edges, csr.max_batch_edges};
    };
    field = [&arrays](int a) { return FieldRows{arrays.field[a].data, arrays.field[a].stride}; };
  }
};

/// The name under which a buffer's contents are stored. A packed weight is the weight that it is a copy of.
inline const std::string& tensor_name(const Buffer& buffer) {
  return buffer->packed_from ? buffer->packed_from->name : buffer->name;
}

/// Tensors by name, row-major. Weights go in under the names of their inputs; after a run there are also all states and
/// temporaries, those of one name told apart as in print: `t`, `t.2`. Tensors over the nodes have a row of zeros after
/// the last node's. What nothing was stored to holds a NaN.
class Storage {
 public:
  std::vector<double>& operator[](const std::string& name) { return tensors_[name]; }
  std::vector<double>& operator[](const Buffer& buffer) { return tensors_[tensor_name(buffer)]; }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  const std::vector<double>& at(const Buffer& buffer) const { return at(tensor_name(buffer)); }
  const std::vector<double>& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      throw Error(Code::internal, "interpreter: nothing is stored under the name '" + name + "'");
    return found->second;
  }

 private:
  std::map<std::string, std::vector<double>> tensors_;
};

/// Several workers take turns from barrier to barrier. In which order must not matter: a barrier too few may show in
/// one order and not in another. `ir/races.hpp` finds it in any.
struct InterpretOptions {
  int workers = 1;
  bool last_worker_first = false;
  std::uint64_t shuffle = 0;  // not 0: the seed of another order at each barrier
};

namespace detail {

class LogicalRun {
 public:
  LogicalRun(const Program& program, const StructureEnv& env, Storage& storage, const InterpretOptions& options)
      : program_(program), env_(env), storage_(storage), options_(options), code_(vm::Compiler(program).take()) {
    ones_.assign(program_.tabulations.size(), 1);
    rows_.resize(std::size_t(env_.num_nodes) + 1);
    std::iota(rows_.begin(), rows_.end(), 0);
    counts_ = counts_of_whole(env.num_nodes, env.num_internal);
    counts_[std::size_t(Count::batches)] = env.num_batches;
    counts_[std::size_t(Count::roots)] = env.num_roots;
    counts_[std::size_t(Count::groups)] = env.subtrees.num_groups;
    counts_[std::size_t(Count::child_step)] = env.child_step;
    for (const Buffer& buffer : program.buffers) tensors_.push_back(tensor_of(buffer));
  }

  void run() {
    vm::Unobserved nobody;
    run(nobody);
  }

  /// Also tells `observer` of each access, and calls its `barrier()` whenever all workers stand at one, until that says
  /// that it has seen enough: then there are no results.
  template <class Observer>
  void run(Observer& observer) {
    std::vector<vm::Machine> machines;
    machines.reserve(std::size_t(options_.workers));
    for (int w = 0; w < options_.workers; ++w) machines.emplace_back(code_, bindings(w), calls(), w, options_.workers);
    if (Observer::watches) set_all();
    std::vector<char> waits(machines.size());
    for (bool more = true; more;) {
      for (const int worker : order()) waits[std::size_t(worker)] = machines[std::size_t(worker)].run(observer);
      if (std::count(waits.begin(), waits.end(), waits[0]) != options_.workers) deadlock(waits);
      more = waits[0];
      if constexpr (Observer::watches)
        if (!observer.barrier()) return;
    }
    for (Tensor& tensor : tensors_)
      if (tensor.writable()) storage_[tensor.name] = std::move(logical(tensor));
  }

  const vm::Bytecode& code() const { return code_; }

  /// The extents of a buffer's indices in the program; nothing for arrays of the environment.
  std::vector<std::int64_t> extents(std::size_t buffer) const {
    const Tensor& tensor = tensors_[buffer];
    if (tensor.data.empty()) return {};
    return flat() ? std::vector{std::int64_t(tensor.data[0].size())} : tensor.extents;
  }

 private:
  /// A buffer's memory. `data` has one vector per worker for buffers of worker scope, else one.
  struct Tensor {
    Buffer buffer;
    std::string name;
    std::vector<std::int64_t> extents;  // logical
    std::vector<std::vector<double>> data;
    vm::Binding outside;  // of index and field buffers: arrays of the environment
    bool writable() const { return changes_in_calls(*buffer); }
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::internal, "interpreter: program '" + program_.name + "': " + what);
  }
  bool flat() const { return program_.level == Level::device; }

  // ---- workers ----

  /// The workers in the order of their next turns.
  std::vector<int> order() {
    std::vector<int> result;
    for (int w = 0; w < options_.workers; ++w)
      result.push_back(options_.last_worker_first ? options_.workers - 1 - w : w);
    if (options_.shuffle == 0) return result;
    for (std::size_t left = result.size(); left > 1; --left) {
      random_ = (random_ + options_.shuffle) * 6364136223846793005u + 1442695040888963407u;
      std::swap(result[left - 1], result[std::size_t(random_ >> 33) % left]);
    }
    return result;
  }

  /// Lets everything be read: where accesses are watched, what another worker has not stored yet is a race and no
  /// defect of one worker's own.
  void set_all() {
    for (Tensor& tensor : tensors_)
      for (std::vector<double>& data : tensor.data)
        if (tensor.writable()) std::replace_if(data.begin(), data.end(), vm::is_unset, 0.0);
  }

  [[noreturn]] void deadlock(const std::vector<char>& waits) const {
    std::string waiting, ended;
    for (std::size_t w = 0; w < waits.size(); ++w) (waits[w] ? waiting : ended) += " " + std::to_string(w);
    fail("deadlock: some workers wait at a barrier that others do not reach: waiting" + waiting + ", at the end" +
         ended);
  }

  // ---- tensors ----

  Tensor tensor_of(const Buffer& buffer) {
    Tensor result{buffer, unique_name(buffer), {}, {}, {}};
    switch (buffer->role) {
      case Role::index: result.outside = index_binding(buffer); return result;
      case Role::field: result.outside = field_binding(buffer); return result;
      case Role::weight: weight(result); break;
      case Role::state:
      case Role::temp: result.data.emplace_back(fresh(result)); break;
    }
    if (flat()) result.data[0] = physical(result, result.data[0]);
    if (buffer->scope == Scope::worker)
      result.data.resize(std::size_t(options_.workers), std::vector<double>(result.data[0]));
    return result;
  }

  std::string unique_name(const Buffer& buffer) {
    if (buffer->role == Role::weight) return tensor_name(buffer);  // copies of one weight share its contents
    const std::string& name = buffer->name;
    for (int copy = 1;; ++copy)
      if (std::string candidate = copy == 1 ? name : name + "." + std::to_string(copy); names_.insert(candidate).second)
        return candidate;
  }

  std::int64_t extent_of(const Buffer& buffer, const Dim& dim) const {
    switch (dim.kind()) {
      case DimKind::dense:
      case DimKind::slice: return dim.extent();
      case DimKind::node: return env_.num_nodes + std::int64_t(1);
      case DimKind::batch: return env_.max_batch;
      case DimKind::edge: return edges(buffer->slot).num_edges;
      case DimKind::batch_edge: return edges(buffer->slot).max_batch_edges;
      default: fail("dimension '" + dim.name() + "' of '" + buffer->name + "' has no extent");
    }
  }

  /// The extents of the tensor with `size` elements that is bound to the weight `buffer`.
  static std::vector<std::int64_t> extents_of(const Buffer& buffer, std::size_t size) {
    std::vector<std::int64_t> extents;
    std::int64_t row = 1;
    for (std::size_t d = buffer->dims.size(); d-- > 0; row *= extents.front())
      extents.insert(extents.begin(), d == 0 && buffer->dims[d].kind() == DimKind::open ? std::int64_t(size) / row
                                                                                        : buffer->dims[d].extent());
    return extents;
  }

  /// What is bound to the weight that `buffer` is, or is a copy of, as it is stored there.
  std::vector<double> stored(const Buffer& buffer, const std::vector<double>& bound) const {
    if (!is_narrow(buffer->dtype) && !buffer->is_scales) return bound;
    Buffer weight = buffer;
    while (weight->packed_from) weight = weight->packed_from;
    const std::vector<std::int64_t> extents = extents_of(weight, bound.size());
    std::size_t size = 1;
    for (const std::int64_t extent : extents) size *= std::size_t(extent);
    if (size != bound.size()) return bound;  // which is refused
    const std::vector<float> values(bound.begin(), bound.end());
    const std::vector<float> elements = stored_elements(*buffer, values.data(), extents);
    return std::vector<double>(elements.begin(), elements.end());
  }

  void weight(Tensor& tensor) const {
    const Buffer& buffer = tensor.buffer;
    const std::vector<double> bound = stored(buffer, storage_.at(tensor.name));
    std::int64_t row = 1;
    for (std::size_t d = buffer->dims.size(); d-- > 0;) {
      const bool open = buffer->dims[d].kind() == DimKind::open && d == 0;
      tensor.extents.insert(tensor.extents.begin(),
                            open ? std::int64_t(bound.size()) / row : extent_of(buffer, buffer->dims[d]));
      row *= tensor.extents.front();
    }
    if (row != std::int64_t(bound.size()))
      fail("weight '" + tensor.name + "' has " + std::to_string(bound.size()) +
           " elements, which is not the size of its dimensions");
    tensor.data.push_back(bound);
  }

  std::vector<double> fresh(Tensor& tensor) const {
    std::int64_t size = 1;
    for (const Dim& dim : tensor.buffer->dims)
      tensor.extents.push_back(extent_of(tensor.buffer, dim)), size *= tensor.extents.back();
    std::vector<double> result(std::size_t(size), vm::unset);
    if (kind_of_rows(*tensor.buffer) == DimKind::node)
      std::fill(result.end() - size / tensor.extents[0], result.end(), 0.0);
    return result;
  }

  // ---- layouts ----

  /// Calls `f(element, offset)` for each element of the tensor.
  template <class F>
  static void for_each_element(const Tensor& tensor, F f) {
    std::vector<std::int64_t> index(tensor.extents.size());
    std::int64_t size = 1;
    for (const std::int64_t extent : tensor.extents) size *= extent;
    for (std::int64_t element = 0; element < size; ++element) {
      std::int64_t offset = 0;
      for (const Axis& axis : tensor.buffer->layout.axes) {
        const std::int64_t part = index[std::size_t(axis.source)] / axis.divisor;
        offset += (axis.modulus ? part % axis.modulus : part) * axis.stride;
      }
      f(std::size_t(element), std::size_t(offset));
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == tensor.extents[d];) index[d] = 0;
    }
  }

  std::vector<double> physical(const Tensor& tensor, const std::vector<double>& logical) const {
    const Layout& layout = tensor.buffer->layout;
    const std::int64_t size = layout.fixed_size > 0 || tensor.extents.empty()
                                  ? std::max<std::int64_t>(layout.fixed_size, 1)
                                  : tensor.extents[0] * layout.row_size;
    // The padding of weights is zero, as bind makes it; that of other tensors is nobody's.
    std::vector<double> result(std::size_t(size), tensor.writable() ? vm::unset : 0.0);
    for_each_element(tensor, [&](std::size_t element, std::size_t offset) {
      if (offset >= result.size()) fail("the layout of '" + tensor.name + "' reaches past its own size");
      result[offset] = logical[element];
    });
    return result;
  }

  std::vector<double>& logical(Tensor& tensor) const {
    if (!flat()) return tensor.data[0];
    std::vector<double> result;
    for_each_element(tensor, [&](std::size_t, std::size_t offset) { result.push_back(tensor.data[0][offset]); });
    return tensor.data[0] = std::move(result);
  }

  // ---- bindings ----

  Vector<vm::Binding> bindings(int worker) {
    Vector<vm::Binding> result;
    for (Tensor& tensor : tensors_) result.push_back(tensor.data.empty() ? tensor.outside : binding_of(tensor, worker));
    return result;
  }

  vm::Binding binding_of(Tensor& tensor, int worker) const {
    vm::Binding result;
    auto& data = tensor.data[tensor.data.size() > 1 ? std::size_t(worker) : 0];
    result.data = data.data();
    result.tracked = result.writable = tensor.writable();
    if (kind_of_rows(*tensor.buffer) == DimKind::node) result.stored_rows = env_.num_nodes;
    if (flat()) {
      result.extent.push_back(std::int64_t(data.size()));
      result.stride.push_back(1);
      if (result.stored_rows >= 0) result.stored_rows *= tensor.buffer->layout.row_size;
      return result;
    }
    result.extent = tensor.extents;
    result.stride.assign(tensor.extents.size(), 1);
    for (std::size_t d = tensor.extents.size(); d-- > 1;) result.stride[d - 1] = result.stride[d] * tensor.extents[d];
    return result;
  }

  vm::EdgeArrays edges(int container) const {
    if (!env_.edges) fail("the structure has no containers of children");
    return env_.edges(container);
  }

  static vm::Binding ints(const std::int32_t* data, std::int64_t extent) {
    vm::Binding result{DType::i32, const_cast<std::int32_t*>(data), {extent}, {1}};
    result.writable = false;
    result.past_end = slack_bytes / sizeof(std::int32_t);
    return result;
  }

  vm::Binding index_binding(const Buffer& buffer) const {
    const int slot = buffer->slot;
    if (slot == slot_of::counts) return ints(counts_.data(), std::int64_t(counts_.size()));
    if (slot == slot_of::computes) return ints(ones_.data(), std::int64_t(ones_.size()));
    if (slot == slot_of::batch_begin) return ints(env_.batch_begin, env_.num_batches);
    if (slot == slot_of::batch_length) return ints(env_.batch_length, env_.num_batches);
    if (slot == slot_of::part_begin) return ints(env_.part_begin, std::int64_t(env_.num_batches) * env_.num_parts);
    if (slot == slot_of::part_length) return ints(env_.part_length, std::int64_t(env_.num_batches) * env_.num_parts);
    if (slot == slot_of::part_offset) return ints(env_.part_offset, env_.num_parts + std::int64_t(1));
    if (slot == slot_of::part_list)
      return ints(env_.part_list, env_.part_offset ? env_.part_offset[env_.num_parts] : 0);
    if (slot == slot_of::state_row) return ints(rows_.data(), std::int64_t(rows_.size()));
    if (slot == slot_of::root) return ints(env_.root, env_.num_roots);
    const vm::SubtreeArrays& sub = env_.subtrees;
    if (slot == slot_of::group_begin) return ints(sub.group_begin, sub.num_groups + std::int64_t(1));
    if (slot == slot_of::group_node) return ints(sub.group_node, sub.group_begin ? sub.group_begin[sub.num_groups] : 0);
    if (slot == slot_of::inner_begin) return ints(sub.inner_begin, env_.num_internal + std::int64_t(1));
    if (slot == slot_of::inner_child)
      return ints(sub.inner_child, sub.inner_begin ? sub.inner_begin[env_.num_internal] : 0);
    if (slot >= slot_of::field) return field_binding(buffer);
    if (slot >= slot_of::edge_child)
      return ints(edges(slot - slot_of::edge_child).child, edges(slot - slot_of::edge_child).num_edges);
    if (slot >= slot_of::edge_begin)
      return ints(edges(slot - slot_of::edge_begin).begin, env_.num_nodes + std::int64_t(1));
    if (slot >= slot_of::child && env_.child) return ints(env_.child(slot - slot_of::child), env_.num_nodes);
    fail("'" + buffer->name + "' is no array of the linearizer");
  }

  vm::Binding field_binding(const Buffer& buffer) const {
    if (!env_.field) fail("the structure has no fields");
    const FieldRows rows = env_.field(buffer->role == Role::index ? buffer->slot - slot_of::field : buffer->slot);
    vm::Binding result{buffer->dtype, const_cast<void*>(rows.data), {env_.num_nodes}, {rows.stride}};
    result.writable = false;
    if (flat()) {
      const std::int64_t row = std::max<std::int64_t>(buffer->layout.row_size, 1);
      if (row != rows.stride)
        fail("'" + buffer->name + "' takes rows of " + std::to_string(row) + " elements, but the field has rows of " +
             std::to_string(rows.stride));
      result.extent[0] *= rows.stride;
      result.stride[0] = 1;
      return result;
    }
    std::int64_t stride = 1;
    for (std::size_t d = buffer->dims.size(); d-- > 1; stride *= buffer->dims[d].extent()) {
      // How many components an integer field has is not written in its buffer.
      result.extent.insert(result.extent.begin() + 1,
                           buffer->role == Role::index ? rows.stride : buffer->dims[d].extent());
      result.stride.insert(result.stride.begin() + 1, stride);
    }
    return result;
  }

  Vector<vm::CallContext> calls() const {
    Vector<vm::CallContext> result;
    for (const vm::Call& call : code_.calls) {
      vm::CallContext x{env_.num_nodes,
                        env_.num_internal,
                        env_.num_batches,
                        env_.batch_begin,
                        env_.batch_length,
                        env_.part_begin,
                        env_.part_length,
                        env_.part_offset,
                        env_.part_list,
                        env_.root,
                        env_.num_parts,
                        env_.num_roots,
                        &env_.subtrees,
                        nullptr,
                        {},
                        nullptr,
                        1,
                        true};
      using enum UfKind;
      switch (call.uf.kind) {
        case child: x.child = env_.child ? env_.child(call.uf.accessor) : nullptr; break;
        case kth_child:
        case num_children:
        case edge:
        case edge_child:
        case span_edges: x.edges = edges(call.uf.accessor); break;
        case field: {
          const FieldRows rows = env_.field ? env_.field(call.uf.accessor) : FieldRows{};
          x.field = static_cast<const std::int32_t*>(rows.data);
          x.field_stride = rows.stride;
          break;
        }
        default: break;
      }
      result.push_back(x);
    }
    return result;
  }

  const Program& program_;
  const StructureEnv& env_;
  Storage& storage_;
  const InterpretOptions options_;
  const vm::Bytecode code_;
  Counts counts_{};
  std::vector<std::int32_t> ones_;  // per tabulation: there are no tables here
  std::vector<std::int32_t> rows_;  // of states: here each node keeps its own
  std::vector<Tensor> tensors_;
  std::set<std::string> names_;
  std::uint64_t random_ = 0;
};

}  // namespace detail

/// Runs `program` on the nodes of `env`. Weights are read from `storage`; states and temporaries are put there.
inline void interpret(const Program& program, const StructureEnv& env, Storage& storage,
                      const InterpretOptions& options = {}) {
  if (options.workers < 1) throw Error(Code::internal, "interpreter: a call has at least one worker");
  detail::LogicalRun(program, env, storage, options).run();
}

}  // namespace cortex::ir
