// What passes between the host and a kernel that stays: its beginning and end, weights, memory, failures, threads.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "cortex/explain.hpp"
#include "cuda/stay.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

TEST_CASE("a resident model is launched by its first call, and serves the others without", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(!resident.is_running());
  for (int turn = 0; turn < 3; ++turn) {
    const int uploads = s.fake.uploads, downloads = s.fake.downloads;
    CHECK(s.serves(resident));
    CHECK(resident.is_running());
    if (turn) CHECK(s.fake.uploads == uploads);
    CHECK(s.fake.downloads == downloads);
  }
  CHECK(resident.launches() == 1);
  CHECK(s.fake.launches == 1);
  CHECK(s.fake.problem == "");
}

TEST_CASE("a kernel that has had no call for a while ends, and the next call launches it again", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident({.idle_ms = 10});
  CHECK(s.serves(resident));
  s.fake.pass(9);
  CHECK(resident.is_running());
  s.fake.pass(2);
  CHECK(!resident.is_running());
  CHECK(s.serves(resident));
  CHECK(resident.launches() == 2);
}

TEST_CASE("a kernel that has calls all the time ends when it has run for long", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident({.idle_ms = 10, .life_ms = 20});
  for (int turn = 0; turn < 5; ++turn) {
    CHECK(s.serves(resident));
    s.fake.pass(6);
  }
  CHECK(resident.launches() == 2);
}

TEST_CASE("a call that is posted while the kernel ends by itself is served by the next launch", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident({.life_ms = 20});
  for (int turn = 1; turn < 4; ++turn) {
    CHECK(s.serves(resident));
    CHECK(resident.launches() == std::uint64_t(turn));
    s.fake.pass(21, false);  // which the kernel sees when the next call is there already
    CHECK(resident.is_running());
  }
  CHECK(s.fake.problem == "");
}

TEST_CASE("stop ends the kernel, also twice, and a call begins it again", "[cuda]") {
  Stay s;
  s.fake.order = {Interleaving::last_first};  // the last block looks at the desk before the first has put a call there
  const ResidentFake resident = s.on->resident();
  resident.stop();
  for (int turn = 1; turn < 3; ++turn) {
    CHECK(s.serves(resident));
    resident.stop();
    resident.stop();
    CHECK(!resident.is_running());
    CHECK(resident.launches() == std::uint64_t(turn));
  }
  CHECK(s.fake.stalls() == 0);
}

TEST_CASE("the end of the last handle ends the kernel and gives everything back", "[cuda]") {
  Stay s;
  for (const bool ended : {false, true}) {
    std::optional<ResidentFake> resident = s.on->resident(), copy = resident;
    cuda::Result kept = (*resident)(s.b.items.roots);
    resident.reset();
    CHECK(copy->is_running());
    if (ended) s.fake.pass(11);
    copy.reset();
    CHECK(difference(kept.roots(), s.b.right) <= 1);
  }
  s.on.reset();
  CHECK(s.fake.alive() == 0);
  CHECK(s.fake.stalls() == 0);
}

TEST_CASE("weights that are bound are in the next call of a resident model, which launches it anew", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(s.serves(resident));
  NamedNumbers zero = s.b.weights;
  for (auto& [name, values] : zero) std::fill(values.begin(), values.end(), 0.0);
  bind_all<float>(s.model, zero);
  CHECK(s.call(resident) == std::vector<float>(s.b.right.size(), 0.0f));
  bind_all<float>(s.model, s.b.weights);
  CHECK(s.serves(resident));
  CHECK(resident.launches() == 3);
  CHECK(s.fake.stalls() == 0);
}

TEST_CASE("a call larger than all before allocates, and launches no kernel; nothing is freed under one", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  resident(s.b.items.roots[0]);
  const int allocations = s.fake.allocations;
  CHECK(s.serves(resident));
  CHECK(s.fake.allocations > allocations);
  CHECK(resident.launches() == 1);
  CHECK(s.fake.stalls() == 0);
}

