// Predicts how long a call takes under a schedule: from the work that the scheduled program does (`ir/count_work.hpp`),
// the shape of its register tiles, the machine's speeds, and how many nodes each level of the call has.
//
//   a nest over n rows, in tiles of at most R:
//     FLOPs / rate of the tile and ceil(n / R) * weight bytes / bandwidth of the worker's slice, which hide most of
//     each other: (x^3 + y^3)^(1/3), fitted to tiles measured with 1 and 2 MB of weights a core
//   + functions + beginning nests and rows + barriers + lines that other workers have written + numbering of the nodes
//
// Good to order schedules by, and to say what a call's time goes into; not to state times: those are measured. Paper
// section 6 (grid search), and "The floor" of the benchmarks, which is the same sum with every tile at its best.
#pragma once

#include <algorithm>
#include <cmath>

#include "cortex/base/memory.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/count_work.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/machine_model.hpp"
#include "cortex/schedule/tile_nests.hpp"

namespace cortex::schedule {

/// What a call is of, as far as its time depends on it.
struct CallShape {
  /// The nodes of one height, and the edges to their children.
  struct Level {
    double nodes = 0, edges = 0;
  };
  Vector<Level> levels;  // by height, leaves first
  double roots = 1;

  double nodes() const {
    double sum = 0;
    for (const Level& level : levels) sum += level.nodes;
    return sum;
  }
};

/// Seconds that a call takes, by what they are spent on.
struct CostTerms {
  double arithmetic = 0;  // multiply-adds and the like
  double weights = 0;     // waiting for weights, beyond what arithmetic hides
  double functions = 0;   // tanh, sigmoid, exp
  double loops = 0;       // beginning nests and their rows
  double barriers = 0;    // of workers, and reading what another one has written
  double nodes = 0;       // numbering the nodes

  double total() const { return arithmetic + weights + functions + loops + barriers + nodes; }
  CostTerms& operator+=(const CostTerms& more) {
    arithmetic += more.arithmetic, weights += more.weights, functions += more.functions;
    loops += more.loops, barriers += more.barriers, nodes += more.nodes;
    return *this;
  }
};

/// What one nest, or one barrier, takes in all its executions of a call.
struct NestCost {
  std::size_t item = 0;  // its number in `count_work`
  int rows = 0;          // of its tiles at most; 0: it has none
  int vectors = 0;       // of each gate's outputs, in a tile of so many rows
  CostTerms terms;
};

/// Whether a weight is read once for each row, such as a word's vector, and not once for all of them.
inline bool is_of_rows(const ir::WorkUnit& unit) {
  using enum ir::WorkUnit::Kind;
  switch (unit.kind) {
    case call:
    case level:
    case subtree_level: return !unit.where.empty();  // for the rest of some rows, where there is one
    case root:
    case below_root:
    case node:
    case leaf:
    case inner_node:
    case part_node:
    case subtree_top:
    case below_top:
    case edge:
    case part_edge:
    case iteration: return true;
  }
  return true;
}

namespace detail {

/// The bytes of weights that a worker reads in each nest that is in no loop, and in each loop, and which of these each
/// item belongs to.
struct Slices {
  Slices(const Vector<ir::WorkItem>& items, double workers) {
    for (const ir::WorkItem& item : items) {
      if (item.depth == 0) bytes.push_back(0);
      of_item.push_back(bytes.size() - 1);
      for (const ir::WeightRead& read : item.weights)
        if (!is_of_rows(read.unit)) bytes.back() += read.bytes / workers;
    }
  }

  Vector<double> bytes;
  Vector<std::size_t> of_item;
};

/// The model of a program under a schedule, for calls of any shape.
class CostModel {
 public:
  CostModel(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
            const MachineModel& machine)
      : schedule_(schedule), target_(target), machine_(machine), workers_(double(std::max(schedule.max_workers, 1))) {
    Vector<std::int64_t> parts;
    for (const ir::WorkItem& item : items) {
      leaves_apart_ |= item.depth == 0 && item.unit.is_any(Unit::leaf);
      if (item.unit.kind == Unit::part_node && !contains(parts, item.unit.part)) parts.push_back(item.unit.part);
    }
    parts_ = std::max(1.0, double(parts.size()));
    for (const auto& [name, depth] : schedule.unrolled) depth_ = std::max(depth_, double(depth));
    in_subtree_ = std::exp2(std::max(depth_, 1.0)) - 1;
    const Slices slices(items, workers_);
    Vector<Unit> loops;  // what an iteration of each loop around is
    for (std::size_t i = 0; i < items.size(); ++i) {
      loops.resize(std::size_t(items[i].depth));
      if (items[i].kind == ir::WorkItem::Kind::loop)
        loops.push_back(items[i].unit.kind);
      else
        nests_.push_back(
            nest_of(items[i], i, loops.empty() ? Unit::call : loops.back(), slices.bytes[slices.of_item[i]]));
    }
  }

