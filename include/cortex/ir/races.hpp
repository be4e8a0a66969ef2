// Finds data races: two accesses of two workers to one element of a shared buffer, one of them a write, that nothing
// orders. An independent check of the barriers in a program.
//
//   parallel for i: z[i] = x[i]              race on 'z'[1]: worker 1 writes it in
//   parallel for i: y[i] = z[n - 1 - i]  ->    parallel for i: z[i] = x[i]
//                                            and worker 0 reads it in
//                                              parallel for i: y[i] = z[n - 1 - i]
//
// Each worker has a vector clock: how far it knows every other one to have come. A barrier joins the clocks of all. An
// access is unordered with an earlier one of another worker if that happened later than the clock knows. So a race is
// found in whatever order the workers take their turns, and one execution speaks for all: where it has no race, every
// worker reads the same values, and with them does the same, however the workers interleave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/interpret.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/print.hpp"

namespace cortex::ir {

/// What each worker knows of the others' progress. Time 0 is before all that a worker does.
class VectorClocks {
 public:
  using Time = std::uint32_t;
  /// What a barrier, or a signal, hands on.
  using Clock = Vector<Time>;

  explicit VectorClocks(int workers) : clocks_(std::size_t(workers), Clock(std::size_t(workers))) {
    for (std::size_t w = 0; w < clocks_.size(); ++w) clocks_[w][w] = 1;
  }

  int workers() const { return int(clocks_.size()); }
  Time now(int worker) const { return clocks_[std::size_t(worker)][std::size_t(worker)]; }

  /// Whether all that `other` did up to its time `when` is before what `worker` does now.
  bool ordered(int other, Time when, int worker) const {
    return when <= clocks_[std::size_t(worker)][std::size_t(other)];
  }

  /// `worker` signals: what it has done and knows goes into `signal`.
  void release(int worker, Clock& signal) {
    signal.resize(clocks_.size());
    join(signal, clocks_[std::size_t(worker)]);
    ++clocks_[std::size_t(worker)][std::size_t(worker)];
  }
  /// `worker` has waited for `signal`.
  void acquire(int worker, const Clock& signal) { join(clocks_[std::size_t(worker)], signal); }

  /// All workers arrive before any goes on.
  void barrier() {
    Clock all;
    for (int w = 0; w < workers(); ++w) release(w, all);
    for (int w = 0; w < workers(); ++w) acquire(w, all);
  }

 private:
  static void join(Clock& into, const Clock& from) {
    for (std::size_t w = 0; w < from.size(); ++w) into[w] = std::max(into[w], from[w]);
  }

  Vector<Clock> clocks_;  // [worker][worker]
};

/// Two accesses that nothing orders.
struct Race {
  struct Side {
    int worker = 0;
    bool write = false;
    Stmt stmt;  // of the program, the innermost that the access is a part of
  };
  std::string buffer;
  Vector<std::int64_t> element;  // its index in the program: at device level an offset
  Side first, second;            // in the order of this execution
};

namespace detail {

/// Watches the accesses of all workers; keeps the first race.
class RaceObserver {
 public:
  static constexpr bool watches = true;

  RaceObserver(const LogicalRun& run, int workers)
      : code_(run.code()), clocks_(workers), shadows_(code_.buffers.size()) {
    for (std::size_t b = 0; b < std::size_t(code_.num_buffers); ++b) {
      const BufferInfo& buffer = *code_.buffers[b];
      if (buffer.scope != Scope::shared || !changes_in_calls(buffer)) continue;
      std::size_t size = 1;
      for (const std::int64_t extent : shadows_[b].extents = run.extents(b)) size *= std::size_t(extent);
      shadows_[b].marks.resize(size * std::size_t(workers));
    }
  }

  void touch(int worker, int access, std::int64_t offset, bool write) {
    const std::size_t buffer = std::size_t(code_.accesses[std::size_t(access)].buffer);
    Shadow& shadow = shadows_[buffer];
    if (shadow.marks.empty() || found_) return;
    Mark* const marks = &shadow.marks[std::size_t(offset) * std::size_t(clocks_.workers())];
    for (int other = 0; other < clocks_.workers(); ++other) {
      const Mark& mark = marks[other];
      if (other == worker) continue;
      // A worker's last access stands for its earlier ones: where that is ordered, so are they.
      if (!clocks_.ordered(other, mark.written, worker))
        return report(buffer, offset, {other, true, stmt_of(mark.write)}, {worker, write, stmt_of(access)});
      if (write && !clocks_.ordered(other, mark.was_read, worker))
        return report(buffer, offset, {other, false, stmt_of(mark.read)}, {worker, write, stmt_of(access)});
    }
    Mark& own = marks[worker];
    (write ? own.written : own.was_read) = clocks_.now(worker);
    (write ? own.write : own.read) = access;
  }

