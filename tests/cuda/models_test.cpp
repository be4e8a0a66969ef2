// Every model in the emulation of a GPU: each way to share the work gives what the interpreter gives, the same bits as
// the others, in whatever order threads run, without a race and without an access outside of memory.
#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

using Weights = GpuSchedule::Weights;

struct Sharing {
  const char* name;
  Schedule schedule;
};

/// Everything that a GPU's schedule can say.
std::vector<Sharing> all_ways() {
  return {{"block, weights streamed", on_gpu(Group::block, 1, Weights::streamed)},
          {"block, weights resident", on_gpu(Group::block, 1, Weights::resident)},
          {"cluster, weights streamed", on_gpu(Group::cluster, 2, Weights::streamed)},
          {"cluster, weights resident", on_gpu(Group::cluster, 2, Weights::resident)},
          {"grid, lock-free", on_gpu(Group::grid, 3, Weights::streamed)},
          {"grid, lock-based, weights resident", on_gpu(Group::grid, 3, Weights::resident, true)}};
}

template <class Program>
void check_model(const Program& program, Shape shape, std::vector<Sharing> ways = all_ways()) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  std::vector<float> first;
  for (const auto& [name, schedule] : ways)
    for (const Interleaving order : {Interleaving{Interleaving::first_first}, Interleaving{Interleaving::last_first},
                                     Interleaving{Interleaving::random, 11}}) {
      FakeCuda fake;
      fake.gpu.multiprocessors = 6;  // two groups of three blocks, or six of one
      fake.order = order;
      CAPTURE(program.name(), name, int(order.kind));
      const std::vector<float> got = emulated(fake, program, schedule, weights, items);
      CHECK(fake.problem == "");
      CHECK(difference(got, right) <= 1);
      if (first.empty()) first = got;
      CHECK(got == first);
      CHECK(fake.launches == 1);
    }
}

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

}  // namespace

TEST_CASE("a GPU runs TreeRNN", "[cuda]") {
  check_model(models::tree_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
}
TEST_CASE("a GPU runs TreeLSTM", "[cuda]") {
  check_model(models::tree_lstm<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
}
TEST_CASE("a GPU runs TreeGRU", "[cuda]") {
  check_model(models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
}
TEST_CASE("a GPU runs DAG-RNN", "[cuda]") {
  check_model(models::dag_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::dag);
}
TEST_CASE("a GPU runs MV-RNN", "[cuda]") {
  check_model(models::mv_rnn<Item>(word, left, right, sizes(0, 17)).program, Shape::binary);
}
TEST_CASE("a GPU runs the LSTM", "[cuda]") {
  check_model(models::lstm<Item>(word, before, sizes(5, 24)).program, Shape::sequence);
}
TEST_CASE("a GPU runs N-ary TreeLSTM, whose children may be absent", "[cuda]") {
  check_model(models::nary_tree_lstm<Item>(word, by_position, sizes(5, 24)).program, Shape::positional);
}