TEST_CASE("calls that lie in different memory, as where results are kept, are served one like the other", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  const Items large = forest(Shape::ragged, 3, 60, 9);  // whose letters have slots of another size
  const std::vector<float> right = interpreted(s.b.program, s.b.weights, large);
  std::vector<cuda::Result> kept;
  for (int turn = 0; turn < 3; ++turn) {
    kept.push_back(resident(s.b.items.roots));
    kept.push_back(resident(large.roots));
    CHECK(s.serves(resident));
    CHECK(s.serves(resident));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(difference(kept[i].roots(), i % 2 ? right : s.b.right) <= 1);
  CHECK(resident.launches() == 1);
  CHECK(s.fake.problem == "");
}

TEST_CASE("a large call leaves no room of its size to each group of those after it", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  const Items chain = forest(Shape::sequence, 1, 3000, 9);
  const auto held = [&](const std::vector<const Item*>& roots) { return resident(roots).counters().device_bytes; };
  const std::size_t large = held(chain.roots);
  CHECK(held(s.b.items.roots) == large);
  CHECK(s.serves(resident));
  CHECK(held(chain.roots) == large);
  CHECK(s.fake.problem == "");
}

TEST_CASE("what others give back while a kernel stays is given back when it has ended", "[cuda]") {
  Stay s;
  const cuda::Device device(s.fake.device());
  std::optional<OnFake> other = s.model.to(device);
  const ResidentFake resident = s.model.to(device).resident();
  (*other)(s.b.items.roots[0]).roots();
  CHECK(s.serves(resident));
  const int alive = s.fake.alive();
  other.reset();  // its event goes at once, memory and module stay
  CHECK(s.fake.alive() == alive - 1);
  CHECK(s.fake.stalls() == 0);
  resident.stop();
  CHECK(s.fake.alive() < alive - 4);
}

TEST_CASE("where memory is short, a kernel that stays ends so that what waits for that can be given back", "[cuda]") {
  std::size_t with_all = 0, without = 0;
  const Items middle = forest(Shape::ragged, 6, 20, 9), many = forest(Shape::ragged, 12, 20, 9);
  {
    Stay s;
    const ResidentFake resident = s.on->resident();
    resident(middle.roots);
    resident(many.roots);  // not beside the first result, which would keep its memory
    with_all = s.fake.used_memory();
    resident.stop();
    without = s.fake.used_memory();
  }
  CHECK(without < with_all);

  Stay again;
  const ResidentFake tight = again.on->resident();
  tight(middle.roots);
  again.fake.memory_limit = (with_all + without) / 2;
  cuda::Result result = tight(many.roots);
  CHECK(difference(all_roots(result), interpreted(again.b.program, again.b.weights, many)) <= 1);
  CHECK(tight.launches() == 2);
  again.fake.memory_limit = without;
  const Items more = forest(Shape::ragged, 40, 40, 9);
  CHECK_THAT(error_of_call([&] { tight(more.roots); }), Contains("out_of_memory: CUDA_ERROR_OUT_OF_MEMORY"));
  again.fake.memory_limit = std::size_t(1) << 30;
  CHECK(again.serves(tight));
}

TEST_CASE("results of a resident model go to streams and to the host as those of a launch", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  cuda::Result result = resident(s.b.items.roots);
  const std::size_t count = s.b.right.size();
  const std::uint64_t out = s.fake.users_memory(0, count * sizeof(float));
  result.roots_into(reinterpret_cast<float*>(out), count, stream(3));
  s.fake.users_wait(0, stream(3));
  const auto* written = reinterpret_cast<const float*>(out);
  CHECK(difference({written, written + count}, s.b.right) <= 1);
  CHECK(difference(result.root(1), {s.b.right.begin() + 16, s.b.right.begin() + 32}) <= 1);
  const int downloads = s.fake.downloads;
  CHECK(difference(result.node(s.b.items.roots[0]), {s.b.right.begin(), s.b.right.begin() + 16}) <= 1);
  CHECK(s.fake.downloads == downloads + 1);
  CHECK(s.serves(resident));
  CHECK(s.fake.problem == "");
}

TEST_CASE("a resident call counts no launch, and is timed on request", "[cuda]") {
  const Bound b{16, 3, 6};
  FakeCuda fake;
  fake.gpu.multiprocessors = 3;
  runtime::CudaCompileOptions options;
  for (const bool timings : {false, true}) {
    options.timings = timings;
    auto model = cuda::compile(b.program, on_gpu(Group::block, 1), Gpu::of(90), options);
    bind_all<float>(model, b.weights);
    const auto resident = model.to(cuda::Device(fake.device())).resident();
    CHECK(resident(b.items.roots).counters().launches == 1);
    cuda::Result result = resident(b.items.roots);
    const cuda::Counters counters = result.counters();
    CHECK(counters.launches == 0);
    CHECK(counters.bytes_up > b.items.all.size() * 2 * sizeof(std::int32_t));
    CHECK(counters.bytes_down >= b.right.size() * sizeof(float));
    CHECK((counters.linearize_ns > 0) == timings);
    CHECK((counters.kernel_ns > 0) == timings);
    CHECK((counters.copy_ns > 0) == timings);
  }
}

TEST_CASE("threads that call a resident model are served one after the other, with the bits of launches", "[cuda]") {
  Stay s;
  constexpr int threads = 4;
  const ResidentFake resident = s.on->resident({.idle_ms = 1000});
  std::vector<std::vector<float>> right;
  for (int t = 0; t < threads; ++t) {
    cuda::Result result = (*s.on)(s.b.items.roots[std::size_t(t) % 3]);
    right.push_back(all_roots(result));
  }
  std::atomic<int> wrong = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (int turn = 0; turn < 5; ++turn) {
        if (t == 3 && turn == 2) resident.stop();
        cuda::Result result = resident(s.b.items.roots[std::size_t(t) % 3]);
        if (result.roots() != right[std::size_t(t)]) ++wrong;
      }
    });
  for (std::thread& thread : all) thread.join();
  CHECK(wrong == 0);
  CHECK(s.fake.problem == "");
}

