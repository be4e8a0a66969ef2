// Threads of a call: they start together, wait for each other, and are shared without waiting.
#include "cortex/runtime/workers.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/fall_asleep.hpp"
#include "support/in_child.hpp"
#include "support/skip.hpp"

using namespace cortex;
using cortex::test::fall_asleep;
using cortex::test::in_child;
using cortex::test::skip;

namespace {

/// Rounds in which each worker writes its own number and reads its neighbour's; true if none was read too early or
/// late.
bool barrier_holds(Workers& workers, int wanted, int rounds) {
  std::vector<int> written(std::size_t(wanted) * 64, 0);  // plain integers: the barrier alone orders them
  std::atomic<int> wrong{0};
  workers.run(wanted, [&](int worker, int count, runtime::Barrier& barrier) {
    const int neighbour = (worker + 1) % count;
    for (int round = 1; round <= rounds; ++round) {
      written[std::size_t(worker) * 64] = round;
      barrier.wait();
      if (written[std::size_t(neighbour) * 64] != round) wrong.fetch_add(1);
      barrier.wait();
    }
  });
  return wrong == 0;
}

/// Processes that do nothing but keep CPUs busy, until they go out of scope.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) runtime::relax();
      }
      if (child > 0) children_.push_back(child);
    }
  }
  ~BusyProcesses() {
    for (const pid_t child : children_) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
  }
  int size() const { return int(children_.size()); }

 private:
  std::vector<pid_t> children_;
};

/// The affinity mask of this thread, put back at the end.
struct KeptAffinity {
  cpu_set_t mask;
  KeptAffinity() { ::sched_getaffinity(0, sizeof mask, &mask); }
  ~KeptAffinity() { ::sched_setaffinity(0, sizeof mask, &mask); }
};

/// What a call takes: the time that goes by, and that of all CPUs together that the process spends, in seconds.
struct Cost {
  double wall, cpu;
};

/// Of `calls` calls on average. Each has ten levels: work that workers share, and a barrier.
Cost cost_of_calls(Workers& workers, int wanted, int calls) {
  constexpr int levels = 10, steps = 40'000;
  const std::clock_t cpu = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call)
    workers.run(wanted, [&](int worker, int count, runtime::Barrier& barrier) {
      volatile double x = 1;
      for (int level = 0; level < levels; ++level) {
        for (int i = steps * worker / count; i < steps * (worker + 1) / count; ++i) x = x * 0.999 + 1;
        barrier.wait();
      }
    });
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count() / calls, double(std::clock() - cpu) / CLOCKS_PER_SEC / calls};
}

}  // namespace

TEST_CASE("a flag that is disturbed by several is not what it was", "[workers]") {
  runtime::Flag flag;
  flag.set(5);
  flag.disturb();
  CHECK(flag.get() != 5);
  flag.disturb();
  CHECK(flag.get() != 5);
  flag.set(6);
  CHECK(flag.get() == 6);
}

TEST_CASE("nobody leaves a barrier before all have entered it", "[runtime]") {
  for (const int threads : {1, 2, 3, 4, 7}) {
    Workers workers(threads);
    CHECK(barrier_holds(workers, threads + 1, 300));
    CHECK(barrier_holds(workers, 2, 300));
  }
}

TEST_CASE("each worker runs once, and all of them at the same time", "[runtime]") {
  Workers workers(3);
  for (int call = 0; call < 200; ++call) {
    std::vector<std::atomic<int>> runs(4);
    int count = 0;
    workers.run(4, [&](int worker, int num_workers, runtime::Barrier& barrier) {
      runs[std::size_t(worker)].fetch_add(1);
      barrier.wait();
      if (worker == 0) count = num_workers;
    });
    REQUIRE(count == 4);
    for (const auto& r : runs) REQUIRE(r == 1);
  }
}

