// A model whose kernel stays on the device: several calls by one launch, in the emulation of a GPU.
#include <deque>

#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// Calls of several sizes by one launch, each beside a launch of its own.
template <class Program>
void check_served(const Program& program, Shape shape, const Schedule& schedule, Interleaving order) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  FakeCuda fake;
  fake.gpu.multiprocessors = 6;
  fake.order = order;
  runtime::CudaCompileOptions options;
  options.verify = true;
  auto model = cuda::compile(program, schedule, fake.gpu, options);
  bind_all<float>(model, weights);
  const auto on = model.to(cuda::Device(fake.device()));
  const auto resident = on.resident({.groups = 2});
  CAPTURE(program.name(), to_string(schedule), order.seed);
  std::deque<Items> calls;  // which stay where they are
  std::vector<std::vector<float>> got;
  for (int turn = 0; turn < 4; ++turn) {
    calls.push_back(forest(shape, turn == 2 ? 1 : 2 + turn, 6 + 2 * turn, 5 + unsigned(turn)));
    cuda::Result result = resident(calls.back().roots);
    got.push_back(all_roots(result));
    CHECK(result.counters().launches == (turn == 0));
    CHECK(difference(got.back(), interpreted(program, weights, calls.back())) <= 1);
  }
  CHECK(resident.launches() == 1);
  resident.stop();
  CHECK(fake.stalls == 0);
  for (std::size_t turn = 0; turn < got.size(); ++turn) {
    cuda::Result launched = on(calls[turn].roots);
    CHECK(got[turn] == all_roots(launched));
  }
  CHECK(fake.problem == "");
}

}  // namespace

TEST_CASE("try", "[cuda]") {
  check_served(models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged, on_gpu(Group::block, 1), {});
}