  /// Tells `take` what each nest and barrier takes in a call of that shape.
  template <class Take>
  void run(const CallShape& shape, Take take) const {
    const std::size_t levels = shape.levels.size(), step = std::size_t(std::max(depth_, 1.0));
    const double nodes = shape.nodes();
    const auto scope_of = [&](std::size_t first, std::size_t last) {
      Scope scope{0, 0, 0, shape.roots, nodes};
      for (std::size_t level = first; level < last; ++level) {
        (level == 0 ? scope.leaves : scope.inner) += shape.levels[level].nodes;
        scope.edges += shape.levels[level].edges;
      }
      return scope;
    };
    Vector<Scope> by_level, by_subtree;
    for (std::size_t level = 0; level < levels; ++level) by_level.push_back(scope_of(level, level + 1));
    for (std::size_t level = 1; depth_ > 0 && level < levels; level += step)
      by_subtree.push_back(scope_of(level, std::min(level + step, levels)));
    const Scope call = scope_of(0, levels);
    for (const Nest& nest : nests_) take(cost(nest, call, by_level, by_subtree));
  }

 private:
  using Unit = ir::WorkUnit::Kind;

  /// Some rows of the call: how many there are of what work is counted for.
  struct Scope {
    double leaves = 0, inner = 0, edges = 0, roots = 0, all = 0;  // `all`: nodes of the call
  };

  /// A nest or barrier, and what the schedule alone decides of its time.
  struct Nest {
    const ir::WorkItem& item;
    std::size_t number;  // of the item
    Unit loop;           // what an iteration of the loop around is; a call if there is none
    TileShape tile;
    bool tiled, on_unit;  // whether it has tiles, and whether a matrix unit makes its products
    double share;         // among how many workers it is divided
    double bandwidth;     // of a worker's weights in the loop around
    double once;          // bytes of weights that all rows of a tile read
    double apart;         // seconds to take a row apart for a matrix unit
    double exchanged;     // seconds to read what others have written of a row
  };

  /// `slice`: the bytes of weights that a worker reads in the loop around.
  Nest nest_of(const ir::WorkItem& item, std::size_t number, Unit loop, double slice) const {
    const bool on_unit = on_matrix_unit(item);
    TileShape tile = tile_shape(target_, std::max(item.gates, 1), schedule_.tiling);
    if (on_unit) tile.most_rows = ir::TileProduct::most_rows;
    const bool tiled = item.gates > 0 && !schedule_.by_hand && loop != Unit::node && loop != Unit::inner_node;
    double once = 0, exchanged = 0;
    for (const ir::WeightRead& read : item.weights)
      if (!is_of_rows(read.unit)) once += read.bytes;
    if (workers_ > 1 && !item.by_each_worker)
      exchanged = exchanged_bytes(item) / cache_line * (workers_ - 1) / workers_ * machine_.remote_line;
    return {.item = item,
            .number = number,
            .loop = loop,
            .tile = tile,
            .tiled = tiled,
            .on_unit = on_unit,
            .share = sharers(item),
            .bandwidth = machine_.bandwidth(slice),
            .once = once,
            .apart = on_unit ? taking_apart(item, once) : 0.0,
            .exchanged = exchanged};
  }

  NestCost cost(const Nest& nest, const Scope& call, const Vector<Scope>& by_level,
                const Vector<Scope>& by_subtree) const {
    NestCost result;
    result.item = nest.number;
    if (nest.tiled) result.rows = nest.tile.most_rows, result.vectors = nest.tile.vectors(nest.tile.most_rows);
    if (nest.on_unit) result.vectors = ir::TileProduct::most_panels;
    const auto add = [&](const Scope& scope, double times) {
      CostTerms terms = nest.item.kind == ir::WorkItem::Kind::barrier ? barrier() : one(nest, scope, times);
      for (double* term : {&terms.arithmetic, &terms.weights, &terms.functions, &terms.loops, &terms.barriers})
        *term *= times;
      result.terms += terms;
    };
    switch (nest.loop) {
      case Unit::level:
        for (std::size_t level = leaves_apart_; level < by_level.size(); ++level) add(by_level[level], 1);
        break;
      case Unit::subtree_level:
        for (const Scope& level : by_subtree) add(level, 1);
        break;
      case Unit::call:  // once; or else an iteration for each row
      case Unit::root:
      case Unit::below_root:
      case Unit::node:
      case Unit::leaf:
      case Unit::inner_node:
      case Unit::part_node:
      case Unit::subtree_top:
      case Unit::below_top:
      case Unit::edge:
      case Unit::part_edge:
      case Unit::iteration: add(call, std::max(1.0, count(nest.loop, call))); break;
    }
    return result;
  }