TEST_CASE("a call takes the threads that are free and waits for no others", "[runtime]") {
  Workers workers(2);
  CHECK(workers.available() == 2);
  int inner = 0, left = 0;
  workers.run(2, [&](int worker, int, runtime::Barrier& barrier) {
    if (worker == 0) {
      left = workers.available();
      std::thread other([&] {
        workers.run(3, [&](int w, int count, runtime::Barrier&) {
          if (w == 0) inner = count;
        });
      });
      other.join();
    }
    barrier.wait();
  });
  CHECK(left == 1);
  CHECK(inner == 2);
  CHECK(workers.available() == 2);
}

TEST_CASE("a call alone runs on its caller", "[runtime]") {
  Workers workers(1);
  std::thread::id id;
  workers.run(1, [&](int, int count, runtime::Barrier& barrier) {
    barrier.wait();
    if (count == 1) id = std::this_thread::get_id();
  });
  CHECK(id == std::this_thread::get_id());
}

TEST_CASE("threads that have fallen asleep are woken", "[runtime]") {
  Workers workers(2);
  int calls = 0;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    workers.run(3, [&](int worker, int, runtime::Barrier& barrier) {
      if (worker == 1) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the others sleep in the barrier
      barrier.wait();
      if (worker == 0) ++calls;
    });
  }
  CHECK(calls == 20);
}

TEST_CASE("threads are awake until they have spun for a while", "[runtime]") {
  Workers workers(3);
  REQUIRE(fall_asleep(workers));
  CHECK(workers.free(1).all == 1);  // the caller
  CHECK(workers.free(3).all == 3);
  CHECK(workers.free(9).all == 4);
  int awake = 1;
  bool followed = false;
  for (int i = 0; i < 1000 && (awake < 2 || !followed); ++i) {
    workers.run(2, [](int, int, runtime::Barrier& barrier) { barrier.wait(); });
    followed |= workers.follow();
    awake = std::max(awake, workers.free(2).awake);
  }
  CHECK(awake == 2);
  CHECK(followed);
  workers.run(3, [&](int worker, int, runtime::Barrier& barrier) {
    if (worker == 0) CHECK(workers.free(4).all == 2);  // those that take part are not free
    barrier.wait();
  });
  REQUIRE(fall_asleep(workers));
  CHECK_FALSE(workers.follow());
}

TEST_CASE("a thread that sleeps is woken on another CPU than its caller's, and may then run anywhere", "[runtime]") {
  const std::vector<int> cpus = runtime::usable_cpu_numbers();
  if (cpus.size() < 2) skip("this process may use one CPU");
  const KeptAffinity kept;
  Workers workers(1), untold(1, Placement::untold);
  const BusyProcesses busy(2 * int(cpus.size()));  // among idle CPUs the system might choose another by itself
  REQUIRE(runtime::pin(::pthread_self(), cpus[0]));
  int elsewhere = 0, anywhere = 0;
  for (int i = 0; i < 20; ++i) {
    workers.run(2, [&](int worker, int, runtime::Barrier&) {  // this time it works, and falls asleep, on the caller's
      if (worker == 0) return;
      runtime::pin(::pthread_self(), cpus[0]);
      ::sched_setaffinity(0, sizeof kept.mask, &kept.mask);
    });
    REQUIRE(fall_asleep(workers));
    workers.run(2, [&](int worker, int, runtime::Barrier&) {
      if (worker == 0) return;
      elsewhere += ::sched_getcpu() != cpus[0];
      anywhere += runtime::usable_cpu_numbers() == cpus;
    });
  }
  CHECK(elsewhere >= 15);  // the system may have moved it by the time that it looks
  CHECK(anywhere == 20);
  CHECK(untold.placement() == Placement::untold);
  untold.run(2, [&](int worker, int, runtime::Barrier&) {
    if (worker == 1) CHECK(runtime::usable_cpu_numbers() == cpus);
  });
}

