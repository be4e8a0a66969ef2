// What NVRTC and its assembler say of every model's kernel under the default schedule: machine code for each
// architecture, no spills, registers and shared memory within a launch's limits. Needs no GPU.
#include <cstdio>

#include "cortex/loops.hpp"
#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

const jit::Nvrtc& nvrtc() {
  static std::string why;
  static const std::shared_ptr<const jit::Nvrtc> found = jit::find_nvrtc(why);
  if (!found) skip(why);
  return *found;
}

/// The number before `what` in a report of the assembler's; -1 if it is not there.
int number_before(const std::string& log, const std::string& what) {
  const std::size_t at = log.find(what);
  if (at == std::string::npos) return -1;
  std::size_t begin = at;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  return std::atoi(log.substr(begin, at - begin).c_str());
}

constexpr std::initializer_list<int> everywhere{75, 80, 90, 100};  // those of them that NVRTC knows

/// `resident`: the kernel that stays on the device.
template <class Program>
void check_default(const Program& program, std::initializer_list<int> architectures, const Schedule& schedule,
                   bool resident = false) {
  const std::vector<int> known = jit::architectures(nvrtc());
  for (const int sm : architectures) {
    if (std::find(known.begin(), known.end(), sm) == known.end()) continue;
    const Gpu gpu = Gpu::of(sm);
    const auto code = runtime::compile_cuda_graph(program.graph(), schedule, gpu, {});
    const std::string source = resident ? code->text.resident_source() : code->text.source();
    const jit::CudaImage image = jit::compile_cuda(nvrtc(), source, sm, {.report = true});
    const std::size_t own = image.log.find(resident ? "'cortex_resident'" : "'cortex_kernel'");  // not what moves rows
    REQUIRE(own != std::string::npos);
    const std::string report = image.log.substr(own);
    CAPTURE(program.name(), sm, image.log);
    CHECK(!image.ptx);
    CHECK(image.bytes.substr(1, 3) == "ELF");
    CHECK(number_before(report, " bytes spill stores") == 0);
    CHECK(number_before(report, " bytes spill loads") == 0);
    const int registers = number_before(report, " registers");
    CHECK(registers > 0);
    CHECK(registers * code->shape.threads <= gpu.registers);
    CHECK(code->text.chip_bytes <= gpu.shared_bytes);
  }
}

models::Sizes sizes(int D, int H) { return {.vocabulary = 1000, .input = D, .hidden = H}; }

/// That by default the program's groups are a grid's blocks, and nothing spills.
template <class Program>
void check_grid(const Program& program) {
  nvrtc();
  for (const int sm : {80, 90}) {
    const auto code = runtime::compile_cuda_graph(program.graph(), Schedule::standard(), Gpu::of(sm), {});
    CHECK(code->shape.group == Group::grid);
  }
  check_default(program, {80, 90}, Schedule::standard());
}

}  // namespace

// Several cases, as each has the time that CTest gives one.
TEST_CASE("by default no kernel of a TreeRNN or a TreeLSTM spills", "[cuda][nvrtc]") {
  nvrtc();
  check_default(models::tree_rnn<Item>(word, kids, sizes(256, 256)).program, everywhere, Schedule::standard());
  check_default(models::tree_lstm<Item>(word, kids, sizes(256, 256)).program, everywhere, Schedule::standard());
}

TEST_CASE("by default no kernel of a TreeGRU or a DAG-RNN spills", "[cuda][nvrtc]") {
  nvrtc();
  check_default(models::tree_gru<Item>(word, kids, sizes(256, 256)).program, everywhere, Schedule::standard());
  check_default(models::simple_tree_gru<Item>(word, kids, sizes(256, 256)).program, {80, 90}, Schedule::standard());
  check_default(models::dag_rnn<Item>(word, kids, sizes(256, 256)).program, everywhere, Schedule::standard());
}

