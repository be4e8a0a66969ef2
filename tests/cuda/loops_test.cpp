// Schedules of loops by hand in the emulation of a GPU: what is bound to blocks and threads, and the rest for the first
// of them, gives what the interpreter gives, in whatever order threads run, without a race.
#include "cortex/loops.hpp"

#include "cortex/explain.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

auto rnn() { return models::tree_rnn<Item>(word, kids, sizes(5, 24)).program; }

Schedule by_hand(const char* steps, Group group = Group::automatic, int blocks = 0) {
  GpuSchedule how;
  how.group = group, how.blocks = blocks, how.threads = 32;
  return Schedule::standard().on_gpu(how).loops(Loops::parse(steps));
}

/// That `program` under each schedule gives what the interpreter does, in several orders of threads.
template <class Program>
void check_model(const Program& program, Shape shape, const std::vector<Schedule>& schedules) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  for (const Schedule& schedule : schedules)
    for (const Interleaving order : {Interleaving{Interleaving::first_first}, Interleaving{Interleaving::last_first},
                                     Interleaving{Interleaving::random, 11}}) {
      FakeCuda fake;
      fake.gpu.multiprocessors = 6;  // two groups of three blocks, or six of one
      fake.order = order;
      CAPTURE(program.name(), to_string(schedule), int(order.kind));
      CHECK(difference(emulated(fake, program, schedule, weights, items), right) <= 1);
      CHECK(fake.problem == "");
    }
}

constexpr const char* columns_a_thread =
    "bind(n_idx, thread); bind(n_idx.2, thread); bind(i.3, thread); bind(i.4, thread); bind(i.5, thread); "
    "bind(i.6, thread); bind(i.7, thread)";

/// Tiles of columns for blocks, and the columns of a tile for threads.
constexpr const char* blocks_and_threads =
    "distribute_rows(); split(i.5, 8); split(i.6, 8); bind(i.5.o, block); bind(i.5.i, thread); bind(i.6.o, worker); "
    "bind(i.6.i, thread); bind(n_idx, block); bind(i, thread); bind(n_idx.3, thread); insert_barriers()";

/// Nodes in one nest and columns in the next: no thread reads what it has written itself alone.
constexpr const char* nodes_and_columns =
    "distribute_rows(); fuse_nests(); bind(n_idx, thread); bind(i.2, thread); bind(i.3, thread); "
    "bind(n_idx.4, thread); bind(i.6, thread)";

/// Nodes for blocks, and their columns for threads, which meet inside of a node.
constexpr const char* a_block_a_node =
    "merge(i.6, i.7); bind(n_idx, block); bind(n_idx.2, block); bind(i.2, thread); bind(n_idx.3, block); "
    "bind(i.3, thread); bind(n_idx.4, block); bind(i.5, thread); bind(i.6, thread); insert_barriers()";

/// Rows and columns for threads.
constexpr const char* rows_and_columns =
    "distribute_rows(); fuse_nests(); fuse(n_idx, i); bind(n_idx.i, thread); fuse(n_idx.4, i.5); "
    "split(n_idx.4.i.5, 3); bind(n_idx.4.i.5.o, thread); fuse(n_idx.4.2, i.6); bind(n_idx.4.2.i.6, thread)";

/// The compiler's slices for blocks, and the nodes of a batch for threads.
constexpr const char* slices_and_nodes =
    "distribute_rows(); fuse_nests(); share_work(); bind(n_idx.4, thread); bind(n_idx.4.2, thread); insert_barriers()";

}  // namespace

TEST_CASE("a GPU runs a program in which nothing is bound, by one thread", "[cuda][loops]") {
  check_model(rnn(), Shape::ragged, {by_hand("")});
  check_model(models::mv_rnn<Item>(word, left, right, sizes(0, 5)).program, Shape::binary, {by_hand("")});
}

TEST_CASE("a GPU runs a TreeRNN whose loops are bound by hand", "[cuda][loops]") {
  check_model(rnn(), Shape::ragged,
              {by_hand(columns_a_thread), by_hand(nodes_and_columns), by_hand(rows_and_columns),
               by_hand(a_block_a_node, Group::cluster, 2), by_hand(blocks_and_threads, Group::cluster, 2),
               by_hand(blocks_and_threads, Group::grid, 3), by_hand(slices_and_nodes, Group::grid, 2)});
}

TEST_CASE("a GPU runs a TreeGRU whose threads have nodes, columns, and copies of their own", "[cuda][loops]") {
  check_model(models::tree_gru<Item>(word, kids, sizes(5, 16)).program, Shape::ragged,
              {by_hand("distribute_rows(); fuse_nests(); cache_read(s, n_idx.4.2); bind(n_idx, thread); "
                       "bind(n_idx.3, thread); bind(i.2, thread); bind(n_idx.4, thread); bind(i.13, thread); "
                       "split(n_idx.4.7, 2); jam(n_idx.4.7.i); bind(i.17, thread)")});
}

