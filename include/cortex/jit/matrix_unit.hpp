// Leave to use the CPU's matrix unit: its registers are 8 KB that the kernel saves of each thread, so Linux gives them
// to processes that ask.
#pragma once

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cortex::jit {

/// Asks for Intel's AMX for this process: whether its threads may use it from now on. Afterwards Linux wants signal stacks
/// (`sigaltstack`) that have room for the unit's registers, and it refuses where a thread has a smaller one; so this is
/// asked only for what has a use for the unit.
inline bool may_use_matrix_unit() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long ask_for_state = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, ask_for_state, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace cortex::jit