TEST_CASE("by default no kernel of an MV-RNN spills", "[cuda][nvrtc]") {
  nvrtc();
  const auto mv_rnn = [](int hidden) { return models::mv_rnn<Item>(word, left, right, sizes(0, hidden)).program; };
  check_default(mv_rnn(64), everywhere, Schedule::standard());
  check_default(mv_rnn(128), {80, 90}, Schedule::standard());
}

TEST_CASE("by default no kernel of a TreeFC or an LSTM spills", "[cuda][nvrtc]") {
  nvrtc();
  check_default(models::tree_fc<Item>(word, left, right, sizes(0, 512)).program, everywhere, Schedule::standard());
  check_default(models::tree_fc<Item>(word, left, right, sizes(0, 256)).program, {80, 90}, Schedule::standard());
  check_default(models::lstm<Item>(word, before, sizes(256, 256)).program, everywhere, Schedule::standard());
}

TEST_CASE("by default no kernel of a GRU or an N-ary TreeLSTM spills", "[cuda][nvrtc]") {
  nvrtc();
  check_default(models::gru<Item>(word, before, sizes(256, 256)).program, everywhere, Schedule::standard());
  check_default(models::nary_tree_lstm<Item>(word, by_position, sizes(128, 128)).program, everywhere,
                Schedule::standard());
}

TEST_CASE("by default no kernel of trees that is a grid's spills", "[cuda][nvrtc]") {
  check_grid(models::tree_lstm<Item>(word, kids, sizes(512, 512)).program);
  check_grid(models::tree_gru<Item>(word, kids, sizes(512, 512)).program);
  check_grid(models::dag_rnn<Item>(word, kids, sizes(512, 512)).program);
}

TEST_CASE("by default no kernel of sequences that is a grid's spills", "[cuda][nvrtc]") {
  check_grid(models::lstm<Item>(word, before, sizes(512, 512)).program);
  check_grid(models::gru<Item>(word, before, sizes(512, 512)).program);
}

TEST_CASE("every model is PTX, too, for devices that are newer than NVRTC", "[cuda][nvrtc]") {
  nvrtc();
  const auto check = [](const auto& program, int sm) {
    const auto code = runtime::compile_cuda_graph(program.graph(), Schedule::standard(), Gpu::of(sm), {});
    const jit::CudaImage image = jit::compile_cuda(nvrtc(), code->text.source(), sm, {.force_ptx = true});
    CAPTURE(program.name(), sm);
    CHECK(image.ptx);
    CHECK_THAT(image.bytes, Contains(".entry cortex_kernel") && Contains(".target sm_" + std::to_string(sm)));
    return code;
  };
  for (const int sm : {80, 90}) {
    check(models::tree_fc<Item>(word, left, right, sizes(0, 64)).program, sm);
    check(models::dag_rnn<Item>(word, kids, sizes(64, 64)).program, sm);
    check(models::tree_rnn<Item>(word, kids, sizes(64, 64)).program, sm);
    check(models::tree_gru<Item>(word, kids, sizes(64, 64)).program, sm);
    check(models::simple_tree_gru<Item>(word, kids, sizes(64, 64)).program, sm);
    check(models::tree_lstm<Item>(word, kids, sizes(64, 64)).program, sm);
    check(models::nary_tree_lstm<Item>(word, by_position, sizes(64, 64)).program, sm);
    check(models::mv_rnn<Item>(word, left, right, sizes(0, 32)).program, sm);
    check(models::lstm<Item>(word, before, sizes(64, 64)).program, sm);
    check(models::gru<Item>(word, before, sizes(64, 64)).program, sm);
    CHECK(check(models::tree_lstm<Item>(word, kids, sizes(512, 512)).program, sm)->shape.group == Group::grid);
    CHECK(check(models::gru<Item>(word, before, sizes(512, 512)).program, sm)->shape.group == Group::grid);
  }
}

