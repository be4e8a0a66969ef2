// Threads that take part in calls: a bounded pool, shared by any number of models.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cortex/base/clock.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/function_ref.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/runtime/barrier.hpp"
#include "cortex/runtime/cpus.hpp"
#include "cortex/runtime/crowding.hpp"
#include "cortex/runtime/forks.hpp"
#include "cortex/runtime/wake_elsewhere.hpp"

namespace cortex {

/// Where the threads of a pool run.
enum class Placement : std::uint8_t {
  anywhere,  // the system moves them as it likes, but is told to wake one that sleeps on another CPU than its caller's
  pinned,    // each stays on one CPU, so that its slice of the weights stays in that CPU's cache
  untold,    // the system is told nothing: for processes that may not call sched_setaffinity
};

/// A fixed number of threads that help calls along, each one call at a time. A call takes those that are free and never
/// waits for others, so any number of models and calling threads can share one pool, and no more threads than these
/// ever run; none outlives the pool. Threads spin for some 20 us while they wait for each other inside of a call (100
/// us, where some have to be woken and there are CPUs for all), and at its end for an eighth of what it took (at least
/// 20 us, at most 1 ms), then sleep. Calls that may have fewer workers take fewer where others are made at the same
/// time, each its share of the cores, and, for a while, where other threads want the CPUs, so that calls wait for
/// threads which wait for their turn. Debuggers and `top` show them as "cortex/1" and so on; signals to the process go
/// to the program's own threads.
///
/// A child process (fork) has the pool, but none of its threads: calls there are their callers' alone, until a pool
/// that the child makes takes this one's place. A process may fork while its threads call and bind: the fork waits for
/// those that publish weights or make tables of them.
class Workers {
 public:
  /// The most threads of a pool. One call takes 255 of them at most, beside its caller; the others are for calls made
  /// at the same time. Threads beyond the cores of the machine only stand in each other's way.
  static constexpr int most_threads = Schedule::most_workers;

  /// Starts `threads` threads, at most `most_threads`. 0: as many as there are cores that this process may use (by
  /// affinity and by the limits of its control group) beside the caller's, which may be none; a core counts once,
  /// however many hardware threads it has. Pinned ones take these cores in turn from the second on, which leaves the
  /// first to a caller, and then their other hardware threads; where the caller runs is its own to say. `cpus`: how
  /// many workers at most a call has that may have fewer, whatever the number of threads, since others would wait for
  /// their turn on a CPU; 0: as many as this process may use. Throws `Error{invalid_argument}` for a negative number,
  /// or one that is too large, and `Error{unavailable}` if the system refuses a thread or its place.
  explicit Workers(int threads = 0, Placement placement = Placement::anywhere, int cpus = 0)
      : placement_(placement), cpus_(cpus > 0 ? cpus : runtime::usable_cpus()) {
    if (threads < 0 || threads > most_threads)
      throw Error(Code::invalid_argument, "Workers: the number of threads is " + std::to_string(threads) +
                                              "; give a number from 1 to " + std::to_string(most_threads) +
                                              ", or 0 for one that fits this machine");
    if (cpus < 0)
      throw Error(Code::invalid_argument, "Workers: the number of CPUs is " + std::to_string(cpus) +
                                              "; give a positive number, or 0 for those of this process");
    slots_ = std::vector<Slot>(std::size_t(threads ? threads : std::min(cores_ - 1, most_threads)));
    try {
      for (Slot& slot : slots_) start(slot);
      if (placement == Placement::pinned) pin();
    } catch (...) {
      stop();
      throw;
    }
  }
  /// The last call on the pool must be over.
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// How many threads there are.
  int size() const { return int(slots_.size()); }
  Placement placement() const { return placement_; }
  /// How many threads are free at the moment.
  int available() const { return free(size() + 1).all - 1; }

