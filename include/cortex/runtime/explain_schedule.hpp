// What `explain` says of a compiled model's schedule: what the compiler chose, and what was asked for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/codegen/cuda_kernel.hpp"
#include "cortex/ra/partition.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/explain_text.hpp"
#include "cortex/runtime/weight_places.hpp"
#include "cortex/schedule/alternate_sweeps.hpp"
#include "cortex/schedule/choose_groups.hpp"
#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/padded_layout.hpp"
#include "cortex/schedule/tile_products.hpp"

namespace cortex::runtime::detail {

/// The bytes of a buffer's rows, or of all of it, and what there is a row for.
struct BufferSize {
  double bytes = 0;
  std::string unit;  // empty: all of it
};

inline BufferSize size_of_buffer(const ir::Buffer& buffer) {
  if (ir::is_on_chip(buffer->scope)) return {double(ir::chip_bytes(*buffer)), ""};
  const ir::Layout layout = buffer->layout.empty() ? schedule::padded_layout(*buffer) : buffer->layout;
  const double bytes = double(size_of(buffer->dtype));
  if (layout.fixed_size) return {double(layout.fixed_size) * bytes, ""};
  const double row = double(std::max<std::int64_t>(layout.row_size, 1)) * bytes;
  switch (buffer->dims[0].kind()) {
    case DimKind::batch: return {row, "node of a level"};
    case DimKind::batch_edge: return {row, "edge of a level"};
    case DimKind::edge: return {row, "edge"};
    case DimKind::open: return {row, "row"};
    default: return {row, buffer->recycled ? "node that is still needed" : "node"};
  }
}

/// How many workers a call on so many example structures takes, where all are free and awake.
inline int workers_of_call(const Executable& executable, int roots) {
  const int most = std::min(executable.schedule.max_workers, max_call_workers);
  if (executable.team_costs.empty()) return most;
  const int groups = groups_of(executable.group_rules, executable.schedule.num_groups, most, std::size_t(roots));
  const schedule::CallShape group =
      schedule::example_call(executable.graph.structure, std::ceil(double(roots) / groups));
  return groups * best_team(executable.team_costs, most / groups, group.nodes(), double(group.levels.size()));
}

/// `residence`: of a kernel that stays on a device, in words how; empty for all others.
class ScheduleExplainer {
 public:
  explicit ScheduleExplainer(const Executable& executable, const std::string& residence)
      : executable_(executable), residence_(residence) {}

