// The shape of a GPU's launches: what is chosen by default, and what is refused.
#include "cortex/schedule/gpu_shape.hpp"

#include <catch2/catch.hpp>
#include <functional>

#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cortex/runtime/cuda_compile.hpp"
#include "cortex/schedule/gpu_problem.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::schedule;
using Catch::Matchers::Contains;
using Group = GpuSchedule::Group;

namespace {

GpuShape shape_of(const GpuSchedule& wish, const Gpu& gpu, std::int64_t bytes, std::int64_t columns) {
  return gpu_shape(wish, gpu, {bytes, columns});
}

std::string refusal(const Gpu& gpu, const std::function<void(GpuSchedule&)>& ask) {
  GpuSchedule wish;
  ask(wish);
  try {
    gpu_shape(wish, gpu, {1 << 20, 256});
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a model's problem is its matrices and its widest result", "[schedule][gpu]") {
  const GpuProblem problem = gpu_problem(tree_gru(64).graph());
  CHECK(problem.weight_bytes == 3 * 64 * 64 * 4);
  CHECK(problem.columns == 64);
}

TEST_CASE("a table of which nodes read their own row is none of a model's matrices", "[schedule][gpu]") {
  const auto program = models::tree_rnn<Word>(word, kids, {.vocabulary = 1000, .input = 64, .hidden = 64}).program;
  CHECK(gpu_problem(program.graph()).weight_bytes == 64 * 64 * 4);
}

TEST_CASE("of a model's matrices count those that levels read, not those of what is computed ahead",
          "[schedule][gpu]") {
  const auto tree_lstm = [](int hidden) {
    return models::tree_lstm<Word>(word, kids, {.vocabulary = 1000, .input = 256, .hidden = hidden}).program.graph();
  };
  CHECK(gpu_problem(tree_lstm(256), Schedule::standard()).weight_bytes == 4 * 256 * 256 * 4);
  const auto compiled = [&](int hidden, const Schedule& schedule) {
    return runtime::build_cuda_executable(tree_lstm(hidden), schedule, Gpu::of(90));
  };
  GpuSchedule wish;
  wish.recent_rows = 0;
  const auto f32 = compiled(256, Schedule::standard().on_gpu(wish));
  CHECK(f32->shape.group == Group::grid);
  CHECK(f32->shape.blocks == 32);
  constexpr std::int64_t structure = 8192;  // of the linearizer's arrays
  CHECK(f32->text.chip_bytes == 32768 + structure);
  const auto odd = compiled(260, Schedule::standard().on_gpu(wish));
  CHECK(odd->shape.blocks == 32);
  CHECK(odd->text.chip_bytes == 4 * 12 * 320 * 4 + structure);  // all of them, in whole panels of whole rounds
  wish.tensor_cores = GpuSchedule::TensorCores::bf16;
  const auto bf16 = compiled(256, Schedule::standard().on_gpu(wish));
  CHECK(bf16->shape.group == Group::cluster);
  CHECK(bf16->shape.blocks == 8);
  CHECK(bf16->text.chip_bytes == 65536 + structure);
  wish.weights = GpuSchedule::Weights::resident;  // 4 blocks have room for the weights, and not for what pads them
  CHECK(compiled(300, Schedule::standard().on_gpu(wish))->shape.blocks == 8);
}

TEST_CASE("a group has as many blocks as the largest slice needs, and not the mean of them", "[schedule][gpu]") {
  CHECK(most_of_slice(300, 8, 8) == 44);  // 5 units, and the rest
  // With four parts of a sum 48 columns, whole panels of 8, and 304 terms: at 4800 bytes each more than a block has.
  const auto group = [](std::int64_t bytes_a_column) {
    return gpu_shape({}, Gpu::of(90), {.weight_bytes = 300 * bytes_a_column, .columns = 300, .shares_columns = false})
        .group;
  };
  CHECK(group(4800) == Group::grid);
  CHECK(group(4700) == Group::cluster);
}

TEST_CASE("the last block has the largest slice, however many blocks there are", "[schedule][gpu]") {
  for (const std::int64_t extent : {1, 7, 8, 64, 300, 1000})
    for (const std::int64_t unit : {1, 8, 16})
      for (int blocks = 1; blocks <= 132; ++blocks) {
        const std::int64_t units = extent / unit;
        std::int64_t most = 0;
        for (int w = 0; w < blocks; ++w)
          most = std::max(
              most, ((w + 1) * units / blocks - w * units / blocks) * unit + (w + 1 == blocks ? extent % unit : 0));
        REQUIRE(most_of_slice(extent, unit, blocks) == most);
      }
  CHECK(most_of_slice(64, 8, 2147483647) == 8);  // at once
}

TEST_CASE("a number of blocks decides the group that is left to the compiler", "[schedule][gpu]") {
  const auto group = [](int sm, int blocks) {
    const GpuShape shape = shape_of({.blocks = blocks}, Gpu::of(sm), 1000, 64);
    CHECK(shape.blocks == blocks);
    return shape.group;
  };
  CHECK(group(90, 1) == Group::block);
  CHECK(group(90, 4) == Group::cluster);
  CHECK(group(90, 7) == Group::grid);
  CHECK(group(90, 16) == Group::grid);
  CHECK(group(80, 4) == Group::grid);
}

TEST_CASE("a model's matrices count as they are stored", "[schedule][gpu]") {
  const ra::Graph graph = tree_gru(64).graph();
  CHECK(gpu_problem(graph, Schedule{}.store_weights(DType::bf16)).weight_bytes == 3 * 64 * 64 * 2);
  const Schedule two = Schedule{}.store_weights(DType::bf16).store("Ur", DType::i8);
  CHECK(gpu_problem(graph, two).weight_bytes == 64 * 64 * (2 * 2 + 1));
}

TEST_CASE("weights that one block reads before several would meet make groups of one block", "[schedule][gpu]") {
  const GpuShape shape = shape_of({}, Gpu::of(90), 70000, 128);
  CHECK(shape.group == Group::block);
  CHECK(shape.blocks == 1);
  CHECK(shape_of({}, Gpu::of(90), 80000, 128).group == Group::cluster);
  CHECK(shape_of({}, Gpu::of(80), 80000, 128).group == Group::block);  // where several take longer to meet
  CHECK(gpu_shape({}, Gpu::of(90), {.weight_bytes = 70000, .columns = 128, .rows = 2}).group == Group::cluster);
}

TEST_CASE("weights that fit into a cluster make groups of the largest one", "[schedule][gpu]") {
  const GpuShape shape = shape_of({}, Gpu::of(90), 600000, 256);
  CHECK(shape.group == Group::cluster);
  CHECK(shape.blocks == 8);
  CHECK(shape_of({}, Gpu::of(90), 600000, 32).blocks == 4);
  CHECK(shape_of({}, Gpu::of(90), 400000, 16).blocks == 2);
}

TEST_CASE("where a level has much to read, many blocks of a grid share it", "[schedule][gpu]") {
  const auto blocks = [](const GpuProblem& problem, const GpuSchedule& wish = {}, const Gpu& gpu = Gpu::of(90)) {
    const GpuShape shape = gpu_shape(wish, gpu, problem);
    return shape.group == Group::grid ? shape.blocks : -shape.blocks;
  };
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 256}) == 32);  // 32 KB each
  CHECK(blocks({.weight_bytes = (1 << 20) - 1, .columns = 256}) == -8);
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 512}) == 32);
  CHECK(blocks({.weight_bytes = 2 << 20, .columns = 512}) == 64);
  CHECK(blocks({.weight_bytes = 2 << 20, .columns = 256}) == 32);   // as many as slices
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 128}) == -8);   // of which there are too few
  CHECK(blocks({.weight_bytes = 4 << 20, .columns = 4096}) == 64);  // so that two groups run at once
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 256}, {}, Gpu::of(80)) == 32);
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 256}, {}, Gpu::of(75)) == 16);  // of 40 multiprocessors; they fit

  // A matrix at each node makes more of what its rows are multiplied by.
  CHECK(blocks({.weight_bytes = 256 << 10, .columns = 128, .rows = 128}) == 16);
  CHECK(blocks({.weight_bytes = 64 << 10, .columns = 64, .rows = 64}) == -8);

  const GpuProblem much{.weight_bytes = 1 << 20, .columns = 256};
  CHECK(blocks({.weight_bytes = 1 << 20, .columns = 256, .shares_columns = false}) == -8);
  CHECK(blocks(much, {.recent_rows = 8}) == -8);
  CHECK(blocks(much, {.tensor_cores = GpuSchedule::TensorCores::tf32}) == -8);
  CHECK(blocks(much, {.weights = GpuSchedule::Weights::registers}) == -8);
  CHECK(blocks(much, {.group = Group::cluster}) == -8);
  CHECK(blocks(much, {.group = Group::grid}) == 32);
  CHECK(blocks(much, {.blocks = 5}) == 5);
  CHECK(gpu_problem(tree_gru(64).graph()).shares_columns);
  CHECK(!gpu_problem(tree_gru(64).graph(), Schedule::standard().unroll("tree_gru", 2)).shares_columns);
  CHECK(!gpu_problem(tree_gru(64).graph(), Schedule::standard().refactor("candidate")).shares_columns);
}