  /// Those that a call would have at the moment, its caller among them: all, and the ones that are awake.
  struct Free {
    int all = 1, awake = 1;
  };
  Free free(int wanted) const {
    Free result;
    for (const Slot& slot : slots_) {
      if (result.all >= wanted || !has_threads()) break;
      if (slot.taken.load(std::memory_order_relaxed)) continue;
      ++result.all;
      result.awake += !slot.state.has_sleeper();
    }
    return result;
  }

  /// A call was made that left threads asleep, and has taken so long.
  void left_asleep(std::int64_t call_ns) { note_call(now_ns(), call_ns); }
  /// Whether the threads would still spin, had all of them helped with the last call: the next one follows it closely.
  bool follow() const { return now_ns() < awake_until_.load(std::memory_order_relaxed); }

  /// A call of a model that has this pool, for as long as it takes; null: a model without one.
  class Caller {
   public:
    explicit Caller(Workers* pool) : pool_(pool) {
      if (pool_) pool_->callers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Caller() {
      if (pool_) pool_->callers_.fetch_sub(1, std::memory_order_relaxed);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Workers* const pool_;
  };

  /// Of `wanted` workers, how many a call should take that may have fewer: no more than there are CPUs, its share of
  /// the cores, beside the calls that are under way, and as many as calls before it have gained by.
  int limit(int wanted) {
    wanted = std::min(wanted, cpus_);
    if (const int callers = callers_.load(std::memory_order_relaxed); callers > 1)
      wanted = std::clamp(cores_ / callers, 1, wanted);
    return crowding_.may_limit() ? crowding_.limit(wanted, now_ns()) : wanted;
  }

  /// How long this thread worked in a run, and how long it slept because others had not come.
  struct Times {
    int num_workers;
    std::int64_t working_ns, late_ns, end;  // `end`: by `now_ns`
    bool woke = false;                      // threads that slept
  };
  /// Tells `limit` of a call in a run with these times. `gained_ns`: how much longer one worker would have taken;
  /// `due_ns`: how long others had to be waited for, as they had more to do. A call that woke threads counts as late
  /// for twice its work at most: where calls are far apart, what ran between them may be just about to leave the CPU.
  void note(const Times& times, std::int64_t gained_ns, std::int64_t due_ns = 0) {
    if (times.num_workers == 1) return;
    const std::int64_t late = std::max<std::int64_t>(times.late_ns - due_ns, 0);
    crowding_.note(gained_ns, times.woke ? std::min(late, 2 * times.working_ns) : late, times.end);
  }

  /// Calls `f(worker, num_workers, barrier)` once per worker, at the same time: on this thread as worker 0 and on up to
  /// `wanted - 1` threads that are free, and returns when all are done. If some throw, the barrier lets go of the
  /// others, by throwing too, and this thread throws what the first of them has thrown. May be called from any number
  /// of threads, but not from inside `f`.
  template <class F>
  Times run(int wanted, F&& f) {
    Job job;
    job.function = const_cast<void*>(static_cast<const void*>(std::addressof(f)));  // put back below
    job.call = [](void* function, int worker, int num_workers, runtime::Barrier& barrier) {
      (*static_cast<std::remove_reference_t<F>*>(function))(worker, num_workers, barrier);
    };
    claim(job, wanted);
    const std::int64_t start = now_ns();
    const bool woke = begin(job);
    std::int64_t asleep = 0;
    const std::int64_t unmet = take_part(job, 0, asleep), end = now_ns(), met_asleep = asleep;
    const std::int64_t spin = std::max(unmet, runtime::spin_ns_after(end - start));
    for (int w = 1; w < job.num_workers; ++w)
      job.slot_of[std::size_t(w)]->state.wait([](std::uint32_t state) { return state == waiting; }, spin, asleep);
    // All are done before the first is free: one that has failed signals through the others' lines.
    for (int w = 1; w < job.num_workers; ++w)
      job.slot_of[std::size_t(w)]->taken.store(false, std::memory_order_release);
    if (job.error) [[unlikely]]
      std::rethrow_exception(job.error);
    if (job.num_workers > 1) note_call(end, end - start);
    return {job.num_workers, end - start - met_asleep, asleep, end + asleep - met_asleep, woke};
  }

 private:
  static constexpr std::uint32_t waiting = 0, running = 1, stopped = 2;
  struct Slot;

  /// Whether this is the process whose threads they are.
  bool has_threads() const { return runtime::forks().load(std::memory_order_relaxed) == forks_; }

  /// A call, on the stack of its caller.
  struct Job {
    void* function;
    void (*call)(void* function, int worker, int num_workers, runtime::Barrier& barrier);
    int num_workers = 1;
    std::int64_t first_spin = runtime::spin_ns;
    std::atomic<bool> failed{false}, broken{false};
    std::exception_ptr error;   // of the first worker that failed
    runtime::BarrierLine line;  // the caller's
    std::array<runtime::BarrierLine*, runtime::max_call_workers> lines;
    std::array<Slot*, runtime::max_call_workers> slot_of;
  };

  /// A thread and what it shares with the caller that has taken it. Only that caller writes `job`, `worker` and
  /// `state`, until the thread is back to waiting.
  struct alignas(128) Slot {
    runtime::Flag state;
    Job* job = nullptr;
    int worker = 0;
    pthread_t thread{};  // std::thread would cost each user who includes this ten milliseconds
    bool started = false;
    runtime::WakeElsewhere wake_elsewhere;
    runtime::BarrierLine line;
    alignas(128) std::atomic<bool> taken{false};  // apart: other callers look at it while this thread spins on `state`
  };

  /// While it lives, this thread takes no signals but for its own faults and a profiler's, and those that it starts
  /// never will: a program's handlers run on threads of its own.
  class SignalsBlocked {
   public:
    SignalsBlocked() {
      sigset_t blocked;
      ::sigfillset(&blocked);
      for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
        ::sigdelset(&blocked, own);
      ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

   private:
    sigset_t before_;
  };

  void start(Slot& slot) {
    const auto run = [](void* at) -> void* {
      work(*static_cast<Slot*>(at));
      return nullptr;
    };
    const SignalsBlocked for_the_new_thread;
    if (const int failed = ::pthread_create(&slot.thread, nullptr, run, &slot))
      throw Error(Code::unavailable, "Workers: the system refuses a thread (" + std::string(std::strerror(failed)) +
                                         "); ask for fewer than " + std::to_string(slots_.size()));
    slot.started = true;
    ::pthread_setname_np(slot.thread, ("cortex/" + std::to_string(&slot - slots_.data() + 1)).c_str());
  }

  /// Takes the first free threads, so that worker w of a lone caller is the same thread, with the same cache, each
  /// time.
  void claim(Job& job, int wanted) {
    job.lines[0] = &job.line;
    wanted = has_threads() ? std::min(wanted, runtime::max_call_workers) : 1;
    for (Slot& slot : slots_) {
      if (job.num_workers >= wanted) return;
      if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true, std::memory_order_acquire)) continue;
      slot.worker = job.num_workers++;
      slot.job = &job;
      slot.line.reset();
      job.lines[std::size_t(slot.worker)] = &slot.line;
      job.slot_of[std::size_t(slot.worker)] = &slot;
    }
  }

