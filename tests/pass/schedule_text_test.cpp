// Schedules as text: written, read back, compared.
#include <catch2/catch.hpp>

#include "cortex/loops.hpp"

using namespace cortex;
using Catch::Matchers::Contains;

namespace {

std::string refusal(std::string_view text) {
  try {
    parse_schedule(text);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "";
}

/// Schedules with each decision alone, and pairs of them.
std::vector<Schedule> schedules() {
  std::vector<Schedule> all{Schedule{}};
  using Change = Schedule (*)(const Schedule&);
  const Change changes[] = {
      [](const Schedule& s) { return s.dynamic_batch(); },
      [](const Schedule& s) { return s.specialize_where_it_pays(); },
      [](const Schedule& s) { return s.specialize_if_else(); },
      [](const Schedule& s) { return s.specialize_if_else("switch35"); },
      [](const Schedule& s) { return s.specialize_if_else("12").specialize_if_else("a.b").specialize_if_else("a.b"); },
      [](const Schedule& s) { return s.specialize_leaves(); },
      [](const Schedule& s) { return s.unroll("h", 2).unroll("-", -3).unroll("1.5", 0); },
      [](const Schedule& s) { return s.refactor("op").refactor("two words, \"quoted\"\n\\n #1; ()"); },
      [](const Schedule& s) { return s.refactor("").refactor("grüße"); },
      [](const Schedule& s) { return s.fill_levels(4); },
      [](const Schedule& s) { return s.fill_levels_where_it_pays(); },
      [](const Schedule& s) { return s.pieces(400); },
      [](const Schedule& s) { return s.pieces_where_they_pay(); },
      [](const Schedule& s) { return s.share_subtrees(); },
      [](const Schedule& s) { return s.share_subtrees_where_it_pays(); },
      [](const Schedule& s) { return s.sort_by_matrix(); },
      [](const Schedule& s) { return s.sort_by_matrix_where_it_pays(); },
      [](const Schedule& s) { return s.tabulate(100); },
      [](const Schedule& s) { return s.tabulate(-1); },
      [](const Schedule& s) { return s.tabulate_where_it_pays(); },
      [](const Schedule& s) { return s.workers(4); },
      [](const Schedule& s) { return s.groups(2); },
      [](const Schedule& s) { return s.exact_activations(); },
      [](const Schedule& s) { return s.fuse_nothing(); },
      [](const Schedule& s) { return s.store_weights(DType::bf16); },
      [](const Schedule& s) { return s.store_weights(DType::i8).store("my W", DType::f32).store("bf16", DType::f16); },
      [](const Schedule& s) { return s.tile_rows(6); },
      [](const Schedule& s) { return s.tile_vectors(2).tile_gates(3); },
      [](const Schedule& s) { return s.alternate_sweeps(); },
      [](const Schedule& s) { return s.sweep_forward(); },
      [](const Schedule& s) { return s.multiply_in_vectors(); },
      [](const Schedule& s) {
        GpuSchedule gpu = s.gpu;
        gpu.group = GpuSchedule::Group::cluster, gpu.blocks = 4, gpu.threads = 128, gpu.rows = 2, gpu.parts = 8;
        gpu.recent_rows = 16;
        gpu.weights = GpuSchedule::Weights::registers;
        return s.on_gpu(gpu);
      },
      [](const Schedule& s) {
        GpuSchedule gpu = s.gpu;
        gpu.weights = GpuSchedule::Weights::resident, gpu.lock_based = false;
        gpu.tensor_cores = GpuSchedule::TensorCores::tf32;
        return s.on_gpu(gpu);
      },
      [](const Schedule& s) { return s.loops(Loops{}); },
      [](const Schedule& s) {
        return s.loops(Loops{}.split("i", 16).layout_reorder("my W", {1, 0}).whole("remove_dead"));
      },
  };
  for (const Change a : changes)
    for (const Change b : changes) all.push_back(b(a(Schedule{})));
  return all;
}

}  // namespace

TEST_CASE("a schedule is read back from its text as it was", "[schedule][text]") {
  const std::vector<Schedule> all = schedules();
  for (const Schedule& schedule : all) {
    INFO(to_string(schedule));
    CHECK(parse_schedule(to_string(schedule)) == schedule);
  }
  // Different ones have different texts.
  for (const Schedule& a : all)
    for (const Schedule& b : all) CHECK((to_string(a) == to_string(b)) == (a == b));
}

TEST_CASE("a schedule's text has a line for each decision, and then the steps of its loops", "[schedule][text]") {
  const Schedule schedule =
      Schedule::standard().unroll("h", 2).workers(4).loops(Loops{}.split("i", 16).vectorize("i.i"));
  CHECK(to_string(schedule) ==
        "dynamic_batch()\n"
        "fill_levels_where_it_pays()\n"
        "pieces_where_they_pay()\n"
        "specialize_where_it_pays()\n"
        "specialize_leaves()\n"
        "unroll(h, 2)\n"
        "share_subtrees_where_it_pays()\n"
        "sort_by_matrix_where_it_pays()\n"
        "tabulate_where_it_pays()\n"
        "workers(4)\n"
        "loops()\n"
        "split(i, 16)\n"
        "vectorize(i.i)\n");
  CHECK(to_string(Schedule{}.refactor("reset gate")) == "refactor(\"reset gate\")\n");
  CHECK(to_string(Schedule{}).empty());
  CHECK(parse_schedule("pieces(400)\nwhole_calls()\n") == Schedule{});
}

TEST_CASE("the last decision on how a weight is stored is the one that holds", "[schedule][text]") {
  const Schedule schedule = Schedule{}.store("W", DType::i8).store("U", DType::bf16).store("W", DType::f16);
  CHECK(schedule == Schedule{}.store("W", DType::f16).store("U", DType::bf16));
  CHECK(to_string(schedule) == "store(W, f16)\nstore(U, bf16)\n");
}

TEST_CASE("people write schedules with comments, spaces and ';'", "[schedule][text]") {
  CHECK(parse_schedule(" dynamic_batch( ) ;workers( 2 )# two\n\n loops(); unroll(i) # a loop's\n") ==
        Schedule{}.dynamic_batch().workers(2).loops(Loops{}.unroll("i")));
  CHECK(parse_schedule("") == Schedule{});
}

TEST_CASE("text that is no schedule is refused, with its line and what there is", "[schedule][text][refusal]") {
  CHECK_THAT(refusal("dynamic_batch()\nbatch()"),
             Contains("schedule, line 2: there is no decision batch(); there are dynamic_batch(), ") &&
                 Contains("unroll(operator, number)") && Contains("loops()"));
  CHECK_THAT(refusal("workers(four)"), Contains("line 1: workers(four): it is written workers(number)"));
  CHECK_THAT(refusal("specialize_if_else(2)"),
             Contains("it is written specialize_if_else() or specialize_if_else(operator)"));
  CHECK_THAT(refusal("split(i, 16)"), Contains("there is no decision split(i, 16)"));
  CHECK_THAT(refusal("loops()\nworkers(2)"), Contains("schedule, line 2: there is no primitive 'workers'"));
  CHECK_THAT(refusal("loops()\nsplit(i)"), Contains("schedule, line 2: split(i): it takes split(loop, number)"));
  CHECK_THAT(refusal("refactor(\"op)\n\n"), Contains("line 1: '\"' is missing"));
  CHECK_THAT(refusal("workers(9999999999)"), Contains("too large"));
  CHECK_THAT(refusal("workers(2"), Contains("line 1: ')' is missing"));
  CHECK_THAT(refusal("store_weights(f64)"),
             Contains("store_weights(f64): it is written store_weights(f32|bf16|f16|i8)"));
  CHECK_THAT(refusal("store(W, f8)"), Contains("store(W, f8): it is written store(operator, f32|bf16|f16|i8)"));
}

TEST_CASE("what a GPU's schedule cannot be is refused with what it can", "[schedule][text]") {
  CHECK_THAT(refusal("dynamic_batch()\ngpu_group(warp, 2)"),
             Contains("schedule, line 2: gpu_group has no choice 'warp'; there are automatic, block, cluster, grid"));
  CHECK_THAT(refusal("gpu_weights(here)"),
             Contains("has no choice 'here'; there are automatic, streamed, resident, registers"));
}