  CostTerms barrier() const {
    CostTerms terms;
    if (workers_ > 1) terms.barriers = machine_.barrier * std::log2(2 * workers_) / 2;
    return terms;
  }

  /// One execution of a nest, of which there are `times` with equal shares of the scope's rows.
  CostTerms one(const Nest& nest, const Scope& scope, double times) const {
    const ir::WorkItem& item = nest.item;
    const double rows = count(item.unit, scope) / times;
    double flops = 0, functions = 0, by_row = 0;
    for (const ir::Operations& operations : item.operations) {
      const double n = count(operations.unit, scope) / times;
      flops += operations.flops * n, functions += operations.functions * n;
    }
    for (const ir::WeightRead& read : item.weights)
      if (is_of_rows(read.unit)) by_row += read.bytes * count(read.unit, scope) / times;
    if (rows <= 0) return {};
    // Rows of a node's matrix are those of tiles, however few nodes a level has; and nodes that have no weights in
    // common have a tile each.
    const double of_matrix = item.matrix_rows;
    const double most = nest.tiled && (of_matrix > 1 || nest.once > 0) ? nest.tile.most_rows : 1;
    const double tiles = of_matrix > 1 ? rows * std::ceil(of_matrix / most) : std::ceil(rows / most);
    const double in_tile = rows * of_matrix / tiles;
    const double of_tile = nest.on_unit ? efficiency_of_unit(in_tile) : efficiency(nest.tile, in_tile);
    const double rate = machine_.flops * (item.gates ? of_tile : 0.25);
    CostTerms terms;
    terms.arithmetic = flops / nest.share / rate + rows * nest.apart;
    const double reading = tiles * nest.once / nest.share / nest.bandwidth;
    terms.weights = std::max(0.0, std::cbrt(cubed(terms.arithmetic) + cubed(reading)) - terms.arithmetic);
    terms.weights += by_row / nest.share / far();
    terms.functions = functions / nest.share * (schedule_.exact ? machine_.library : machine_.activation);
    terms.loops = machine_.nest + rows * machine_.row;  // of each worker
    terms.barriers = rows * nest.exchanged;
    return terms;
  }

  static double cubed(double x) { return x * x * x; }

  /// Among how many workers a nest is divided: the columns of a vector go to them in whole vectors of the machine, so
  /// that some may have none.
  double sharers(const ir::WorkItem& item) const {
    if (item.by_each_worker) return 1;
    double result = workers_;
    for (const ir::Buffer& buffer : item.stored) {
      const auto is_dense = [](const Dim& dim) { return dim.extent() > 0; };
      if (std::count_if(buffer->dims.begin(), buffer->dims.end(), is_dense) != 1) continue;
      const double elements = double(std::find_if(buffer->dims.begin(), buffer->dims.end(), is_dense)->extent());
      const double vectors = std::ceil(elements * double(size_of(buffer->dtype)) / target_.vector_bytes);
      result = std::min(result, vectors / std::ceil(vectors / workers_));
    }
    return result;
  }

  /// The share of the peak that a tile of so many rows reaches: with few accumulators additions wait for each other,
  /// with few rows and vectors loads outnumber multiply-adds, and with too many of them some live in memory.
  double efficiency(const TileShape& tile, double rows) const {
    const double vectors = tile.vectors(std::max(1, int(std::ceil(rows)))) * tile.gates;
    const double sums = rows * vectors, loads = rows + vectors;
    const double needed = sums + (rows > 1 ? vectors : 0) + 1;
    const double pointers = std::max(0.0, rows - 10);  // each row has its own, in one of 16 registers
    const double spilled = std::max(0.0, needed - target_.vector_registers) + 4 * pointers;
    return std::min({1.0, sums / 8, sums / loads}) / (1 + 3 * spilled / needed);
  }

  /// Whether a matrix unit makes the nest's products.
  static bool on_matrix_unit(const ir::WorkItem& item) {
    return any_of(item.weights, [](const ir::WeightRead& read) { return read.weight->tiles; });
  }