TEST_CASE("what a resident model cannot do is refused with the reason", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK_THAT(error_of_call([&] { resident.run(s.b.items.roots, stream(1)); }),
             Contains("invalid_argument: a resident model cannot run: its kernel takes calls from the host"));
  CHECK_THAT(error_of_call([&] { resident.prepare(s.b.items.roots); }),
             Contains("invalid_argument: a resident model cannot prepare: a launch is what can be captured"));
  cuda::Result result = resident(s.b.items.roots);
  CHECK_THAT(error_of_call([&] { result.launch(stream(1)); }),
             Contains("invalid_argument: a call of a resident model is made by the kernel that stays on the device"));
  const auto refusal = [&](const cuda::ResidentOptions& options) {
    return error_of_call([&] { s.on->resident(options); });
  };
  CHECK_THAT(refusal({.groups = -1}), Contains("invalid_argument: a resident model: it has no -1 groups"));
  CHECK_THAT(refusal({.groups = 4}), Contains("4 groups are asked for, but 3 run at once on emulated GPU 0"));
  CHECK_THAT(refusal({.idle_ms = 0}), Contains("idle_ms is 0.000000, but takes from 0.001"));
  CHECK_THAT(refusal({.life_ms = 1e12}), Contains("life_ms is"));
  CHECK_THAT(refusal({.patience_ms = -1}), Contains("patience_ms is"));
  const auto debug = s.b.compile(on_gpu(Group::grid, 2), Gpu::of(90), 1000);
  CHECK_THAT(error_of_call([&] { debug.to(cuda::Device(s.fake.device())).resident(); }),
             Contains("barriers that give up are for launches; leave out CompileOptions::spin_limit"));
  CHECK(s.serves(resident));
}

TEST_CASE("a resident model leaves a multiprocessor to others, unless it is asked for all", "[cuda]") {
  Stay s;
  CHECK(s.on->most_groups() == 3);
  CHECK(s.on->resident().most_groups() == 2);
  CHECK(s.on->resident({.groups = 3}).most_groups() == 3);
  CHECK(s.on->resident({.groups = 1}).most_groups() == 1);
}

TEST_CASE("bad input to a resident model is found before it is posted, and calls go on", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  Item bad;
  bad.word = 1000000;
  CHECK_THAT(error_of_call([&] { resident(bad); }), Contains("field 'word' of node 0"));
  CHECK(resident.launches() == 0);
  CHECK(s.serves(resident));
  CHECK(!resident.try_call(bad));
  CHECK(s.serves(resident));
}

TEST_CASE("explain says what stays on the device, and for how long", "[cuda]") {
  Stay s;
  const std::string text = explain(s.on->resident({.groups = 2, .idle_ms = 2.5, .life_ms = 500}));
  CHECK_THAT(text, Contains("stays on the device from call to call, with 2 groups in 2 blocks, until "
                            "there is no call for 2.5 ms or it has run for 500 ms; the next call launches it again"));
  CHECK_THAT(text, Contains("of weights stay in each block's shared memory as long as the kernel runs: U\n"));
  CHECK_THAT(explain(s.model), !Contains("from call to call") && Contains("for the time of a call: U\n"));
}

// ---- failures ----

