// Sums that threads of a warp share, in the emulation: the order of additions is one for all levels and ways to share
// the work, and edges of sums, columns and slices are what they are without.
#include "cortex/explain.hpp"
#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cuda/check.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

Schedule in_parts(int parts, Group group = Group::block, int blocks = 1, Where weights = Where::automatic,
                  int threads = 32) {
  return on_gpu(group, blocks, weights, false, threads, parts);
}

template <class Program>
void check_model(const Program& program, Shape shape, const std::vector<Schedule>& ways) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  std::vector<float> first;
  for (const Schedule& way : ways) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 5};
    CAPTURE(program.name(), to_string(way));
    const std::vector<float> got = emulated(fake, program, way, weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, interpreted(program, weights, items)) <= 1);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}

}  // namespace

TEST_CASE("sums are joined by halves, however many at once", "[cuda]") {
  std::string log, body;
  for (const int threads : {2, 8, 32})
    for (int sums = 1; sums <= threads && sums <= 8; sums *= 2) {
      const std::string n = std::to_string(sums);
      body += "{ float terms[" + n + "];\nfor (int r = 0; r < " + n +
              "; ++r) terms[r] = launch.x[(t + 7 * r) % 32];\n" + "launch.y[" + std::to_string(32 * (threads + sums)) +
              " + t] = join<" + std::to_string(threads) + ", " + n + ">(terms); }\n";
    }
  const auto kernel = HostKernel::compile(
      for_emulation("#define BLOCKS 1\n#define THREADS 32\n#define SPIN_LIMIT 0\n" +
                    std::string(codegen::cuda_device_prelude) + std::string(codegen::cuda_common_prelude) +
                    "struct Launch { float* x; float* y; u64 none; };\nKERNEL(cortex_kernel, 32) {\n"
                    "const int t = thread_number();\n" +
                    body + "}\n"),
      log);
  INFO(log);
  REQUIRE(kernel);
  std::vector<float> x(32), y(32 * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / float(3 + i * i);
  WatchedMemory memory;
  Emulation emulation(memory, {1, 32, 1, 0, -1}, {Interleaving::random, 3});
  CHECK(emulation.run([&] {
    kernel->entry({reinterpret_cast<std::uint64_t>(x.data()), reinterpret_cast<std::uint64_t>(y.data()), 0});
  }) == "");
  const std::function<float(int, int, int)> right = [&](int first, int count, int r) -> float {
    if (count == 1) return x[std::size_t(first + 7 * r) % 32];
    return right(first, count / 2, r) + right(first + count / 2, count / 2, r);
  };
  int wrong = 0, in_a_row = 0;
  for (const int threads : {2, 8, 32})
    for (int sums = 1; sums <= threads && sums <= 8; sums *= 2)
      for (int t = 0; t < 32; ++t) {
        const int first = t / threads * threads, r = t % threads % sums;
        float chain = 0;
        for (int i = 0; i < threads; ++i) chain += x[std::size_t(first + i + 7 * r) % 32];
        const float got = y[std::size_t(32 * (threads + sums) + t)];
        wrong += got != right(first, threads, r), in_a_row += got != chain;
      }
  CHECK(wrong == 0);
  CHECK(in_a_row > 0);  // the order is seen
}

TEST_CASE("a sum in parts has the same bits for any threads, rows, blocks and places of weights", "[cuda]") {
  std::vector<Schedule> ways{in_parts(8), in_parts(8, Group::block, 1, Where::streamed, 128),
                             in_parts(8, Group::cluster, 2, Where::resident, 64),
                             in_parts(8, Group::grid, 3, Where::streamed)};
  for (const int rows : {1, 8}) {
    GpuSchedule how = ways[0].gpu;
    how.rows = rows;
    ways.push_back(ways[0].on_gpu(how));
  }
  check_model(models::tree_gru<Item>(word, kids, sizes(16, 32)).program, Shape::ragged, ways);
}

TEST_CASE("a sum may have fewer terms than parts, a slice fewer columns than a tile, and a block none", "[cuda]") {
  check_model(models::tree_lstm<Item>(word, kids, sizes(5, 11)).program, Shape::ragged,
              {in_parts(16), in_parts(16, Group::cluster, 2), in_parts(16, Group::cluster, 4, Where::streamed)});
  check_model(models::lstm<Item>(word, before, sizes(3, 9)).program, Shape::sequence,
              {in_parts(32, Group::grid, 2, Where::streamed), in_parts(32, Group::block, 1, Where::automatic, 64)});
}

TEST_CASE("threads of a warp share sums of weights that are stored in two bytes", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(5, 20)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 4, 12, 5);
  for (const DType type : {DType::bf16, DType::i8}) {
    FakeCuda fake;
    const std::vector<float> right = interpreted(program, weights, items, Schedule::standard().store_weights(type));
    CHECK(difference(emulated(fake, program, in_parts(4).store_weights(type), weights, items), right) <= 1);
    CHECK(fake.problem == "");
  }
}