  /// Multiply-adds of vectors, times 2, in a cycle of a CPU that has a matrix unit: what its cycles are counted in.
  static constexpr double flops_of_cycle = 64;

  /// How many times the vectors' peak a matrix unit multiplies tiles of so many rows. It takes some 40 cycles for the
  /// three products of 16 outputs and 32 indices, and from 8 rows on 2 cycles more for each; a quarter of that goes
  /// into the sums.
  static double efficiency_of_unit(double rows) {
    constexpr double flops_of_row = 2 * ir::TileProduct::outputs * ir::TileProduct::depth, sums = 1.25;
    return flops_of_row * rows / ((40 + 2 * std::max(0.0, rows - 8)) * sums) / flops_of_cycle;
  }

  /// Seconds that it takes to take a row apart for a matrix unit, some 12 cycles for 16 numbers, which each worker of a
  /// group does for itself. `bytes`: of the weights that multiply it.
  double taking_apart(const ir::WorkItem& item, double bytes) const {
    double outputs = 1;
    for (const ir::Buffer& buffer : item.stored)
      if (!buffer->dims.empty()) outputs = std::max(outputs, double(buffer->dims.back().extent()));
    const double numbers = bytes / double(size_of(DType::bf16)) / outputs / std::max(item.gates, 1);
    return numbers / 16 * 12 * flops_of_cycle / machine_.flops;
  }

  /// How many there are of what is counted, in these levels; of what is done under conditions, half as many.
  double count(const ir::WorkUnit& unit, const Scope& scope) const {
    const double all = count(unit.kind, scope);
    return unit.where.empty() ? all : all / 2;
  }

  double count(Unit kind, const Scope& scope) const {
    const double leaves = scope.leaves, inner = scope.inner, edges = scope.edges;
    const double tops = inner / in_subtree_;
    switch (kind) {
      case Unit::call:
      case Unit::level:
      case Unit::subtree_level: return 1;
      case Unit::root: return scope.roots;
      case Unit::below_root: return scope.all;
      case Unit::node: return leaves + inner;
      case Unit::leaf: return leaves;
      case Unit::inner_node: return inner;
      case Unit::part_node: return (leaves + inner) / parts_;
      case Unit::subtree_top: return tops;
      case Unit::below_top: return inner - tops;
      case Unit::edge: return edges;
      case Unit::part_edge: return edges / parts_;
      case Unit::iteration: return 1;  // it is not known how many
    }
    return 1;
  }

  /// Rows of tables: they come from wherever there is room for a table.
  double far() const { return machine_.levels.size() < 2 ? 1e10 : machine_.levels[machine_.levels.size() - 2].rate; }

  /// What workers read of each other's, of a row.
  static double exchanged_bytes(const ir::WorkItem& item) {
    double bytes = 0;
    for (const ir::Buffer& buffer : item.exchanged) bytes += ir::dense_bytes(*buffer);
    return bytes;
  }

  const Schedule& schedule_;
  const Target& target_;
  const MachineModel& machine_;
  double workers_, parts_ = 1, depth_ = 0, in_subtree_ = 1;  // `in_subtree_`: inner nodes, of binary trees
  bool leaves_apart_ = false;
  Vector<Nest> nests_;
};

}  // namespace detail

/// The most bytes of weights that one of so many workers sweeps over again and again: in a loop, or a nest in none.
inline double largest_slice(const Vector<ir::WorkItem>& items, int workers) {
  double largest = 0;
  for (const double slice : detail::Slices(items, workers).bytes) largest = std::max(largest, slice);
  return largest;
}

/// What each nest and barrier of `items` takes in a call, in their order. `items` are the work of a program before
/// register tiles.
inline Vector<NestCost> predict_nests(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                                      const MachineModel& machine, const CallShape& shape) {
  Vector<NestCost> result;
  detail::CostModel(items, schedule, target, machine).run(shape, [&](const NestCost& nest) { result.push_back(nest); });
  return result;
}

/// The same, added up, with the numbering of the nodes.
inline CostTerms sum_of_nests(const detail::CostModel& model, const MachineModel& machine, const CallShape& shape) {
  CostTerms sum;
  model.run(shape, [&](const NestCost& nest) { sum += nest.terms; });
  sum.nodes = machine.node * shape.nodes();
  return sum;
}
inline CostTerms predict(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                         const MachineModel& machine, const CallShape& shape) {
  return sum_of_nests(detail::CostModel(items, schedule, target, machine), machine, shape);
}

}  // namespace cortex::schedule