TEST_CASE("at first threads spin for those that are woken, where each has a CPU", "[runtime]") {
  const std::vector<int> cpus = runtime::usable_cpu_numbers();
  const auto spins = [](Workers& workers, int wanted) {  // before and after they have met
    if (!fall_asleep(workers)) return std::array<std::int64_t, 2>{};
    std::array<std::int64_t, 2> result{};
    workers.run(wanted, [&](int worker, int, runtime::Barrier& barrier) {
      if (worker == 0) result[0] = barrier.spin();
      barrier.wait();
      if (worker == 0) result[1] = barrier.spin();
    });
    return result;
  };
  constexpr std::int64_t usual = runtime::spin_ns, for_sleepers = runtime::wake_spin_ns;
  Workers one(1), many(int(cpus.size())), untold(1, Placement::untold);
  using Spins = std::array<std::int64_t, 2>;
  CHECK(spins(one, 2) == Spins{cpus.size() > 1 ? for_sleepers : usual, usual});
  CHECK(spins(many, int(cpus.size()) + 1) == Spins{usual, usual});
  CHECK(spins(untold, 2) == Spins{usual, usual});
  const KeptAffinity kept;
  REQUIRE(runtime::pin(::pthread_self(), cpus[0]));
  Workers on_one_cpu(1);
  CHECK(spins(on_one_cpu, 2) == Spins{usual, usual});
}

TEST_CASE("a thread is kept off a CPU until it is awake, unless others say meanwhile where it may run", "[runtime]") {
  const std::vector<int> cpus = runtime::usable_cpu_numbers();
  if (cpus.size() < 2) skip("this process may use one CPU");
  const KeptAffinity kept;
  REQUIRE(runtime::pin(::pthread_self(), cpus[0]));
  const int last = cpus.back();
  std::vector<int> without = cpus;
  without.erase(without.begin());

  // What another thread may use: to begin with, while it is kept off this one's CPU, and after that.
  const auto masks_of = [&](const auto& to_begin_with, const auto& meanwhile) {
    runtime::WakeElsewhere wake;
    std::vector<std::vector<int>> masks;
    std::atomic<int> turn{0};
    std::thread other([&] {
      ::sched_setaffinity(0, sizeof kept.mask, &kept.mask);
      to_begin_with();
      masks.push_back(runtime::usable_cpu_numbers());
      turn.store(1), turn.notify_all();
      turn.wait(1);
      masks.push_back(runtime::usable_cpu_numbers());
      meanwhile();
      wake.release();
      masks.push_back(runtime::usable_cpu_numbers());
    });
    turn.wait(0);
    const int may_use = wake.keep_off(other.native_handle());
    turn.store(2), turn.notify_all();
    other.join();
    CHECK(may_use == (masks[1] == masks[0] ? 0 : int(masks[1].size())));
    return masks;
  };
  const auto nothing = [] {};
  const auto to = [](int cpu) { return [cpu] { runtime::pin(::pthread_self(), cpu); }; };
  using Masks = std::vector<std::vector<int>>;
  CHECK(masks_of(nothing, nothing) == Masks{cpus, without, cpus});
  CHECK(masks_of(nothing, to(cpus[0])) == Masks{cpus, without, {cpus[0]}});
  CHECK(masks_of(to(cpus[0]), nothing) == Masks{{cpus[0]}, {cpus[0]}, {cpus[0]}});  // there is no other
  CHECK(masks_of(to(last), nothing) == Masks{{last}, {last}, {last}});
}

TEST_CASE("a thread that may use some CPUs alone may use these when it is awake", "[runtime]") {
  const std::vector<int> cpus = runtime::usable_cpu_numbers();
  if (cpus.size() < 3) skip("this process may use fewer than three CPUs");
  const KeptAffinity kept;
  cpu_set_t two;
  CPU_ZERO(&two);
  CPU_SET(std::size_t(cpus[0]), &two);
  CPU_SET(std::size_t(cpus[1]), &two);
  REQUIRE(::sched_setaffinity(0, sizeof two, &two) == 0);
  Workers workers(1);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(fall_asleep(workers));
    std::vector<int> mask;
    workers.run(2, [&](int worker, int, runtime::Barrier&) {
      if (worker == 1) mask = runtime::usable_cpu_numbers();
    });
    CHECK(mask == std::vector<int>{cpus[0], cpus[1]});
  }
}

