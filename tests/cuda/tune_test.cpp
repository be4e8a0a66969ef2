// The tuner of models for GPUs, on a driver without a GPU: what is tried, in which order, and what counts.
#include "cortex/tune/cuda.hpp"
#include "cuda/bound.hpp"
#include "tune/told_timer.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using tuning::Outcome;

namespace {

/// A choice of how a GPU shares the work.
template <class Change>
auto deciding(Change change) {
  return [change](const Schedule& s) {
    GpuSchedule how = s.gpu;
    change(how);
    return s.on_gpu(how);
  };
}
constexpr auto cluster_of_two = [](GpuSchedule& how) { how.group = Group::cluster, how.blocks = 2; };

tuning::Axis groups() { return tuning::Axis("group").add("cluster of 2", deciding(cluster_of_two)); }
tuning::Axis parts_of(std::vector<int> numbers) {
  tuning::Axis axis("parts");
  for (const int n : numbers) axis.add(std::to_string(n), deciding([n](GpuSchedule& how) { how.parts = n; }));
  return axis;
}

/// The TreeRNN, tuned in the emulation of a GPU from one small block a group on.
struct TunedOnFake {
  Bound b;
  FakeCuda fake;
  std::vector<std::vector<const Item*>> batches{{b.items.roots.begin(), b.items.roots.end()}, {b.items.roots[0]}};
  cuda::CompileOptions compiled;
  ToldTimer timer{[](const Schedule& s) { return s.gpu.group == Group::cluster ? 0.5 : 1.0; }};
  TuneOptions options = options_for(timer, {});

  explicit TunedOnFake(tuning::Axis axis, std::int64_t input = 5) : b(input, 5, 12) {
    options.start = on_gpu(Group::block, 1);
    options.space = tuning::Space().add(std::move(axis));
  }
  Tuned operator()() {
    const auto bind = [&](auto& model) { bind_all<float>(model, b.weights); };
    return cuda::tune(b.program, batches, bind, cuda::Device(fake.device()), options, compiled);
  }
};

}  // namespace

TEST_CASE("the schedule that is faster on a device is found", "[cuda][tune]") {
  TunedOnFake tune(groups());
  tune.options.space->add(tuning::Axis("groups").add("one", [](const Schedule& s) { return s.groups(1); }));
  const Tuned tuned = tune();
  CHECK(tune.fake.problem == "");
  CHECK(tuned.space_size == 4);
  for (const tuning::Record& record : tuned.candidates) CHECK(record.why == "");
  CHECK(tuned.faster);
  CHECK(tuned.schedule == on_gpu(Group::cluster, 2));
  CHECK_THAT(to_string(tuned), Contains("4 of 4 schedules tried, 0 refused"));
  CHECK_THAT(to_string(tuned), Contains("          -  dynamic_batch()"));  // nothing is predicted
  CHECK_THAT(tuned.key.machine,
             Contains("emulated GPU 0, compute capability 9.0, 132 multiprocessors, driver of CUDA 13.0"));
  auto model = tune.b.compile(tuned.schedule);
  cuda::Result result = model.to(cuda::Device(tune.fake.device()))(tune.b.items.roots);
  CHECK(difference(all_roots(result), tune.b.right) <= 1);
}

TEST_CASE("a candidate that a device computes wrongly does not count", "[cuda][tune]") {
  const auto outcome = [](tuning::Axis axis, const std::string& only_where) {
    TunedOnFake tune(std::move(axis));
    tune.fake.change = [&](std::string text) {
      if (occurrences(text, kernel, only_where) == 0) return text;
      for (std::size_t at = text.find(kernel); (at = text.find("fma_(", at)) != std::string::npos; at += 5)
        text.insert(at + 5, "1.001f * ");
      return text;
    };
    const Tuned tuned = tune();
    CHECK(tuned.schedule == on_gpu(Group::block, 1));
    CHECK(tuned.candidates.at(1).outcome == Outcome::wrong);
    return tuned.candidates.at(1).why;
  };
  CHECK(outcome(groups(), "sync_cluster();") == "batch 0: its results are not those of the default, bit by bit");
  CHECK_THAT(outcome(parts_of({4}), "mod_(thread, 4)"), Contains("batch 0: state 'h': element "));
}

