// The schedules that a tuner tries: the points of a space with an axis for each decision.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/pieces.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/schedule/level_fill.hpp"
#include "cortex/schedule/machine_model.hpp"

namespace cortex::tuning {

/// One way to decide: what it adds to a schedule.
struct Choice {
  std::string name;
  std::function<Schedule(const Schedule&)> apply;
};

/// A decision, and the ways to decide it. The first choice leaves the schedule as it is.
class Axis {
 public:
  explicit Axis(std::string name) : name_(std::move(name)) {
    choices_.push_back({"as it is", [](const Schedule& s) { return s; }});
  }

  /// One choice more.
  Axis& add(std::string name, std::function<Schedule(const Schedule&)> apply) {
    choices_.push_back({std::move(name), std::move(apply)});
    return *this;
  }
  /// A choice for each number: `Axis("rows").numbers({4, 8}, &Schedule::tile_rows)`.
  Axis& numbers(const Vector<int>& values, Schedule (Schedule::*decide)(int) const) {
    for (const int value : values) add(std::to_string(value), [=](const Schedule& s) { return (s.*decide)(value); });
    return *this;
  }

  const std::string& name() const { return name_; }
  const Vector<Choice>& choices() const { return choices_; }

 private:
  std::string name_;
  Vector<Choice> choices_;
};

/// One schedule of a space: the choice on each axis.
struct Point {
  Vector<int> choices;
  Schedule schedule;
};

/// Axes, in the order in which they are applied.
class Space {
 public:
  Space& add(Axis axis) {
    axes_.push_back(std::move(axis));
    return *this;
  }
  const Vector<Axis>& axes() const { return axes_; }

  /// All schedules that differ, beginning with `start` itself; the last axis changes fastest. At most `most` of them.
  Vector<Point> points(const Schedule& start, std::size_t most = std::numeric_limits<std::size_t>::max()) const {
    Vector<Point> result;
    std::set<std::string> texts;
    Vector<int> choices(axes_.size());
    do {
      Schedule schedule = start;
      for (std::size_t a = 0; a < axes_.size(); ++a)
        schedule = axes_[a].choices()[std::size_t(choices[a])].apply(schedule);
      if (texts.insert(to_string(schedule)).second) result.push_back({choices, std::move(schedule)});
    } while (result.size() < most && next(choices));
    return result;
  }

  /// "tile_rows: as it is, 4, 8; workers: as it is, 2"
  std::string text() const {
    std::string result;
    for (const Axis& axis : axes_) {
      result += (result.empty() ? "" : "; ") + axis.name() + ":";
      for (std::size_t c = 0; c < axis.choices().size(); ++c) result += (c ? ", " : " ") + axis.choices()[c].name;
    }
    return result;
  }

 private:
  bool next(Vector<int>& choices) const {
    for (std::size_t a = axes_.size(); a-- > 0;) {
      if (++choices[a] < int(axes_[a].choices().size())) return true;
      choices[a] = 0;
    }
    return false;
  }

  Vector<Axis> axes_;
};

/// How many points differ from another on one axis alone, at most.
inline std::size_t most_neighbours(const Space& space) {
  std::size_t count = 0;
  for (const Axis& axis : space.axes()) count += axis.choices().size() - 1;
  return count;
}

/// Whether two points differ on one axis alone.
inline bool are_neighbours(const Point& a, const Point& b) {
  int apart = 0;
  for (std::size_t i = 0; i < a.choices.size(); ++i) apart += a.choices[i] != b.choices[i];
  return apart == 1;
}

namespace detail {

/// Whether the operator is a contraction, at which a recursion may be cut.
inline bool contracts(const ra::Op& op) {
  bool found = false;
  if (op.kind == ra::OpKind::compute)
    ir::visit_with(op.body, [&](const ir::Reduce& reduce) { found |= reduce.axis.dim.kind() == DimKind::dense; });
  return found;
}

/// Of all weights of two dimensions and more but tables.
inline double bytes_of_matrices(const ra::Graph& graph) {
  double bytes = 0;
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input || op.dims.size() < 2 || op.dims[0].kind() == DimKind::open) continue;
    double own = double(size_of(op.buffer->dtype));
    for (const Dim& dim : op.dims) own *= double(dim.extent());
    bytes += own;
  }
  return bytes;
}

}  // namespace detail

