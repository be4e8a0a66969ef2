// Random models of the whole grammar, and programs of whatever the language has, on random structures under random
// schedules, of loops by hand too, in the emulation of a GPU, against the equations interpreted.
#include <catch2/catch.hpp>

#include "cortex/cuda.hpp"
#include "cortex/ir/stored.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/pass/zero_absent_rows.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "support/differential.hpp"
#include "support/fake_cuda.hpp"
#include "support/random_loops.hpp"
#include "support/random_programs.hpp"
#include "support/random_schedules.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Every way to share the work, in turn, and the default's; on a GPU without clusters a grid in their place.
GpuSchedule way(int number, const Gpu& gpu) {
  using Group = GpuSchedule::Group;
  GpuSchedule how;
  if (number % 11 == 10) return how;
  how.threads = 32 << (number / 5 % 2);
  how.rows = 1 << (number % 4);
  how.parts = 1 << (number % 6);
  how.group = number % 3 == 0 ? Group::block : number % 3 == 1 ? Group::cluster : Group::grid;
  how.blocks = number % 3 == 0 ? 1 : number % 3 == 1 ? 2 : 2 + number % 2;
  using Weights = GpuSchedule::Weights;
  how.weights = number % 5 < 2 ? Weights::streamed : number % 5 < 4 ? Weights::automatic : Weights::registers;
  how.lock_based = number % 2;
  constexpr int recent[] = {-1, 1, 16, 0, 4, -1, 2};
  if (how.group != Group::grid) how.recent_rows = recent[number % 7];
  if (how.group == Group::cluster && !gpu.has_clusters()) how.group = Group::grid, how.recent_rows = -1;
  return how;
}

/// Weights that `type` holds exactly, and all that can be stored so.
Schedule round_to(DType type, RandomModel& model, Schedule schedule) {
  ir::BufferInfo rounded;
  rounded.dtype = type;
  for (const ra::Op& op : model.graph.ops) {
    if (op.kind != ra::OpKind::input || op.buffer->dtype != DType::f32) continue;
    std::vector<float>& values = model.weights.at(op.name());
    const Vector<float> held = ir::stored_elements(rounded, values.data(), {std::int64_t(values.size())});
    values.assign(held.begin(), held.end());
    schedule = schedule.store(op, type);
  }
  return schedule;
}

/// A state at a vertex, of whatever type it is.
std::vector<double> values_of(const ra::Op& state, cuda::Result& result, const Vertex* vertex) {
  const auto values = [&]<class T>(T) {
    const auto row = result.node<T>(vertex, state.name());
    return std::vector<double>(row.begin(), row.end());
  };
  return state.buffer->dtype == DType::f32 ? values(float()) : values(double());
}

/// Of a device, where nothing else ends a kernel whose blocks wait for ever: seconds, and then an error.
constexpr std::int64_t spin_limit = 10'000'000;

/// Where models run: in the emulation, or on a device that is there.
struct Place {
  Gpu gpu;
  cuda::Device device;
  const std::string* problem = nullptr;  // that the emulation has found

  explicit Place(FakeCuda& fake) : gpu(fake.gpu), device(fake.device()), problem(&fake.problem) {}
  explicit Place(const cuda::Device& there) : gpu(there.gpu()), device(there) {}
};

/// The first value outside its bound, or what the emulation found; "" if all is right.
std::string mismatch(const GraphCase& model, cuda::Result& result, const Place& place, const Forest& forest) {
  const ForestView view(forest);
  const auto expected = ra::interpret<ra::Bounded>(model.graph, view, interpreter_weights(model));
  result.wait();
  if (place.problem && !place.problem->empty()) return *place.problem;
  for (std::size_t s = 0; s < model.graph.states.size(); ++s) {
    const ra::Op& state = model.graph.ops[std::size_t(model.graph.states[s].placeholder)];
    for (int n = 0; n < view.num_nodes(); ++n) {
      const auto& right = expected[s][std::size_t(n)];
      if (right.empty()) continue;  // a readout has no value away from the roots
      const std::vector<double> values = values_of(state, result, view.nodes[std::size_t(n)]);
      for (std::size_t i = 0; i < right.size(); ++i)
        if (!right[i].covers(values[i]))
          return state.name() + "[" + std::to_string(n) + "," + std::to_string(i) + "] = " + std::to_string(values[i]) +
                 ", but the equations give " + std::to_string(right[i].value);
    }
  }
  return {};
}