  std::string text() const {
    const Schedule& s = executable_.schedule;
    Table lines(9, 9);
    lines.row({"order", s.batched ? "level by level: nodes of one level do not depend on each other and run together"
                                  : "node by node, children before parents"});
    if (s.batched)
      lines.row({"levels", executable_.level_fill > 1
                               ? "of fewer than " + std::to_string(executable_.level_fill) +
                                     " nodes are filled up with nodes from below that nobody waits for so soon" +
                                     (s.level_fill ? "" : ", by the cost model")
                               : "are of nodes of one height"});
    if (const std::int64_t nodes = executable_.piece_nodes)
      lines.row({"calls", "of " + std::to_string(2 * nodes) + " nodes and more are computed in pieces of " +
                              std::to_string(nodes) + " and more, one after the other" +
                              (s.piece_nodes == Schedule::by_the_caches ? ", by the cost model" : "")});
    lines.row({"leaves", s.leaves_apart ? "have code of their own, without what needs children"
                                        : "run the same code as inner nodes, unless a branch has code of its own"});
    lines.row({"branches", branches()});
    for (const structure::Selector& selector : executable_.partition.selectors)
      if (selector.matrices)
        lines.row({"matrices", "nodes of a level are sorted by which of " + std::to_string(selector.matrices) +
                                   " they choose, as of " + selector.name});
    for (const auto& [name, depth] : s.unrolled)
      lines.row({"unrolled", name + ": subtrees of " + std::to_string(depth) + " levels at a time, each one worker's"});
    for (const std::string& name : s.refactored)
      lines.row(
          {"refactored", "the recursion is cut at the product of " + name + ", and its end joins the parents' begin"});
    lines.row({"subtrees", executable_.shares_subtrees
                               ? "equal ones of a call are found by their data, and computed once"
                               : "are computed each, even where they are equal"});
    const std::string workers =
        std::to_string(std::min(s.max_workers, max_call_workers)) +
        (s.max_workers > max_call_workers ? " (of " + std::to_string(s.max_workers) + " asked for)" : "");
    if (executable_.target.backend == Backend::cuda)
      add_gpu(lines);
    else
      lines.row({"workers", s.max_workers == 1 ? "one thread runs a call"
                                               : "up to " + workers +
                                                     " threads share a call, each with its own slice of every "
                                                     "operator's last dimension" +
                                                     teams()});
    if (s.max_workers > 1 && executable_.target.backend != Backend::cuda) lines.row({"groups", groups()});
    if (s.by_hand) lines.row({"loops", "by hand; steps: " + std::to_string(s.by_hand->size())});
    if (const std::string types = stored(); !types.empty()) lines.row({"weights", types});
    add_vectors(lines);
    if (const std::string asked = tiling(s.tiling); !asked.empty()) lines.row({"tiles", asked});
    if (schedule::alternates(executable_.tiled.body))
      lines.row(
          {"sweeps", "every other one over a worker's weights goes backwards" +
                         std::string(s.tiling.sweeps == Tiling::Sweeps::alternating
                                         ? ""
                                         : ": of a level's there may be more than its second-level cache keeps")});
    if (!s.fuses) lines.row({"fusion", "none: each operator has loops of its own"});
    lines.row({"functions",
               s.exact ? "tanh, sigmoid, exp, log, erf, sin and their like are the C library's"
                       : "tanh, sigmoid, exp, log, erf, sin and their like in f32 are approximations of a few units in "
                         "the last place"});
    if (const std::string names = unread(); !names.empty())
      lines.row({"unread", names + ": no result depends on it, so it need not be bound"});
    lines.row({"target", target()});
    return "schedule\n" + lines.text();
  }

 private:
  /// "1, from 8 roots on 2": what `count` says of so many roots
  template <class Count>
  static std::string by_roots(const char* roots_on, const Count& count) {
    std::string text;
    int last = 0;
    for (const int roots : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256}) {
      const int now = count(roots);
      if (now == last) continue;
      text += (last ? ", from " + std::to_string(roots) + roots_on : "") + std::to_string(now);
      last = now;
    }
    return text;
  }

  /// "; of one root of 39 nodes 1, from 2 on 2, by the cost model": as many workers as are worth it
  std::string teams() const {
    if (executable_.team_costs.empty()) return "";
    const double nodes = schedule::example_call(executable_.graph.structure).nodes();
    return "; of one root of " + std::to_string(int(nodes)) + " nodes " +
           by_roots(" on ", [&](int roots) { return workers_of_call(executable_, roots); }) + ", by the cost model";
  }

  /// "1, from 8 roots on 2, by the cost model; each with a share of a call's roots, and no barrier beyond it; with
  /// weights of their own", for as many threads as may share a call
  std::string groups() const {
    const Schedule& s = executable_.schedule;
    const int most = std::min(s.max_workers, max_call_workers);
    const std::string text = by_roots(" roots on ", [&](int roots) {
      return groups_of(executable_.group_rules, s.num_groups, most, std::size_t(roots));
    });
    if (text == "1") return "one: every thread takes part in all of a call's roots";
    return text + (s.num_groups ? "" : ", by the cost model") +
           "; each with a share of a call's roots, and no barrier beyond it" + weights_of_groups();
  }

  std::string weights_of_groups() const {
    if (executable_.groups_with_weights == 1) return {};
    const int size = executable_.size_with_weights;
    return "; with weights of their own" +
           (size > 1 ? " where they have " + std::to_string(size) + " workers or more" : std::string());
  }

  /// Weights that nothing reads.
  std::string unread() const {
    Vector<std::string> names;
    for (const WeightSpec& weight : executable_.weights)
      if (!weight.read) names.push_back(weight.name);
    return joined(names);
  }