/// How the recursion is run: with a version for each branch, equal subtrees once where the default does not look for
/// them, small levels as they are or filled up to 8 nodes, unrolled, cut at a product.
inline Axis recursion_axis(const ra::Graph& graph, bool default_shares_subtrees, bool may_cut) {
  Axis recursion("recursion");
  const auto is_branch = [](const ra::Op& op) { return op.kind == ra::OpKind::if_then_else; };
  if (any_of(graph.ops, is_branch))
    recursion.add("a version for each branch", [](const Schedule& s) { return s.specialize_if_else(); });
  const Schedule standard = Schedule::standard();
  if (ra::may_share_subtrees(graph, standard) && !default_shares_subtrees)
    recursion.add("equal subtrees once", [](const Schedule& s) { return s.share_subtrees(); });
  if (schedule::reason_against_filling(graph, standard).empty()) {
    recursion.add("levels as they are", [](const Schedule& s) { return s.fill_levels(1); });
    recursion.add("levels of 8 nodes", [](const Schedule& s) { return s.fill_levels(8); });
  }
  if (graph.structure != ra::StructureKind::dag) {
    recursion.add("unrolled", [name = graph.name](const Schedule& s) { return s.unroll(name, 2); });
    for (const ra::Op& op : graph.ops)
      if (may_cut && detail::contracts(op))
        recursion.add("cut at " + op.name(), [name = op.name()](const Schedule& s) { return s.refactor(name); });
  }
  return recursion;
}

/// Nodes of the pieces that large calls may be computed in, beside the compiler's choice.
inline constexpr int tried_pieces = 256;

/// What a CPU has to decide beside: whether large calls run in pieces, how many of `most_workers` threads share a call,
/// in one group, in several or one each, the shape of register tiles, and, where matrices are large, the direction of
/// sweeps over them.
inline Space cpu_space(const ra::Graph& graph, const Target& target, int most_workers) {
  Space space;
  Axis workers("workers");
  for (int count = 1; count < most_workers; count *= 2) workers.numbers({count}, &Schedule::workers);
  const auto all = [most_workers](const Schedule& s) { return s.workers(most_workers); };
  for (int groups = 2; groups < most_workers; groups *= 2)
    workers.add("in " + std::to_string(groups) + " groups",
                [all, groups](const Schedule& s) { return all(s).groups(groups); });
  workers.add("in one group", [all](const Schedule& s) { return all(s).groups(1); });
  workers.add("a group each", [all, most_workers](const Schedule& s) { return all(s).groups(most_workers); });
  if (most_workers > 1) space.add(std::move(workers));

  const Schedule standard = Schedule::standard();
  Axis recursion = recursion_axis(graph, ra::shares_subtrees(graph, standard), most_workers > 1);
  if (ra::may_be_divided(graph, standard))
    recursion.add("whole calls", [](const Schedule& s) { return s.whole_calls(); });
  if (ra::reason_against_pieces(graph, standard).empty())
    recursion.add("pieces of " + std::to_string(tried_pieces),
                  [](const Schedule& s) { return s.pieces(tried_pieces); });
  if (recursion.choices().size() > 1) space.add(std::move(recursion));

  const bool wide = target.vector_registers >= 32;
  const Vector<int> gates = wide ? Vector{1, 2, 4} : Vector{1, 2, 3};
  const Vector<int> rows = wide ? Vector{3, 4, 6, 8, 12} : Vector{2, 3, 4, 6};
  space.add(Axis("tile_gates").numbers(gates, &Schedule::tile_gates));
  space.add(Axis("tile_rows").numbers(rows, &Schedule::tile_rows));
  space.add(Axis("tile_vectors").numbers({1, 2, 4}, &Schedule::tile_vectors));

  Axis sweeps("sweeps");
  sweeps.add("there and back", [](const Schedule& s) { return s.alternate_sweeps(); });
  sweeps.add("forward", [](const Schedule& s) { return s.sweep_forward(); });
  if (detail::bytes_of_matrices(graph) > schedule::CacheSizes{}.second) space.add(std::move(sweeps));
  return space;
}

