// A mutex and what holds it. Those of <mutex> cost each translation unit that includes the library 4 MB.
#pragma once

#include <pthread.h>

namespace cortex {

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

/// Holds a mutex for as long as it lives.
class [[nodiscard]] Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex.mutex_) { ::pthread_mutex_lock(&mutex_); }
  ~Lock() { ::pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace cortex
