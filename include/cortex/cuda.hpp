// Models on NVIDIA GPUs: beside cortex.hpp, for those who want it. Needs no part of CUDA to build, nor to compile
// models.
#pragma once

#include "cortex/cortex.hpp"
#include "cortex/runtime/cuda_model.hpp"
