// Weights in two bytes an element or one on a GPU: the numbers that the interpreter reads, uploaded as they are stored.
#include "cortex/base/half.hpp"
#include "cortex/explain.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// `program` with weights as `storing` says, shared in several ways: the interpreter's results, the same bits each.
template <class Program>
void check_stored(const Program& program, Shape shape, const std::function<Schedule(const Schedule&)>& storing,
                  const std::vector<Schedule>& ways = {on_gpu(Group::cluster, 2, Where::resident)}) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted(program, weights, items, storing(Schedule::standard()));
  std::vector<float> first;
  for (const Schedule& way : ways) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 11};
    const std::vector<float> got = emulated(fake, program, storing(way), weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, right) <= 1);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}

}  // namespace

TEST_CASE("a GPU reads weights of each type as the interpreter does", "[cuda]") {
  for (const DType type : {DType::bf16, DType::f16, DType::i8}) {
    INFO(to_string(type));
    check_stored(models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged,
                 [&](const Schedule& s) { return s.store_weights(type); });
  }
}

TEST_CASE("results of stored weights do not depend on how a GPU shares the work", "[cuda]") {
  check_stored(
      models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged,
      [&](const Schedule& s) { return s.store_weights(DType::i8); },
      {on_gpu(Group::block, 1, Where::streamed), on_gpu(Group::cluster, 2, Where::resident), on_gpu(Group::grid, 3)});
}

TEST_CASE("a GPU reads matrices, an embedding and a bias of three types", "[cuda]") {
  check_stored(models::tree_lstm<Item>(word, kids, sizes(5, 24)).program, Shape::ragged, [](const Schedule& s) {
    return s.store_weights(DType::bf16).store("Emb", DType::i8).store("b_i", DType::f16).store("U_f", DType::f32);
  });
}

TEST_CASE("a GPU reads the matrices of nodes by words of one byte", "[cuda]") {
  check_stored(models::mv_rnn<Item>(word, left, right, sizes(0, 6)).program, Shape::binary,
               [](const Schedule& s) { return s.store_weights(DType::i8).store("Emb_M", DType::i8); });
}

TEST_CASE("stored weights are rounded, and not f32 after all", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 4, 12, 5);
  FakeCuda fake;
  const Schedule narrow = on_gpu(Group::block, 1).store_weights(DType::i8);
  CHECK(difference(emulated(fake, program, narrow, weights, items), interpreted(program, weights, items)) > 10);
}

TEST_CASE("every binary16 is the number that the library takes it for", "[cuda]") {
  std::string log;
  const auto kernel = HostKernel::compile(
      for_emulation("#define BLOCKS 1\n#define THREADS 1\n#define SPIN_LIMIT 0\n" +
                    std::string(codegen::cuda_device_prelude) + std::string(codegen::cuda_common_prelude) +
                    "struct Launch {\n  float* f16;\n  float* bf16;\n  u64 none;\n};\nKERNEL(cortex_kernel, 1) {\n"
                    "  for (int i = 0; i < 65536; ++i) launch.f16[i] = from_f16((unsigned short)i), "
                    "launch.bf16[i] = from_bf16((unsigned short)i);\n}\n"),
      log);
  INFO(log);
  REQUIRE(kernel);
  std::vector<float> f16(65536), bf16(65536);
  kernel->entry({reinterpret_cast<std::uint64_t>(f16.data()), reinterpret_cast<std::uint64_t>(bf16.data()), 0});
  int wrong = 0;
  const auto same = [](float a, float b) { return std::bit_cast<int>(a) == std::bit_cast<int>(b); };
  for (std::size_t i = 0; i < 65536; ++i)
    wrong += !same(f16[i], from_f16(std::uint16_t(i))) + !same(bf16[i], from_bf16(std::uint16_t(i)));
  CHECK(wrong == 0);
}

TEST_CASE("stored weights take as little memory on a GPU as on a CPU, and are kept on chip as they are", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(256, 256)).program;
  const Schedule two = without_recent_rows(on_gpu(Group::cluster, 8, Where::automatic));
  const auto wide = cuda::compile(program, two, Gpu::of(90));
  const auto narrow = cuda::compile(program, two.store_weights(DType::bf16), Gpu::of(90));
  const std::int64_t structure = 8192;  // the linearizer's arrays
  CHECK(2 * (narrow.code().text.chip_bytes - structure) == wide.code().text.chip_bytes - structure);
  CHECK_THAT(narrow.source(), Contains("from_bf16(") && Contains("const unsigned short* const b"));
  CHECK_THAT(explain(narrow), Contains("those that sums of products read as bf16; arithmetic is in f32"));
}

TEST_CASE("groups are of fewer blocks where narrow weights fit into fewer", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(256, 256)).program;
  const auto blocks = [&](const Schedule& s) {
    return cuda::compile(program, s.on_gpu({.group = GpuSchedule::Group::grid}), Gpu::of(90)).code().shape.blocks;
  };
  CHECK(blocks(Schedule::standard()) == 4);
  CHECK(blocks(Schedule::standard().store_weights(DType::bf16)) == 2);
}

TEST_CASE("an element that its type does not hold is refused when it is bound for a GPU", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  NamedNumbers weights = random_weights(program.graph(), 3);
  weights.at("U_r")[25] = 70000;
  auto model = cuda::compile(program, on_gpu(Group::block, 1).store_weights(DType::f16), Gpu::of(90));
  CHECK_THROWS_WITH(bind_all<float>(model, weights),
                    Contains("'U_r'") && Contains("element [1, 1] is 70000, which f16"));
}
