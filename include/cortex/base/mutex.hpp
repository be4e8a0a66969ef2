// A mutex and what holds it. Those of <mutex> cost each translation unit that includes the library 4 MB.
//
// A child process (fork) has the thread that made it and no other, so a mutex that another one holds at that moment
// would be held in the child for good. So a fork waits until no thread holds any, and threads wait for it before they
// take their first.
#pragma once

#include <pthread.h>

namespace cortex {

namespace detail {

#if defined(PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP)
inline constexpr pthread_rwlock_t nobody_forks = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
#else
inline constexpr pthread_rwlock_t nobody_forks = PTHREAD_RWLOCK_INITIALIZER;
#endif

/// Shared by the threads that hold a mutex, and a fork's alone. Who waits for it goes before threads that come later,
/// where the C library has such a lock: else many that come and go would keep a fork waiting.
inline constinit pthread_rwlock_t forking = nobody_forks;

/// Set when the library is loaded: a fork while the first thread sets it would know nothing of that thread's mutex.
inline const int fork_waits =
    ::pthread_atfork([] { ::pthread_rwlock_wrlock(&forking); }, [] { ::pthread_rwlock_unlock(&forking); },
                     [] { forking = nobody_forks; });  // another thread has locked it, as the child sees it

/// How many mutexes this thread holds.
inline int& mutexes_held() {
  static thread_local constinit int held = 0;
  return held;
}

}  // namespace detail

class Mutex {
 public:
  Mutex() = default;
  ~Mutex() { ::pthread_mutex_destroy(&mutex_); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class Lock;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Holds a mutex for as long as it lives. Whoever holds one does not fork, nor waits for threads that may need one.
class [[nodiscard]] Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex.mutex_) {
    if (detail::mutexes_held()++ == 0) ::pthread_rwlock_rdlock(&detail::forking);
    ::pthread_mutex_lock(&mutex_);
  }
  ~Lock() {
    ::pthread_mutex_unlock(&mutex_);
    if (--detail::mutexes_held() == 0) ::pthread_rwlock_unlock(&detail::forking);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace cortex