TEST_CASE("a candidate whose threads share sums is held against the equations", "[cuda][tune]") {
  TunedOnFake tune(parts_of({4}));
  tune.timer = ToldTimer([](const Schedule& s) { return s.gpu.parts == 4 ? 0.5 : 1.0; });
  CHECK(tune().schedule.gpu.parts == 4);
}

TEST_CASE("on tensor cores threads share sums as in the default", "[cuda][tune]") {
  TunedOnFake tune(groups(), 64);
  tune.options.space->add(parts_of({1}));
  GpuSchedule how = tune.options.start->gpu;
  how.tensor_cores = GpuSchedule::TensorCores::bf16, how.parts = 0;
  tune.options.start = tune.options.start->on_gpu(how);
  const Tuned tuned = tune();
  CHECK(tuned.start.gpu.parts == 2);
  REQUIRE(tuned.candidates.size() == 4);
  int refused = 0;
  for (const tuning::Record& record : tuned.candidates)
    if (record.outcome == Outcome::refused) {
      ++refused;
      CHECK_THAT(record.why, Contains("leave GpuSchedule::parts and tensor_cores as the default has them"));
    }
  CHECK(refused == 2);
  CHECK(tuned.schedule.gpu.group == Group::cluster);
  const tuning::Space space = tuning::gpu_space(tune.b.program.graph(), Gpu::of(90), tuned.start);
  CHECK_THAT(space.text(), !Contains("parts:") && !Contains("tables") && !Contains("in registers"));
}

TEST_CASE("what a device refuses is noted, and one that is lost ends the search", "[cuda][tune]") {
  TunedOnFake tune(groups());
  tune.options.space->add(tuning::Axis("grid").add(
      "too large", deciding([](GpuSchedule& how) { how.group = Group::grid, how.blocks = 1000; })));
  const Tuned tuned = tune();
  REQUIRE(tuned.candidates.size() == 3);
  CHECK(tuned.candidates[1].outcome == Outcome::refused);
  CHECK_THAT(tuned.candidates[1].why, Contains("a grid of 1000 blocks"));
  CHECK(tuned.candidates[2].outcome == Outcome::measured);

  TunedOnFake lost(groups());
  lost.fake.change = [&](const std::string& text) {
    if (occurrences(text, kernel, "sync_cluster();")) lost.fake.launch_error = 700;
    return text;
  };
  const Folder folder;
  lost.options.log = folder / "log";
  CHECK_THAT(error_of_call([&] { lost(); }), Contains("device_lost"));

  // What a device was lost with is not tried again.
  TunedOnFake again(groups());
  again.options.log = lost.options.log;
  const Tuned rest = again();
  CHECK(rest.candidates.at(1).from_log);
  CHECK(rest.candidates[1].outcome == Outcome::wrong);
  CHECK_THAT(rest.candidates[1].why, Contains("emulated GPU 0"));
}

TEST_CASE("a candidate that a device is lost with in the final rounds is not tried again", "[cuda][tune]") {
  const Folder folder;
  const auto search = [&] {
    TunedOnFake tune(groups());
    tune.options.log = folder / "log";
    bool decides = false;
    tune.options.progress = [&](const tuning::Progress& p) { decides = p.done == p.total; };
    tune.timer = ToldTimer([&](const Schedule& s) {
      const bool cluster = s.gpu.group == Group::cluster;
      if (cluster && decides) tune.fake.launch_error = 700;
      return cluster ? 0.5 : 1.0;
    });
    return tune();
  };
  CHECK_THAT(error_of_call([&] { search(); }), Contains("device_lost"));
  const Tuned again = search();
  CHECK(again.candidates.at(1).from_log);
  CHECK(again.candidates[1].outcome == Outcome::wrong);
  CHECK_FALSE(again.faster);
}