TEST_CASE("a GPU runs a recursion node by node, whose columns threads share", "[cuda][loops]") {
  Schedule schedule = by_hand("bind(i, thread); bind(i.3, thread); bind(i.4, thread); bind(i.5, thread)");
  schedule.batched = schedule.specializes_where_it_pays = schedule.leaves_apart = false;
  check_model(rnn(), Shape::ragged, {schedule});
}

TEST_CASE("taking away any barrier of threads of a schedule by hand makes a race", "[cuda][loops]") {
  const auto program = rnn();
  const Schedule schedule = by_hand(nodes_and_columns);
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 3, 12, 5);
  const int barriers = occurrences(cuda::compile(program, schedule, Gpu::of(90)).source(), kernel, "sync_block();");
  CHECK(barriers == 7);
  for (int n = 0; n < barriers; ++n) {
    if (n == threads_behind_rows) continue;
    FakeCuda fake;
    fake.change = [&](const std::string& text) { return without(text, kernel, "sync_block();", "", n); };
    fake.order = {Interleaving::random, 17};
    emulated(fake, program, schedule, weights, items);
    CAPTURE(n);
    CHECK(fake.problem != "");
  }
}

TEST_CASE("what a GPU cannot do of a schedule by hand is refused", "[cuda][loops][refusal]") {
  const auto refusal = [](const Schedule& schedule) {
    try {
      cuda::compile(rnn(), schedule, Gpu::of(90));
    } catch (const Error& error) {
      CHECK(error.code == Code::invalid_schedule);
      return error.message;
    }
    return std::string("none");
  };
  CHECK_THAT(refusal(by_hand("bind(b_idx, thread)")), Contains("bind(b_idx, thread): iterations of 'b_idx' depend on"));
  CHECK_THAT(refusal(by_hand("bind(r, thread)")), Contains("depend on each other through 'h_sum_acc'"));
  CHECK_THAT(refusal(by_hand("bind(i.5, group)")), Contains("groups share the roots of a call"));
  CHECK_THAT(refusal(by_hand("split(i.5, 8); vectorize(i.5.i)")), Contains("a thread of a GPU has no vectors"));
  CHECK_THAT(refusal(by_hand("bind(i.5, block)", Group::grid, 3)), Contains("3 blocks of a group need the step"));
  Schedule rows = by_hand(""), parts = by_hand(""), resident = by_hand(""), registers = by_hand("");
  rows.gpu.rows = 2, parts.gpu.parts = 2, resident.gpu.weights = GpuSchedule::Weights::resident;
  registers.gpu.weights = GpuSchedule::Weights::registers;
  CHECK_THAT(refusal(rows), Contains("GpuSchedule::rows shapes the compiler's own tiles"));
  CHECK_THAT(refusal(parts), Contains("GpuSchedule::parts splits sums where the loops are the compiler's own; "
                                      "rfactor(k, n) does by hand"));
  Schedule tensor_cores = by_hand("");
  tensor_cores.gpu.tensor_cores = GpuSchedule::TensorCores::bf16;
  CHECK_THAT(refusal(tensor_cores), Contains("GpuSchedule::tensor_cores: products become tiles where the loops are"));
  CHECK_THAT(refusal(registers), Contains("stays in registers where the loops are the compiler's"));
  CHECK_THAT(refusal(resident), Contains("slices of weights stay in shared memory where the loops are the compiler's"));
}

TEST_CASE("without barriers of blocks a schedule by hand makes groups of one block", "[cuda][loops]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(64, 512)).program;
  const auto blocks = [&](const char* steps) {
    return cuda::compile(program, by_hand(steps), Gpu::of(90)).code().shape.blocks;
  };
  CHECK(blocks("bind(i.5, thread)") == 1);
  CHECK(blocks("distribute_rows(); share_work(); insert_barriers()") > 1);
}

TEST_CASE("explain and print show the loops of a schedule by hand on a GPU", "[cuda][loops]") {
  const auto model = cuda::compile(rnn(), by_hand(columns_a_thread), Gpu::of(90));
  const std::string text = explain(model);
  CHECK_THAT(text, Contains("no time is predicted") && !Contains("microseconds"));
  CHECK_THAT(text, Contains("32 a block") && !Contains("nodes side by side") && Contains("by hand; steps: 7"));
  CHECK_THAT(model.print("ilir"), Contains("for i.6 = 0:24:"));
  CHECK_THAT(model.print("scheduled"), Contains("  threads for i.6 = 0:24:") && Contains("barrier of threads"));
  CHECK_THAT(model.print("tiled"), Contains("for i.6 = 0:(55 - thread) / 32:"));
}