  /// All workers stand at a barrier, or at the end; false if there is nothing more to find.
  bool barrier() {
    clocks_.barrier();
    return !found_;
  }

  std::optional<Race> take() { return std::move(found_); }

 private:
  /// When a worker last wrote and read an element, and by which access.
  struct Mark {
    VectorClocks::Time written = 0, was_read = 0;
    std::int32_t write = 0, read = 0;
  };
  struct Shadow {
    Vector<std::int64_t> extents;
    Vector<Mark> marks;  // [element][worker]; empty: not shared, or never written
  };

  const Stmt& stmt_of(std::int32_t access) const { return code_.accesses[std::size_t(access)].stmt; }

  void report(std::size_t buffer, std::int64_t offset, Race::Side first, Race::Side second) {
    const Shadow& shadow = shadows_[buffer];
    Vector<std::int64_t> element(shadow.extents.size());
    for (std::size_t d = element.size(); d-- > 0; offset /= shadow.extents[d]) element[d] = offset % shadow.extents[d];
    found_ = Race{code_.buffers[buffer]->name, std::move(element), std::move(first), std::move(second)};
  }

  const vm::Bytecode& code_;
  VectorClocks clocks_;
  Vector<Shadow> shadows_;  // [buffer]
  std::optional<Race> found_;
};

}  // namespace detail

/// Runs `program` as `interpret` does, with so many workers, until two of their accesses race. Where none do, `storage`
/// holds the results. Throws `Error{internal}` for a deadlock, where workers meet different numbers of barriers, and
/// for what `interpret` refuses.
inline std::optional<Race> find_race(const Program& program, const StructureEnv& env, Storage& storage, int workers) {
  if (workers < 1) throw Error(Code::internal, "interpreter: a call has at least one worker");
  const InterpretOptions options{workers};
  detail::LogicalRun run(program, env, storage, options);
  detail::RaceObserver observer(run, workers);
  run.run(observer);
  return observer.take();
}

namespace detail {

/// The loops around `wanted` in `s`, and the first line of `wanted` itself; "" if it does not stand there.
inline std::string path_to(const Stmt& wanted, const Stmt& s) {
  if (s.same_as(wanted)) {
    const std::string text = print(s);
    return text.substr(0, text.find('\n'));
  }
  if (const auto* loop = s.as<For>()) {
    const std::string inner = path_to(wanted, loop->body);
    const std::string var = loop->var.as<Var>()->name;
    return inner.empty() ? "" : (loop->loop == ForKind::parallel ? "parallel for " : "for ") + var + ": " + inner;
  }
  if (const auto* block = s.as<Block>()) {
    for (const Stmt& part : block->stmts)
      if (std::string inner = path_to(wanted, part); !inner.empty()) return inner;
  } else if (const auto* let = s.as<LetStmt>()) {
    return path_to(wanted, let->body);
  } else if (const auto* alloc = s.as<Alloc>()) {
    return path_to(wanted, alloc->body);
  } else if (const auto* branch = s.as<If>()) {
    std::string inner = path_to(wanted, branch->then_body);
    return inner.empty() && branch->else_body ? path_to(wanted, branch->else_body) : inner;
  }
  return {};
}

}  // namespace detail

/// The race as text: who does what to which element, and where in `program`, in which it was found.
inline std::string describe(const Race& race, const Program& program) {
  const auto side = [&](const Race::Side& s) {
    return "worker " + std::to_string(s.worker) + (s.write ? " writes" : " reads") + " it in\n  " +
           detail::path_to(s.stmt, program.body) + "\n";
  };
  std::string index;
  for (const std::int64_t i : race.element) index += (index.empty() ? "" : ",") + std::to_string(i);
  return "race on '" + race.buffer + "' [" + index + "]: " + side(race.first) + "and " + side(race.second) +
         "with nothing to order them\n";
}

}  // namespace cortex::ir
