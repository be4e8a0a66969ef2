// What becomes of a call, of its memory and of its device when the driver fails; contexts; what a capture forbids.
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using OnFake = decltype(std::declval<Compiled>().to(std::declval<cuda::Device>()));

/// All that a user does with a model on a device; each piece is seen to be right.
struct Use {
  Bound b{16, 2, 4};
  FakeCuda fake;
  Compiled model = b.compile(on_gpu(Group::grid, 2));
  std::vector<float> table{b.weights.at("Emb").begin(), b.weights.at("Emb").end()};
  std::uint64_t there = fake.users_values(0, table), out = fake.users_memory(0, 8 * 16 * sizeof(float));

  void run(const OnFake& on) {
    on.bind_device("Emb", there, {vocabulary, 16}, {.in_place = true});
    call(on, {b.items.roots[0]});
    call(on, b.items.roots);  // the workspace grows
  }
  void call(const OnFake& on, const std::vector<const Item*>& roots) {
    cuda::Result result = on.run(roots, stream(1));
    const std::size_t count = roots.size() * 16;
    result.roots_into(reinterpret_cast<float*>(out), count, stream(2));
    result.launch(stream(3));
    const std::vector<float> right(b.right.begin(), b.right.begin() + std::ptrdiff_t(count));
    const std::vector<float> read = all_roots(result);  // outside of a check, which counts an error as a failure
    const auto* written = reinterpret_cast<const float*>(out);
    CHECK(difference(read, right) <= 1);
    CHECK(difference({written, written + count}, right) <= 1);
  }
  /// Everything that is left is the user's own.
  void check_nothing_left() {
    model.bind("Emb", table);  // in the place of the device's
    CHECK(fake.alive() == 0);
    CHECK(fake.problem == "");
  }
};

}  // namespace

TEST_CASE("out of memory at any call of the driver loses nothing, and the next call works", "[cuda]") {
  Use use;
  int failures = 0;
  for (int after = 0;; ++after) {
    INFO("call " << after << " of the driver");
    {
      std::optional<OnFake> on;
      const cuda::Device device(use.fake.device());
      use.fake.fail(after, jit::cuda::out_of_memory);
      try {
        on.emplace(use.model.to(device));
        use.run(*on);
      } catch (const Error& error) {
        CHECK(error.code == Code::out_of_memory);
        ++failures;
      }
      INFO("of " << use.fake.failed());
      if (use.fake.failed().empty()) break;
      use.fake.recover();
      if (!on) on.emplace(use.model.to(device));
      use.run(*on);  // the small call first: it finds what the failed one has left under way
    }
    use.check_nothing_left();
  }
  CHECK(failures > 40);
}

TEST_CASE("a sticky error at any call of the driver poisons the device, and leaves nothing", "[cuda]") {
  Use use;
  int failures = 0;
  for (int after = 0;; ++after) {
    INFO("call " << after << " of the driver");
    {
      std::optional<OnFake> on;
      const cuda::Device device(use.fake.device());
      use.fake.fail(after, 700);
      try {
        on.emplace(use.model.to(device));
        use.run(*on);
      } catch (const Error& error) {
        CHECK(error.code == Code::device_lost);
        ++failures;
      }
      if (use.fake.failed().empty()) break;
      CHECK_THAT(error_of_call([&] { on ? use.run(*on) : (void)use.model.to(device); }),
                 Contains("device_lost: the device is lost since CUDA_ERROR_ILLEGAL_ADDRESS") &&
                     Contains("on emulated GPU 0") && Contains("make a new context"));
    }
    use.check_nothing_left();
    use.fake.recover();
    if (after % 8 == 0) use.run(use.model.to(cuda::Device(use.fake.device())));
  }
  CHECK(failures > 40);
}

TEST_CASE("a device that is lost takes no other with it", "[cuda]") {
  Use use;
  use.fake.devices = 2;
  const OnFake first = use.model.to(cuda::Device(use.fake.device(0)));
  const OnFake second = use.model.to(cuda::Device(use.fake.device(1)));
  use.fake.launch_error = 700;
  CHECK_THAT(error_of_call([&] { first(use.b.items.roots); }), Contains("device_lost") && Contains("emulated GPU 0"));
  use.fake.launch_error = 0;
  cuda::Result result = second(use.b.items.roots);
  CHECK(difference(all_roots(result), use.b.right) <= 1);
}