TEST_CASE("a tree's results are the same bits alone and among others where threads share sums", "[cuda]") {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(16, 24)).program;
  Items items = forest(Shape::ragged, 7, 12, 5);
  FakeCuda fake;
  auto model = cuda::compile(program, in_parts(8), fake.gpu);
  bind_all<float>(model, random_weights(program.graph(), 3));
  fake.gpu.multiprocessors = 1;
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result together = on(items.roots);
  for (const std::size_t r : {std::size_t(0), std::size_t(6)}) {
    cuda::Result alone = on(*items.roots[r]);
    CHECK(alone.root(0) == together.root(r));
  }
  CHECK(fake.problem == "");
}

TEST_CASE("slices that begin with a panel are copied in pieces of 16 bytes, and others by element", "[cuda]") {
  const auto pieces = [](const auto& program, const Schedule& schedule) {
    const std::string source = cuda::compile(program, without_recent_rows(schedule), Gpu::of(90)).source();
    return occurrences(source, kernel, "store_chip_piece(") - occurrences(source, kernel, "store_chip(");
  };
  const auto tree_gru = models::tree_gru<Item>(word, kids, sizes(5, 40)).program;
  const auto of_double = models::tree_gru<Item, double>(word, kids, sizes(5, 40)).program;
  CHECK(pieces(tree_gru, in_parts(4, Group::cluster, 2)) == 3);  // three matrices
  CHECK(pieces(tree_gru, in_parts(16, Group::cluster, 2)) == 3);
  CHECK(pieces(tree_gru, in_parts(2)) == 3);
  CHECK(pieces(tree_gru, in_parts(8, Group::cluster, 2).store_weights(DType::i8)) == 3);
  CHECK(pieces(of_double, in_parts(4, Group::cluster, 2)) == 3);
  CHECK(pieces(models::dag_rnn<Item>(word, kids, sizes(5, 64)).program, in_parts(2, Group::cluster, 2)) == 1);
  CHECK(pieces(tree_gru, in_parts(2, Group::cluster, 2)) == -3);  // panels of 16 columns, and slices between 8
  CHECK(pieces(tree_gru, in_parts(1, Group::cluster, 2)) == -3);
}

TEST_CASE("CUDA text of a TreeFC whose sums are in parts is the golden one", "[cuda_text]") {
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 8)).program;
  const auto model = cuda::compile(program, without_recent_rows(in_parts(4)), Gpu::of(80));
  check_golden("cuda_text/parts_of_tree_fc.cu", model.code().text.settings + model.code().text.kernel);
}

TEST_CASE("explain says how many threads share a sum", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(16, 64)).program;
  CHECK_THAT(explain(cuda::compile(program, Schedule::standard(), Gpu::of(90))),
             Contains("256 a block, 4 of a warp with a column of the output, each with a part of its sums, for up to 8 "
                      "nodes side by side"));
  CHECK_THAT(explain(cuda::compile(program, in_parts(1), Gpu::of(90))),
             Contains("32 a block, each with a column of the output for up to 4 nodes side by side"));
}