  /// "matrices as bf16, Emb as i8; arithmetic is in f32"
  std::string stored() const {
    const Schedule& s = executable_.schedule;
    Vector<std::string> types;
    const auto as = [&](const std::string& what, DType type) {
      types.push_back(what + " as " + std::string(to_string(type)));
    };
    if (s.weight_type != DType::f32) as("those that sums of products read", s.weight_type);
    for (const auto& [name, type] : s.stored) as(name, type);
    if (types.empty()) return "";
    const auto& buffers = executable_.scheduled.buffers;
    const bool tiles = any_of(buffers, [](const ir::Buffer& b) { return b->tiles; });
    return "stored: " + joined(types) + (schedule::products_of(s.gpu) == DType::f32 ? "; arithmetic is in f32" : "") +
           (tiles ? ", with products of the matrix unit" : "");
  }

  /// What vectors multiply of weights that are stored so that the matrix unit could.
  void add_vectors(Table& lines) const {
    if (!schedule::uses_matrix_unit(executable_.target, executable_.schedule)) return;
    schedule::for_each_nest(executable_.scheduled.body, [&](const schedule::Nest& nest) {
      const char* const reason = schedule::why_vectors(nest);
      if (!reason) return;
      Vector<std::string> names;
      for (const schedule::Access& access : schedule::accesses_of(nest.inner))
        if (access.write && !contains(names, access.buffer->name)) names.push_back(access.buffer->name);
      lines.row({"vectors", "multiply for " + joined(names) + ", and not the matrix unit: " + reason});
    });
  }

  static std::string tiling(const Tiling& tiling) {
    Vector<std::string> asked;
    const auto add = [&](int count, const char* what) {
      if (count) asked.push_back("at most " + std::to_string(count) + what);
    };
    add(tiling.rows, " rows"), add(tiling.vectors, " vectors of each gate"), add(tiling.gates, " gates side by side");
    if (tiling.sweeps == Tiling::Sweeps::forward) asked.push_back("all sweeps over weights forward");
    return joined(asked);
  }

  /// How a GPU shares a call, and where its weights are.
  void add_gpu(Table& lines) const {
    const GpuSchedule& gpu = executable_.schedule.gpu;
    const std::string blocks = std::to_string(gpu.blocks);
    std::string group = "one block of threads";
    if (gpu.blocks > 1)
      group = gpu.group == GpuSchedule::Group::cluster
                  ? "a cluster of " + blocks + " blocks, which meet at the hardware's barrier"
                  : blocks + " blocks of the grid, which meet at a " + (gpu.lock_based ? "lock-based" : "lock-free") +
                        " barrier in memory";
    lines.row({"groups", "of a call's roots; each is " + group});
    const std::string threads = std::to_string(gpu.threads) + " a block";
    bool in_parts = false;
    for (const ir::Buffer& buffer : executable_.scheduled.buffers) in_parts |= buffer->parts > 1;
    const std::string column =
        in_parts ? std::to_string(gpu.parts) + " of a warp with a column of the output, each with a part of its sums,"
                 : "each with a column of the output";
    lines.row({"threads", executable_.schedule.by_hand ? threads
                                                       : threads + ", " + column + " for up to " +
                                                             std::to_string(gpu.rows) + " nodes side by side"});
    if (const DType type = schedule::products_of(gpu); type != DType::f32)
      lines.row({"tensor cores",
                 "multiply " + std::string(to_string(type)) +
                     " and add in f32, in tiles of 16 columns and 8 nodes a warp" +
                     (gpu.parts > 1 ? ", " + std::to_string(gpu.parts) + " chains of products each: " : ": ") +
                     joined(tiled())});
    const WeightPlaces places = weight_places(executable_.tiled);
    Vector<std::string> whole, parts;
    for (const InRegisters& some : places.in_registers)
      (some.all ? whole : parts).push_back(std::to_string(some.elements) + " of " + some.name);
    if (!residence_.empty()) lines.row({"kernel", residence_});
    const bool stays = !residence_.empty();
    const std::string elements = "elements that each thread multiplies at every level stay in its registers " +
                                 std::string(stays ? "as long as the kernel runs: " : "for a call: ");
    if (!whole.empty()) lines.row({"registers", elements + joined(whole)});
    if (!parts.empty())
      lines.row({"registers", elements + joined(parts) + "; they hold no more, and the others are read as below"});
    double bytes = 0;
    for (const ir::Buffer& buffer : places.on_chip) bytes += size_of_buffer(buffer).bytes;
    Vector<std::string> kept;
    if (!places.on_chip_names.empty()) kept.push_back(joined(places.on_chip_names));
    if (!places.spread_names.empty())
      kept.push_back("a part of " + joined(places.spread_names) + ", which all blocks of the cluster read there");
    if (!places.on_chip.empty())
      lines.row({"resident", bytes_text(bytes) + " of weights stay in each block's shared memory " +
                                 (stays ? "as long as the kernel runs: " : "for the time of a call: ") +
                                 joined(kept, "; ")});
    add_recent(lines);
    if (const std::int64_t room = codegen::room_for_structure(executable_.program, executable_.target.gpu.shared_bytes))
      lines.row({"structure",
                 "the linearizer's arrays of a group are copied to each block's shared memory, if they are no "
                 "more than " +
                     bytes_text(double(room))});
    if (!places.streamed.empty())
      lines.row({"streamed", "from the L2 cache, as they are read: " + joined(places.streamed)});
  }