TEST_CASE("kernels that stay on the device are PTX, too", "[cuda][nvrtc]") {
  nvrtc();
  for (const int sm : {80, 90}) {
    const auto code = runtime::compile_cuda_graph(models::tree_lstm<Item>(word, kids, sizes(64, 64)).program.graph(),
                                                  Schedule::standard(), Gpu::of(sm), {});
    const jit::CudaImage image = jit::compile_cuda(nvrtc(), code->text.resident_source(), sm, {.force_ptx = true});
    CAPTURE(sm);
    CHECK(image.ptx);
    CHECK_THAT(image.bytes, Contains(".entry cortex_resident") && Contains(".target sm_" + std::to_string(sm)));
  }
}

TEST_CASE("weights in two bytes or one do not spill", "[cuda][nvrtc]") {
  nvrtc();
  const auto program = models::tree_lstm<Item>(word, kids, sizes(256, 256)).program;
  check_default(program, {75, 90}, Schedule::standard().store_weights(DType::bf16));
  check_default(program, {80}, Schedule::standard().store_weights(DType::f16).store("Emb", DType::i8));
  check_default(program, {90}, Schedule::standard().store_weights(DType::i8));
}

TEST_CASE("products on tensor cores do not spill", "[cuda][nvrtc]") {
  nvrtc();
  const auto with = [](GpuSchedule::TensorCores type, int threads = 0) {
    GpuSchedule how;
    how.tensor_cores = type, how.threads = threads;
    return Schedule::standard().on_gpu(how);
  };
  using enum GpuSchedule::TensorCores;
  const auto tree_lstm = models::tree_lstm<Item>(word, kids, sizes(256, 256)).program;
  check_default(tree_lstm, {80, 90}, with(bf16));
  check_default(tree_lstm, {90}, with(bf16, 512));
  check_default(models::tree_gru<Item>(word, kids, sizes(256, 256)).program, {80, 90}, with(bf16));
  check_default(models::tree_fc<Item>(word, left, right, sizes(0, 256)).program, {80, 90}, with(bf16));
  check_default(models::tree_fc<Item>(word, left, right, sizes(0, 256)).program, {90}, with(tf32));
}

TEST_CASE("weights in registers take as many as do not make the others spill", "[cuda][nvrtc]") {
  nvrtc();
  const auto with = [](int threads = 0) {
    GpuSchedule how;
    how.weights = GpuSchedule::Weights::registers, how.threads = threads;
    return Schedule::standard().on_gpu(how);
  };
  const auto tree_lstm = models::tree_lstm<Item>(word, kids, sizes(256, 256)).program;
  check_default(tree_lstm, {80, 90}, with());
  check_default(tree_lstm, {90}, with(512));
  check_default(tree_lstm, {90}, with().unroll(tree_lstm, 2));
  check_default(models::mv_rnn<Item>(word, left, right, sizes(0, 64)).program, {80}, with());
}

TEST_CASE("kernels that stay on the device do not spill", "[cuda][nvrtc]") {
  nvrtc();
  const auto tree_lstm = models::tree_lstm<Item>(word, kids, sizes(256, 256)).program;
  check_default(tree_lstm, {80, 90}, Schedule::standard(), true);
  GpuSchedule how;
  how.weights = GpuSchedule::Weights::registers;
  check_default(tree_lstm, {90}, Schedule::standard().on_gpu(how), true);
  check_default(models::dag_rnn<Item>(word, kids, sizes(5, 64)).program, {75},
                on_gpu(Group::grid, 4, GpuSchedule::Weights::streamed, true), true);
}

TEST_CASE("more threads a block take fewer accumulators each, and do not spill", "[cuda][nvrtc]") {
  nvrtc();
  GpuSchedule how;
  how.threads = 512;  // with 1024 a TreeLSTM spills
  check_default(models::tree_lstm<Item>(word, kids, sizes(256, 256)).program, {90}, Schedule::standard().on_gpu(how));
}

