// Every model in the emulation of a GPU: each way to share the work gives what the interpreter gives, the same bits as
// the others, in whatever order threads run, without a race and without an access outside of memory.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tokens.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cortex/runtime/workers.hpp"
#include "cuda/check.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

using Weights = GpuSchedule::Weights;

struct Sharing {
  const char* name;
  Schedule schedule;
  bool in_one_order = false;  // to save time: its barrier and its weights are others' too, which run in every order
};

/// Everything that a GPU's schedule can say, with so many threads to a sum. `registers`: with one they hold weights.
std::vector<Sharing> all_ways(int parts, bool registers = true) {
  const auto on = [&](Group group, int blocks, Weights weights, bool lock_based = false) {
    return on_gpu(group, blocks, weights, lock_based, 32, parts);
  };
  const auto with_rows = [&](Group group, int blocks, Weights weights, int recent) {
    GpuSchedule how = on(group, blocks, weights).gpu;
    how.recent_rows = recent;
    return Schedule::standard().tabulate_nothing().on_gpu(how);
  };
  std::vector<Sharing> ways{{"block, weights streamed", on(Group::block, 1, Weights::streamed)},
                            {"block, weights resident", with_rows(Group::block, 1, Weights::resident, 4)},
                            {"cluster, weights streamed", on(Group::cluster, 2, Weights::streamed)},
                            {"cluster, weights resident", with_rows(Group::cluster, 2, Weights::resident, 8)},
                            {"grid, lock-free", on(Group::grid, 3, Weights::streamed)},
                            {"grid, lock-based, weights resident", on(Group::grid, 3, Weights::resident, true)}};
  if (parts > 1) return ways;
  ways.push_back({"grid, lock-free, weights resident", on(Group::grid, 3, Weights::resident), true});
  ways.push_back({"grid, lock-based", on(Group::grid, 3, Weights::streamed, true), true});
  ways.push_back({"cluster, no recent rows", with_rows(Group::cluster, 2, Weights::streamed, 0), true});
  ways.push_back({"cluster, one recent row", with_rows(Group::cluster, 2, Weights::streamed, 1), true});
  if (!registers) return ways;
  ways.push_back({"block, weights in registers", on(Group::block, 1, Weights::registers), true});
  ways.push_back({"cluster, weights in registers", on(Group::cluster, 2, Weights::registers), true});
  ways.push_back({"grid, weights in registers", on(Group::grid, 3, Weights::registers)});
  return ways;
}

constexpr Interleaving every_order[] = {
    {Interleaving::first_first}, {Interleaving::last_first}, {Interleaving::random, 11}};

template <class Program>
void check_model(const Program& program, Shape shape, int parts, bool registers) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  std::vector<float> first;
  std::vector<Sharing> ways = all_ways(parts, registers);
  if (parts > 1) ways = {ways[1], ways[4]};  // a block, and a grid: how blocks meet is no matter of parts
  for (const auto& [name, schedule, in_one_order] : ways)
    for (const Interleaving order : every_order) {
      if ((parts > 1 || in_one_order) && order.kind != Interleaving::random) continue;
      FakeCuda fake;
      fake.gpu.multiprocessors = 6;  // two groups of three blocks, or six of one
      fake.order = order;
      CAPTURE(program.name(), name, parts, int(order.kind));
      const std::vector<float> got = emulated(fake, program, schedule, weights, items);
      CHECK(fake.problem == "");
      CHECK(difference(got, right) <= 1);
      if (first.empty()) first = got;
      CHECK(got == first);
      CHECK(fake.launches == 1);
    }
}

/// With a thread to a sum, and with four. `registers`: whether they hold some of each of the model's matrices.
template <class Program>
void check_model(const Program& program, Shape shape, bool registers = true) {
  for (const int parts : {1, 4}) check_model(program, shape, parts, registers);
}

