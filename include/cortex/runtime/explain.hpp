// A compiled model in words and numbers. Part of what stands behind the compile seam; users include
// `cortex/explain.hpp`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/count_work.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/pass/flatten_storage.hpp"
#include "cortex/runtime/executable.hpp"

namespace cortex::runtime {

namespace detail {

// ---- text ----

/// "1 234 567", or with a decimal where it is no integer.
inline std::string grouped(double value) {
  const double rounded = std::round(value * 10) / 10;
  std::string digits = std::to_string(std::int64_t(rounded));
  for (int at = int(digits.size()) - 3; at > 0; at -= 3) digits.insert(std::size_t(at), " ");
  const int tenth = int(std::round((rounded - std::floor(rounded)) * 10));
  return tenth ? digits + "." + std::to_string(tenth) : digits;
}

inline std::string bytes_text(double bytes) {
  char text[32];
  if (bytes < 10 * 1024) return grouped(bytes) + " B";
  const bool mega = bytes >= 1024 * 1024;
  std::snprintf(text, sizeof text, mega ? "%.1f MB" : "%.0f KB", bytes / (mega ? 1024.0 * 1024 : 1024.0));
  return text;
}

/// "a leaf", "an edge".
inline std::string per(const std::string& unit) {
  const bool vowel = std::string("aeiou").find(unit[0]) != std::string::npos;
  return (vowel ? "an " : "a ") + unit;
}

inline std::string joined(const Vector<std::string>& words, const char* between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// Rows of cells in columns as wide as their widest cells. Text stands left, numbers (from column `numbers` on, up to
/// `after`) right.
class Table {
 public:
  Table(std::size_t numbers, std::size_t after) : numbers_(numbers), after_(after) {}
  void row(Vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A line that keeps to no column.
  void line(std::string text) { rows_.push_back({std::move(text)}); }

  std::string text() const {
    Vector<std::size_t> widths;
    for (const auto& cells : rows_)
      for (std::size_t c = 0; cells.size() > 1 && c < cells.size(); ++c) {
        if (c == widths.size()) widths.push_back(0);
        widths[c] = std::max(widths[c], cells[c].size());
      }
    std::string result;
    for (const auto& cells : rows_) {
      std::string line = " ";
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string pad(cells.size() > 1 ? widths[c] - cells[c].size() : 0, ' ');
        line += " " + (c >= numbers_ && c < after_ ? pad + cells[c] : cells[c] + pad) + " ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      result += line + "\n";
    }
    return result;
  }

 private:
  std::size_t numbers_, after_;
  Vector<Vector<std::string>> rows_;
};

// ---- the parts of the text ----

class Explainer {
 public:
  explicit Explainer(const Executable& executable)
      : executable_(executable), work_(ir::count_work(executable.scheduled.body)) {}

  std::string text() const {
    return "model " + executable_.graph.name + "\n\n" + schedule() + "\n" + work() + "\n" + memory() + "\n" + checks() +
           "\n" + programs() + "\n" + times();
  }

 private:
  // ---- schedule ----

  std::string schedule() const {
    const Schedule& s = executable_.schedule;
    Table lines(9, 9);
    lines.row({"order", s.batched ? "level by level: nodes of one height do not depend on each other and run together"
                                  : "node by node, children before parents"});
    lines.row({"leaves", s.leaves_apart ? "have code of their own, without what needs children"
                                        : "run the same code as inner nodes, unless a branch has code of its own"});
    lines.row({"branches", branches()});
    for (const auto& [name, depth] : s.unrolled)
      lines.row({"unrolled", name + ": subtrees of " + std::to_string(depth) + " levels at a time, each one worker's"});
    for (const std::string& name : s.refactored)
      lines.row(
          {"refactored", "the recursion is cut at the product of " + name + ", and its end joins the parents' begin"});
    const std::string workers = std::to_string(s.max_workers);
    lines.row({"workers", s.max_workers == 1 ? "one thread runs a call"
                                             : "up to " + workers +
                                                   " threads share a call, each with its own slice of every "
                                                   "operator's last dimension"});
    lines.row({"functions", s.exact
                                ? "tanh, sigmoid and exp are the C library's"
                                : "tanh, sigmoid and exp in f32 are approximations of a few units in the last place"});
    lines.row({"target", target()});
    return "schedule\n" + lines.text();
  }

  std::string branches() const {
    const Schedule& s = executable_.schedule;
    const auto& ops = executable_.graph.ops;
    if (std::none_of(ops.begin(), ops.end(), [](const ra::Op& op) { return op.kind == ra::OpKind::if_then_else; }))
      return "there are none";
    if (s.specialize_every) return "each side of each branch has code of its own";
    Vector<std::string> own;
    if (s.specialize_all) own.push_back("branches on is_leaf and switches");
    for (const std::string& name : s.specialized) own.push_back(name);
    return own.empty() ? "are decided at each node, when it runs"
                       : joined(own) + ": code of their own for each side; others are decided at each node";
  }

  std::string target() const {
    const Target& t = executable_.target;
    const std::string vectors =
        "vectors of " + std::to_string(t.vector_bytes) + " bytes, " + std::to_string(t.vector_registers) + " registers";
    if (t.backend == Backend::interpreter) return "the interpreter, for " + vectors;
    return (t.cpu.empty() ? "this machine" : t.cpu) + ", " + vectors;
  }

  // ---- work ----

  std::string work() const {
    Table table(2, 4);
    table.row({"stored", "for each", "FLOPs", "functions", "weights read"});
    for (const ir::WorkItem& item : work_) {
      const std::string pad(std::size_t(item.depth) * 2, ' ');
      if (item.kind == ir::WorkItem::Kind::barrier)
        table.line(pad + "barrier");
      else if (item.kind == ir::WorkItem::Kind::loop)
        table.line(pad + "for each " + item.unit + ":");
      else
        add_nest(table, item, pad);
    }
    return "work, nest by nest\n" + table.text() +
           "  FLOPs: a multiply-add is 2; functions: tanh, sigmoid, exp, log, sqrt\n"
           "  weights read: elements that differ; register tiles read them again, from cache, for every few rows\n\n" +
           totals();
  }

  static void add_nest(Table& table, const ir::WorkItem& item, const std::string& pad) {
    Vector<std::string> stored;
    for (const ir::Buffer& buffer : item.stored) stored.push_back(buffer->name);
    std::string first = pad + joined(stored) + (item.by_each_worker ? " (by each worker)" : "");
    Vector<ir::Operations> rows = item.operations;
    if (rows.empty()) rows.push_back({item.unit});
    Vector<std::string> reads = read_texts(item);
    for (std::size_t r = 0; r < std::max(rows.size(), reads.size()); ++r) {
      const bool some = r < rows.size();
      table.row({r ? "" : first, some ? rows[r].unit : "", some ? grouped(rows[r].flops) : "",
                 some ? grouped(rows[r].functions) : "", r < reads.size() ? reads[r] : ""});
    }
  }

  /// "256 KB a level: U_f"
  static Vector<std::string> read_texts(const ir::WorkItem& item) {
    Vector<std::string> units, texts;
    for (const ir::WeightRead& read : item.weights)
      if (std::find(units.begin(), units.end(), read.unit) == units.end()) units.push_back(read.unit);
    for (const std::string& unit : units) {
      double bytes = 0;
      Vector<std::string> names;
      for (const ir::WeightRead& read : item.weights) {
        if (read.unit != unit) continue;
        bytes += read.bytes;
        names.push_back((read.weight->packed_from ? read.weight->packed_from : read.weight)->name);
      }
      texts.push_back(bytes_text(bytes) + " " + per(unit) + ": " + joined(names));
    }
    return texts;
  }

  std::string totals() const {
    Table table(1, 3);
    table.row({"in all", "FLOPs", "functions"});
    for (const ir::Operations& total : ir::total_of(work_))
      table.row({"for each " + total.unit, grouped(total.flops), grouped(total.functions)});
    return table.text() + "\n" + barriers();
  }

  std::string barriers() const {
    if (executable_.schedule.max_workers == 1) return "  no barriers: one worker runs a call\n";
    Table table(1, 2);
    int loop = 0;
    for (const auto& [unit, count] : ir::barriers_of(work_)) {
      if (unit == "call")
        table.row({"barriers a call, outside of the loops that follow", std::to_string(count)});
      else if (++loop; count > 0 || unit == "level")
        table.row({"barriers " + per(unit) + ", in loop " + std::to_string(loop), std::to_string(count)});
    }
    return table.text();
  }

  // ---- memory ----

  /// The bytes of a buffer's rows, or of all of it, and what there is a row for.
  struct Size {
    double bytes = 0;
    std::string unit;  // empty: all of it
  };

  static Size size_of_buffer(const ir::Buffer& buffer) {
    const ir::Layout layout = buffer->layout.empty() ? pass::detail::padded_layout(buffer) : buffer->layout;
    const double bytes = double(size_of(buffer->dtype));
    if (layout.fixed_size) return {double(layout.fixed_size) * bytes, ""};
    const double row = double(std::max<std::int64_t>(layout.row_size, 1)) * bytes;
    switch (buffer->dims[0].kind()) {
      case DimKind::batch: return {row, "node of a level"};
      case DimKind::batch_edge: return {row, "edge of a level"};
      case DimKind::edge: return {row, "edge"};
      case DimKind::open: return {row, "row"};
      default: return {row, "node"};
    }
  }

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
    if (buffer->packed_from) notes.push_back("packed");
    if (buffer->scope == ir::Scope::worker) notes.push_back("a copy for each worker");
    if (buffer->stored_in) notes.push_back("in the memory of " + buffer->stored_in->name);
    return joined(notes);
  }

  std::string memory() const {
    Table table(3, 4);
    Vector<Sum> sums;
    for (const ir::Role role : {ir::Role::state, ir::Role::temp, ir::Role::field, ir::Role::weight})
      for (const ir::Buffer& buffer : executable_.scheduled.buffers) {
        if (buffer->role != role) continue;
        const Size size = size_of_buffer(buffer);
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

  static void add(Vector<Sum>& sums, const ir::BufferInfo& buffer, const Size& size) {
    constexpr const char* plurals[] = {"weights", "fields", "states", "temporaries", "indices"};
    std::string what = plurals[std::size_t(buffer.role)];
    if (buffer.scope == ir::Scope::worker) what = "temporaries of each worker";
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
      table.row({ir::print(check.index), "inside " + executable_.weights[std::size_t(check.weight)].name,
                 "in " + check.where + ", before the kernel runs"});
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
    row("to LLVM IR", t.codegen);
    row("to machine code", t.llvm);
    return "compile time\n" + table.text();
  }

  const Executable& executable_;
  const Vector<ir::WorkItem> work_;
};

}  // namespace detail

/// What `explain` gives.
inline std::string explain_executable(const Executable& executable) { return detail::Explainer(executable).text(); }

}  // namespace cortex::runtime