TEST_CASE("blocks that the compiler chooses own equal slices of what a recursion is cut at", "[schedule][gpu]") {
  const auto blocks = [](std::int64_t cut, const GpuSchedule& how = {}, const Gpu& gpu = Gpu::of(90)) {
    return gpu_shape(how, gpu, {.weight_bytes = 1 << 20, .columns = 256, .shares_columns = false, .cut = cut}).blocks;
  };
  CHECK(blocks(0) == 8);
  CHECK(blocks(256) == 8);
  CHECK(blocks(100) == 4);
  CHECK(blocks(90) == 2);
  CHECK(blocks(17) == 8);  // which is refused
  CHECK(blocks(100, {.blocks = 8}) == 8);
  CHECK(blocks(90, {.group = GpuSchedule::Group::grid}, Gpu::of(80)) == 6);
  const auto cut = [](const ra::Graph& graph, const char* op) {
    return gpu_problem(graph, Schedule::standard().refactor(op)).cut;
  };
  CHECK(cut(tree_gru(48).graph(), "candidate") == 48);
  CHECK(gpu_problem(tree_gru(48).graph()).cut == 0);
}

TEST_CASE("without clusters, or with weights beyond them, the blocks of the grid take slices", "[schedule][gpu]") {
  CHECK(shape_of({}, Gpu::of(80), 600000, 256).group == Group::grid);
  const GpuShape large = shape_of({}, Gpu::of(90), 64 << 20, 2048);
  CHECK(large.group == Group::grid);
  CHECK(large.blocks == 132);
  CHECK(shape_of({}, Gpu::of(80), 600000, 256).blocks == 4);
  CHECK(shape_of({}, Gpu::of(75), 64 << 20, 256).blocks == 32);  // slices of whole sectors
}

