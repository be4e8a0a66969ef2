// Has threads that sleep woken on other CPUs than the one that wakes them.
//
// The system wakes a thread where it ran last, or on a CPU beside that one if it looks for an idle one, which where all
// are somewhat busy it may not do. Threads of a call that share a CPU run in turns, each while the other sleeps: every
// barrier takes as long as one spins before it sleeps, though another CPU is idle, and so it stays for as many calls as
// it takes the system to even out the load.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <cstring>

namespace cortex::runtime {

/// Keeps a thread off one CPU while it is woken. Does nothing where the system says no, where the thread has no other
/// CPU, or where a mask of fixed size has no room for all of the machine's CPUs.
class WakeElsewhere {
 public:
  /// `thread`, which sleeps, is not to wake on the CPU that the calling thread is on. Returns on how many it may; 0 if
  /// nothing has changed.
  int keep_off(pthread_t thread) {
    const int here = ::sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || ::pthread_getaffinity_np(thread, sizeof before_, &before_) != 0) return 0;
    others_ = before_;
    CPU_CLR(std::size_t(here), &others_);
    const bool other = CPU_COUNT(&others_) > 0 && !CPU_EQUAL(&others_, &before_);
    kept_ = other && ::pthread_setaffinity_np(thread, sizeof others_, &others_) == 0;
    return kept_ ? CPU_COUNT(&others_) : 0;
  }

  /// By that thread, once it is awake: it may run where it could before. If somebody else has said meanwhile where it
  /// may run, that holds.
  void release() {
    if (!kept_) return;
    kept_ = false;
    if (!may_run_on(others_)) return;
    // All CPUs there are, if they are no more than before: unlike a list of them, they grow with what a container may
    // use.
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);
    if (::sched_setaffinity(0, sizeof all, &all) != 0 || !may_run_on(before_))
      ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  /// Whether these are the CPUs that this thread may use.
  static bool may_run_on(const cpu_set_t& cpus) {
    cpu_set_t now;
    return ::sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &cpus);
  }

  cpu_set_t before_, others_;
  bool kept_ = false;
};

}  // namespace cortex::runtime
