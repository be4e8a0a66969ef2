// The emulation finds what it is there to find; and barriers of generated kernels, none of which can be spared.
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "cortex/models/tree_gru.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// What the emulation says of a kernel of one block, or of a cluster or a grid of several, whose memory is one array.
struct OneKernel {
  std::string body;
  Emulation::Shape shape{1, 32, 1, 64, -1};

  std::string run(Interleaving order = {}) const {
    codegen::CudaText text;
    text.settings = "#define BLOCKS 1\n#define THREADS 32\n#define SPIN_LIMIT 0\n#define PART_WORDS 6\n";
    text.kernel =
        "struct Launch {\n  float* data;\n  u64* words;\n  int* fault;\n};\nKERNEL(cortex_kernel, 32) {\n"
        "  const int t = thread_number(), b = block_number();\n  SHARED(chip);\n  float* const s = (float*)chip;\n" +
        body + "\n}\n";
    std::string log;
    const auto kernel = HostKernel::compile(for_emulation(text.source()), log);
    INFO(log);
    REQUIRE(kernel);
    std::vector<float> data(64);
    std::vector<std::uint64_t> words(4);
    WatchedMemory memory;
    memory.add(data.data(), 256), memory.add(words.data(), 32);
    memory.written_by_host(data.data(), 128);
    const codegen::CudaLaunch launch{reinterpret_cast<std::uint64_t>(data.data()),
                                     reinterpret_cast<std::uint64_t>(words.data()), 0};
    Emulation emulation(memory, shape, order);
    return emulation.run([&] { kernel->entry(launch); });
  }
};

/// The words of a text that compile only where its structure `name` has so many bytes, and each member where the host
/// has it, by how many bytes it is behind the beginning.
std::string layout(const std::string& name, std::size_t bytes,
                   std::initializer_list<std::pair<std::string, std::size_t>> members) {
  std::string text = "static_assert(sizeof(" + name + ") == " + std::to_string(bytes) + ", \"its bytes\");\n";
  for (const auto& [member, at] : members)
    text += "static_assert(__builtin_offsetof(" + name + ", " + member + ") == " + std::to_string(at) + ", \"" +
            member + "\");\n";
  return text;
}

constexpr const char* neighbours = "store_chip(s, t % 16, 1.0f * t);";

}  // namespace

