// What keeping weights in registers or in shared memory costs, and unrolling and peeling beside it: registers, shared
// memory and spills of each kernel, as NVRTC and its assembler report them (the paper's appendix on register pressure).
// Needs NVRTC, and no GPU.
//
//   registers [--models treelstm,...] [--architectures 80,90] [--hidden N]
//
// Prints a table for each architecture: registers of a thread and how many of them hold weights, shared memory of a
// block, and bytes that are spilled. `peeled` kernels have code of their own for 4, 2 and 1 nodes that a thread
// computes side by side, the last of a level being fewer; the others have code for one node. What is unrolled is so by
// two levels, and goes node by node. A model's kernels all have the same blocks and threads. Where the compiler refuses
// a place for the weights the table says so, and why is told below it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cortex/codegen/cuda_text.hpp>
#include <cortex/cuda.hpp>
#include <cortex/lower/lower.hpp>
#include <cortex/pass/gpu_pipeline.hpp>
#include <cortex/schedule/gpu_problem.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "support/cortex_models.hpp"

namespace {

using namespace bench;
using cortex::GpuSchedule;

struct Options {
  std::vector<std::string> models{"treefc", "dagrnn", "treegru", "treelstm", "mvrnn"};
  std::vector<int> architectures{80, 90};
  int hidden = 0;  // 0: 256, of MV-RNN 64
};

/// The number before `what` in a report of the assembler's.
int number_before(const std::string& log, const std::string& what) {
  std::size_t begin = log.find(what);
  if (begin == std::string::npos) throw std::runtime_error("NVRTC's report does not tell of '" + what + "': " + log);
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  return std::atoi(log.c_str() + begin);
}

/// Where the weights of a kernel are: as schedules say it, or all in registers, whether they fit or not.
enum class Kept { streamed, on_chip, as_fits, all };
constexpr Kept all_places[] = {Kept::streamed, Kept::on_chip, Kept::as_fits, Kept::all};

/// A program under one schedule, as the compiler makes it but for `Kept::all`.
struct Kernel {
  cortex::codegen::CudaText text;
  int weights = 0;  // of a thread, in registers
};

Kernel kernel_of(const cortex::ra::Graph& graph, const cortex::Schedule& standard, int rows, Kept kept,
                 const cortex::Gpu& gpu) {
  using Where = GpuSchedule::Weights;
  const auto problem = cortex::schedule::gpu_problem(graph, standard);
  const auto usual = cortex::schedule::gpu_shape({}, gpu, problem);
  GpuSchedule how{.group = usual.group, .blocks = usual.blocks, .rows = rows};  // the same for all places
  how.weights = kept == Kept::streamed ? Where::streamed : kept == Kept::on_chip ? Where::automatic : Where::registers;
  auto shape = cortex::schedule::gpu_shape(how, gpu, problem);
  if (kept == Kept::all) shape.weight_registers = 1 << 20;
  const cortex::Schedule schedule = standard.on_gpu(how).workers(shape.blocks);
  const auto program =
      cortex::pass::run_gpu_pipeline(cortex::lower::lower(graph, schedule), schedule, shape, cortex::Target::cuda(gpu));
  Kernel kernel;
  kernel.text = cortex::codegen::cuda_text(program, {cortex::runtime::barrier_of(shape), shape.blocks, shape.threads});
  cortex::ir::visit_with(program.body, [&](const cortex::ir::Alloc& alloc) {
    if (alloc.buffer->role == cortex::ir::Role::weight) kernel.weights += int(alloc.buffer->dims[0].extent());
  });
  return kernel;
}

/// "254 (96 weights), 32 KB, spills 8 B": registers of a thread, shared memory of a block.
std::string report(const Kernel& kernel, int sm, const cortex::jit::Nvrtc& nvrtc) {
  const auto image = cortex::jit::compile_cuda(nvrtc, kernel.text.source(), sm, {.report = true});
  const std::size_t own = image.log.find("'cortex_kernel'");  // not of those that move rows
  if (own == std::string::npos) throw std::runtime_error("NVRTC's report does not tell of the kernel: " + image.log);
  const std::string log = image.log.substr(own);
  std::string text = std::to_string(number_before(log, " registers"));
  if (kernel.weights) text += " (" + std::to_string(kernel.weights) + " weights)";
  if (kernel.text.chip_bytes) text += ", " + std::to_string((kernel.text.chip_bytes + 1023) / 1024) + " KB";
  const int spills = number_before(log, " bytes spill stores") + number_before(log, " bytes spill loads");
  return spills ? text + ", spills " + std::to_string(spills) + " B" : text;
}

/// Why kernels are refused, each reason once.
using Reasons = std::vector<std::string>;

/// What stands in the table of one kernel.
std::string cell(const cortex::ra::Graph& graph, const cortex::Schedule& schedule, int rows, Kept kept,
                 const cortex::Gpu& gpu, const cortex::jit::Nvrtc& nvrtc, Reasons& reasons) try {
  const Kernel kernel = kernel_of(graph, schedule, rows, kept, gpu);
  const bool fits = kept != Kept::on_chip || kernel.text.chip_bytes;
  return fits ? report(kernel, gpu.sm, nvrtc) : "does not fit";
} catch (const cortex::Error& error) {
  if (error.code == cortex::Code::internal) throw;
  const std::string reason = error.message.substr(0, error.message.find('\n'));  // not the code that NVRTC refuses
  if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
  return "refused";
}

/// The lines of a model: peeled or not, and unrolled.
template <class Program>
void print_lines(const std::string& name, const Program& program, bool unrollable, int hidden, const cortex::Gpu& gpu,
                 const cortex::jit::Nvrtc& nvrtc, Reasons& reasons) {
  for (const char* const how : {"peeled", "", "unrolled"}) {
    const bool peeled = how == std::string("peeled"), unrolled = how == std::string("unrolled");
    if (unrolled && !unrollable) continue;
    const auto standard = cortex::Schedule::standard();
    const auto schedule = unrolled ? standard.unroll(program, 2) : standard;
    std::printf("| %s %d | %s |", name.c_str(), hidden, how);
    for (const Kept kept : all_places) {
      std::printf(" %s |", cell(program.graph(), schedule, peeled ? 4 : 1, kept, gpu, nvrtc, reasons).c_str());
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

void print_table(const Options& options, int sm, const cortex::jit::Nvrtc& nvrtc) {
  const cortex::Gpu gpu = cortex::Gpu::of(sm);
  Reasons reasons;
  std::printf("\n| %d.%d | | streamed | in shared memory | in registers, as fits | all in registers |\n", sm / 10,
              sm % 10);
  std::printf("|---|---|---|---|---|---|\n");
  for (const std::string& name : options.models) {
    const Model model = model_named(name);
    const int hidden = options.hidden ? options.hidden : model == Model::mvrnn ? 64 : 256;
    const bool unrollable = model != Model::dagrnn;  // nodes of a DAG have several parents
    with_program(model, hidden,
                 [&](const auto& program) { print_lines(name, program, unrollable, hidden, gpu, nvrtc, reasons); });
  }
  for (const std::string& reason : reasons) std::printf("\nrefused: %s\n", reason.c_str());
}

int run(const Options& options) {
  std::string why;
  const auto nvrtc = cortex::jit::find_nvrtc(why);
  if (!nvrtc) {
    std::printf("no kernel is compiled: %s\n", why.c_str());
    return 0;
  }
  for (const int sm : options.architectures) print_table(options, sm, *nvrtc);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Registers, shared memory and spills of kernels, as NVRTC reports them."};
  const std::vector<std::string> models(model_names.begin(), model_names.end());
  app.add_option("--models", options.models, "Models")->delimiter(',')->check(CLI::IsMember(models));
  app.add_option("--architectures", options.architectures, "Compute capabilities, as 90 for 9.0")
      ->delimiter(',')
      ->check(CLI::Range(75, 100));
  app.add_option("--hidden", options.hidden, "Elements of a state; without it 256, of mvrnn 64")
      ->check(CLI::Range(1, 4096));
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "registers: %s\n", error.what());
    return 2;
  }
}