  void note_call(std::int64_t end, std::int64_t call_ns) {
    awake_until_.store(end + runtime::spin_ns_after(call_ns), std::memory_order_relaxed);
  }

  /// Sets the threads to work; whether some slept. To spin for those that sleep longer than usual is for calls whose
  /// workers all have a CPU: the others would keep them from it.
  bool begin(Job& job) {
    int sleepers = 0, cpus = placement_ == Placement::anywhere ? runtime::max_call_workers : 0;
    for (int w = 1; w < job.num_workers; ++w) {
      Slot& slot = *job.slot_of[std::size_t(w)];
      if (!slot.state.has_sleeper()) continue;
      ++sleepers;
      if (placement_ == Placement::anywhere) cpus = std::min(cpus, slot.wake_elsewhere.keep_off(slot.thread));
    }
    if (sleepers > 0 && job.num_workers - 1 <= cpus) job.first_spin = runtime::wake_spin_ns;
    for (int w = 1; w < job.num_workers; ++w) job.slot_of[std::size_t(w)]->state.set(running);
    return sleepers > 0;
  }

  /// Returns how long the worker would have spun at the next barrier, and adds what it slept at others.
  static std::int64_t take_part(Job& job, int worker, std::int64_t& asleep_ns) {
    runtime::Barrier barrier(job.lines.data(), worker, job.num_workers, job.broken, job.first_spin, asleep_ns);
    try {
      job.call(job.function, worker, job.num_workers, barrier);
    } catch (const runtime::BrokenBarrier&) {
      // because of another's failure
    } catch (...) {
      if (!job.failed.exchange(true)) job.error = std::current_exception();
      barrier.break_up();
    }
    return barrier.spin();
  }