TEST_CASE("a block of a usual GPU can ask for as much shared memory as CUDA gives it", "[schedule][gpu]") {
  for (const auto& [sm, kilobytes] :
       {std::pair(75, 64), std::pair(80, 163), std::pair(86, 99), std::pair(87, 163), std::pair(89, 99),
        std::pair(90, 227), std::pair(100, 227), std::pair(103, 227), std::pair(120, 99), std::pair(121, 99)}) {
    CAPTURE(sm);
    CHECK(Gpu::of(sm).sm == sm);
    CHECK(Gpu::of(sm).shared_bytes == kilobytes * 1024);
  }
  CHECK(shape_of({}, Gpu::of(80), 100 << 10, 128).blocks == 1);
  CHECK(shape_of({}, Gpu::of(86), 100 << 10, 128).blocks > 1);
}

TEST_CASE("more threads leave fewer accumulators to each", "[schedule][gpu]") {
  GpuSchedule wish;
  CHECK(shape_of(wish, Gpu::of(90), 1000, 64).accumulators == 28);
  wish.threads = 1024;
  CHECK(shape_of(wish, Gpu::of(90), 1000, 64).accumulators == 4);
}

TEST_CASE("as many threads share a sum as a single node leaves idle, with eight terms or more each",
          "[schedule][gpu]") {
  const auto parts = [](GpuSchedule wish, std::int64_t bytes, std::int64_t columns) {
    return shape_of(wish, Gpu::of(90), bytes, columns).parts;
  };
  CHECK(parts({}, 2 << 20, 256) == 32);  // 32 blocks of 8 columns and 256 threads
  CHECK(parts({}, 600000, 256) == 8);    // 8 blocks of 32
  CHECK(parts({}, 70000, 128) == 2);     // one block
  CHECK(parts({}, 70000, 64) == 4);
  CHECK(parts({}, 4 << 20, 64) == 8);  // 8 blocks of 8 columns: 32 would have two terms each
  CHECK(parts({}, 70000, 300) == 1);
  GpuSchedule wish;
  wish.threads = 512;
  CHECK(parts(wish, 70000, 128) == 4);
  wish.parts = 1;
  CHECK(parts(wish, 70000, 128) == 1);
  wish.parts = 0, wish.tensor_cores = GpuSchedule::TensorCores::bf16;
  CHECK(parts(wish, 70000, 128) == 1);
  wish.threads = 256;
  CHECK(parts(wish, 70000, 128) == 2);
}