TEST_CASE("where memory holds no more finalists at a time, no others are compiled for it", "[cuda][tune]") {
  std::size_t most = 0;  // bytes that the default and a candidate take
  const auto compiled_at_the_end = [&](bool limited) {
    tuning::Axis threads("threads");
    for (const int n : {64, 128, 256})
      threads.add(std::to_string(n), deciding([n](GpuSchedule& how) { how.threads = n; }));
    TunedOnFake tune(std::move(threads), 256);
    tune.options.space->add(tuning::Axis("rows").add("2", deciding([](GpuSchedule& how) { how.rows = 2; })));
    if (limited) tune.fake.memory_limit = most;
    int before = 0;
    tune.options.progress = [&](const tuning::Progress& p) {
      before = tune.fake.compilations;
      if (!limited && p.done < p.total) most = std::max(most, tune.fake.used_memory());
    };
    tune.timer = ToldTimer([&](const Schedule& s) {
      if (!limited && before < 8) most = std::max(most, tune.fake.used_memory());
      return s == tune.options.start ? 1.0 : 0.5 + s.gpu.threads / 10000.0 + s.gpu.rows / 100.0;
    });
    CHECK(tune().faster);
    return tune.fake.compilations - before;
  };
  CHECK(compiled_at_the_end(false) == 3);
  CHECK(compiled_at_the_end(true) == 3);  // of seven
}

TEST_CASE("schedules that differ in how large tables may be are two", "[cuda][tune]") {
  TunedOnFake tune(tuning::Axis("tables").numbers({1, 64}, &Schedule::tabulate), 16);
  for (const tuning::Record& record : tune().candidates) CHECK(record.outcome == Outcome::measured);
}

TEST_CASE("what the compiler makes the same code of as of another schedule is not tried", "[cuda][tune]") {
  TunedOnFake tune(groups());
  tune.options.space->add(
      tuning::Axis("barrier").add("counter", deciding([](GpuSchedule& how) { how.lock_based = true; })));
  tune.options.most_candidates = 2;  // those that are refused do not count
  const Tuned tuned = tune();
  REQUIRE(tuned.candidates.size() == 3);
  CHECK(tuned.candidates[1].outcome == Outcome::refused);
  CHECK_THAT(tuned.candidates[1].why, Contains("the compiler makes the same of it as of:\n" + to_string(tuned.start)));
  CHECK(tuned.candidates[2].outcome == Outcome::measured);
  CHECK(tune.fake.compilations == 3);  // the default, the cluster, and the cluster for the final rounds
}

TEST_CASE("inputs are told apart by their equal subtrees where a schedule looks for these", "[cuda][tune]") {
  const auto shapes = [](const tuning::Axis& axis, int last_word) {
    TunedOnFake tune(axis);
    std::vector<Item> items(3);
    items[0].word = items[2].word = 0, items[1].word = last_word;
    items[2].kids = {&items[0], &items[1]};
    tune.batches = {{&items[2]}};
    std::stop_source stop;
    stop.request_stop();
    tune.options.stop = stop.get_token();
    return tune().key.shapes;
  };
  const auto sharing =
      tuning::Axis("recursion").add("equal subtrees once", [](const Schedule& s) { return s.share_subtrees(); });
  CHECK(shapes(sharing, 0) != shapes(sharing, 1));
  CHECK(shapes(groups(), 0) == shapes(groups(), 1));
}

TEST_CASE("weights bound from a device's memory are refused before anything is tried", "[cuda][tune]") {
  TunedOnFake tune(groups(), 16);
  const cuda::Device device(tune.fake.device());
  const auto& values = tune.b.weights.at("Emb");
  const std::uint64_t at = tune.fake.users_values(0, std::vector<float>(values.begin(), values.end()));
  const auto bind = [&](auto& model) {
    bind_all<float>(model, tune.b.weights);
    model.to(device).bind_device("Emb", at, {vocabulary, 16});
  };
  CHECK_THAT(error_of_call([&] { cuda::tune(tune.b.program, tune.batches, bind, device, tune.options); }),
             Contains("invalid_weights: tune: a weight is bound from a device's memory"));
  tune.fake.give_back_users(at);
}

