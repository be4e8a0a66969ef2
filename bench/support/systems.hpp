// All systems, and which of them this build has.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "cortex_system.hpp"
#include "onednn_level.hpp"
#include "openblas_level.hpp"
#include "recursion.hpp"
#include "system.hpp"

namespace bench {

// In translation units of their own, because their headers take long, and only if the build was asked for them.
#if CORTEX_BENCH_TORCH
std::vector<SystemKind> torch_kinds();
std::string torch_description();
#endif
#if CORTEX_BENCH_DYNET
SystemKind dynet_kind();
#endif

inline std::vector<SystemKind> all_systems() {
  const auto without = [](const char* name, const char* why) { return SystemKind{name, nullptr, why}; };
  std::vector<SystemKind> all{cortex_kind("cortex"), cortex_kind("cortex_nodedup"), recursion_kind()};
#if CORTEX_BENCH_TORCH
  for (SystemKind& kind : torch_kinds()) all.push_back(std::move(kind));
#else
  for (const char* name : {"torch_node", "torch_level", "torch_rnn"})
    all.push_back(
        without(name, "this was built without libtorch (Debian: libtorch-dev; CMake: CORTEX_BENCH_TORCH=ON)"));
#endif
#if CORTEX_BENCH_OPENBLAS
  all.push_back(openblas_kind());
#else
  all.push_back(without("openblas_level", "this was built without OpenBLAS (Debian: libopenblas-dev)"));
#endif
#if CORTEX_BENCH_ONEDNN
  all.push_back(onednn_kind());
  all.push_back(onednn_rnn_kind());
#else
  for (const char* name : {"onednn_level", "onednn_rnn"})
    all.push_back(without(name, "this was built without oneDNN (Debian: libdnnl-dev)"));
#endif
#if CORTEX_BENCH_DYNET
  all.push_back(dynet_kind());
#else
  all.push_back(without("dynet", "no install of DyNet was given (--dynet PREFIX)"));
#endif
  return all;
}

/// What the peers' libraries say of themselves.
inline std::vector<std::string> descriptions() {
  std::vector<std::string> all;
#if CORTEX_BENCH_OPENBLAS
  all.push_back(OpenBlas::description());
#endif
#if CORTEX_BENCH_ONEDNN
  all.push_back(OneDnn::description());
#endif
#if CORTEX_BENCH_TORCH
  all.push_back(torch_description());
#endif
  return all;
}

}  // namespace bench