TEST_CASE("a kernel that stays and fails is noticed by the call that waits, and poisons the device", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(s.serves(resident));
  s.fake.launch_error = 700;
  CHECK_THAT(error_of_call([&] { s.call(resident); }),
             Contains("device_lost: the device is lost since CUDA_ERROR_ILLEGAL_ADDRESS") &&
                 Contains("in the kernel of a resident model on emulated GPU 0"));
  CHECK(!resident.is_running());
  s.fake.launch_error = 0;
  CHECK_THAT(error_of_call([&] { s.call(resident); }), Contains("device_lost") && Contains("ILLEGAL_ADDRESS"));
  CHECK_THAT(error_of_call([&] { resident.stop(); }), Contains("device_lost"));
}

TEST_CASE("a kernel that is gone without a word is launched again, and not for ever", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(s.serves(resident));
  s.fake.vanish = true;
  CHECK_THAT(error_of_call([&] { s.call(resident); }),
             Contains("unavailable: the kernel of a resident model ends without serving a call"));
  s.fake.vanish = false;
  CHECK(s.serves(resident));
}

TEST_CASE("a kernel that does not answer is not waited for for ever, and can go on", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident({.patience_ms = 200});
  CHECK(s.serves(resident));
  s.fake.deaf = true;
  const char* const silent =
      "unavailable: the kernel of a resident model has not answered for 200 ms on emulated GPU 0";
  CHECK_THAT(error_of_call([&] { s.call(resident); }), Contains(silent) && Contains("a greater patience_ms"));
  CHECK_THAT(error_of_call([&] { s.call(resident); }), Contains(silent));
  CHECK_THAT(error_of_call([&] { resident.stop(); }), Contains(silent));
  s.fake.deaf = false;
  resident.stop();
  CHECK(s.serves(resident));
  CHECK(s.fake.problem == "");
}

TEST_CASE("a kernel that stays is launched with all of its blocks or not at all", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(s.serves(resident));
  using A = jit::cuda::LaunchAttribute;
  REQUIRE(s.fake.attributes.size() == 1);
  CHECK(s.fake.attributes[0].id == A::cooperative);
  CHECK(s.fake.attributes[0].cooperative_value == 1);
  s.fake.gpu.multiprocessors = 6;
  for (const Group group : {Group::cluster, Group::grid}) {
    auto model = s.b.compile(on_gpu(group, 2));
    CHECK(s.serves(model.to(cuda::Device(s.fake.device())).resident()));
    const auto& attributes = s.fake.attributes;
    REQUIRE(attributes.size() == (group == Group::cluster ? 2 : 1));
    if (group == Group::cluster) {
      CHECK(attributes[0].id == A::cluster_dimension);
      CHECK(attributes[0].cluster[0] == 2);
    }
    CHECK(attributes.back().id == A::cooperative);
    CHECK(attributes.back().cooperative_value == 1);
  }
  CHECK(s.fake.problem == "");
}

TEST_CASE("a kernel whose block never finds room ends when it is told to", "[cuda]") {
  Stay s;
  s.fake.missing_block = 1;
  const ResidentFake resident = s.on->resident({.patience_ms = 200});
  CHECK_THAT(error_of_call([&] { s.call(resident); }), Contains("has not answered for 200 ms"));
  CHECK(resident.is_running());
  s.fake.missing_block = -1;
  s.fake.pass(100, false);  // by now it looks for an order in between
  resident.stop();
  CHECK(!resident.is_running());
  CHECK(s.serves(resident));
  CHECK(resident.launches() == 2);
  CHECK(s.fake.problem == "");
}

TEST_CASE("a kernel that never answers is left behind with what it uses, without a wait for it", "[cuda]") {
  Stay s;
  s.leave_behind(s.on->resident({.patience_ms = 5}));
  s.on.reset();
  CHECK(s.fake.stalls() == 0);
  CHECK(s.fake.alive() > 0);
}

TEST_CASE("what a kernel that was left behind uses is given back once it has ended", "[cuda]") {
  Stay s;
  s.on.reset();
  const cuda::Device device(s.fake.device());
  s.leave_behind(s.model.to(device).resident({.patience_ms = 5}));
  const int with_it = s.fake.alive();
  s.on = s.model.to(device), s.on.reset();
  CHECK(s.fake.alive() > with_it);  // the driver would wait for it
  s.fake.deaf = false;
  s.fake.pass(100);
  for (int turn = 0; turn < 2; ++turn) {
    s.on = s.model.to(device);
    cuda::Result result = (*s.on)(s.b.items.roots);
    CHECK(difference(all_roots(result), s.b.right) <= 1);
  }
  s.on.reset();
  CHECK(s.fake.stalls() == 0);
  CHECK(s.fake.alive() < with_it);
  CHECK(s.fake.problem == "");
}