/// What a GPU has to decide beside: which blocks are a group, how many threads they have, how many nodes a thread
/// computes side by side and how many threads share a sum, where weights and recent rows are kept, and, as a way to run
/// the recursion, whether what follows from words is looked up in tables. A barrier of flags in place of a counter is
/// not among them: it takes longer (docs/measurements.md).
///
/// What `start` says of tensor cores and of loops by hand leaves some of that out. A search without predictions takes
/// the choices of the last axis first: what matters most comes last.
inline Space gpu_space(const ra::Graph& graph, const Gpu& gpu, const Schedule& start = Schedule::standard()) {
  using Group = GpuSchedule::Group;
  using Weights = GpuSchedule::Weights;
  const bool in_tiles = start.gpu.tensor_cores != GpuSchedule::TensorCores::off, by_hand = bool(start.by_hand);
  const auto with = [](auto change) {
    return [change](const Schedule& s) {
      GpuSchedule how = s.gpu;
      change(how);
      return s.on_gpu(how);
    };
  };
  Space space;
  const auto numbers = [&](const char* name, const Vector<int>& values, int GpuSchedule::*decided) {
    Axis axis(name);
    for (const int value : values)
      axis.add(std::to_string(value), with([=](GpuSchedule& how) { how.*decided = value; }));
    space.add(std::move(axis));
  };
  numbers("recent_rows", {0, 16}, &GpuSchedule::recent_rows);
  Axis recursion = recursion_axis(graph, false, !by_hand);
  if (!graph.fields.empty() && !in_tiles && !by_hand)
    recursion.add("no tables", [](const Schedule& s) { return s.tabulate_nothing(); });
  if (recursion.choices().size() > 1) space.add(std::move(recursion));

  Axis weights("weights");
  const auto keep = [&](const char* name, Weights where) {
    weights.add(name, with([=](GpuSchedule& how) { how.weights = where; }));
  };
  keep("streamed", Weights::streamed), keep("in shared memory", Weights::resident);
  if (!in_tiles) keep("in registers", Weights::registers);
  if (!by_hand) space.add(std::move(weights));
  if (!by_hand) numbers("rows", {2, 4, 8}, &GpuSchedule::rows);
  if (!by_hand && !in_tiles) numbers("parts", {1, 2, 4, 8, 16}, &GpuSchedule::parts);
  numbers("threads", {128, 256, 512}, &GpuSchedule::threads);

  Axis group("group");
  const auto blocks = [&](const std::string& name, Group kind, int count) {
    group.add(name + std::to_string(count), with([=](GpuSchedule& how) { how.group = kind, how.blocks = count; }));
  };
  blocks("block of ", Group::block, 1);
  for (int count = 2; count <= 8 && gpu.has_clusters(); count *= 2) blocks("cluster of ", Group::cluster, count);
  for (int count = gpu.has_clusters() ? 16 : 2; count < gpu.multiprocessors; count *= 2)
    blocks("grid of ", Group::grid, count);
  blocks("grid of ", Group::grid, gpu.multiprocessors);
  return space.add(std::move(group));
}

/// What there is to decide for a model without changing its functions. Not all is legal for each model; what is not, a
/// search notes and leaves out.
inline Space default_space(const ra::Graph& graph, const Target& target, int most_workers,
                           const Schedule& start = Schedule::standard()) {
  return target.backend == Backend::cuda ? gpu_space(graph, target.gpu, start) : cpu_space(graph, target, most_workers);
}

}  // namespace cortex::tuning