TEST_CASE("an access outside of global memory is found", "[cuda]") {
  CHECK_THAT(OneKernel{"store(launch.data, t + 40, 1.0f);"}.run(), Contains("writes outside of memory"));
}
TEST_CASE("an access outside of shared memory is found", "[cuda]") {
  CHECK_THAT(OneKernel{"store_chip(s, t, 1.0f);"}.run(), Contains("thread 16 of block 0 writes outside of memory"));
}
TEST_CASE("a piece of memory that is not where all of it can be read at once is found", "[cuda]") {
  const char* body = "if (t < 4) store_chip_piece(s, 4 * t, load_piece(launch.data, 4 * t));";
  CHECK(OneKernel{body}.run() == "");
  CHECK_THAT(OneKernel{"load_piece(launch.data, 2);"}.run(),
             Contains("reads 16 bytes at an address that is no multiple of them"));
  CHECK_THAT(OneKernel{"if (t < 5) store_chip_piece(s, 4 * t, load_piece(launch.data, 4 * t));"}.run(),
             Contains("thread 4 of block 0 writes outside of memory"));
  CHECK_THAT(OneKernel{"if (t < 16) store_chip_piece(s, 0, load_piece(launch.data, 0));"}.run(), Contains("a race on"));
}
TEST_CASE("reading shared memory that nothing has written is found", "[cuda]") {
  CHECK_THAT(OneKernel{"if (t == 3) load_chip(s, 5);"}.run(), Contains("reads word 5, which nothing has written"));
}
TEST_CASE("reading global memory that nothing has written is found", "[cuda]") {
  CHECK_THAT(OneKernel{"load(launch.data, 40);"}.run(), Contains("reads word 40, which nothing has written"));
}
TEST_CASE("two threads that write one word race", "[cuda]") {
  CHECK_THAT(OneKernel{neighbours}.run(), Contains("thread 0 of block 0 writes it and thread 16 of block 0 writes it"));
}
TEST_CASE("a barrier of the block orders its threads", "[cuda]") {
  const char* body = "if (t < 16) store_chip(s, t, 1.0f);\nsync_block();\nload_chip(s, (t + 1) % 16);";
  CHECK(OneKernel{body}.run() == "");
  CHECK_THAT(
      OneKernel{"if (t < 16) store_chip(s, t, 1.0f);\nload_chip(s, (t + 1) % 16);"}.run({Interleaving::random, 3}),
      Contains("race") || Contains("nothing has written"));
}
TEST_CASE("a write after a read by many races with each of them", "[cuda]") {
  CHECK_THAT(OneKernel{"load(launch.data, 0);\nif (t == 7) store(launch.data, 0, 1.0f);"}.run(),
             Contains("a race on word 0"));
}
TEST_CASE("a barrier of the block does not order the blocks of a cluster, and its own does", "[cuda]") {
  OneKernel kernel{"if (t == 0 && b == 0) store(launch.data, 0, 1.0f);\nsync_block();\nload(launch.data, 0);"};
  kernel.shape.blocks = kernel.shape.cluster = 2;
  CHECK_THAT(kernel.run(), Contains("a race on word 0"));
  kernel.body.replace(kernel.body.find("sync_block"), 10, "sync_cluster");
  CHECK(kernel.run() == "");
}
TEST_CASE("threads that end while others wait for them are found", "[cuda]") {
  CHECK_THAT(OneKernel{"if (t < 16) sync_block();"}.run(), Contains("has ended, but"));
}
TEST_CASE("a thread that waits for what never comes is found", "[cuda]") {
  CHECK_THAT(OneKernel{"while (load_acquire(launch.words) == 0) relax();"}.run(), Contains("waits for ever"));
}
TEST_CASE("a warp whose threads do not all make a product is found", "[cuda]") {
  OneKernel kernel{"float sums[4] = {};\nif (t < 16) mma_tf32(sums, Fragment{}, 0.0f, 0.0f);"};
  CHECK_THAT(kernel.run(), Contains("has ended, but"));
  kernel.body.replace(kernel.body.find("if (t < 16) "), 12, "");
  CHECK(kernel.run() == "");
}
TEST_CASE("a warp whose threads do not all join their sums is found", "[cuda]") {
  OneKernel kernel{"float terms[1] = {1.0f};\nif (t < 16) join<8, 1>(terms);"};
  CHECK_THAT(kernel.run(), Contains("has ended, but"));
  kernel.body.replace(kernel.body.find("if (t < 16) "), 12, "");
  CHECK(kernel.run() == "");
}
TEST_CASE("what threads hand each other orders nothing in memory", "[cuda]") {
  const std::string hand = "if (t == 0) store_chip(s, 0, 1.0f);\nfloat terms[1] = {1.0f};\njoin<32, 1>(terms);\n";
  CHECK_THAT(OneKernel{hand + "if (t == 1) load_chip(s, 0);"}.run(), Contains("a race on word 0"));
  CHECK(OneKernel{hand + "sync_warp();\nif (t == 1) load_chip(s, 0);"}.run() == "");
}
TEST_CASE("a barrier of a warp orders its threads, and not those of another", "[cuda]") {
  OneKernel kernel{"if (t == 0) store_chip(s, 0, 1.0f);\nsync_warp();\nload_chip(s, 0);"};
  CHECK(kernel.run() == "");
  kernel.shape.threads = 64;
  CHECK_THAT(kernel.run(), Contains("a race on word 0"));
}
TEST_CASE("a release and an acquire order two blocks; without either they race", "[cuda]") {
  const auto message = [](const char* put, const char* get) {
    OneKernel kernel{std::string("if (t == 0 && b == 0) { store(launch.data, 0, 1.0f); ") + put +
                     "(launch.words, 1); }\nif (t == 0 && b == 1) { while (" + get +
                     "(launch.words) == 0) relax(); load(launch.data, 0); }"};
    kernel.shape.blocks = 2;
    return kernel.run();
  };
  CHECK(message("store_release", "load_acquire") == "");
  CHECK_THAT(message("store_relaxed", "load_acquire"), Contains("a race on word 0"));
  CHECK_THAT(message("store_release", "load_relaxed"), Contains("a race on word 0"));
}