TEST_CASE("a driver that gives the same error each time it is asked about a kernel is believed", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident();
  CHECK(s.serves(resident));
  s.fake.query_error = 400;
  const auto start = std::chrono::steady_clock::now();
  const std::string said = error_of_call([&] { s.call(resident); });
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));  // half of its patience
  CHECK_THAT(said, Contains("unavailable: CUDA_ERROR") && Contains("in the kernel of a resident model"));
  CHECK(error_of_call([&] { s.call(resident); }) == said);
  s.fake.query_error = 0;
  resident.stop();
  CHECK(s.serves(resident));
  CHECK(s.fake.problem == "");
}

TEST_CASE("under steady calls memory is given back before the kernel is launched again", "[cuda]") {
  Stay s;
  const cuda::Device device(s.fake.device());
  std::optional<OnFake> other = s.model.to(device);
  const ResidentFake resident = s.model.to(device).resident({.life_ms = 20});
  (*other)(s.b.items.roots[0]).roots();
  CHECK(s.serves(resident));
  other.reset();  // whose memory and module stay
  const int alive = s.fake.alive();
  s.fake.pass(21, false);
  CHECK(s.serves(resident));
  CHECK(resident.launches() == 2);
  CHECK(resident.is_running());
  CHECK(s.fake.alive() < alive - 4);
  CHECK(s.fake.stalls() == 0);
}

TEST_CASE("what lives longer than the driver touches nothing that came of it", "[cuda]") {
  Stay s;
  {
    const cuda::Device device(s.fake.device());
    std::optional<OnFake> other = s.model.to(device);
    const ResidentFake resident = s.model.to(device).resident();
    cuda::Result result = resident(s.b.items.roots);
    cuda::Result launched = s.on->run(s.b.items.roots, stream(1));
    s.fake.end_driver();
    other.reset();  // while the kernel is not known to have ended
  }
  s.on.reset();
  CHECK(s.fake.problem == "");
}

namespace {

/// All that a user does with a resident model; each piece is seen to be right.
void use(Stay& s, const OnFake& on) {
  const ResidentFake resident = on.resident();
  cuda::Result one = resident(s.b.items.roots[0]);
  const std::vector<float> row = one.roots();
  CHECK(difference(row, {s.b.right.begin(), s.b.right.begin() + 16}) <= 1);
  const bool right = s.serves(resident);  // outside of a check, which counts an error as a failure
  CHECK(right);
  bind_all<float>(s.model, s.b.weights);
  cuda::Result result = resident(s.b.items.roots);
  const std::vector<float> read = result.node(s.b.items.roots[1]);
  CHECK(difference(read, {s.b.right.begin() + 16, s.b.right.begin() + 32}) <= 1);
  resident.stop();
}

/// Lets each call of the driver fail in turn, and the use that it is in; how many have.
template <class Then>
int fail_each(Stay& s, int error, Code code, const Then& then) {
  s.on.reset();
  int failures = 0;
  for (int after = 0;; ++after) {
    INFO("call " << after << " of the driver");
    {
      const cuda::Device device(s.fake.device());
      std::optional<OnFake> on;
      s.fake.fail(after, error);
      try {
        on.emplace(s.model.to(device));
        use(s, *on);
      } catch (const Error& e) {
        CHECK(e.code == code);
        ++failures;
      }
      INFO("of " << s.fake.failed());
      if (s.fake.failed().empty()) return failures;
      then(device, on);
    }
    CHECK(s.fake.stalls() == 0);
    CHECK(s.fake.alive() == 0);
    CHECK(s.fake.problem == "");
    s.fake.recover();
  }
}

}  // namespace

TEST_CASE("out of memory at any call of the driver leaves a resident model as it was", "[cuda]") {
  Stay s;
  const int failures =
      fail_each(s, jit::cuda::out_of_memory, Code::out_of_memory, [&](const cuda::Device& device, auto& on) {
        s.fake.recover();
        if (!on) on.emplace(s.model.to(device));
        use(s, *on);
      });
  CHECK(failures > 40);
}

TEST_CASE("a sticky error at any call of the driver loses a resident model's device, and leaves nothing", "[cuda]") {
  Stay s;
  const int failures = fail_each(s, 700, Code::device_lost, [&](const cuda::Device& device, auto& on) {
    CHECK_THAT(error_of_call([&] { on ? use(s, *on) : (void)s.model.to(device); }), Contains("device_lost"));
  });
  CHECK(failures > 40);
}