TEST_CASE("however many threads share a sum, nothing spills", "[cuda][nvrtc]") {
  nvrtc();
  const auto program = models::tree_lstm<Item>(word, kids, sizes(256, 256)).program;
  for (const int parts : {1, 4, 32}) {
    GpuSchedule how;
    how.parts = parts;
    check_default(program, {90}, Schedule::standard().on_gpu(how));
  }
}

TEST_CASE("every barrier is code for every architecture that has it", "[cuda][nvrtc]") {
  nvrtc();
  const auto program = models::dag_rnn<Item>(word, kids, sizes(5, 64)).program;
  check_default(program, {90, 100}, on_gpu(Group::cluster, 4));
  check_default(program, {75, 90}, on_gpu(Group::grid, 4, GpuSchedule::Weights::streamed, true));
  check_default(program, {75, 90}, on_gpu(Group::grid, 4));
}

TEST_CASE("doubles and the library's own functions are code", "[cuda][nvrtc]") {
  nvrtc();
  check_default(models::tree_gru<Item, double>(word, kids, sizes(5, 64)).program, {80},
                Schedule::standard().exact_activations());
}

TEST_CASE("loops that are bound by hand are code", "[cuda][nvrtc][loops]") {
  nvrtc();
  const Schedule schedule =
      on_gpu(Group::cluster, 2)
          .loops(Loops::parse("distribute_rows(); fuse_nests(); bind(n_idx, block); bind(i.3, thread); split(i.6, 32); "
                              "bind(i.6.o, block); bind(i.6.i, thread); insert_barriers()"));
  check_default(models::tree_rnn<Item>(word, kids, sizes(64, 64)).program, {90}, schedule);
  check_default(models::tree_rnn<Item>(word, kids, sizes(64, 64)).program, {75}, Schedule::standard().loops(Loops{}));
}

TEST_CASE("an architecture that NVRTC does not know gets PTX of the newest that it does", "[cuda][nvrtc]") {
  const std::string source = "extern \"C\" __global__ void cortex_kernel(float* x) { x[threadIdx.x] = 1; }";
  const jit::CudaImage image = jit::compile_cuda(nvrtc(), source, 999);
  CHECK(image.ptx);
  CHECK_THAT(image.bytes, Contains(".entry cortex_kernel"));
}

TEST_CASE("an NVRTC that knows no clusters says so, and does without them", "[cuda]") {
  jit::Nvrtc old{};
  old.Version = [](int* major, int* minor) { return *major = 11, *minor = 5, 0; };
  old.GetNumSupportedArchs = [](int* count) { return *count = 3, 0; };
  old.GetSupportedArchs = [](int* all) { return all[0] = 75, all[1] = 80, all[2] = 87, 0; };
  const Error refused = attempt([&] { return jit::compile_cuda(old, "", 90, {.least_sm = 90}); }).error();
  CHECK(refused.code == Code::unavailable);
  CHECK_THAT(refused.message, Contains("of CUDA 11.5, compiles for compute capability 8.7 at most") &&
                                  Contains("instructions of 9.0") && Contains("GpuSchedule::group"));
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 256)).program;
  const auto text_of = [&](Group group, int blocks) {
    return runtime::compile_cuda_graph(program.graph(), on_gpu(group, blocks), Gpu::of(90), {})->text;
  };
  CHECK(runtime::least_sm(text_of(Group::cluster, 2)) == 90);
  CHECK(runtime::least_sm(text_of(Group::grid, 2)) == 0);
}

TEST_CASE("the debug build of a barrier is code", "[cuda][nvrtc]") {
  nvrtc();
  runtime::CudaCompileOptions options;
  options.spin_limit = 1000000;
  for (const bool lock_based : {false, true}) {
    const auto code = runtime::compile_cuda_graph(models::dag_rnn<Item>(word, kids, sizes(5, 64)).program.graph(),
                                                  on_gpu(Group::grid, 4, GpuSchedule::Weights::streamed, lock_based),
                                                  Gpu::of(80), options);
    CHECK(jit::compile_cuda(nvrtc(), code->text.source(), 80).bytes.size() > 0);
  }
}