/// The same on a device that is there, with more trees, and repeated: what an emulation cannot show is seen here alone.
/// All kernels are compiled beforehand, on all cores: that takes longer than they do.
/// Where blocks meet in global memory, those of 32 threads give up at last, and run before those of 256, which do not:
/// a barrier that does not work is an error.
template <class Program>
void check_on(const cuda::Device& device, const Program& program, Shape shape, bool registers = true) {
  struct Variant {
    std::string name;
    int parts, threads;
    Schedule schedule;
  };
  std::vector<Variant> variants;
  for (const int parts : {1, 4, 16})
    for (const auto& [name, schedule, in_one_order] : all_ways(parts, registers))
      for (const int threads : {32, 256}) {
        GpuSchedule how = schedule.gpu;
        how.threads = threads;
        if (how.group != Group::cluster || device.gpu().has_clusters())
          variants.push_back({name, parts, threads, Schedule(schedule).on_gpu(how)});
      }
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const auto load = [&](const Schedule& schedule) {
    cuda::CompileOptions options;
    if (schedule.gpu.group == Group::grid && schedule.gpu.threads == 32) options.spin_limit = patient_looks;
    auto model = cuda::compile(program, schedule, device.gpu(), options);
    bind_all<float>(model, weights);
    return model.to(device);
  };
  std::vector<std::optional<decltype(load(Schedule()))>> loaded(variants.size());
  runtime::on_all_cores(int(variants.size()),
                        [&](int i) { loaded[std::size_t(i)].emplace(load(variants[std::size_t(i)].schedule)); });
  const Items items = forest(shape, 300, 40, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  std::map<int, std::vector<float>> first;  // by the threads of a sum
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const auto& [name, parts, threads, schedule] = variants[v];
    const auto& on = *loaded[v];
    for (int repeat = 0; repeat < 20; ++repeat) {
      cuda::Result result = on(items.roots);
      const std::vector<float> got = all_roots(result);
      CAPTURE(program.name(), name, parts, threads, repeat);
      REQUIRE(difference(got, right) <= 1);
      if (first[parts].empty()) first[parts] = got;
      REQUIRE(got == first[parts]);
    }
  }
}

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// Weights in a device's memory, results that go there, tables, and threads with a stream each: the same bits as by way
/// of the host.
void check_memory_of(const cuda::Device& device, int roots, int repeats) {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(16, 24)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, roots, 20, 5);
  const std::vector<float> table(weights.at("Emb").begin(), weights.at("Emb").end());
  const runtime::CudaBlock words(device.shared(), table.size() * sizeof(float));
  device.shared()->call("a copy", [&](const jit::CudaDriver& d) {
    const int failed = d.MemcpyHtoDAsync(words.at(), table.data(), words.size(), nullptr);
    return failed ? failed : d.StreamSynchronize(nullptr);
  });
  std::vector<float> first;
  for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().tabulate(1)}) {
    auto model = cuda::compile(program, schedule.on_gpu(on_gpu(Group::block, 1).gpu), device.gpu());
    bind_all<float>(model, weights);
    const auto on = model.to(device);
    if (first.empty()) first = on(items.roots).roots();
    model.bind("Emb", std::vector<float>(table.size()));
    on.bind_device("Emb", words.at(), {vocabulary, 16}, {.in_place = true});
    std::atomic<int> wrong = 0;
    const auto work = [&] {
      const cuda::Stream own = reinterpret_cast<cuda::Stream>(2);  // CU_STREAM_PER_THREAD
      const runtime::CudaBlock out(device.shared(), first.size() * sizeof(float));
      std::vector<float> got(first.size());
      for (int repeat = 0; repeat < repeats; ++repeat) {
        on.run(items.roots, own).roots_into(out.at(), out.size(), own);
        device.shared()->call("a copy", [&](const jit::CudaDriver& d) {
          const int failed = d.MemcpyDtoHAsync(got.data(), out.at(), out.size(), own);
          return failed ? failed : d.StreamSynchronize(own);
        });
        wrong += got != first;
      }
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
}

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
TEST_CASE("a GPU runs SimpleTreeGRU", "[cuda]") {
  check_model(models::simple_tree_gru<Item>(word, kids, sizes(5, 16)).program, Shape::ragged);
}
TEST_CASE("a GPU runs DAG-RNN", "[cuda]") {
  check_model(models::dag_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::dag);
}
TEST_CASE("a GPU runs TreeFC", "[cuda]") {
  check_model(models::tree_fc<Item>(word, left, right, sizes(0, 24)).program, Shape::binary);
}
TEST_CASE("a GPU runs MV-RNN", "[cuda]") {
  check_model(models::mv_rnn<Item>(word, left, right, sizes(0, 17)).program, Shape::binary);
}
TEST_CASE("a GPU runs the LSTM", "[cuda]") {
  check_model(models::lstm<Item>(word, before, sizes(5, 24)).program, Shape::sequence);
}
TEST_CASE("a GPU runs the GRU", "[cuda]") {
  check_model(models::gru<Item>(word, before, sizes(5, 24)).program, Shape::sequence);
}
TEST_CASE("a GPU runs N-ary TreeLSTM, whose children may be absent", "[cuda]") {
  check_model(models::nary_tree_lstm<Item>(word, by_position, sizes(5, 24)).program, Shape::positional, false);
}

/// Recursions that follow each other in one kernel: a layer reads all of the one before, and in both directions what
/// comes after a step too.
TEST_CASE("a GPU runs layers of sequences, in one direction and in both", "[cuda]") {
  const auto check = [](const auto& program, const Schedule& schedule) {
    const NamedNumbers weights = random_weights(program.graph(), 3);
    const Items items = forest(Shape::sequence, 3, 9, 5);
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 11};
    CAPTURE(program.name(), int(schedule.gpu.group));
    const std::vector<float> got = emulated(fake, program, schedule, weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, interpreted(program, weights, items)) <= 1);
    CHECK(fake.launches == 1);
  };
  const auto stacked = models::lstm<Item, float, 2>(word, before, sizes(5, 8)).program;
  check(stacked, on_gpu(Group::cluster, 2));
  check(stacked, on_gpu(Group::grid, 3));
  check(models::bidirectional_gru<Item, float, 2>(word, before, sizes(3, 4)).program, on_gpu(Group::grid, 3));
}

