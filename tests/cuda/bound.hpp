// A small model with weights, for tests of the run time of GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"
#include "support/error_of_call.hpp"

namespace cortex::test {

inline auto tree_rnn_program(std::int64_t input = 5) {
  return models::tree_rnn<Item>(word, kids, {.input = input, .hidden = 16}).program;
}
using Compiled = decltype(cuda::compile(tree_rnn_program(), Gpu{}));

/// A TreeRNN with weights, trees, and what the interpreter says of them.
struct Bound {
  Bound() = default;
  Bound(std::int64_t input, int num_roots, int largest) : input(input), num_roots(num_roots), largest(largest) {}

  const std::int64_t input = 5;
  const int num_roots = 5, largest = 12;
  decltype(tree_rnn_program()) program = tree_rnn_program(input);
  NamedNumbers weights = random_weights(program.graph(), 3);
  Items items = forest(Shape::ragged, num_roots, largest, 5);
  std::vector<float> right = interpreted(program, weights, items);

  Compiled compile(const Schedule& schedule = on_gpu(Group::block, 1), const Gpu& gpu = Gpu::of(90),
                   std::int64_t spin_limit = 0) const {
    runtime::CudaCompileOptions options;
    options.spin_limit = spin_limit;
    auto model = cuda::compile(program, schedule, gpu, options);
    bind_all<float>(model, weights);
    return model;
  }
};

/// Of the user's; the first handles are the driver's own.
inline cuda::Stream stream(int number) { return reinterpret_cast<cuda::Stream>(std::intptr_t(number + 100)); }

}  // namespace cortex::test