TEST_CASE("shared memory is filled in pieces of 16 bytes, eight of which do not wait for each other", "[cuda][nvrtc]") {
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 256)).program;
  const auto code =
      runtime::compile_cuda_graph(program.graph(), on_gpu(Group::cluster, 4, {}, false, 256, 4), Gpu::of(90), {});
  const std::string ptx = jit::compile_cuda(nvrtc(), code->text.source(), 90, {.force_ptx = true}).bytes;
  const std::string fills = ptx.substr(0, ptx.rfind("st.shared.v4."));         // behind it leaves are copied
  CHECK(occurrences(fills, ".entry cortex_kernel", "ld.global.nc.v4.") == 8);  // of one matrix
  CHECK(occurrences(ptx, ".entry cortex_kernel", "st.shared.v4.") == 8);
}

TEST_CASE("rows are moved, and letters copied, with several loads on their way before the first store",
          "[cuda][nvrtc]") {
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 256)).program;
  const auto code =
      runtime::compile_cuda_graph(program.graph(), on_gpu(Group::block, 1, {}, false, 256, 4), Gpu::of(90), {});
  const auto ptx = [&](const std::string& source) -> std::string {
    return jit::compile_cuda(nvrtc(), source, 90, {.force_ptx = true}).bytes;
  };
  const std::string rows = ptx(code->text.source()), resident = ptx(code->text.resident_source());
  const std::size_t opened = resident.find("barrier.red.or"), first = resident.find("st.v2.u64", opened),
                    others = resident.find("st.v2.u64", first + 1);
  const std::size_t entry = rows.find(".entry cortex_kernel"), moved = rows.find("st.global.", entry);
  CHECK(occurrences(rows.substr(entry, moved - entry), "", "ld.global.u32") == 8);
  const auto far = [&](std::size_t begin, std::size_t end, const char* load) {
    return occurrences(resident.substr(begin, end - begin), "", load);
  };
  CHECK(far(opened, first, "ld.relaxed.sys.global.v2.u64") == 1);  // a first piece, which the head is in
  CHECK(far(opened, first, "ld.relaxed.sys.global.u64") == 0);
  CHECK(far(first, others, "ld.relaxed.sys.global.v2.u64") == 8);
}

TEST_CASE("neighbours that tensor cores multiply are loaded as one", "[cuda][nvrtc]") {
  GpuSchedule how;
  how.tensor_cores = GpuSchedule::TensorCores::bf16;
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 256)).program;
  const auto code = runtime::compile_cuda_graph(program.graph(), Schedule::standard().on_gpu(how), Gpu::of(90), {});
  const std::string ptx = jit::compile_cuda(nvrtc(), code->text.source(), 90, {.force_ptx = true}).bytes;
  const int products = occurrences(ptx, ".entry cortex_kernel", "mma.sync");
  CHECK(products > 0);
  CHECK(occurrences(ptx, ".entry cortex_kernel", "ld.v2.f32") >= 2 * products);  // of recent rows or others
}

TEST_CASE("multiplications and additions are fused where the program says so, and nowhere else", "[cuda][nvrtc]") {
  const std::string source =
      "extern \"C\" __global__ void k(float* x) { x[0] = x[1] * x[2] + x[3]; x[4] = __fmaf_rn(x[5], x[6], x[7]); }";
  const std::string ptx = jit::compile_cuda(nvrtc(), source, 80, {.force_ptx = true}).bytes;
  CHECK_THAT(ptx, Contains("fma.rn.f32") && Contains("mul.rn.f32") && Contains("add.rn.f32"));
}