TEST_CASE("running out of a device's memory loses nothing", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  on(b.items.roots[0]);
  fake.memory_limit = 40000;
  const Items many = forest(Shape::ragged, 60, 40, 9);
  CHECK_THAT(error_of_call([&] { on(many.roots); }),
             Contains("out_of_memory: CUDA_ERROR_OUT_OF_MEMORY") && Contains("call with fewer roots"));
  fake.memory_limit = std::size_t(1) << 30;
  cuda::Result result = on(b.items.roots);
  CHECK(difference(all_roots(result), b.right) <= 1);
}

TEST_CASE("what a call had grown to before memory ran out is given back", "[cuda]") {
  const Bound b;
  const Items many = forest(Shape::ragged, 60, 40, 9);
  const auto check = [&](const auto& callable_of) {
    FakeCuda fake;
    const auto model = b.compile(on_gpu(Group::block, 1));
    const auto callable = callable_of(model.to(cuda::Device(fake.device())));
    callable(b.items.roots[0]);
    const std::size_t before = fake.used_memory();
    int refused = 0;
    for (fake.memory_limit = before;; fake.memory_limit += 90000) {
      INFO("with room for " << fake.memory_limit << " bytes");
      if (error_of_call([&] { callable(many.roots); }) == "no error") break;
      ++refused;
      CHECK(fake.used_memory() <= before);
      CHECK(error_of_call([&] { callable(b.items.roots[0]); }) == "no error");
    }
    CHECK(refused > 1);
  };
  check([](const auto& on) { return on; });
  check([](const auto& on) { return on.resident(); });
}

TEST_CASE("too little memory is said to be the device's or the host's", "[cuda]") {
  Use use;
  for (const auto& [function, whose] :
       {std::pair("cuMemAlloc", "free memory of the device"), std::pair("cuMemHostAlloc", "free memory of the host")}) {
    std::string said;
    use.fake.fail(0, 0);
    for (int after = 0; use.fake.failed() != function; ++after) {
      const OnFake on = use.model.to(cuda::Device(use.fake.device()));
      use.fake.fail(after, jit::cuda::out_of_memory);
      said = error_of_call([&] { on(use.b.items.roots); });
    }
    CHECK_THAT(said, Contains(function) && Contains(whose));
    use.fake.recover();
  }
}

TEST_CASE("an error of a kernel poisons its device, which says so from then on", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  fake.launch_error = 700;
  CHECK_THAT(error_of_call([&] { on(b.items.roots); }),
             Contains("device_lost: the device is lost since CUDA_ERROR_ILLEGAL_ADDRESS"));
  fake.launch_error = 0;
  CHECK_THAT(error_of_call([&] { on(b.items.roots); }), Contains("device_lost") && Contains("ILLEGAL_ADDRESS"));
}

TEST_CASE("a launch that fails leaves no transfer behind that would meet the next call", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  on(b.items.roots);
  for (int after = 0; fake.failed() != "cuLaunchKernelEx"; ++after) {
    fake.fail(after, jit::cuda::out_of_memory);
    error_of_call([&] { on.run(b.items.roots, stream(1)); });
  }
  const std::vector<const Item*> others(b.items.roots.rbegin(), b.items.roots.rend());
  cuda::Result result = on.run(others, stream(2));
  fake.users_wait(0, stream(1));
  CHECK(difference(result.root(4), {b.right.begin(), b.right.begin() + 16}) <= 1);
  CHECK(fake.problem == "");
}

TEST_CASE("the caller's context is current again after each call", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto driver = FakeCuda::driver();
  driver->CtxPushCurrent(stream(5));
  auto model = b.compile();
  const auto device = runtime::cuda_device_of(driver, stream(77), FakeCuda::nvrtc());
  CHECK(FakeCuda::current_context() == stream(5));
  cuda::Result result = model.to(cuda::Device(device))(b.items.roots);
  result.roots();
  fake.fail(0, jit::cuda::out_of_memory);
  CHECK(error_of_call([&] { result.roots_into(256, 1000, nullptr); }) != "no error");
  CHECK(FakeCuda::current_context() == stream(5));
  void* old = nullptr;
  driver->CtxPopCurrent(&old);
}

