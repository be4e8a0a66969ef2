// Tables of what words decide, on a GPU: made by its kernel, and read with the same bits as computed.
#include <cstring>
#include <vector>

#include "cortex/loops.hpp"
#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// All states of all roots.
template <class Model>
std::vector<float> all_states(const Model& model, cuda::Result& result) {
  std::vector<float> all;
  for (const runtime::StateSpec& state : model.executable().states) {
    const std::vector<float> rows = result.roots(state.name);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// `program` with and without tables, shared in several ways.
template <class Program>
void check_tables(const Program& program, Shape shape) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  for (const Schedule& way : {on_gpu(Group::block, 1), on_gpu(Group::cluster, 2), on_gpu(Group::grid, 3)}) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 11};
    runtime::CudaCompileOptions options;
    options.verify = true;
    std::vector<float> first;
    for (const Schedule& schedule : {way.tabulate_nothing(), way.tabulate(1)}) {
      auto model = cuda::compile(program, schedule, fake.gpu, options);
      bind_all<float>(model, weights);
      cuda::Result result = model.to(cuda::Device(fake.device()))(items.roots);
      const std::vector<float> got = all_states(model, result);
      CHECK(fake.problem == "");
      CHECK(result.counters().launches == 1);
      if (first.empty()) first = got;
      CHECK(same_bits(got, first));
    }
  }
}

/// A TreeRNN with tables on a device.
struct WithTables {
  Bound b;
  FakeCuda fake;
  Compiled model = b.compile(on_gpu(Group::block, 1).tabulate(1));
  decltype(model.to(cuda::Device(fake.device()))) on = model.to(cuda::Device(fake.device()));
};

}  // namespace

TEST_CASE("a GPU gives the same bits from tables as computed", "[cuda][tables]") {
  check_tables(models::tree_lstm<Item>(word, kids, {.input = 5, .hidden = 24}).program, Shape::ragged);
  check_tables(models::tree_rnn<Item>(word, kids, {.input = 5, .hidden = 24}).program, Shape::ragged);
}

TEST_CASE("a GPU gives the same bits from tables of all nodes' words as computed", "[cuda][tables]") {
  check_tables(models::dag_rnn<Item>(word, kids, {.input = 5, .hidden = 24}).program, Shape::dag);
  check_tables(models::gru<Item>(word, before, {.input = 5, .hidden = 24}).program, Shape::sequence);
}

TEST_CASE("tables are made once for the weights, on the device, and calls with them allocate nothing",
          "[cuda][tables]") {
  WithTables t;
  t.on(t.b.items.roots);
  const int launches = t.fake.launches, allocations = t.fake.allocations, uploads = t.fake.uploads;
  cuda::Result result = t.on(t.b.items.roots);
  CHECK(t.fake.launches == launches + 1);
  CHECK(t.fake.allocations == allocations);
  CHECK(t.fake.uploads == uploads + 1);
  CHECK(difference(all_roots(result), t.b.right) <= 1);
}

TEST_CASE("tables follow weights that are bound anew, from the host or on the device", "[cuda][tables]") {
  WithTables t;
  t.on(t.b.items.roots);
  const std::vector<float> zero(t.b.weights.at("Emb").size());
  t.model.bind("Emb", zero);
  Compiled plain = t.b.compile(on_gpu(Group::block, 1).tabulate_nothing());
  plain.bind("Emb", zero);
  cuda::Result right = plain.to(cuda::Device(t.fake.device()))(t.b.items.roots);
  CHECK(same_bits(all_roots(right), t.on(t.b.items.roots).roots()));
  const std::vector<float> table(t.b.weights.at("Emb").begin(), t.b.weights.at("Emb").end());
  t.on.bind_device("Emb", t.fake.users_values(0, table), {vocabulary, 5});
  cuda::Result again = t.on(t.b.items.roots);
  CHECK(difference(all_roots(again), t.b.right) <= 1);
  CHECK(t.fake.problem == "");
}

TEST_CASE("where a device has no room for tables, calls compute what they would hold", "[cuda][tables]") {
  WithTables t;
  int without = 0;
  for (int after = 0; after == 0 || !t.fake.failed().empty(); ++after) {
    const auto on = t.model.to(cuda::Device(t.fake.device()));
    t.fake.fail(after, jit::cuda::out_of_memory);
    auto result = on.try_call(t.b.items.roots);
    t.fake.recover();
    if (!result) continue;
    without += result->counters().launches == 1;  // so far; what gathers the roots is one, too
    CHECK(difference(all_roots(*result), t.b.right) <= 1);
    CHECK(t.fake.problem == "");  // what was under way for tables that have failed has read no memory that was gone
  }
  CHECK(without > 3);
}

TEST_CASE("a captured call has its rows out of tables, too", "[cuda][tables]") {
  WithTables t;
  cuda::Result call = t.on.prepare(t.b.items.roots);
  t.fake.begin_capture(stream(1));
  call.launch(stream(1));
  t.fake.end_capture();
  t.fake.replay();
  CHECK(t.fake.forbidden() == "");
  CHECK(difference(all_roots(call), t.b.right) <= 1);
}

TEST_CASE("a GPU has tables of words by default, but beside weights in registers and tensor cores", "[cuda][tables]") {
  const auto tables = [](const Schedule& schedule) {
    const auto program =
        models::tree_lstm<Item>(word, kids, {.vocabulary = vocabulary, .input = 16, .hidden = 32}).program;
    return cuda::compile(program, schedule, Gpu::of(90)).executable().program.tabulations.size();
  };
  GpuSchedule registers, tensor_cores;
  registers.weights = GpuSchedule::Weights::registers;
  tensor_cores.tensor_cores = GpuSchedule::TensorCores::bf16;
  const Schedule standard = Schedule::standard();
  CHECK(tables(standard) > tables(standard.tabulate_nothing()));
  CHECK(tables(standard.on_gpu(registers)) == tables(standard.tabulate_nothing().on_gpu(registers)));
  CHECK(tables(standard.tabulate().on_gpu(registers)) == tables(standard));
  CHECK(tables(standard.on_gpu(tensor_cores)) == 0);
}

TEST_CASE("a GPU refuses tables beside loops by hand and tensor cores", "[cuda][tables]") {
  const auto refusal = [](const Schedule& schedule) {
    return error_of_call([&] { cuda::compile(tree_rnn_program(), schedule, Gpu::of(90)); });
  };
  CHECK_THAT(refusal(Schedule::standard().tabulate().loops(Loops{})),
             Contains("invalid_schedule: tabulate: a loop schedule says"));
  GpuSchedule how;
  how.tensor_cores = GpuSchedule::TensorCores::bf16;
  CHECK_THAT(refusal(Schedule::standard().tabulate().on_gpu(how)),
             Contains("invalid_schedule: tabulate: tensor cores take all products"));
}
