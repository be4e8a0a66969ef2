// A compiled model in words and numbers. Part of what stands behind the compile seam; users include
// `cortex/explain.hpp`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/count_work.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ra/index_checks.hpp"
#include "cortex/runtime/caches.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/explain_schedule.hpp"
#include "cortex/runtime/explain_text.hpp"
#include "cortex/runtime/tables.hpp"
#include "cortex/schedule/choose_groups.hpp"

namespace cortex::runtime {

namespace detail {

// ---- the parts of the text ----

class Explainer {
 public:
  /// `residence`: see `explain_executable`.
  explicit Explainer(const Executable& executable, std::string residence = {})
      : executable_(executable), residence_(std::move(residence)), work_(ir::count_work(executable.scheduled.body)) {}

  std::string text() const {
    return "model " + executable_.graph.name + "\n\n" + ScheduleExplainer(executable_, residence_).text() + "\n" +
           work() + "\n" + prediction() + "\n" + memory() + "\n" + tables() + in_place() + "\n" + checks() + "\n" +
           programs() + "\n" + times();
  }

 private:
  // ---- work ----

  /// Whether the slice on chip that was to hold some of a weight is there no more: registers hold all of it.
  bool is_gone(const ir::Buffer& buffer) const {
    const auto& there = executable_.tiled.buffers;
    return buffer->scope == ir::Scope::chip && !contains(there, buffer);
  }

  std::string work() const {
    Table table(2, 4);
    table.row({"stored", "for each", "FLOPs", "functions", "weights read"});
    for (const ir::WorkItem& item : work_) {
      const std::string pad(std::size_t(item.depth) * 2, ' ');
      if (item.kind == ir::WorkItem::Kind::barrier)
        table.line(pad + "barrier");
      else if (item.kind == ir::WorkItem::Kind::loop)
        table.line(pad + "for each " + to_string(item.unit) + ":");
      else if (item.stored.empty() || !is_gone(item.stored.front()))
        add_nest(table, item, pad);
    }
    return "work, nest by nest\n" + table.text() +
           "  FLOPs: a multiply-add is 2; functions: exp, log, tanh and their like, sqrt\n"
           "  weights read: elements that differ; register tiles read them again, from cache, for every few rows\n\n" +
           totals();
  }

  /// "h, c"; "h (70), c" of 70 cases that store to h
  static std::string stored_by(const ir::WorkItem& item) {
    Vector<std::string> names;
    Vector<int> times;
    for (const ir::Buffer& buffer : item.stored) {
      const std::size_t at = std::size_t(std::find(names.begin(), names.end(), buffer->name) - names.begin());
      if (at == names.size()) names.push_back(buffer->name), times.push_back(0);
      ++times[at];
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (times[i] > 1) names[i] += " (" + std::to_string(times[i]) + ")";
    return joined(names);
  }

  static void add_nest(Table& table, const ir::WorkItem& item, const std::string& pad) {
    std::string first = pad + stored_by(item) + (item.by_each_worker ? " (by each worker)" : "");
    Vector<ir::Operations> rows = item.operations;
    if (rows.empty()) rows.push_back({item.unit});
    Vector<std::string> reads = read_texts(item);
    for (std::size_t r = 0; r < std::max(rows.size(), reads.size()); ++r) {
      const bool some = r < rows.size();
      table.row({r ? "" : first, some ? to_string(rows[r].unit) : "", some ? grouped(rows[r].flops) : "",
                 some ? grouped(rows[r].functions) : "", r < reads.size() ? reads[r] : ""});
    }
  }

  /// "256 KB a level: U_f"
  static Vector<std::string> read_texts(const ir::WorkItem& item) {
    Vector<ir::WorkUnit> units;
    Vector<std::string> texts;
    for (const ir::WeightRead& read : item.weights)
      if (!contains(units, read.unit)) units.push_back(read.unit);
    for (const ir::WorkUnit& unit : units) {
      double bytes = 0;
      Vector<std::string> names;
      for (const ir::WeightRead& read : item.weights) {
        if (read.unit != unit) continue;
        bytes += read.bytes;
        const ir::BufferInfo& weight = *(read.weight->packed_from ? read.weight->packed_from : read.weight);
        names.push_back((read.weight->is_scales ? "scales of " : "") + weight.name);
      }
      texts.push_back(bytes_text(bytes) + " " + per(to_string(unit)) + ": " + joined(names));
    }
    return texts;
  }

  std::string totals() const {
    Table table(1, 3);
    table.row({"in all", "FLOPs", "functions"});
    for (const ir::Operations& total : ir::total_of(work_))
      table.row({"for each " + to_string(total.unit), grouped(total.flops), grouped(total.functions)});
    return table.text() + "\n" + barriers();
  }

  std::string barriers() const {
    if (executable_.schedule.max_workers == 1) return "  no barriers: one worker runs a call\n";
    Table table(1, 2);
    int loop = 0;
    for (const auto& [unit, count] : ir::barriers_of(work_)) {
      if (unit.kind == ir::WorkUnit::Kind::call)
        table.row({"barriers a call, outside of the loops that follow", std::to_string(count)});
      else if (++loop; count > 0 || unit.kind == ir::WorkUnit::Kind::level)
        table.row({"barriers " + per(to_string(unit)) + ", in loop " + std::to_string(loop), std::to_string(count)});
    }
    return table.text();
  }

  // ---- predicted time ----

  static std::string microseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", seconds * 1e6);
    return text;
  }