/// A GPU that `seed` gives six multiprocessors and an order of threads.
void shape(FakeCuda& fake, int seed) {
  fake.gpu.multiprocessors = 6;
  fake.order = {Interleaving::Kind(seed % 3), unsigned(seed)};
}

/// Compiles `model` for `place` and holds its calls on random structures against the equations. Whether the schedule is
/// possible.
bool check(const Place& place, const GraphCase& model, const Schedule& schedule, int seed) {
  runtime::CudaCompileOptions options;
  options.verify = true;
  if (!place.problem) options.spin_limit = spin_limit;
  std::shared_ptr<const runtime::CudaExecutable> code;
  try {
    code = runtime::compile_cuda_graph(model.graph, schedule, place.gpu, options);
  } catch (const Error& error) {
    if (error.code != Code::invalid_schedule) FAIL(error.message);
    return false;
  }
  cuda::Model<Vertex, VertexSet> compiled(code);
  model.each_weight([&](const std::string& name, const auto& values) { compiled.bind(name, values); });
  const auto on = compiled.to(place.device);
  for (int f = 0; f < 3; ++f) {
    Random own{std::uint64_t(seed) * 100 + std::uint64_t(f)};
    const Forest forest = random_forest(own, model.graph, f == 0 ? 4 : 30);
    cuda::Result result = on.run(forest.roots, nullptr);
    const std::string wrong = mismatch(model, result, place, forest);
    INFO(describe(forest));
    CHECK(wrong == "");
  }
  return true;
}

/// Holds a random model under a random schedule, shared in a random way. Whether the schedule is possible.
bool check_model(const Place& place, int seed) {
  RandomModel model(std::uint64_t(seed), Grammar::whole);
  Random random{std::uint64_t(seed)};
  Schedule schedule = random_schedule(random, model.graph);
  schedule = schedule.workers(1).whole_calls().share_no_subtrees().tabulate_nothing().on_gpu(way(seed, place.gpu));
  if (seed % 2 && ra::detail::reason_against_sharing(model.graph, schedule).empty())
    schedule = schedule.share_subtrees();
  schedule.tiling = {};
  if (seed % 3 == 1) schedule = round_to(DType::bf16, model, schedule);
  INFO("seed " << seed << ", " << to_string(schedule) << ra::print(model.graph));
  return check(place, model, schedule, seed);
}

/// The same of a random program.
bool check_program(const Place& place, int seed) {
  const RandomProgram program{std::uint64_t(seed)};
  Random random{std::uint64_t(seed)};
  Schedule schedule = seed % 2 ? random_schedule(random, program.graph) : Schedule::standard();
  schedule = schedule.workers(1).whole_calls().share_no_subtrees();
  schedule = seed % 4 < 2 ? schedule.tabulate(1) : schedule.tabulate_nothing();
  if (seed % 3 && ra::detail::reason_against_sharing(program.graph, schedule).empty())
    schedule = schedule.share_subtrees();
  schedule.tiling = {};
  GpuSchedule how = way(seed, place.gpu);
  INFO("seed " << seed << ", " << to_string(schedule.on_gpu(how)) << ra::print(program.graph));
  if (check(place, program, schedule.on_gpu(how), seed)) return true;
  const bool registers = how.weights == GpuSchedule::Weights::registers;  // not all of these have some to keep there
  how.weights = {};
  return registers && check(place, program, schedule.on_gpu(how), seed);
}

}  // namespace

TEST_CASE("random models on a GPU equal their equations", "[cuda][differential]") {
  const int first = int(first_seed(300)), count = wanted_cases(12);
  int refused = 0;
  for (int seed = first; seed < first + count; ++seed) {
    FakeCuda fake;
    shape(fake, seed);
    refused += !check_model(Place(fake), seed);
  }
  CHECK(refused <= count / 3);
}

TEST_CASE("random programs on a GPU equal their equations", "[cuda][differential]") {
  const int first = int(first_seed(300)), count = wanted_cases(8);
  int refused = 0;
  for (int seed = first; seed < first + count; ++seed) {
    FakeCuda fake;
    shape(fake, seed);
    refused += !check_program(Place(fake), seed);
  }
  CHECK(refused <= count / 3);
}

