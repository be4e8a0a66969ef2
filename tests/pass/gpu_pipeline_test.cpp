// The passes that only a GPU's pipeline has: what each makes of a program, to the letter.
#include "cortex/pass/gpu_pipeline.hpp"

#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using Group = GpuSchedule::Group;

namespace {

GpuSchedule how(Group group, int blocks, int threads = 32) {
  GpuSchedule wish;
  wish.group = group, wish.blocks = blocks, wish.threads = threads, wish.rows = 2;
  return wish;
}

/// The program after the last run of `pass`, verified after each.
ir::Program after(const std::string& pass, const ra::Graph& graph, const GpuSchedule& wish) {
  struct Last final : pass::PassObserver {
    std::string wanted;
    ir::Program found;
    void after(const char* pass, const ir::Program& program) override {
      if (wanted == pass) found = program;
    }
  } last;
  last.wanted = pass;
  const Gpu gpu = Gpu::of(90);
  const auto shape = schedule::gpu_shape(wish, gpu, schedule::gpu_problem(graph));
  const Schedule schedule = schedule::with_tensor_cores(Schedule::standard().workers(shape.blocks).on_gpu(wish));
  pass::run_gpu_pipeline(lower::lower(graph, schedule), schedule, shape, Target::cuda(gpu), {true, &last});
  INFO("pass " << pass);
  REQUIRE(bool(last.found.body));
  return last.found;
}

std::string text_after(const std::string& pass, const ra::Graph& graph, const GpuSchedule& wish) {
  return ir::print(after(pass, graph, wish));
}

std::string refusal(const GpuSchedule& wish, const ra::Graph& graph) {
  try {
    after("share_threads", graph, wish);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("zero_absent_rows makes of the running example what its golden file shows", "[pass][gpu]") {
  check_golden("pass/zero_absent_rows/tree_rnn.ilir",
               text_after("zero_absent_rows", tree_rnn(8).graph(), how(Group::block, 1)));
}

TEST_CASE("zero_absent_rows leaves a program alone that reads no children", "[pass][gpu]") {
  const ir::Program lowered = lower::lower(tree_rnn(8).graph(), Schedule::standard());
  const ir::Stmt leaves = schedule::stmts_of(lowered.body)[0];
  CHECK(pass::zero_absent_rows(leaves).same_as(leaves));
}

TEST_CASE("insert_thread_barriers makes of a TreeGRU what its golden file shows", "[pass][gpu]") {
  check_golden("pass/insert_thread_barriers/tree_gru.ilir",
               text_after("insert_thread_barriers", tree_gru(8).graph(), how(Group::block, 1)));
}

TEST_CASE("insert_thread_barriers does nothing twice", "[pass][gpu]") {
  const ir::Program once = after("insert_thread_barriers", tree_gru(8).graph(), how(Group::block, 1));
  CHECK(pass::insert_thread_barriers(once.body).same_as(once.body));
}

TEST_CASE("keep_weights makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/keep_weights/tree_gru.ilir",
               text_after("keep_weights", tree_gru(16).graph(), how(Group::cluster, 2)));
}

TEST_CASE("keep_weights leaves weights where they are if it is asked to", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::streamed;
  CHECK(text_after("share_threads", tree_gru(16).graph(), wish).find("on chip") == std::string::npos);
}

TEST_CASE("keep_weights refuses weights that are to be resident and do not fit", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::resident;
  CHECK_THAT(refusal(wish, tree_gru(256).graph()),
             Contains("weights are to stay in shared memory, but a slice of 'Ur_packed', 262144 bytes, does not fit"));
}

TEST_CASE("share_threads makes of the running example what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/share_threads/tree_rnn.ilir",
               text_after("share_threads", tree_rnn(40).graph(), how(Group::block, 1)));
}

TEST_CASE("share_threads makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/share_threads/tree_gru.ilir",
               text_after("share_threads", tree_gru(16).graph(), how(Group::cluster, 2)));
}

TEST_CASE("tensor_products makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::cluster, 2);
  wish.tensor_cores = GpuSchedule::TensorCores::bf16;
  check_golden("schedule/tensor_products/tree_gru.ilir", text_after("tensor_products", tree_gru(32).graph(), wish));
}

TEST_CASE("tensor_products leaves a program alone that sums no products", "[schedule][gpu]") {
  const ir::Program lowered = lower::lower(tree_rnn(8).graph(), Schedule::standard());
  const ir::Stmt leaves = schedule::stmts_of(lowered.body)[0];
  CHECK(schedule::tensor_products(leaves, DType::bf16).same_as(leaves));
}

TEST_CASE("share_threads makes tiles of products as its golden file shows", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::cluster, 2, 64);
  wish.tensor_cores = GpuSchedule::TensorCores::tf32;
  check_golden("schedule/share_threads/tensor_tree_fc.ilir", text_after("share_threads", tree_fc(40).graph(), wish));
}

TEST_CASE("a loop schedule by hand is for CPUs", "[pass][gpu]") {
  const ra::Graph graph = tree_rnn(8).graph();
  struct Nothing final : LoopSchedule {
    ir::Stmt named(const ir::Stmt& body) const override { return body; }
    std::size_t size() const override { return 0; }
    bool has_barriers() const override { return false; }
    std::string text(std::size_t) const override { return {}; }
    ir::Stmt apply(std::size_t, const ir::Stmt& body, const Target&) const override { return body; }
  };
  const Schedule schedule = Schedule::standard().loops(Nothing());
  const auto shape = schedule::gpu_shape({}, Gpu{}, schedule::gpu_problem(graph));
  CHECK_THROWS_WITH(pass::run_gpu_pipeline(lower::lower(graph, schedule), schedule, shape, Target::cuda()),
                    Contains("a loop schedule by hand is for CPUs"));
}
