// What keeping weights in registers or in shared memory costs, and unrolling and peeling beside it: registers, shared
// memory and spills of each kernel, as NVRTC and its assembler report them (the paper's appendix on register pressure).
// Needs NVRTC, and no GPU.
//
//   registers [--models treelstm,...] [--architectures 80,90] [--hidden N]
//
// Prints a table for each architecture. `peeled` kernels have code of their own for 4, 2 and 1 nodes that a thread
// computes side by side, so that guards stand in the last ones alone; the others have code for one node.
#include <CLI/CLI.hpp>
#include <cortex/cuda.hpp>
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

/// "56, 37 KB", spills behind it: registers of a thread, shared memory of a block. "-" where the schedule is refused.
std::string report(const cortex::ra::Graph& graph, const cortex::Schedule& schedule, const cortex::Gpu& gpu,
                   const cortex::jit::Nvrtc& nvrtc, std::vector<std::string>& refusals) {
  std::shared_ptr<const cortex::runtime::CudaExecutable> code;
  try {
    code = cortex::runtime::compile_cuda_graph(graph, schedule, gpu, {});
  } catch (const cortex::Error& error) {
    if (error.code != cortex::Code::invalid_schedule) throw;
    refusals.push_back(error.message);
    return "- (" + std::to_string(refusals.size()) + ")";
  }
  const auto image = cortex::jit::compile_cuda(nvrtc, code->text.source(), gpu.sm, {.report = true});
  std::string text = std::to_string(number_before(image.log, " registers"));
  if (code->text.chip_bytes) text += ", " + std::to_string((code->text.chip_bytes + 1023) / 1024) + " KB";
  const int spills = number_before(image.log, " bytes spill stores") + number_before(image.log, " bytes spill loads");
  return spills ? text + ", spills " + std::to_string(spills) + " B" : text;
}

void print_table(const Options& options, int sm, const cortex::jit::Nvrtc& nvrtc) {
  using Kept = GpuSchedule::Weights;
  const cortex::Gpu gpu = cortex::Gpu::of(sm);
  std::printf("\n%d.%d: registers of a thread, shared memory of a block\n\n", sm / 10, sm % 10);
  std::printf("| | | weights streamed | in shared memory | in registers |\n|---|---|---|---|---|\n");
  std::vector<std::string> refusals;
  for (const std::string& name : options.models) {
    const Model model = model_named(name);
    const int hidden = options.hidden ? options.hidden : model == Model::mvrnn ? 64 : 256;
    with_program(model, hidden, [&](const auto& program) {
      for (const bool unrolled : {false, true}) {
        if (unrolled && model == Model::dagrnn) continue;  // nodes of a DAG have several parents
        for (const bool peeled : {true, false}) {
          std::printf("| %s %d | %s%s |", name.c_str(), hidden, unrolled ? "unrolled" : "",
                      peeled ? (unrolled ? ", peeled" : "peeled") : "");
          for (const Kept kept : {Kept::streamed, Kept::automatic, Kept::registers}) {
            auto schedule = cortex::Schedule::standard().on_gpu({.weights = kept, .rows = peeled ? 0 : 1});
            if (unrolled) schedule = schedule.unroll(program, 2);
            std::printf(" %s |", report(program.graph(), schedule, gpu, nvrtc, refusals).c_str());
            std::fflush(stdout);
          }
          std::printf("\n");
        }
      }
    });
  }
  for (std::size_t i = 0; i < refusals.size(); ++i) std::printf("\n(%zu) %s\n", i + 1, refusals[i].c_str());
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
