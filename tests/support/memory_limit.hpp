// A process that may have little more memory than it has, and tests that want one.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "cortex/base/config.hpp"
#include "support/skip.hpp"

namespace cortex::test {

/// While it lives, the process may have so many bytes of addresses more than it had, beside what its allocator keeps.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
#if CORTEX_ADDRESS_SANITIZER
    skip("AddressSanitizer takes addresses without end");
#endif
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit small{pages * std::size_t(::sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &small);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace cortex::test