TEST_CASE("a GPU runs models over tokens, with the bits of linked nodes", "[cuda]") {
  const auto linked = models::bidirectional_lstm<Item>(word, before, sizes(5, 8));
  const auto rows = models::bidirectional_lstm<models::Token>(models::token_word, models::token_before, sizes(5, 8));
  const NamedNumbers weights = random_weights(rows.program.graph(), 3);
  const Items items = forest(Shape::sequence, 3, 9, 5);
  models::Sequences sequences;
  for (const Item* root : items.roots) {
    std::vector<int> words;
    for (const Item* step = root; step; step = step->before) words.insert(words.begin(), step->word);
    sequences.add(words);
  }
  FakeCuda fake;
  const auto load = [&](const auto& program) {
    auto model = cuda::compile(program, on_gpu(Group::cluster, 2), fake.gpu);
    bind_all<float>(model, weights);
    return model.to(cuda::Device(fake.device()));
  };
  const auto of_items = load(linked.program);
  const auto of_tokens = load(rows.program);
  cuda::Result right = of_items(items.roots), got = of_tokens(sequences);
  CHECK(difference(all_roots(right), interpreted(linked.program, weights, items)) <= 1);
  CHECK(all_roots(got) == all_roots(right));
  for (std::size_t s = 0; s < sequences.size(); ++s)
    CHECK(got.node(&sequences[s].back(), "h_l0_reverse") == right.node(items.roots[s], "h_l0_reverse"));
  CHECK(fake.problem == "");
}

TEST_CASE("a GPU negates numbers made of the nodes' integers as numbers", "[cuda]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) {
    auto h = m.template placeholder<float>("h", s.hidden);
    auto U = m.template input<float>("U", s.hidden, s.input);
    return m.recursion(h, m.compute("next", s.hidden, [&](auto n, auto i) {
      const auto share = cortex::cast<float>(word(n)) / float(vocabulary);
      return tanh(-share + sum(s.input, [&](auto j) { return U(i, j) * -sin(share) * x(n, j); }) +
                  sum(kids(n), [&](auto k) { return h(k, i); }));
    }));
  };
  check_model(own_model(cortex::tree, cell)(12, 12), Shape::ragged, false);
}