  /// "6 x 2 x 4"
  static std::string tile(const ir::WorkItem& item, const schedule::NestCost& cost) {
    if (!cost.rows) return "";
    return std::to_string(cost.rows) + " x " + std::to_string(cost.vectors) + " x " + std::to_string(item.gates);
  }

  std::string prediction() const {
    if (executable_.target.backend == Backend::cuda) return "no time is predicted: the cost model knows no GPUs\n";
    constexpr const char* examples[] = {"a sequence of 32 nodes", "a tree of 20 words", "a grid of 6 x 6 nodes"};
    const bool several = executable_.schedule.max_workers > 1;
    Schedule schedule = executable_.schedule;
    schedule.max_workers = workers_of_call(executable_, 1);
    return "predicted time of a call on " + std::string(examples[std::size_t(executable_.graph.structure)]) +
           (several ? ", workers: " + std::to_string(schedule.max_workers) : "") + "\n" + predicted_times(schedule) +
           "  tile: rows x vectors x gates, of the largest tiles; small levels have smaller ones, of more vectors\n"
           "  weights: waiting for them, beyond what arithmetic hides; loops: beginning them and their rows; barriers: "
           "and other workers' start, and what they wrote\n"
           "  by a cost model with round numbers: to compare schedules by, and to see what counts; measure for the "
           "rest\n";
  }

  /// Of each nest that calls make, in microseconds.
  std::string predicted_times(const Schedule& schedule) const {
    const schedule::CallShape shape = schedule::example_call(executable_.graph.structure);
    const schedule::MachineModel machine = machine_model(executable_.target);
    Table table(1, 8);
    table.row({"microseconds", "tile", "arithmetic", "weights", "functions", "loops", "barriers", "in all"});
    const auto row = [&](const std::string& name, const std::string& tile, const schedule::CostTerms& t) {
      table.row({name, tile, microseconds(t.arithmetic), microseconds(t.weights), microseconds(t.functions),
                 microseconds(t.loops), microseconds(t.barriers), microseconds(t.total())});
    };
    schedule::CostTerms all, barriers;
    Vector<std::string> tabulated;
    for (const schedule::NestCost& cost :
         schedule::predict_nests(work_, schedule, executable_.target, machine, shape)) {
      const ir::WorkItem& item = work_[cost.item];
      if (item.tabulated) {
        if (!item.stored.empty()) tabulated.push_back(stored_by(item));
        continue;
      }
      all += cost.terms;
      if (!item.stored.empty() && is_gone(item.stored.front())) continue;
      if (item.kind == ir::WorkItem::Kind::barrier)
        barriers += cost.terms;
      else
        row(stored_by(item), tile(item, cost), cost.terms);
    }
    if (schedule.max_workers > 1) {
      barriers.barriers += machine.start, all.barriers += machine.start;
      row("barriers", "", barriers);
    }
    all.nodes = machine.node * shape.nodes();
    table.row({"numbering of the nodes", "", "", "", "", "", "", microseconds(all.nodes)});
    row("in all", "", all);
    if (tabulated.empty()) return table.text();
    return table.text() + "  without what comes from tables, where there is room for them: " + joined(tabulated) + "\n";
  }

  // ---- memory ----

  static std::string shape(const ir::Buffer& buffer) {
    Vector<std::string> dims;
    for (const Dim& dim : buffer->dims)
      if (dim.extent() > 0 || dim.kind() == DimKind::open)
        dims.push_back(dim.name() + (dim.extent() > 0 ? " " + std::to_string(dim.extent()) : ""));
    return std::string(to_string(buffer->dtype)) + " [" + joined(dims) + "]";
  }

