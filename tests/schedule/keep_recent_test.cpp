// Recent rows on chip: which tensors have them, how many there are, and what is refused.
#include <catch2/catch.hpp>

#include "cortex/cuda.hpp"
#include "support/golden.hpp"
#include "support/gpu_passes.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// `name: rows` of what has recent rows.
std::string rows_of(const ra::Graph& graph, const GpuSchedule& wish) {
  std::string found;
  for (const ir::Buffer& buffer : after("share_threads", graph, wish).buffers)
    if (ir::has_recent_rows(buffer->scope))
      found += (found.empty() ? "" : ", ") + buffer->name + ": " + std::to_string(buffer->dims[0].extent());
  return found;
}

GpuSchedule with_rows(GpuSchedule wish, int rows) {
  wish.recent_rows = rows;
  return wish;
}

}  // namespace

TEST_CASE("keep_recent makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/keep_recent/tree_gru.ilir",
               text_after("keep_recent", tree_gru(16).graph(), with_rows(how(Group::cluster, 2), 8)));
}

TEST_CASE("recent rows are of what blocks exchange, and of what each has for itself", "[schedule][gpu]") {
  const GpuSchedule cluster = with_rows(how(Group::cluster, 2), 64), block = with_rows(how(Group::block, 1), -1);
  CHECK(rows_of(tree_fc(16).graph(), cluster) == "h_recent: 64");
  CHECK(rows_of(tree_lstm(16).graph(), cluster) == "h_recent: 64, s_recent: 64");  // and not the cells, whose columns
  CHECK(rows_of(tree_lstm(16).graph(), block) == "h_recent: 64, s_recent: 64");    // are a thread's own
  CHECK(rows_of(tree_lstm(16).graph(), with_rows(how(Group::grid, 2), -1)) == "");
  CHECK(rows_of(tree_lstm(16).graph(), with_rows(cluster, 0)) == "");
}

TEST_CASE("a cluster keeps recent rows where nothing says how many, but not where that was measured to lose",
          "[schedule][gpu]") {
  const GpuSchedule plain = with_rows(how(Group::cluster, 2), -1);
  CHECK(rows_of(tree_fc(16).graph(), plain) == "");
  GpuSchedule cores = plain, registers = plain;
  cores.tensor_cores = GpuSchedule::TensorCores::bf16, registers.weights = GpuSchedule::Weights::registers;
  CHECK(rows_of(tree_fc(32).graph(), cores) == "h_recent: 64");
  CHECK(rows_of(tree_fc(16).graph(), registers) == "h_recent: 64");
}

TEST_CASE("there are as many recent rows as have room beside weights", "[schedule][gpu]") {
  const auto rows = [](int hidden) {
    return rows_of(tree_fc(hidden).graph(), with_rows(how(Group::block, 1, 256), -1));
  };
  CHECK(rows(128) == "h_recent: 64");  // 128 KB of weights and 34 of rows, of 227
  CHECK(rows(160) == "h_recent: 32");  // 200 KB of weights
  CHECK(rows(170) == "");              // 226 KB of weights: as if there were no such rows
}

TEST_CASE("recent rows that are asked for and cannot be are refused", "[schedule][gpu]") {
  const ra::Graph graph = tree_fc(256).graph();
  const GpuSchedule cluster = how(Group::cluster, 4, 256);
  CHECK_THAT(refusal(with_rows(cluster, 256), graph),
             Contains("256 recent rows take 270336 bytes of each block's shared memory, and beside weights there are "
                      "101376; take fewer rows, more blocks, or weights streamed"));
  for (const int rows : {-2, 3, 8192})
    CHECK_THAT(refusal(with_rows(cluster, rows), graph),
               Contains(std::to_string(rows) + " recent rows: it takes a power of two up to 4096, 0 for none, or -1"));
  CHECK_THAT(refusal(with_rows(how(Group::grid, 4), 8), graph),
             Contains("the blocks of a grid do not reach each other's shared memory"));
}

TEST_CASE("a schedule by hand has no recent rows to ask for", "[schedule][gpu]") {
  const Schedule schedule =
      Schedule::standard().loops(Loops::parse("bind(i, thread)")).on_gpu(with_rows(how(Group::block, 1, 32, 0), 8));
  GpuSchedule plain = schedule.gpu;
  plain.rows = 0;
  try {
    runtime::compile_cuda_graph(tree_fc(16).graph(), schedule.on_gpu(plain), Gpu::of(90), {});
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK_THAT(error.message, Contains("GpuSchedule::recent_rows: what blocks exchange is kept in shared memory"));
  }
}
