// Whether a candidate computes what the default computes: results compared bit by bit, and, where a schedule rounds in
// another order, held against the equations with a running error bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cortex/base/clock.hpp"
#include "cortex/base/half.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/stored.hpp"
#include "cortex/ra/interpret.hpp"
#include "cortex/runtime/output.hpp"
#include "cortex/schedule/choose_groups.hpp"
#include "cortex/tune/call_results.hpp"

namespace cortex::tuning {

/// How much is to be held against the equations: whole calls until so many nodes are, or so many seconds have passed.
struct Effort {
  std::int64_t nodes;
  double seconds;
  std::int64_t begin_ns = now_ns();

  bool is_spent() const { return double(now_ns() - begin_ns) >= seconds * 1e9; }
};

/// Whether both schedules have the same versions of branches, and of nodes without children.
inline bool same_versions(const Schedule& a, const Schedule& b) {
  return a.specializes_where_it_pays == b.specializes_where_it_pays && a.specialize_every == b.specialize_every &&
         a.specialized == b.specialized && a.leaves_apart == b.leaves_apart;
}

/// Whether both schedules leave the same products to a matrix unit, which adds in another order than vectors do:
/// batches and versions of branches decide which products are of rows of nodes.
inline bool same_on_matrix_unit(const Schedule& a, const Schedule& b, const Target& target) {
  const bool wanted = schedule::wants_matrix_unit(a);
  if (!target.matrix_unit || (!wanted && !schedule::wants_matrix_unit(b))) return true;
  return wanted == schedule::wants_matrix_unit(b) && a.batched == b.batched && same_versions(a, b);
}

/// Whether the schedules may give different results where numbers are not finite: versions for nodes without children,
/// and unrolling, leave out products with zeros, which are NaN with an infinite weight, and a matrix unit makes NaN of
/// infinity.
inline bool may_differ_unless_finite(const Schedule& a, const Schedule& b, const Target& target) {
  return !same_versions(a, b) || a.unrolled != b.unrolled || !same_on_matrix_unit(a, b, target);
}

/// Whether both schedules round alike, so that their results have to be the same: as executables have them, which for a
/// GPU say what was left to the compiler. Workers, groups, batches, equal subtrees, rows and vectors of tiles change
/// nothing; where sums are cut or joined, as also in versions of branches, what is fused, how functions are computed,
/// what weights are stored as and what is scheduled by hand may. The interpreter of loops computes in double, and
/// rounds whatever a schedule keeps in memory.
inline bool round_alike(Schedule a, Schedule b, const Target& target) {
  // A recursion is cut into as many sums as there are workers, where the schedule says how many.
  if (!a.refactored.empty() &&
      (a.fewer_workers != b.fewer_workers || (!a.fewer_workers && a.max_workers != b.max_workers)))
    return false;
  const bool same_numbers = a.refactored == b.refactored && a.unrolled == b.unrolled && a.exact == b.exact &&
                            a.weight_type == b.weight_type && a.stored == b.stored && a.by_hand == b.by_hand &&
                            a.fuses == b.fuses && same_versions(a, b);
  if (target.backend == Backend::llvm)
    return same_numbers && a.tiling.gates == b.tiling.gates && same_on_matrix_unit(a, b, target);
  if (target.backend == Backend::cuda)
    return same_numbers && a.gpu.parts == b.gpu.parts && a.gpu.tensor_cores == b.gpu.tensor_cores;
  a.max_workers = b.max_workers, a.fewer_workers = b.fewer_workers, a.num_groups = b.num_groups;
  a.level_fill = b.level_fill, a.piece_nodes = b.piece_nodes, a.sharing = b.sharing;
  return a == b;
}

/// What the nodes of a call in one group are for its time.
inline schedule::CallShape shape_of(const runtime::Workspace& call) {
  const structure::Arrays& arrays = call.arrays();
  schedule::CallShape shape;
  shape.roots = arrays.num_roots;
  Vector<std::size_t> level(std::size_t(arrays.num_nodes));
  for (std::int32_t b = 0; b < arrays.num_batches; ++b) {
    shape.levels.push_back({double(arrays.batch_length[b]), 0});
    std::fill_n(level.begin() + arrays.batch_begin[b], arrays.batch_length[b], std::size_t(b));
  }
  const auto edges = [&](std::int32_t node, std::int32_t count) {
    shape.levels[level[std::size_t(node)]].edges += count;
  };
  const runtime::AccessorOrder& order = call.plan().order;
  for (const int position : order.child)
    for (std::int32_t n = 0; position >= 0 && n < arrays.num_internal; ++n)
      edges(n, arrays.child[position][n] < arrays.num_nodes);
  const ra::Graph& graph = call.plan().executable->graph;
  for (std::size_t c = 0; c < order.children.size(); ++c)
    for (std::int32_t n = 0;
         order.children[c] >= 0 && graph.containers[c].relation == ra::Relation::children && n < arrays.num_internal;
         ++n) {
      const structure::Csr& csr = arrays.children[order.children[c]];
      edges(n, csr.begin[n + 1] - csr.begin[n]);
    }
  return shape;
}

namespace detail {

/// The nodes that root `r` of a group reaches, in an order that only they decide, whatever numbers a schedule gives
/// them: breadth first through the children. Of a tree that has equal subtrees all are there, also where they have one
/// number; of a DAG each number once. `seen`, [node], says for each the last root that has reached it, plus one.
inline Vector<std::int32_t> nodes_in_order(const runtime::Plan& plan, const structure::Arrays& arrays, std::int32_t r,
                                           Vector<std::int32_t>& seen) {
  const runtime::AccessorOrder& order = plan.order;
  const ra::Graph& graph = plan.executable->graph;
  const bool once = graph.structure == ra::StructureKind::dag;
  Vector<std::int32_t> result;
  const auto visit = [&](std::int32_t node) {
    if (node >= arrays.num_nodes || (once && seen[std::size_t(node)] == r + 1)) return;
    seen[std::size_t(node)] = r + 1;
    result.push_back(node);
  };
  visit(arrays.root[r]);
  for (std::size_t at = 0; at < result.size(); ++at) {
    const std::int32_t node = result[at];
    for (const int position : order.child)
      if (position >= 0) visit(arrays.child[position][node]);
    for (std::size_t c = 0; c < order.children.size(); ++c) {
      if (order.children[c] < 0 || graph.containers[c].relation != ra::Relation::children) continue;
      const structure::Csr& csr = arrays.children[order.children[c]];
      for (std::int32_t e = csr.begin[node]; e < csr.begin[node + 1]; ++e) visit(csr.child[e]);
    }
  }
  return result;
}

/// A state at a node, dense and row-major.
inline Vector<double> row_of(const CallResults& call, std::size_t group, std::size_t state, std::int32_t node) {
  const runtime::StateView& view = call.plan.states[state];
  const std::byte* const row = call.groups[group].row(view, node);
  const auto read = [&](auto element) {
    Vector<decltype(element)> dense(static_cast<std::size_t>(view.size));
    runtime::copy_dense(view, row, dense.data());
    Vector<double> result(dense.size());
    std::copy(dense.begin(), dense.end(), result.begin());
    return result;
  };
  return view.dtype == DType::f64 ? read(double()) : read(float());
}

/// Calls `take(state, node)` for each state of each node that root `r` of a group reaches and that has one.
template <class Take>
void for_each_result_of(const CallResults& call, std::size_t group, std::int32_t r, Vector<std::int32_t>& seen,
                        Take take) {
  const auto& states = call.plan.executable->states;
  const auto& views = call.plan.states;
  const structure::Arrays& arrays = call.groups[group].arrays;
  seen.resize(std::size_t(arrays.num_nodes));
  for (const std::int32_t node : nodes_in_order(call.plan, arrays, r, seen))
    for (std::size_t s = 0; s < states.size(); ++s)
      if ((!states[s].at_roots && !views[s].recycled) || node == arrays.root[r]) take(s, node);
}

template <class Take>
void for_each_result_in(const CallResults& call, std::size_t group, Take take) {
  Vector<std::int32_t> seen;
  for (std::int32_t r = 0; r < call.groups[group].arrays.num_roots; ++r) for_each_result_of(call, group, r, seen, take);
}

/// The arrays of a call with the accessors in the graph's order, as the interpreter of the graph asks for them.
class OrderedArrays {
 public:
  OrderedArrays(const structure::Arrays& given, const runtime::AccessorOrder& order) : arrays(given) {
    for (const int p : order.child) child_.push_back(p < 0 ? nullptr : arrays.child[p]);
    for (const int p : order.children) children_.push_back(p < 0 ? structure::Csr{} : arrays.children[p]);
    for (const int p : order.field) fields_.push_back(p < 0 ? structure::FieldArray{} : arrays.field[p]);
    arrays.child = child_.data(), arrays.children = children_.data(), arrays.field = fields_.data();
  }
  OrderedArrays(const OrderedArrays&) = delete;
  OrderedArrays& operator=(const OrderedArrays&) = delete;