  static std::string role(const ir::BufferInfo& buffer) {
    constexpr const char* roles[] = {"weight", "field", "state", "temporary", "index"};
    return roles[std::size_t(buffer.role)];
  }

  static std::string note(const ir::Buffer& buffer) {
    Vector<std::string> notes;
    if (buffer->is_scales)
      notes.push_back("of " + buffer->packed_from->name);
    else if (buffer->packed_from)
      notes.push_back(buffer->tiles ? "packed for the matrix unit" : "packed");
    if (buffer->transposed) notes.push_back("transposed");
    if (buffer->scope == ir::Scope::worker) notes.push_back("a copy for each worker");
    if (ir::is_on_chip(buffer->scope)) notes.push_back("in each block's shared memory");
    if (buffer->stored_in) notes.push_back("in the memory of " + buffer->stored_in->name);
    return joined(notes);
  }

  std::string memory() const {
    Table table(3, 4);
    Vector<Sum> sums;
    for (const ir::Role role : {ir::Role::state, ir::Role::temp, ir::Role::field, ir::Role::weight})
      for (const ir::Buffer& buffer : executable_.scheduled.buffers) {
        if (buffer->role != role || is_gone(buffer)) continue;
        const BufferSize size = size_of_buffer(buffer);
        table.row({buffer->name, this->role(*buffer), shape(buffer), bytes_text(size.bytes),
                   size.unit.empty() ? "" : per(size.unit), note(buffer)});
        add(sums, *buffer, size);
      }
    return "memory\n" + table.text() + "\n" + totals_of(sums);
  }

  /// Bytes for each unit of one role.
  struct Sum {
    std::string what, unit;
    double bytes = 0, unshared = 0;
  };

  static void add(Vector<Sum>& sums, const ir::BufferInfo& buffer, const BufferSize& size) {
    constexpr const char* plurals[] = {"weights", "fields", "states", "temporaries", "indices"};
    std::string what = plurals[std::size_t(buffer.role)];
    if (buffer.scope == ir::Scope::worker) what = "temporaries of each worker";
    if (ir::keeps_weights(buffer.scope)) what = "weights on chip of each block";
    if (ir::has_recent_rows(buffer.scope)) what = "recent rows on chip of each block";
    auto at = std::find_if(sums.begin(), sums.end(),
                           [&](const Sum& sum) { return sum.what == what && sum.unit == size.unit; });
    if (at == sums.end()) at = sums.insert(at, {what, size.unit});
    at->unshared += size.bytes;
    if (!buffer.stored_in) at->bytes += size.bytes;
  }

  static std::string totals_of(const Vector<Sum>& sums) {
    Table table(1, 2);
    for (const Sum& sum : sums)
      table.row({"in all, " + sum.what, bytes_text(sum.bytes), sum.unit.empty() ? "" : per(sum.unit),
                 sum.unshared > sum.bytes ? "without sharing " + bytes_text(sum.unshared) : ""});
    return table.text() +
           "  packed: a copy made when the weight is bound, in the order in which the loops read it, padded\n"
           "  a level: the largest one of the call; the linearizer's arrays come on top, see Output::memory()\n";
  }

  // ---- tables ----

  std::string tables() const {
    const ir::Program& program = executable_.program;
    const std::string head = "tables, made when weights are bound\n";
    if (program.tabulations.empty())
      return head + "  none: all is computed in each call, by the schedule or for want of something to tabulate\n" +
             not_by();
    Table table(1, 2);
    for (const ir::Tabulation& tabulation : program.tabulations) {
      double bytes = 0;
      Vector<std::string> results, fields;
      for (const int buffer : results_of(program, tabulation)) {
        results.push_back(program.buffers[std::size_t(buffer)]->name);
        bytes += double(row_bytes_of(*program.buffers[std::size_t(buffer)]));
      }
      for (const ir::Tabulation::Key& key : tabulation.keys) fields.push_back(field_name(key.field));
      using Kind = ir::Tabulation::Rows;
      std::string rows = tabulation.rows == Kind::leaves     ? " at leaves"
                         : tabulation.rows == Kind::internal ? " at inner nodes"
                                                             : "";
      if (const auto [first, count] = tabulation.parts; count) {
        rows += (rows.empty() ? " at nodes of part" : " of part") + std::string(count > 1 ? "s " : " ");
        rows += std::to_string(first) + (count > 1 ? " to " + std::to_string(first + count - 1) : "");
      }
      const bool once = tabulation.rows == Kind::once;
      table.row({joined(results) + (once ? ", of weights alone" : rows + (", by " + joined(fields))), bytes_text(bytes),
                 once ? "" : "a row, of which there are as many as fields have values"});
    }
    const std::string checked = executable_.guarded.empty() ? ""
                                                            : "  each where the indices that are checked before the "
                                                              "kernel runs, see below, are inside for all its rows\n";
    return head + table.text() + "  all of them up to " + std::to_string(executable_.schedule.table_megabytes) +
           " MB, in this order; what does not fit is computed in calls, see Functor::memory()\n" + checked + not_by();
  }