TEST_CASE("the devices of this machine run random models and programs, which equal their equations",
          "[cuda][device][differential]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  const int first = int(first_seed(300)), count = wanted_cases(40);
  for (const cuda::Device& device : devices) {
    int refused = 0;
    for (int seed = first; seed < first + count; ++seed)
      refused += !check_model(Place(device), seed) + !check_program(Place(device), seed);
    CHECK(refused <= 2 * count / 3);
  }
}

TEST_CASE("random models whose loops are bound by hand on a GPU equal their equations", "[cuda][loops][differential]") {
  const int first = int(first_seed(300)), count = wanted_cases(8);
  int refused = 0, bound = 0;
  Tally tally;
  for (int seed = first; seed < first + count; ++seed) {
    const RandomModel model(std::uint64_t(seed), Grammar::whole);
    Random random{std::uint64_t(seed)};
    FakeCuda fake;
    shape(fake, seed);
    GpuSchedule how = way(seed, fake.gpu);
    how.threads = 32, how.rows = 0, how.parts = 0, how.recent_rows = -1;
    Schedule schedule;
    if (random.chance(0.7)) schedule = schedule.dynamic_batch().specialize_where_it_pays();
    schedule = schedule.workers(how.blocks);
    const Target target = Target::cuda(fake.gpu);
    RandomLoops made(random, pass::zero_absent_rows(lower::lower(model.graph, schedule).body), target, tally);
    made.draw(random.below(4), how.blocks > 1);
    for (int n = 1 + random.below(4); n > 0; --n) bound += made.take_any("bind", 8);
    if (how.blocks > 1 && !made.take({"insert_barriers", {}, {}}))
      how.group = GpuSchedule::Group::block, how.blocks = 1;
    made.draw(random.below(3), false);
    schedule = schedule.workers(1).on_gpu(how).loops(made.loops);
    INFO("seed " << seed << ", " << to_string(schedule) << ra::print(model.graph));
    refused += !check(Place(fake), model, schedule, seed);
  }
  CHECK(refused <= count / 3);
  CHECK(bound > 0);
}

TEST_CASE("random models on a GPU give the same bits from tables as computed", "[cuda][tables][differential]") {
  const int first = int(first_seed(1)), count = wanted_cases(5);
  int with_tables = 0;
  for (int seed = first; seed < first + count; ++seed) {
    const RandomModel model(std::uint64_t(seed), seed % 4 ? Grammar::one_recursion : Grammar::whole);
    FakeCuda fake;
    shape(fake, seed);
    GpuSchedule how = way(seed, fake.gpu);
    if (how.weights == GpuSchedule::Weights::registers) how.weights = {};  // not all of these have some to keep there
    const Schedule schedule = Schedule::standard().on_gpu(how);
    INFO("seed " << seed << ", " << to_string(schedule) << ra::print(model.graph));
    Random random{std::uint64_t(seed) * 100};
    const Forest forest = random_forest(random, model.graph, 20);
    const ForestView view(forest);
    std::vector<float> computed;
    for (const Schedule& one : {schedule.tabulate_nothing(), schedule.tabulate(1)}) {
      cuda::Model<Vertex, VertexSet> compiled(runtime::compile_cuda_graph(model.graph, one, fake.gpu, {}));
      for (const auto& [name, values] : model.weights) compiled.bind(name, values);
      cuda::Result result = compiled.to(cuda::Device(fake.device())).run(forest.roots, nullptr);
      std::vector<float> values;
      for (const runtime::StateSpec& state : compiled.executable().states)
        for (std::size_t n = 0; n < (state.at_roots ? 0 : view.nodes.size()); ++n) {
          const std::vector<float> row = result.node<float>(view.nodes[n], state.name);
          values.insert(values.end(), row.begin(), row.end());
        }
      CHECK(fake.problem == "");
      with_tables += one.tabulating == Tabulating::on && !compiled.executable().program.tabulations.empty();
      if (one.tabulating == Tabulating::off) computed = values;
      CHECK(std::equal(values.begin(), values.end(), computed.begin(), computed.end(),
                       [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }));
    }
  }
  CHECK(with_tables > 0);
}