TEST_CASE("what is wrong with a batch is found before anything is compiled for a device", "[cuda][tune]") {
  TunedOnFake tune(groups());
  tune.batches[1].push_back(nullptr);
  CHECK_THAT(error_of_call([&] { tune(); }), Contains("invalid_structure: tune: batch 1: root 1 is null"));
  tune.batches[1].clear();
  CHECK_THAT(error_of_call([&] { tune(); }), Contains("invalid_argument: tune: batch 1 has no roots"));
  tune.batches.clear();
  CHECK_THAT(error_of_call([&] { tune(); }), Contains("there are no batches"));
  CHECK(tune.fake.compilations == 0);
}

TEST_CASE("a cached result is of one kind of device", "[cuda][tune]") {
  const Folder folder;
  TunedOnFake tune(groups());
  tune.options.cache = folder / "cache";
  CHECK(tune().ended == tuning::Ended::all_tried);
  const int compilations = tune.fake.compilations;
  const Tuned again = tune();
  CHECK(again.ended == tuning::Ended::from_cache);
  CHECK(again.schedule == on_gpu(Group::cluster, 2));
  CHECK(tune.fake.compilations == compilations);
  tune.compiled.spin_limit = 1000;  // another kernel
  CHECK(tune().ended == tuning::Ended::all_tried);
  tune.fake.gpu.multiprocessors = 12;
  CHECK(tune().ended == tuning::Ended::all_tried);
}

TEST_CASE("a model over an arena is tuned on a device", "[cuda][tune]") {
  struct Entry {
    int value = -1, left = -1, right = -1;
  };
  Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Entry> m("sums", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(field<&Entry::value>(n), i); });
  auto rec =
      m.compute("rec", H, [&](auto n, auto i) { return h(child<&Entry::left>(n), i) + h(child<&Entry::right>(n), i); });
  const auto program = m.recursion_op(h, m.if_then_else([](auto n) { return is_leaf(n); }, leaf, rec));
  const std::vector<Entry> entries{{0}, {1}, {-1, 0, 1}};
  const std::vector<std::tuple<Arena<Entry>, std::vector<int>>> batches{{arena(entries), {2}}};
  FakeCuda fake;
  ToldTimer timer([](const Schedule& s) { return s.gpu.group == Group::cluster ? 0.5 : 1.0; });
  TuneOptions options = options_for(timer, {});
  options.start = on_gpu(Group::block, 1);
  options.space = tuning::Space().add(groups());
  const Tuned tuned = cuda::tune(
      program, batches, [](auto& model) { model.bind("Emb", std::vector<float>(8, 0.5f)); },
      cuda::Device(fake.device()), options);
  CHECK(tuned.schedule.gpu.group == Group::cluster);
}

TEST_CASE("what a tuner varies for a GPU can be compiled", "[cuda][tune]") {
  const auto program = models::tree_rnn<Item>(word, kids, {.vocabulary = 10, .input = 64, .hidden = 64}).program;
  for (const int sm : {75, 90}) {
    const Gpu gpu = Gpu::of(sm);
    const tuning::Space space = tuning::gpu_space(program.graph(), gpu);
    INFO(space.text());
    CHECK((space.text().find("cluster of 8") != std::string::npos) == gpu.has_clusters());
    CHECK_THAT(space.text(), Contains("grid of 16") && Contains("grid of " + std::to_string(gpu.multiprocessors)));
    for (const tuning::Axis& axis : space.axes())
      for (const tuning::Choice& choice : axis.choices())
        CHECK_NOTHROW(cuda::compile(program, choice.apply(Schedule::standard()), gpu));
  }
}
