// Programs after a pass of a GPU's pipeline, and what schedules are refused for.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "cortex/pass/gpu_pipeline.hpp"
#include "cortex/pass/loops.hpp"
#include "cortex/schedule/gpu_problem.hpp"

namespace cortex::test {

using Group = GpuSchedule::Group;

inline GpuSchedule how(Group group, int blocks, int threads = 32, int parts = 1) {
  GpuSchedule wish;
  wish.group = group, wish.blocks = blocks, wish.threads = threads, wish.rows = 2;
  wish.parts = parts;
  wish.recent_rows = 0;  // the tests of `keep_recent` ask for some
  return wish;
}

/// The program after the last run of `pass`, verified after each.
inline ir::Program after(const std::string& pass, const ra::Graph& graph, const GpuSchedule& wish,
                         const std::optional<Loops>& loops = {}) {
  struct Last final : pass::PassObserver {
    std::string wanted;
    ir::Program found;
    void after(const char* pass, pass::Stage, const ir::Program& program) override {
      if (wanted == pass) found = program;
    }
  } last;
  last.wanted = pass;
  const Gpu gpu = Gpu::of(90);
  const auto shape = schedule::gpu_shape(wish, gpu, schedule::gpu_problem(graph));
  Schedule schedule =
      schedule::with_tensor_cores(Schedule::standard().tabulate_nothing().workers(shape.blocks).on_gpu(wish));
  if (loops) schedule = schedule.loops(*loops);
  pass::run_gpu_pipeline(lower::lower(graph, schedule), schedule, shape, Target::cuda(gpu), {true, &last});
  INFO("pass " << pass);
  REQUIRE(bool(last.found.body));
  return last.found;
}

inline std::string text_after(const std::string& pass, const ra::Graph& graph, const GpuSchedule& wish) {
  return ir::print(after(pass, graph, wish));
}

inline std::string refusal(const GpuSchedule& wish, const ra::Graph& graph) {
  try {
    after("share_threads", graph, wish);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "accepted";
}

}  // namespace cortex::test