namespace {

/// Values that `of(n, i, T)` gives, added up over each tree; T is a matrix of three rows. All of them whole numbers, of
/// which both the interpreter and the GPU have to give the same.
template <class F>
void check_whole_numbers(const F& of) {
  Dim V{"vocabulary"}, R{"rows", 3}, H{"hidden", 6};
  Model<Item> m("whole_numbers", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), T = m.input<float>("T", R, H);
  auto h = m.placeholder<float>("h", H);
  auto total = m.compute("total", H, [&](auto n, auto i) {
    return Emb(word(n), i) + of(n, i, T) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, total);
  NamedNumbers weights = random_weights(program.graph(), 3);
  int number = 0;
  for (auto& [name, values] : weights)
    for (auto& value : values) value = ++number;
  const Items items = forest(Shape::ragged, 4, 12, 5);
  FakeCuda fake;
  CHECK(emulated(fake, program, on_gpu(Group::block, 1), weights, items) == interpreted(program, weights, items));
  CHECK(fake.problem == "");
}

}  // namespace

TEST_CASE("a GPU divides negative numbers as the interpreter does", "[cuda]") {
  check_whole_numbers([](auto n, auto i, auto) {
    const auto children = num_children(kids(n));
    return cast<float>((1 - children) / 2) + 16.0f * cast<float>((1 - children) % 2) +
           256.0f * cast<float>((i - children) / 2) + 4096.0f * cast<float>((i - children) % 3);
  });
}

TEST_CASE("a GPU reads rows whose numbers are made of negative ones", "[cuda]") {
  check_whole_numbers([](auto n, auto i, auto T) { return T((1 - num_children(kids(n))) / 2 + 2, i); });
  check_whole_numbers([](auto n, auto i, auto T) { return T((1 - num_children(kids(n))) % 2 + 1, i); });
}

namespace {

/// `of(x)` at leaves, where x is very large, very small, or no number, against the interpreter. `run(program, weights,
/// items)` gives the states of the roots.
template <class F, class Run>
void check_extremes(const F& of, const Run& run) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> numbers{-inf,  -1e30f, -200.f,  -88.8f, -88.5f, -87.4f, -60.f, -44.4f,
                                   -20.f, -1.f,   -1e-30f, -0.f,   0.f,    1e-40f, 0.5f,  8.6f,
                                   20.f,  44.4f,  60.f,    88.5f,  200.f,  1e30f,  inf,   nan};
  Dim V{"vocabulary"}, H{"hidden", std::int64_t(numbers.size())};
  Model<Item> m("extremes", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto total = m.compute(
      "total", H, [&](auto n, auto i) { return of(Emb(word(n), i)) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  const auto program = m.recursion_op(h, total);
  NamedNumbers weights = random_weights(program.graph(), 3);
  for (auto& [name, values] : weights)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = numbers[i % numbers.size()];
  const Items items = forest(Shape::ragged, 2, 1, 5);
  const std::vector<float> right = interpreted(program, weights, items), got = run(program, weights, items);
  REQUIRE(got.size() == right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    CAPTURE(numbers[i % numbers.size()], got[i], right[i]);
    const bool same = got[i] == right[i] || (std::isnan(got[i]) && std::isnan(right[i]));
    CHECK((same || std::abs(got[i] - right[i]) <= 5e-7f * std::abs(right[i]) + 0x1p-126f));
  }
}
template <class Run>
void check_activations(const Run& run) {
  check_extremes([](auto x) { return sigmoid(x); }, run);
  check_extremes([](auto x) { return tanh(x); }, run);
  check_extremes([](auto x) { return exp(x); }, run);
}

}  // namespace

TEST_CASE("a GPU computes activations of numbers however large or small", "[cuda]") {
  check_activations([](const auto& program, const NamedNumbers& weights, const Items& items) {
    FakeCuda fake;
    const std::vector<float> got = emulated(fake, program, on_gpu(Group::block, 1), weights, items);
    CHECK(fake.problem == "");
    return got;
  });
}

TEST_CASE("the devices of this machine compute activations of numbers however large or small", "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  for (const cuda::Device& device : devices)
    check_activations([&](const auto& program, const NamedNumbers& weights, const Items& items) {
      auto model = cuda::compile(program, on_gpu(Group::block, 1), device.gpu());
      bind_all<float>(model, weights);
      cuda::Result result = model.to(device)(items.roots);
      return all_roots(result);
    });
}

TEST_CASE("a GPU runs models of doubles, with its own tanh and sigmoid", "[cuda]") {
  const auto program = models::tree_gru<Item, double>(word, kids, sizes(5, 12)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 3, 12, 5);
  CompileOptions options;
  options.target = Target::interpreter();
  auto cpu = compile(program, Schedule::standard(), options);
  bind_all<double>(cpu, weights);
  const auto right = cpu(items.roots);
  FakeCuda fake;
  auto model =
      cuda::compile(program, on_gpu(Group::cluster, 2, GpuSchedule::Weights::registers).exact_activations(), fake.gpu);
  bind_all<double>(model, weights);
  cuda::Result result = model.to(cuda::Device(fake.device()))(items.roots);
  CHECK(fake.problem == "");
  const std::vector<double> got = result.roots<double>();
  for (std::size_t r = 0; r < items.roots.size(); ++r)
    for (std::size_t i = 0; i < 12; ++i) CHECK(std::abs(got[12 * r + i] - right[r][i]) < 1e-13);
}

TEST_CASE("weights, results and tables in a device's memory give the same bits to threads with streams of their own",
          "[cuda]") {
  FakeCuda fake;
  fake.gpu.multiprocessors = 2;
  check_memory_of(cuda::Device(fake.device()), 3, 2);
  CHECK(fake.problem == "");
}

TEST_CASE("CUDA text of a TreeLSTM as blocks of a grid is the golden one", "[cuda_text]") {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(5, 16)).program;
  GpuSchedule how = on_gpu(Group::grid, 2).gpu;
  how.rows = 1;
  const auto model = cuda::compile(program, Schedule::standard().tabulate_nothing().on_gpu(how), Gpu::of(90));
  check_golden("cuda_text/tree_lstm_in_a_grid.cu", model.code().text.settings + model.code().text.kernel);
}

TEST_CASE("the devices of this machine have weights, results and tables in their memory", "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  for (const cuda::Device& device : devices) check_memory_of(device, 200, 50);
}

TEST_CASE("the devices of this machine run every model", "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  for (const cuda::Device& device : devices) {
    check_on(device, models::tree_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
    check_on(device, models::tree_lstm<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
    check_on(device, models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
    check_on(device, models::simple_tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged);
    check_on(device, models::dag_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::dag);
    check_on(device, models::mv_rnn<Item>(word, left, right, sizes(0, 17)).program, Shape::binary);
    check_on(device, models::tree_fc<Item>(word, left, right, sizes(0, 24)).program, Shape::binary);
    check_on(device, models::lstm<Item>(word, before, sizes(5, 24)).program, Shape::sequence);
    check_on(device, models::gru<Item>(word, before, sizes(5, 24)).program, Shape::sequence);
    check_on(device, models::nary_tree_lstm<Item>(word, by_position, sizes(5, 24)).program, Shape::positional, false);
  }
}

TEST_CASE("the devices of this machine serve resident models", "[cuda][device][alone]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  const auto program = models::tree_lstm<Item>(word, kids, sizes(5, 24)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  for (const cuda::Device& device : devices)
    for (const auto& [name, schedule, in_one_order] : all_ways(4)) {
      if (schedule.gpu.group == Group::cluster && !device.gpu().has_clusters()) continue;
      CAPTURE(name);
      auto model = cuda::compile(program, schedule, device.gpu());
      bind_all<float>(model, weights);
      const auto on = model.to(device);
      const auto resident = on.resident({.idle_ms = 5, .life_ms = 50});
      std::vector<std::vector<float>> served;
      const auto items_of = [](int turn) { return forest(Shape::ragged, 1 + turn % 40, 20, 5 + unsigned(turn)); };
      for (int turn = 0; turn < 200; ++turn) {
        const Items items = items_of(turn);
        cuda::Result result = resident(items.roots);
        served.push_back(all_roots(result));
        if (turn % 50 == 49) bind_all<float>(model, weights);
      }
      CHECK(resident.launches() < 150);
      resident.stop();  // the others want the whole device
      for (int turn = 0; turn < 200; ++turn) {
        const Items items = items_of(turn);
        cuda::Result launched = on(items.roots);
        REQUIRE(served[std::size_t(turn)] == all_roots(launched));
      }
    }
}