TEST_CASE("many callers share one pool", "[runtime]") {
  Workers workers(3);
  std::atomic<int> done{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::atomic<int> entered{0};
        int seen = 0, count = 0;
        workers.run(4, [&](int worker, int num_workers, runtime::Barrier& barrier) {
          entered.fetch_add(1, std::memory_order_relaxed);
          barrier.wait();
          if (worker == 0) seen = entered.load(std::memory_order_relaxed), count = num_workers;
        });
        wrong += seen != count;
        ++done;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(done == 8 * 300);
  CHECK(wrong == 0);
}

TEST_CASE("what a worker throws reaches the caller, and the others do not wait for it", "[runtime]") {
  Workers workers(3);
  for (int thrower = 0; thrower < 4; ++thrower)
    for (const int barriers_before : {0, 1, 5}) {
      std::atomic<int> beyond{0};
      const auto call = [&](int worker, int, runtime::Barrier& barrier) {
        for (int i = 0; i < barriers_before; ++i) barrier.wait();
        if (worker == thrower) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));  // the others sleep by then
          throw std::runtime_error("worker " + std::to_string(worker));
        }
        barrier.wait();
        ++beyond;
      };
      CHECK_THROWS_WITH(workers.run(4, call), "worker " + std::to_string(thrower));
      CHECK(beyond == 0);
      CHECK(workers.available() == 3);
      CHECK(barrier_holds(workers, 4, 20));  // and the pool is as good as before
    }
}

TEST_CASE("if all workers throw, the caller gets one of their exceptions", "[runtime]") {
  Workers workers(2);
  for (int i = 0; i < 50; ++i) CHECK_THROWS_AS(workers.run(3, [](int, int, runtime::Barrier&) { throw 5; }), int);
  CHECK(workers.available() == 2);
}