namespace {

/// What the emulation says of a TreeGRU whose source `change` has changed.
std::string problem_of(const Schedule& schedule, const std::function<std::string(std::string)>& change, int times = 1) {
  const auto program = models::tree_gru<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 24}).program;
  static const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 3, 12, 5);
  for (int t = 0; t < times; ++t) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 3;
    fake.change = change;
    fake.order = {Interleaving::random, unsigned(17 + t)};
    emulated(fake, program, schedule, weights, items);
    if (!fake.problem.empty()) return fake.problem;
  }
  return {};
}

std::string source_of(const Schedule& schedule) {
  const auto program = models::tree_gru<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 24}).program;
  return cuda::compile(program, schedule, Gpu::of(90)).source();
}

}  // namespace

TEST_CASE("what kernels are given lies where their texts take it from", "[cuda]") {
  using codegen::CudaGather, codegen::CudaLaunch, codegen::CudaService;
  const auto program = models::tree_gru<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 24}).program;
  const auto model = cuda::compile(program, on_gpu(Group::block, 1), Gpu::of(90));
  const codegen::CudaText& text = model.code().text;
  REQUIRE(text.with_launch);  // in which case the text has all of `in`
  const auto compiles = [](const std::string& source) {
    std::string log;
    const bool accepted = HostKernel::compile(for_emulation(source), log) != nullptr;
    INFO(log);
    CHECK(accepted);
  };
  compiles(text.source() +
           layout("gather::Launch", sizeof(CudaGather),
                  {{"call", offsetof(CudaGather, call)},
                   {"roots", offsetof(CudaGather, roots)},
                   {"out", offsetof(CudaGather, out)},
                   {"row", offsetof(CudaGather, row)},
                   {"buffer", offsetof(CudaGather, buffer)},
                   {"run", offsetof(CudaGather, run)},
                   {"stride", offsetof(CudaGather, stride)},
                   {"runs", offsetof(CudaGather, runs)}}) +
           layout("Launch", sizeof(CudaLaunch),
                  {{"call", offsetof(CudaLaunch, call)},
                   {"words", offsetof(CudaLaunch, words)},
                   {"fault", offsetof(CudaLaunch, fault)},
                   {"before", offsetof(CudaLaunch, before)},
                   {"after", offsetof(CudaLaunch, after)},
                   {"with_launch", offsetof(CudaLaunch, with_launch)},
                   {"in", offsetof(CudaLaunch, in)}}));
  compiles(text.resident_source() + layout("Launch", sizeof(CudaService),
                                           {{"weights", offsetof(CudaService, weights)},
                                            {"words", offsetof(CudaService, words)},
                                            {"fault", offsetof(CudaService, fault)},
                                            {"desk", offsetof(CudaService, desk)},
                                            {"mail", offsetof(CudaService, mail)},
                                            {"answers", offsetof(CudaService, answers)},
                                            {"last", offsetof(CudaService, last)},
                                            {"number", offsetof(CudaService, launch)},
                                            {"idle_ns", offsetof(CudaService, idle_ns)},
                                            {"life_ns", offsetof(CudaService, life_ns)}}));
}

