// A process may fork whatever its threads do.
#include "cortex/base/mutex.hpp"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "support/in_child.hpp"

using namespace cortex;
using cortex::test::in_child;

TEST_CASE("a fork that has begun waits for a process's first mutex", "[mutex]") {
  // What the fork runs first: meanwhile another thread takes a mutex, the process's first if no other case ran before.
  static Mutex mutex;
  static std::atomic<bool> held{false};
  static std::thread holder;
  static bool holds = true;
  pthread_atfork(
      [] {
        if (!holds) return;
        holds = false;
        holder = std::thread([] {
          const Lock lock(mutex);
          held = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
        });
        while (!held) std::this_thread::yield();
      },
      nullptr, nullptr);
  CHECK(in_child([] {
          const Lock lock(mutex);
          return 7;
        }) == 7);
  holder.join();
}

TEST_CASE("a mutex that another thread holds when the process forks is free in the child", "[mutex]") {
  Mutex mutex, inner;
  std::atomic<bool> held{false};
  std::thread holder([&] {
    const Lock lock(mutex);
    held = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Lock nested(inner);  // a thread that holds one goes on, though a fork waits
  });
  while (!held) std::this_thread::yield();
  const auto takes_both = [&] {
    const Lock lock(mutex);
    const Lock nested(inner);
    return 7;
  };
  CHECK(in_child(takes_both) == 7);
  CHECK(in_child([&] { return in_child(takes_both); }) == 7);
  holder.join();
  CHECK(takes_both() == 7);
}

TEST_CASE("threads that take mutexes all the time keep no fork waiting", "[mutex]") {
  Mutex mutexes[4];
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Mutex& own : mutexes)
    threads.emplace_back([&] {
      while (!stop) {
        const Lock lock(own);
        for (int turn = 0; turn < 100; ++turn) asm volatile("" ::: "memory");
      }
    });
  const auto takes_all = [&] {
    for (Mutex& mutex : mutexes) const Lock lock(mutex);
    return 7;
  };
  int right = 0;
  for (int round = 0; round < 50; ++round) right += in_child(takes_all) == 7;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 50);
}