TEST_CASE("many callers and failing calls share one pool", "[runtime]") {
  Workers workers(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 200; ++i) {
        const int thrower = c % 2 ? (i + c) % 4 : -1;
        int count = 0;
        try {
          workers.run(4, [&](int worker, int num_workers, runtime::Barrier& barrier) {
            if (worker == 0) count = num_workers;
            barrier.wait();
            if (worker == thrower) throw worker;
            barrier.wait();
          });
          wrong += thrower >= 0 && thrower < count;
        } catch (int worker) {
          wrong += worker != thrower;
        }
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(workers.available() == 3);
}

TEST_CASE("calls go on while other processes keep all CPUs busy, and those who wait leave the CPUs to others",
          "[runtime][busy]") {
  const int cpus = runtime::usable_cpus();
  Workers workers(std::min(4 * cpus, 16) - 1);  // more than there are CPUs: some always wait for ones that do not run
  const int wanted = workers.size() + 1;
  const BusyProcesses busy(2 * cpus);
  REQUIRE(busy.size() == 2 * cpus);
  const Cost alone = cost_of_calls(workers, 1, 30), together = cost_of_calls(workers, wanted, 5);
  INFO(alone.wall << " s a call by one thread, " << together.wall << " s by " << wanted << "; of CPUs " << alone.cpu
                  << " s and " << together.cpu << " s");
  // At each of ten barriers everybody may wait for a turn of somebody whose CPU has other processes' turns first: some
  // ten times the time of one thread. Threads that only spin would take a hundred times that, and use it up.
  CHECK(together.wall < 300 * alone.wall);
  CHECK(together.cpu < 20 * alone.cpu);
}

TEST_CASE("pinned threads stay on one CPU each, of those that the process may use", "[runtime]") {
  const std::vector<int> cpus = runtime::usable_cpu_numbers();
  const std::vector<int> cores_first = runtime::of_different_cores_first(cpus);
  Workers workers(3, Placement::pinned);
  std::vector<std::vector<int>> masks(4);
  workers.run(4, [&](int worker, int, runtime::Barrier& barrier) {
    masks[std::size_t(worker)] = runtime::usable_cpu_numbers();
    barrier.wait();
  });
  CHECK(masks[0] == cpus);  // the caller's own
  for (std::size_t w = 1; w < 4; ++w) CHECK(masks[w] == std::vector<int>{cores_first[w % cpus.size()]});
  Workers anywhere(1);
  anywhere.run(2,
               [&](int worker, int, runtime::Barrier&) { masks[std::size_t(worker)] = runtime::usable_cpu_numbers(); });
  CHECK(masks[1] == cpus);
}

TEST_CASE("a thread that may use one CPU makes pools for that one", "[runtime]") {
  const KeptAffinity kept;
  const int last = runtime::usable_cpu_numbers().back();
  REQUIRE(runtime::pin(::pthread_self(), last));
  CHECK(runtime::usable_cpus() == 1);
  CHECK(Workers().size() == 0);
  Workers workers(2, Placement::pinned);
  std::vector<std::vector<int>> masks(3);
  workers.run(3, [&](int worker, int, runtime::Barrier& barrier) {
    masks[std::size_t(worker)] = runtime::usable_cpu_numbers();
    barrier.wait();
  });
  for (const std::vector<int>& mask : masks) CHECK(mask == std::vector<int>{last});
}

TEST_CASE("a CPU that is not there is refused", "[runtime][refusal]") {
  CHECK_FALSE(runtime::pin(::pthread_self(), -1));
  CHECK_FALSE(runtime::pin(::pthread_self(), CPU_SETSIZE));
  CHECK_FALSE(runtime::pin(::pthread_self(), CPU_SETSIZE - 1));
  CHECK_FALSE(runtime::pin(::pthread_self(), std::numeric_limits<int>::max()));
}

TEST_CASE("CPUs are found on a kernel that is ready for more of them than a mask usually has room for", "[runtime]") {
  const auto of_2048 = [](pid_t, std::size_t bytes, cpu_set_t* mask) {
    if (bytes < 2048 / 8) return errno = EINVAL, -1;
    for (const std::size_t cpu : {3, 1023, 1024, 2047}) CPU_SET_S(cpu, bytes, mask);
    return 0;
  };
  const auto refused = [](pid_t, std::size_t, cpu_set_t*) { return errno = EPERM, -1; };
  CHECK(runtime::usable_cpu_numbers(of_2048) == std::vector<int>{3, 1023, 1024, 2047});
  CHECK(runtime::usable_cpu_numbers(refused).empty());
}

TEST_CASE("the default number of threads fits this machine", "[runtime]") {
  CHECK(runtime::usable_cores() >= 1);
  CHECK(runtime::usable_cores() <= runtime::usable_cpus());
  CHECK(Workers().size() == runtime::usable_cores() - 1);
  for (const int threads : {-1, Workers::most_threads + 1, std::numeric_limits<int>::max()}) {
    const auto made = attempt([&] { Workers workers(threads); });
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::invalid_argument);
    CHECK(made.error().message == "Workers: the number of threads is " + std::to_string(threads) +
                                      "; give a number from 1 to 1024, or 0 for one that fits this machine");
  }
}

TEST_CASE("a child process has no threads of its parent's pools, and makes pools of its own", "[runtime]") {
  auto workers = std::make_unique<Workers>(2);
  CHECK(barrier_holds(*workers, 3, 10));
  const auto count = [](Workers& pool) {
    std::atomic<int> count{0};
    pool.run(3, [&](int, int, runtime::Barrier& barrier) { ++count, barrier.wait(); });
    return count.load();
  };
  CHECK(in_child([&] { return workers->available(); }) == 0);
  CHECK(in_child([&] { return count(*workers); }) == 1);
  CHECK(in_child([&] { return workers.reset(), 7; }) == 7);  // waits for no thread to end
  CHECK(in_child([&] {
          Workers own(2);
          return 10 * own.available() + count(own);
        }) == 23);
  CHECK(in_child([&] {  // and so on, down the line
          Workers own(2);
          return in_child([&] { return 10 * count(own) + count(*workers); });
        }) == 11);
  CHECK(count(*workers) == 3);  // the parent's goes on
}