  structure::Arrays arrays;

 private:
  Vector<const std::int32_t*> child_;
  Vector<structure::Csr> children_;
  Vector<structure::FieldArray> fields_;
};

/// The elements of a copy of a weight that the code reads, dense and row-major.
inline std::vector<double> elements_of(const ir::BufferInfo& buffer, const runtime::Block& block,
                                       const Vector<std::int64_t>& extents) {
  const runtime::Runs runs = runtime::runs_of(runtime::layout_of(buffer), 0, extents);
  std::vector<double> result;
  result.reserve(std::size_t(runs.size()));
  const auto unpack = [&](auto element, auto number) {
    for (const std::int64_t begin : runs.begin)
      for (std::int64_t i = 0; i < runs.length; ++i) {
        std::memcpy(&element, block.data() + std::size_t(begin + i) * sizeof element, sizeof element);
        result.push_back(double(number(element)));
      }
  };
  const auto itself = [](auto element) { return element; };
  switch (buffer.dtype) {
    case DType::f32: unpack(float(), itself); break;
    case DType::f64: unpack(double(), itself); break;
    case DType::bf16: unpack(std::uint16_t(), from_bf16); break;
    case DType::f16: unpack(std::uint16_t(), from_f16); break;
    case DType::i8: unpack(std::int8_t(), itself); break;
    default: throw Error(Code::internal, "weight '" + buffer.name + "' is of a type that the tuner cannot read");
  }
  return result;
}

/// The weights of a call as the interpreter takes them, out of the copies that the code reads: as they are stored. What
/// no code reads is zero.
inline ra::Weights weights_of(const CallResults& call) {
  const runtime::Executable& executable = *call.plan.executable;
  const runtime::WeightSet& set = call.weights;
  ra::Weights result;
  for (std::size_t slot = 0; slot < executable.weights.size(); ++slot) {
    const Vector<std::int64_t>& extents = set.shapes[slot];
    ra::Tensor tensor{extents, {}};
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    tensor.values.resize(std::size_t(count));
    const ir::BufferInfo* scaled_by = nullptr;
    std::vector<double> scales;
    for (std::size_t b = 0; b < set.blocks.size(); ++b) {
      const ir::Buffer& buffer = executable.program.buffers[b];
      if (!set.blocks[b] || runtime::weight_slot(buffer) != int(slot)) continue;
      if (buffer->is_scales)
        scaled_by = &*buffer, scales = elements_of(*buffer, *set.blocks[b], ir::extents_of_scales(*buffer, extents));
      else
        tensor.values = elements_of(*buffer, *set.blocks[b], extents);
    }
    if (scaled_by) {  // the code rounds once more, where it multiplies with a scale: the element, or a sum of these
      std::size_t num_channels = 0;
      const Vector<std::size_t> channel = ir::channels_of(extents, scaled_by->channels, num_channels);
      for (std::size_t i = 0; i < channel.size(); ++i) tensor.values[i] *= scales[channel[i]];
      tensor.rounding = ra::Rounding().f32;
    }
    result.emplace(executable.weights[slot].name, std::move(tensor));
  }
  return result;
}

}  // namespace detail

/// A number for each state of each node of a call, equal where all elements are: bit by bit, but that zeros of either
/// sign are one, and all NaNs. They come root by root, which is the same order for all schedules, however these number
/// nodes and divide roots; what several roots reach comes once for each. Of equal numbers of nodes of a DAG below a
/// root the first alone comes, since a schedule may have made one node of equal ones.
inline Vector<std::uint64_t> fingerprint(const CallResults& call) {
  Vector<std::uint64_t> result;
  Vector<Vector<std::int32_t>> seen(call.groups.size());
  const bool all = call.plan.executable->graph.structure != ra::StructureKind::dag;
  for (const auto& [group, number] : call.roots) {
    std::set<std::uint64_t> known;
    const auto take = [&, g = group](std::size_t state, std::int32_t node) {
      std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the elements' bits
      for (const double value : detail::row_of(call, g, state, node)) {
        const double one = value == 0 ? 0.0 : std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
        std::uint64_t bits = 0;
        std::memcpy(&bits, &one, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
        hash ^= hash >> 29;
      }
      if (all || known.insert(hash).second) result.push_back(hash);
    };
    detail::for_each_result_of(call, group, std::int32_t(number), seen[group], take);
  }
  return result;
}

/// Whether all results and weights of a call are finite.
inline bool all_finite(const CallResults& call) {
  const auto are_finite = [](const auto& values) { return !any_of(values, [](double v) { return !is_finite(v); }); };
  bool finite = true;
  for (std::size_t g = 0; g < call.groups.size() && finite; ++g)
    detail::for_each_result_in(call, g, [&](std::size_t state, std::int32_t node) {
      finite = finite && are_finite(detail::row_of(call, g, state, node));
    });
  if (!finite) return false;
  const ra::Weights weights = detail::weights_of(call);
  return !any_of(weights, [&](const auto& weight) { return !are_finite(weight.second.values); });
}

namespace detail {

/// What a call's states should be by the equations, at some nodes of a group at a time.
class Equations {
 public:
  Equations(const CallResults& call, std::size_t group, const ra::Weights& weights)
      : call_(call),
        group_(group),
        executable_(*call.plan.executable),
        weights_(weights),
        ordered_(call.groups[group].arrays, call.plan.order),
        view_(ordered_.arrays, executable_.graph),
        given_(executable_.states.size()) {
    for (std::size_t s = 0; s < given_.size(); ++s) {
      given_[s].resize(std::size_t(ordered_.arrays.num_nodes));
      for (auto& row : given_[s]) row.resize(std::size_t(call.plan.states[s].size));
    }
    for_each_result_in(call, group,
                       [&](std::size_t s, std::int32_t n) { given_[s][std::size_t(n)] = row_of(call, group, s, n); });
  }

  /// Whether all nodes have their states: where some rows have served other nodes since, all is computed from the
  /// leaves on.
  bool are_kept() const {
    return all_of(call_.plan.states, [](const runtime::StateView& view) { return !view.recycled; });
  }

  /// What is wrong at the nodes that are wanted, [node].
  std::optional<std::string> mismatch_at(const std::vector<char>& wanted) const {
    ra::Rounding rounding;
    rounding.any_order = true;
    const ra::Arithmetic<ra::Bounded> arithmetic(rounding);
    const auto right =
        are_kept() ? ra::interpret_from<ra::Bounded>(given_, executable_.graph, view_, weights_, arithmetic, &wanted)
                   : ra::interpret<ra::Bounded>(executable_.graph, view_, weights_, arithmetic);
    std::optional<std::string> wrong;
    for_each_result_in(call_, group_, [&](std::size_t s, std::int32_t n) {
      if (wanted[std::size_t(n)] && !wrong) wrong = mismatch_in(s, n, right[s][std::size_t(n)]);
    });
    return wrong;
  }

 private:
  std::optional<std::string> mismatch_in(std::size_t s, std::int32_t n, const std::vector<ra::Bounded>& right) const {
    const Vector<double>& is = given_[s][std::size_t(n)];
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (right[i].covers(is[i])) continue;
      char text[160];
      std::snprintf(text, sizeof text, "element %zu at node %d is %.9g, and not %.9g within %.2g", i, int(n), is[i],
                    right[i].value, right[i].error);
      return "state '" + executable_.states[s].name + "': " + text;
    }
    return {};
  }

  const CallResults& call_;
  const std::size_t group_;
  const runtime::Executable& executable_;
  const ra::Weights& weights_;
  const OrderedArrays ordered_;
  const ra::ArraysView<structure::Arrays> view_;
  ra::States<double> given_;
};

/// What `mismatch` says of one group.
inline std::optional<std::string> mismatch_of(const CallResults& call, std::size_t group, const ra::Weights& weights,
                                              Effort& effort) {
  const Equations equations(call, group, weights);
  std::vector<std::int32_t> order(std::size_t(call.groups[group].arrays.num_nodes));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::optional<std::string> wrong;
  std::size_t next = 0;
  for (std::size_t some = equations.are_kept() ? 1 : order.size(); next < order.size() && !wrong && !effort.is_spent();
       some *= 2) {
    std::vector<char> wanted(order.size());
    for (std::size_t i = 0; i < some && next < order.size(); ++i) wanted[std::size_t(order[next++])] = 1;
    wrong = equations.mismatch_at(wanted);
  }
  effort.nodes -= std::int64_t(next);
  return wrong;
}

}  // namespace detail

/// What is wrong with the results of a call by the model's equations; nothing if each node's states lie within the
/// error bound of what they should be by its children's. If every node is right by its children, all are; so the bounds
/// stay as tight at the root of a high tree as at its leaves. Costs about 50 ns a multiply-add: nodes are taken in a
/// random order, and those for which `effort` does not suffice are left out.
inline std::optional<std::string> mismatch(const CallResults& call, Effort& effort) {
  const ra::Weights weights = detail::weights_of(call);
  std::optional<std::string> wrong;
  for (std::size_t g = 0; g < call.groups.size() && !wrong; ++g) wrong = detail::mismatch_of(call, g, weights, effort);
  return wrong;
}
inline std::optional<std::string> mismatch(const CallResults& call) {
  Effort whole{INT64_MAX, HUGE_VAL};
  return mismatch(call, whole);
}

}  // namespace cortex::tuning