TEST_CASE("what a GPU cannot do is refused with the reason", "[schedule][gpu]") {
  CHECK_THAT(refusal(Gpu::of(80), [](auto& g) { g.group = Group::cluster; }),
             Contains("a GPU of compute capability 8.0 has no clusters of blocks; 9.0 and later have"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.group = Group::cluster, g.blocks = 16; }),
             Contains("a cluster of 16 blocks: it has 1, 2, 4 or 8"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.group = Group::block, g.blocks = 2; }),
             Contains("group block is one block, and not 2"));
  CHECK_THAT(refusal(Gpu::of(75), [](auto& g) { g.group = Group::grid, g.blocks = 41; }),
             Contains("a grid of 41 blocks cannot meet at a barrier on 40 multiprocessors"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.blocks = 2147483647; }),
             Contains("a grid of 2147483647 blocks cannot meet at a barrier on 132 multiprocessors"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.threads = 96; }),
             Contains("96 threads a block: it takes a power of two from 32 to 1024"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.rows = 3; }),
             Contains("3 nodes side by side: it takes 1, 2, 4 or 8"));
  for (const int parts : {-1, 3, 64})
    CHECK_THAT(refusal(Gpu::of(90), [&](auto& g) { g.parts = parts; }),
               Contains(std::to_string(parts) + " parts of a sum: it takes 1, 2, 4, 8, 16 or 32, threads of one warp"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.parts = 16, g.tensor_cores = GpuSchedule::TensorCores::bf16; }),
             Contains("16 parts of a sum: with tensor cores it takes 1, 2, 4 or 8, tiles of one warp"));
  CHECK_THAT(refusal(Gpu::of(90), [](auto& g) { g.blocks = -1; }), Contains("a group has no -1 blocks"));
  CHECK_THAT(refusal({.sm = 61}, [](auto&) {}), Contains("compute capability 6.1 is older than what is supported"));
}