TEST_CASE("threads of a pool have names, and take no signals but those of their own faults", "[runtime]") {
  const auto blocks = [](int signal) {
    sigset_t mask;
    return ::pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0 && sigismember(&mask, signal) == 1;
  };
  Workers workers(2);
  std::atomic<int> right{0};
  workers.run(3, [&](int worker, int, runtime::Barrier&) {
    const bool own = worker > 0;
    bool good = !blocks(SIGSEGV) && !blocks(SIGFPE) && !blocks(SIGPROF);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD, SIGRTMIN}) good &= blocks(signal) == own;
    char name[16] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    good &= !own || std::string(name) == "cortex/" + std::to_string(worker);
    right += good;
  });
  CHECK(right == 3);
  CHECK(!blocks(SIGTERM));  // here as before
}

TEST_CASE("hardware threads of one core count once, and are the last that pinned threads take", "[runtime]") {
  namespace fs = std::filesystem;
  const fs::path system = fs::temp_directory_path() / ("cortex_cpus_" + std::to_string(::getpid()));
  const auto threads_of_core = [&](const char* name, const char* list, std::vector<int> cpus) {
    for (const int cpu : cpus) {
      const fs::path topology = system / ("cpu" + std::to_string(cpu)) / "topology";
      fs::create_directories(topology);
      std::ofstream(topology / name) << list << "\n";
    }
  };
  const auto order = [&](const std::vector<int>& cpus) -> std::vector<int> {
    return runtime::of_different_cores_first(cpus, system.string());
  };
  const std::vector<int> all{0, 1, 2, 3, 4, 5};
  CHECK(order(all) == all);  // the system tells nothing: each CPU a core
  CHECK(runtime::count_cores(all, system.string()) == 6);

  threads_of_core("core_cpus_list", "0-1", {0, 1});   // as virtual machines number them
  threads_of_core("core_cpus_list", "2,4", {2, 4});   // and others
  threads_of_core("thread_siblings_list", "3", {3});  // an older system's name
  CHECK(order(all) == std::vector<int>{0, 2, 3, 5, 1, 4});
  CHECK(runtime::count_cores(all, system.string()) == 4);
  CHECK(order({1, 4}) == std::vector<int>{1, 4});  // of two cores whose first threads others have
  CHECK(order({4, 2, 1}) == std::vector<int>{4, 1, 2});
  CHECK(order({}).empty());

  threads_of_core("core_cpus_list", "0-2", {0, 1, 2});  // three of one core
  CHECK(order({0, 1, 2, 3}) == std::vector<int>{0, 3, 1, 2});
  fs::remove_all(system);
}

TEST_CASE("lists of CPUs are read as the kernel writes them", "[runtime]") {
  const auto numbers = [](const char* text) -> std::vector<int> { return runtime::detail::numbers_of_list(text); };
  CHECK(numbers("0") == std::vector<int>{0});
  CHECK(numbers("0-2,8,10-11") == std::vector<int>{0, 1, 2, 8, 10, 11});
  CHECK(numbers("").empty());
  CHECK(numbers("none").empty());
  CHECK(numbers("-1").empty());
  CHECK(numbers("3,") == std::vector<int>{3});
  CHECK(numbers("2-1,4") == std::vector<int>{4});
  CHECK(numbers("999999999999").empty());
  CHECK(numbers("0-999999999999").size() == std::size_t(runtime::detail::most_cpus));
}

TEST_CASE("a quota of CPU time counts as whole CPUs, at least one", "[runtime]") {
  CHECK(runtime::detail::cpus_of_quota("max 100000") == 0);
  CHECK(runtime::detail::cpus_of_quota("150000 100000") == 1);
  CHECK(runtime::detail::cpus_of_quota("50000 100000") == 1);
  CHECK(runtime::detail::cpus_of_quota("400000 100000") == 4);
  CHECK(runtime::detail::cpus_of_quota("-1 100000") == 0);
  CHECK(runtime::detail::cpus_of_quota("") == 0);
}

TEST_CASE("at a call's end threads spin for an eighth of it, within bounds", "[runtime]") {
  CHECK(runtime::spin_ns_after(0) == runtime::spin_ns);
  CHECK(runtime::spin_ns_after(8 * runtime::spin_ns - 8) == runtime::spin_ns);
  CHECK(runtime::spin_ns_after(800000) == 100000);
  CHECK(runtime::spin_ns_after(60000000000) == 1000000);
}
