// Schedules of loops by hand in the emulation of a GPU: what is bound to blocks and threads, and the rest for the first
// of them, gives what the interpreter gives, in whatever order threads run, without a race.
#include "cortex/loops.hpp"

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

/// What a thread does not do of a product, others do, in other blocks too.
constexpr const char* blocks_and_threads =
    "distribute_rows(); split(i.5, 8); split(i.6, 8); bind(i.5.o, block); bind(i.5.i, thread); bind(i.6.o, worker); "
    "bind(i.6.i, thread); bind(n_idx, block); bind(i, thread); bind(n_idx.3, thread); insert_barriers()";

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
              {by_hand(columns_a_thread), by_hand(blocks_and_threads, Group::cluster, 2),
               by_hand(blocks_and_threads, Group::grid, 3), by_hand(slices_and_nodes, Group::grid, 2)});
}
