// A model apart from devices, and its weights as they lie on one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "cortex/runtime/cuda_executable.hpp"
#include "cortex/runtime/cuda_tables.hpp"
#include "cortex/runtime/plan.hpp"
#include "cortex/runtime/published.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/runtime/workers.hpp"

namespace cortex::runtime {

/// What a model is, apart from devices: its code as text, and the weights bound to it.
struct CudaSource {
  CudaSource(std::shared_ptr<const CudaExecutable> compiled, AccessorOrder order)
      : code(std::move(compiled)),
        plan(std::make_shared<const Plan>(code->executable, std::move(order))),
        weights(code->executable) {}

  const std::shared_ptr<const CudaExecutable> code;
  const std::shared_ptr<const Plan> plan;
  mutable Weights weights;                      // which any number of threads bind and read
  mutable Published<Workers> workers{nullptr};  // that help to number nodes, or none
  mutable std::atomic<double> root_seconds{0};  // that to number a root's nodes has taken of late; 0: not known
};

/// Weights as they lie on a device. Immutable: calls in flight keep the set that they began with.
struct CudaWeights {
  Published<const WeightSet>::View host;
  Vector<std::shared_ptr<const CudaBlock>> blocks;   // [buffers of the program]; null: no weight
  Vector<std::shared_ptr<const CudaTables>> tables;  // [tabulations] made of these weights; null: computed in calls
  Vector<std::int32_t> computes;                     // [tabulations] 0 where there are tables, else 1
};

}  // namespace cortex::runtime