  static void work(Slot& slot) {
    std::int64_t spin = runtime::spin_ns;
    while (slot.state.wait([](std::uint32_t state) { return state != waiting; }, spin) == running) {
      slot.wake_elsewhere.release();
      spin = runtime::spin_ns_after(ns_of([&] {
        std::int64_t asleep_ns = 0;
        take_part(*slot.job, slot.worker, asleep_ns);
        slot.state.set(waiting);
      }));
    }
  }

  void pin() {
    const Vector<int> cpus = runtime::of_different_cores_first(runtime::usable_cpu_numbers());
    for (std::size_t t = 0; t < slots_.size(); ++t) {
      const int cpu = cpus.empty() ? -1 : cpus[(t + 1) % cpus.size()];
      if (!runtime::pin(slots_[t].thread, cpu))
        throw Error(Code::unavailable, "Workers: the system does not let thread " + std::to_string(t) +
                                           " stay on CPU " + std::to_string(cpu) + "; ask for Placement::anywhere");
    }
  }

  void stop() {
    for (Slot& slot : slots_) {
      if (!slot.started || !has_threads()) continue;
      slot.state.set(stopped);
      ::pthread_join(slot.thread, nullptr);
      slot.started = false;
    }
  }

  std::vector<Slot> slots_;
  const Placement placement_;
  const int cpus_;
  const int cores_ = runtime::usable_cores();
  const std::uint32_t forks_ = runtime::forks().load(std::memory_order_relaxed);  // when the threads were started
  // Written in each call, and so apart.
  alignas(128) std::atomic<int> callers_{0};
  std::atomic<std::int64_t> awake_until_{0};  // in nanoseconds of `now_ns`
  runtime::Crowding crowding_;
};

namespace runtime {

/// Calls f(0) to f(count - 1), in any order, on this thread and on up to `wanted - 1` of the pool's that are free; on
/// this one alone without a pool. If some throw, this throws what the first of them has thrown.
inline void deal_out(Workers* pool, int wanted, int count, FunctionRef<void(int)> f) {
  if (!pool || wanted <= 1) {
    for (int i = 0; i < count; ++i) f(i);
    return;
  }
  std::atomic<int> next{0};
  pool->run(wanted, [&](int, int, Barrier&) {
    for (int i = next++; i < count; i = next++) f(i);
  });
}

/// The same on as many threads as there are cores; on this one alone if the system refuses others.
inline void on_all_cores(int count, FunctionRef<void(int)> f) {
  std::unique_ptr<Workers> helpers;
  try {
    if (const int threads = std::min(usable_cores(), count); threads > 1)
      helpers = std::make_unique<Workers>(threads - 1);
  } catch (const Error&) {
  }
  deal_out(helpers.get(), helpers ? helpers->size() + 1 : 1, count, f);
}

}  // namespace runtime

}  // namespace cortex
