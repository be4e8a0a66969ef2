// Weights that are spread over the blocks of a cluster, in the emulation of a GPU.
#include "cortex/explain.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

models::Sizes sizes(int H) { return {.vocabulary = vocabulary, .input = 5, .hidden = H}; }

/// A node and its children are one block's, which so reads matrices whole.
template <class Program>
Schedule unrolled(const Program& program, int blocks) {
  GpuSchedule how = on_gpu(Group::cluster, blocks).gpu;
  how.recent_rows = 0;
  return Schedule::standard().tabulate_nothing().unroll(program, 2).on_gpu(how);
}

/// How many matrices are spread.
int spread_weights(const runtime::Executable& executable) {
  int found = 0;
  for (const ir::Buffer& buffer : executable.program.buffers) found += buffer->scope == ir::Scope::spread;
  return found;
}

/// With so much shared memory a block that its weights fit in parts alone: the same bits as from the L2 cache.
template <class Program>
void check_spread(const Program& program, const Schedule& schedule, int shared_bytes, int matrices,
                  Shape shape = Shape::ragged) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 5, 14, 5);
  FakeCuda streaming;
  streaming.gpu.multiprocessors = 16, streaming.gpu.shared_bytes = 0;
  const std::vector<float> right = emulated(streaming, program, schedule, weights, items);
  CHECK(difference(right, interpreted(program, weights, items, schedule)) <= 1);
  for (const auto order : {Interleaving::first_first, Interleaving::last_first, Interleaving::random}) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 16, fake.gpu.shared_bytes = shared_bytes;
    fake.order = {order, 7};
    CHECK(spread_weights(cuda::compile(program, schedule, fake.gpu).executable()) == matrices);
    CHECK(emulated(fake, program, schedule, weights, items) == right);
    CHECK(fake.problem == "");
  }
}

}  // namespace

TEST_CASE("blocks of a cluster read each other's parts of weights that do not fit whole", "[cuda]") {
  const auto even = models::tree_rnn<Item>(word, kids, sizes(64)).program;
  check_spread(even, unrolled(even, 2), 64 * 64 * 4 / 2, 1);
  const auto uneven = models::tree_rnn<Item>(word, kids, sizes(72)).program;  // three panels of columns
  check_spread(uneven, unrolled(uneven, 2), 64 * 72 * 4, 1);
  check_spread(uneven, unrolled(uneven, 8), 32 * 72 * 4, 1);  // and blocks without any
  const auto gates = models::tree_lstm<Item>(word, kids, sizes(64)).program;
  check_spread(gates, unrolled(gates, 2).store_weights(DType::bf16), 4 * 64 * 64 * 2 / 2, 4);
}

TEST_CASE("what pads the columns of weights that are spread is not read from behind them", "[cuda]") {
  const auto program = models::mv_rnn<Item>(word, left, right, sizes(16)).program;
  check_spread(program, unrolled(program, 2), 3 * 16 * 16 * 4, 2, Shape::binary);
}

TEST_CASE("weights that fit whole into each block are not spread", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(64)).program;
  check_spread(program, unrolled(program, 2), 64 * 64 * 4, 0);
}

TEST_CASE("a kernel that stays keeps weights that are spread from call to call", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(64)).program;
  FakeCuda fake;
  fake.gpu.multiprocessors = 6, fake.gpu.shared_bytes = 64 * 64 * 4 / 2;
  fake.order = {Interleaving::random, 3};
  const NamedNumbers weights = random_weights(program.graph(), 3);
  auto model = cuda::compile(program, unrolled(program, 2), fake.gpu);
  bind_all<float>(model, weights);
  const auto on = model.to(cuda::Device(fake.device()));
  const auto resident = on.resident({.groups = 2});
  for (unsigned turn = 0; turn < 3; ++turn) {
    const Items items = forest(Shape::ragged, 2 + int(turn), 9, turn);
    cuda::Result served = resident(items.roots);
    CHECK(difference(all_roots(served), interpreted(program, weights, items)) <= 1);
  }
  CHECK(resident.launches() == 1);
  resident.stop();
  CHECK(fake.problem == "");
}

TEST_CASE("taking away the barriers of a cluster that spreads weights makes races", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(64)).program;
  const Schedule schedule = unrolled(program, 2);
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 3, 12, 5);
  Gpu gpu = Gpu::of(90);
  gpu.shared_bytes = 64 * 64 * 4 / 2;
  const std::string source = cuda::compile(program, schedule, gpu).source();
  const int barriers = occurrences(source, kernel, "sync_cluster();");
  CHECK(barriers == 5);  // behind rows of tables, what is kept, leaves, and a level, and at the end
  // The second and the last make up for the others where there are no leaves and no levels.
  for (const int n : {2, 3}) {
    std::string problem;
    for (int seed = 0; seed < 20 && problem.empty(); ++seed) {
      FakeCuda fake;
      fake.gpu = gpu, fake.gpu.multiprocessors = 4;
      fake.order = {Interleaving::random, unsigned(seed)};
      fake.change = [&](const std::string& s) { return without(s, kernel, "sync_cluster();", "sync_block();", n); };
      emulated(fake, program, schedule, weights, items);
      problem = fake.problem;
    }
    CAPTURE(n);
    CHECK(problem != "");
  }
}

TEST_CASE("explain tells which weights are spread over a cluster", "[cuda]") {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(256)).program;
  GpuSchedule how;
  how.group = Group::cluster;
  const auto model =
      cuda::compile(program, Schedule::standard().tabulate_nothing().unroll(program, 2).on_gpu(how), Gpu::of(90));
  const std::string text = explain(model);
  CHECK_THAT(text, Contains("128 KB of weights stay in each block's shared memory for the time of a call: a part of "
                            "U_f, U_i, U_o, U_u, which all blocks of the cluster read there"));
  const std::size_t total = text.find("in all, weights on chip of each block");
  REQUIRE(total != std::string::npos);
  CHECK_THAT(text.substr(total, text.find('\n', total) - total), Contains(" 128 KB"));
}