TEST_CASE("what is no context is refused", "[cuda]") {
  FakeCuda fake;
  CHECK_THAT(error_of_call([] { runtime::cuda_device_of(FakeCuda::driver(), nullptr); }),
             Contains("invalid_argument: what is given as a context of CUDA is none"));
}

TEST_CASE("memory of another context is refused", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto device = runtime::cuda_device_of(FakeCuda::driver(), stream(77), FakeCuda::nvrtc());
  cuda::Result result = model.to(cuda::Device(device))(b.items.roots);
  const std::uint64_t out = fake.users_memory(0, 1000);
  CHECK_THAT(error_of_call([&] { result.roots_into(out, 1000, nullptr); }),
             Contains("was given memory of another context of emulated GPU 0"));
}

// ---- captures ----

TEST_CASE("a prepared call and the writing of its results are captured and replayed", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  runtime::CudaCompileOptions options;
  for (const bool timings : {false, true}) {
    options.timings = timings;
    auto model = cuda::compile(b.program, on_gpu(Group::grid, 2), Gpu::of(90), options);
    bind_all<float>(model, b.weights);
    cuda::Result call = model.to(cuda::Device(fake.device())).prepare(b.items.roots);
    const std::uint64_t out = fake.users_memory(0, b.right.size() * sizeof(float));
    fake.begin_capture(stream(1));
    call.launch(stream(1));
    call.roots_into(reinterpret_cast<float*>(out), b.right.size(), stream(1));
    fake.end_capture();
    CHECK(fake.forbidden() == "");
    for (int turn = 0; turn < 2; ++turn) {
      fake.replay();
      const auto* written = reinterpret_cast<const float*>(out);
      CHECK(difference({written, written + b.right.size()}, b.right) <= 1);
      std::fill(reinterpret_cast<float*>(out), reinterpret_cast<float*>(out) + b.right.size(), 0.0f);
    }
    CHECK(call.counters().kernel_ns == 0);
    CHECK(difference(all_roots(call), b.right) <= 1);
    CHECK(fake.problem == "");
  }
}

TEST_CASE("a call that is not prepared is refused on a stream that is captured", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  on(b.items.roots);
  fake.begin_capture(stream(1));
  CHECK_THAT(error_of_call([&] { on.run(b.items.roots, stream(1)); }),
             Contains("invalid_argument: a call on a stream that is being captured") && Contains("prepare the call"));
  fake.end_capture();
  CHECK(fake.forbidden() == "");
}

TEST_CASE("a captured stream waits for no call outside of its graph, and weights are not copied on it", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  auto on = model.to(cuda::Device(fake.device()));
  const std::uint64_t there = fake.users_memory(0, vocabulary * 5 * sizeof(float));
  cuda::Result call = on.run(b.items.roots, stream(2));
  fake.begin_capture(stream(1));
  CHECK_THAT(error_of_call([&] { call.let_wait(stream(1)); }),
             Contains("invalid_argument: a stream that is being captured cannot wait for a call outside"));
  CHECK_THAT(error_of_call([&] {
               on.bind_device("Emb", there, {vocabulary, 5}, {.stream = stream(1)});
             }),
             Contains("invalid_weights") && Contains("'Emb'") && Contains("on a stream that is being captured"));
  fake.end_capture();
  CHECK(fake.forbidden() == "");
  call.let_wait(stream(1));
  CHECK(difference(all_roots(call), b.right) <= 1);
}

TEST_CASE("nothing is recorded in a capture, and what is recorded behind a graph's launch is waited for", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto model = b.compile();
  cuda::Result call = model.to(cuda::Device(fake.device())).prepare(b.items.roots);
  fake.begin_capture(stream(1));
  call.launch(stream(1));
  CHECK_THAT(error_of_call([&] { call.record(stream(1)); }),
             Contains("invalid_argument: a stream that is being captured does nothing yet"));
  fake.end_capture();
  fake.enqueue_users(0, stream(2), [&] { fake.replay(); });
  call.record(stream(2));
  CHECK(!call.ready());
  CHECK(difference(all_roots(call), b.right) <= 1);
}