  /// Indices made of fields by which there are no tables.
  std::string not_by() const {
    std::string text;
    if (executable_.schedule.tabulating == Tabulating::off) return text;
    for (const ra::IndexCheck& check : ra::index_checks(executable_.graph).indices) {
      bool of_field = false;
      ir::visit_with(check.index, [&](const ir::UfCall& call) { of_field |= call.uf.kind == ir::UfKind::field; });
      if (!of_field || ra::plain_field(check.index, check.node) >= 0) continue;
      text += "  not by " + ir::print(check.index) + ", at which " + check.where + " reads " + check.of.name +
              ": tables go by a field of the node itself, as it stands; shift the weight's rows, or the field\n";
    }
    return text;
  }

  /// States whose rows at leaves nobody copies.
  std::string in_place() const {
    std::string text;
    for (const ir::InPlace& rows : executable_.program.in_place)
      for (const ra::Op& op : executable_.graph.ops)
        if (op.kind == ra::OpKind::input && op.buffer->slot == rows.weight)
          text += "  " + executable_.program.buffers[std::size_t(rows.state)]->name + " at leaves is read from " +
                  op.name() + ", by " + field_name(rows.field) +
                  (std::is_sorted(rows.dims.begin(), rows.dims.end())
                       ? ", where it is bound\n"
                       : ", whose rows are laid out like its own when it is bound\n");
    return text;
  }

  std::string field_name(int field) const { return executable_.graph.fields[std::size_t(field)].name; }

  // ---- checks ----

  std::string checks() const {
    Table table(9, 9);
    for (std::size_t f = 0; f < executable_.fields.size(); ++f) {
      const FieldSpec& field = executable_.fields[f];
      if (field.table.empty()) continue;
      table.row({executable_.graph.fields[f].name, "below the extent of " + field.table,
                 "at each node that reads it, while nodes are numbered"});
    }
    for (const GuardedCheck& check : executable_.guarded)
      table.row({ir::print(check.index), "inside " + check.of.name, "in " + check.where + ", before the kernel runs"});
    const std::string text = table.text();
    const CheckCounts& counts = executable_.checks;
    return "checks of indices, each call\n" + (text.empty() ? "  none\n" : text) +
           "  left out, since they cannot fail: " + std::to_string(counts.by_rules) +
           " by what the linearizer guarantees, " + std::to_string(counts.by_intervals) + " by intervals, " +
           std::to_string(counts.by_z3) + " by Z3\n";
  }

  // ---- programs, times ----

  static std::string indented(const std::string& text) {
    std::string result = "  ";
    for (const char c : text) {
      result += c;
      if (c == '\n') result += "  ";
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result;
  }

  std::string programs() const {
    return "loops as lowered, before the schedule of loops\n" + indented(ir::print(executable_.lowered)) +
           "\nloops as scheduled, before register tiles\n" + indented(ir::print(executable_.scheduled));
  }

  std::string times() const {
    const CompileTimes& t = executable_.times;
    Table table(1, 2);
    char text[32];
    const auto row = [&](const char* what, double ms) {
      std::snprintf(text, sizeof text, "%.1f ms", ms);
      table.row({what, text});
    };
    row("to scheduled loops", t.lower);
    const bool gpu = executable_.target.backend == Backend::cuda;
    row(gpu ? "to CUDA C++" : "to LLVM IR", t.codegen);
    if (!gpu) row(executable_.is_linked ? "to machine code that the program has" : "to machine code", t.llvm);
    return "compile time\n" + table.text();
  }

  const Executable& executable_;
  const std::string residence_;
  const Vector<ir::WorkItem> work_;
};

}  // namespace detail

/// What `explain` gives. `residence`: of a kernel that stays on a device, in words how; empty for all others.
inline std::string explain_executable(const Executable& executable, const std::string& residence = {}) {
  return detail::Explainer(executable, residence).text();
}

}  // namespace cortex::runtime