TEST_CASE("taking away any barrier of threads makes a race", "[cuda]") {
  const Schedule schedule = on_gpu(Group::block, 1, GpuSchedule::Weights::automatic, false, 64);
  const int barriers = occurrences(source_of(schedule), kernel, "sync_block();");
  CHECK(barriers == 7);
  for (int n = 0; n < barriers; ++n) {
    if (n == threads_behind_rows) continue;
    CAPTURE(n);
    CHECK(problem_of(schedule, [&](const std::string& s) { return without(s, kernel, "sync_block();", "", n); }) != "");
  }
}

TEST_CASE("taking away any barrier of a cluster but the last makes a race", "[cuda]") {
  const Schedule schedule = on_gpu(Group::cluster, 2);
  const int barriers = occurrences(source_of(schedule), kernel, "sync_cluster();");
  CHECK(barriers >= 4);
  for (int n = blocks_behind_rows + 1; n + 1 < barriers; ++n) {
    CAPTURE(n);
    CHECK(problem_of(schedule, [&](const std::string& s) {
            return without(s, kernel, "sync_cluster();", "sync_block();", n);
          }) != "");
  }
}

TEST_CASE("the barriers of a grid need each of their fences", "[cuda]") {
  const auto relaxed = [](const char* from, const char* what, const char* by, int n) {
    return [=](const std::string& s) { return without(s, from, what, by, n); };
  };
  const Schedule free = on_gpu(Group::grid, 3), locked = on_gpu(Group::grid, 3, GpuSchedule::Weights::automatic, true);
  const char* barrier = "void sync_grid";
  CHECK(problem_of(free, relaxed(barrier, "store_release(", "store_relaxed(", 0)) != "");
  CHECK(problem_of(free, relaxed(barrier, "store_release(", "store_relaxed(", 1)) != "");
  CHECK(problem_of(free, relaxed("bool wait_for", "load_acquire(", "load_relaxed(", 0)) != "");
  CHECK(problem_of(locked, relaxed("const u64 old", "add_acquire_release(", "add_relaxed(", 0)) != "");
  for (int n = 0; n < 4; ++n) {
    CAPTURE(n);
    if (n != 0) CHECK(problem_of(free, relaxed(barrier, "sync_block();", "", n - 1), 3) != "");
    if (n < 2) CHECK(problem_of(locked, relaxed(barrier, "sync_block();", "", n), 3) != "");
  }
}

TEST_CASE("threads meet at barriers that do not take for granted that their warp is together", "[cuda]") {
  const std::string prelude(codegen::cuda_device_prelude);
  CHECK_THAT(prelude, Contains("void sync_block() { __barrier_sync(0); }") && Contains("barrier.red.or.pred"));
  for (const char* aligned :
       {"__syncthreads", "bar.sync ", "bar.red.", "barrier.sync.aligned", "barrier.red.or.aligned"}) {
    CAPTURE(aligned);
    CHECK_THAT(prelude.substr(prelude.find("void sync_block")), !Contains(aligned));
  }
}

TEST_CASE("clusters meet as the PTX of CUDA 11.8 spells it, which has no words for order", "[cuda]") {
  CHECK_THAT(std::string(codegen::cuda_device_prelude), Contains("barrier.cluster.arrive;\\nbarrier.cluster.wait;"));
}

TEST_CASE("something depends on each load that acquires, or old assemblers leave it out with what it orders",
          "[cuda]") {
  const std::string serve = codegen::cuda_serve();
  for (const std::string_view text : {codegen::cuda_common_prelude, codegen::cuda_lock_based_barrier,
                                      codegen::cuda_lock_free_barrier, std::string_view(serve)}) {
    int loads = 0;
    for (std::size_t at = text.find("load_acquire"); at != text.npos; at = text.find("load_acquire", at + 1), ++loads) {
      const std::string_view before = text.substr(0, text.find_last_not_of(" \n", at - 1) + 1);
      CAPTURE(std::string(text.substr(at, 60)));
      CHECK((before.ends_with("return") || std::string("=(&,").find(before.back()) != std::string::npos));
    }
    CHECK(loads > 0);
  }
}
