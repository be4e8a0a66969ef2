#include "systems.hpp"

#include <memory>
#include <utility>

#include "cortex_system.hpp"
#include "onednn_level.hpp"
#include "openblas_level.hpp"
#include "recursion.hpp"

namespace bench {

// In translation units of their own, because their headers take long, and only if the build was asked for them.
#if CORTEX_BENCH_TORCH
std::vector<SystemKind> torch_kinds();
std::string torch_description();
#endif
#if CORTEX_BENCH_DYNET
SystemKind dynet_kind();
#endif

namespace {

SystemKind cortex_kind(const char* name) {
  return {name,
          [name](const Setting& setting) -> std::unique_ptr<System> {
            return compiled(setting.weights, recipe_of(name, setting.threads));
          },
          "", false};
}

SystemKind recursion_kind() {
  return {"recursion",
          [](const Setting& setting) -> std::unique_ptr<System> {
            return std::make_unique<Recursion<float>>(setting.weights);
          },
          "", false};
}

#if CORTEX_BENCH_ONEDNN
SystemKind onednn_rnn_kind() {
  return {"onednn_rnn", [](const Setting& setting) -> std::unique_ptr<System> {
            if (setting.model != Model::lstm && setting.model != Model::gru) return nullptr;
            return std::make_unique<OneDnnRnn>(setting);
          }};
}
#endif

}  // namespace

std::vector<SystemKind> all_systems() {
  [[maybe_unused]] const auto without = [](const char* name, const char* why) {
    return SystemKind{name, nullptr, why};
  };
  std::vector<SystemKind> all{cortex_kind("cortex"), cortex_kind("cortex_nodedup"), recursion_kind()};
#if CORTEX_BENCH_TORCH
  for (SystemKind& kind : torch_kinds()) all.push_back(std::move(kind));
#else
  for (const char* name : {"torch_node", "torch_level", "torch_rnn"})
    all.push_back(
        without(name, "this was built without libtorch (Debian: libtorch-dev; CMake: CORTEX_BENCH_TORCH=ON)"));
#endif
#if CORTEX_BENCH_OPENBLAS
  all.push_back({"openblas_level", ByLevel<OpenBlas>::make});
#else
  all.push_back(without("openblas_level", "this was built without OpenBLAS (Debian: libopenblas-dev)"));
#endif
#if CORTEX_BENCH_ONEDNN
  all.push_back({"onednn_level", ByLevel<OneDnn>::make});
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

std::vector<std::string> descriptions() {
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

std::vector<std::vector<double>> reference_states(const Weights& weights, const Batches& batches) {
  Recursion<double> recursion(weights);
  std::vector<std::vector<double>> result;
  for (const Roots& roots : batches.roots) result.push_back(recursion.first_states(roots));
  return result;
}

}  // namespace bench