  /// Rows that blocks of a GPU have at hand of what they exchange.
  void add_recent(Table& lines) const {
    Vector<std::string> names;
    double bytes = 0;
    std::int64_t rows = 0;
    bool shared = false;
    for (const ir::Buffer& buffer : executable_.tiled.buffers) {
      if (!ir::has_recent_rows(buffer->scope)) continue;
      names.push_back(buffer->name.substr(0, buffer->name.rfind("_recent")));
      bytes += size_of_buffer(buffer).bytes;
      rows = buffer->dims[0].extent();
      shared |= buffer->scope == ir::Scope::mirrored && executable_.schedule.gpu.blocks > 1;
    }
    if (names.empty()) return;
    lines.row({"recent rows", std::to_string(rows) + " of " + joined(names) + " stay in each block's shared memory, " +
                                  bytes_text(bytes) +
                                  (shared ? ", where the others of its cluster write what is theirs" : "") +
                                  "; older ones are read from the L2 cache"});
  }

  /// The matrices whose products are made by tensor cores, in the order of their first use.
  Vector<std::string> tiled() const {
    Vector<std::string> names;
    for (const ir::Buffer& buffer : executable_.scheduled.buffers) {
      if (!buffer->fragments || !buffer->packed_from) continue;
      const std::string& name = buffer->packed_from->name;
      if (!contains(names, name)) names.push_back(name);
    }
    return names;
  }

  std::string branches() const {
    const Schedule& s = executable_.schedule;
    const auto& ops = executable_.graph.ops;
    if (!any_of(ops, [](const ra::Op& op) { return op.kind == ra::OpKind::if_then_else; })) return "there are none";
    if (s.specialize_every) return "each side of each branch has code of its own";
    Vector<std::string> own;
    Vector<std::string> cut = ra::branches_cut_short(executable_.graph, s);
    for (std::string& name : cut) name = in_quotes(name);
    if (s.specializes_where_it_pays)
      own.push_back("branches on is_leaf, switches, and others whose sides multiply" +
                    (cut.empty() ? "" : " (of " + joined(cut) + " not all cases, of which there are too many)"));
    for (const std::string& name : s.specialized) own.push_back(name);
    return own.empty() ? "are decided at each node, when it runs"
                       : joined(own) + ": code of their own for each side; others are decided at each node";
  }

  std::string target() const {
    const Target& t = executable_.target;
    const std::string vectors =
        "vectors of " + std::to_string(t.vector_bytes) + " bytes, " + std::to_string(t.vector_registers) + " registers";
    if (t.backend == Backend::cuda)
      return "a GPU of compute capability " + capability_text(t.gpu.sm) + " with " +
             std::to_string(t.gpu.multiprocessors) + " multiprocessors and " + bytes_text(double(t.gpu.shared_bytes)) +
             " of shared memory a block";
    if (t.backend == Backend::interpreter) return "the interpreter, for " + vectors;
    return (t.cpu.empty() ? "this machine" : t.cpu) + ", " + vectors +
           (t.matrix_unit ? ", a matrix unit for bf16" : "");
  }

  const Executable& executable_;
  const std::string& residence_;
};

}  // namespace cortex::runtime::detail
