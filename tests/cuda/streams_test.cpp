// Streams of users and of the library's own: what is on which, in what order, and what becomes of it while others
// capture theirs.
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using OnFake = decltype(std::declval<Compiled>().to(std::declval<cuda::Device>()));

/// A model on a device of few multiprocessors.
struct Streams {
  Bound b{16, 5, 12};
  FakeCuda fake;
  Compiled model;
  OnFake on;

  explicit Streams(const Schedule& schedule = on_gpu(Group::block, 1), std::int64_t spin_limit = 0)
      : model((fake.gpu.multiprocessors = 3, b.compile(schedule, fake.gpu, spin_limit))),
        on(model.to(cuda::Device(fake.device()))) {}

  bool is_right(cuda::Result& result) { return difference(all_roots(result), b.right) <= 1; }
};

/// Does `work` on another thread, and waits for that.
template <class Work>
void elsewhere(const Work& work) {
  std::thread(work).join();
}

}  // namespace

// ---- whose streams ----

TEST_CASE("results come to the host when the stream of their call has been destroyed", "[cuda]") {
  Streams s;
  cuda::Result result = s.on.run(s.b.items.roots, stream(1));
  result.wait();
  s.fake.destroy_users(0, stream(1));
  CHECK(s.is_right(result));
  CHECK(result.root(1).size() == 16);
}

TEST_CASE("a resident call copies results on no stream of a call before it", "[cuda]") {
  Streams s;
  s.on.run(s.b.items.roots, stream(1)).wait();
  s.fake.destroy_users(0, stream(1));
  const auto resident = s.on.resident();
  cuda::Result result = resident(s.b.items.roots);
  const std::vector<float> row = result.node(s.b.items.roots[0]);
  CHECK(difference(row, {s.b.right.begin(), s.b.right.begin() + 16}) <= 1);
}

TEST_CASE("a stream that has been destroyed is an error of the call, and the device works on", "[cuda]") {
  Streams s;
  s.fake.destroy_users(0, stream(1));
  CHECK_THAT(error_of_call([&] { s.on.run(s.b.items.roots, stream(1)); }),
             Contains("unavailable: CUDA_ERROR") && Contains("it is a stream that has been destroyed"));
  cuda::Result result = s.on.run(s.b.items.roots, stream(2));
  CHECK_THAT(error_of_call([&] { result.let_wait(stream(1)); }), Contains("unavailable"));
  CHECK(s.is_right(result));
}

TEST_CASE("a context that is destroyed is lost, and so is one that answers nothing but an unknown error", "[cuda]") {
  for (const int error : {709, 999}) {
    Streams s;
    s.fake.lose(0, error);
    CHECK_THAT(error_of_call([&] { s.on(s.b.items.roots); }), Contains("device_lost: the device is lost since"));
    s.fake.recover();
    CHECK_THAT(error_of_call([&] { s.on(s.b.items.roots); }), Contains("device_lost"));
  }
}

TEST_CASE("an unknown error that comes once is an error of the call", "[cuda]") {
  Streams s;
  s.fake.fail(0, 999);
  CHECK_THAT(error_of_call([&] { s.on(s.b.items.roots); }), Contains("unavailable: CUDA_ERROR"));
  cuda::Result result = s.on(s.b.items.roots);
  CHECK(s.is_right(result));
}

TEST_CASE("a call that names no stream stands behind what the default stream has been given", "[cuda]") {
  Streams s;
  std::vector<float> seen(16);
  {
    cuda::Result result = s.on(s.b.items.roots);
    s.fake.enqueue_users(0, nullptr, [&, at = result.device_pointer(0)] {
      std::memcpy(seen.data(), reinterpret_cast<const void*>(at), seen.size() * sizeof(float));
    });
  }
  const std::vector<const Item*> others(s.b.items.roots.rbegin(), s.b.items.roots.rend());
  s.on(others);  // takes the same memory
  CHECK(difference(seen, {s.b.right.begin(), s.b.right.begin() + 16}) <= 1);
}

TEST_CASE("the stream that each thread has as its own is not one stream", "[cuda]") {
  Streams s;
  cuda::Stream const own = FakeStreams::per_thread();
  const std::uint64_t out = s.fake.users_memory(0, s.b.right.size() * sizeof(float));
  cuda::Result result = s.on.run(s.b.items.roots, own);
  elsewhere([&] {
    result.roots_into(reinterpret_cast<float*>(out), s.b.right.size(), own);
    s.fake.users_wait(0, own);
  });
  const auto* written = reinterpret_cast<const float*>(out);
  CHECK(difference({written, written + s.b.right.size()}, s.b.right) <= 1);
  CHECK(s.fake.problem == "");
}

TEST_CASE("a stream that has the handle of an older one waits for what was on that", "[cuda]") {
  Streams s;
  cuda::Result result = s.on.run(s.b.items.roots, stream(1));
  const int waits = s.fake.stream_waits;
  result.let_wait(stream(1));
  CHECK(s.fake.stream_waits == waits + 1);
}

// ---- captures of others ----

namespace {

/// All that a model does on a device, on another thread than the one that captures; what is wrong with it.
std::string use(Streams& s, const std::vector<float>& table) {
  std::atomic<bool> right = true;
  const std::string error = error_of_call([&] {
    const auto again = s.model.to(cuda::Device(s.fake.device()));
    const std::uint64_t there = s.fake.users_values(0, table);
    again.bind_device("Emb", there, {vocabulary, 16}, {.stream = stream(3)});
    cuda::Result first = again(s.b.items.roots[0]);  // weights are brought, tables made, memory is taken
    cuda::Result all = again.run(s.b.items.roots, stream(2));
    while (!all.ready()) s.fake.users_wait(0, stream(2));
    right = right && s.is_right(all);
    right = right && first.root(0) == all.root(0);
    bind_all<float>(s.model, s.b.weights);
    if (s.model.code().spin_limit == 0) {
      const auto resident = again.resident();
      cuda::Result served = resident(s.b.items.roots);
      right = right && s.is_right(served);
      resident.stop();
    }
  });  // and everything is given back
  return right ? error : "wrong";
}

}  // namespace

TEST_CASE("what a model does while another thread captures neither fails nor spoils the capture", "[cuda]") {
  const Schedule schedules[] = {on_gpu(Group::block, 1).tabulate(1), on_gpu(Group::grid, 2)};
  for (int turn = 0; turn < 2; ++turn) {
    Streams s(schedules[turn], turn ? 1000 : 0);
    const std::vector<float> table(s.b.weights.at("Emb").begin(), s.b.weights.at("Emb").end());
    cuda::Result call = s.on.prepare(s.b.items.roots);
    s.fake.begin_capture(stream(1));
    std::string said;
    elsewhere([&] { said = use(s, table); });
    CHECK(said == "no error");
    call.launch(stream(1));
    s.fake.end_capture();
    CHECK(s.fake.forbidden() == "");
    s.fake.replay();
    CHECK(s.is_right(call));
    CHECK(s.fake.problem == "");
  }
}

TEST_CASE("the thread that captures may prepare calls and read results meanwhile", "[cuda]") {
  Streams s;
  cuda::Result before = s.on.run(s.b.items.roots, stream(2));
  s.fake.begin_capture(stream(1));
  cuda::Result call = s.on.prepare(s.b.items.roots);
  call.launch(stream(1));
  CHECK(s.is_right(before));
  s.fake.end_capture();
  CHECK(s.fake.forbidden() == "");
  s.fake.replay();
  CHECK(s.is_right(call));
}

TEST_CASE("a thread's mode of captures is what it was behind each call", "[cuda]") {
  Streams s;
  FakeStreams::mode() = FakeStreams::thread_local_mode;
  s.on(s.b.items.roots).roots();
  s.fake.fail(0, jit::cuda::out_of_memory);
  error_of_call([&] { s.on(s.b.items.roots); });
  CHECK(FakeStreams::mode() == FakeStreams::thread_local_mode);
  FakeStreams::mode() = FakeStreams::global;
}

TEST_CASE("the emulated driver refuses what a capture forbids, and then the capture is spoilt", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto driver = FakeCuda::driver();
  const auto device = fake.device();
  device->call("a context", [](const jit::CudaDriver&) { return 0; });
  driver->CtxPushCurrent(device->context());
  void* event = nullptr;
  driver->EventCreate(&event, 0);
  const auto all = [&](FakeStreams::Mode capture, FakeStreams::Mode thread, bool same_thread) {
    fake.begin_capture(stream(1), capture);
    int failed = 0;
    const auto ask = [&] {
      FakeStreams::mode() = thread;
      driver->CtxPushCurrent(device->context());
      void* pinned = nullptr;
      failed += driver->EventQuery(event) == 900;
      failed += driver->EventSynchronize(event) == 900;
      failed += driver->MemHostAlloc(&pinned, 16, 0) == 900;
      if (pinned) driver->MemFreeHost(pinned);
      driver->CtxPopCurrent(&pinned);
      FakeStreams::mode() = FakeStreams::global;
    };
    if (same_thread)
      ask();
    else
      elsewhere(ask);
    const int spoilt = driver->MemsetD8Async(0, 0, 0, stream(1));
    CHECK(spoilt == (failed ? 901 : 0));
    fake.end_capture();
    return failed;
  };
  using F = FakeStreams;
  CHECK(all(F::global, F::global, false) == 3);
  CHECK(all(F::global, F::thread_local_mode, false) == 0);
  CHECK(all(F::thread_local_mode, F::global, false) == 0);
  CHECK(all(F::thread_local_mode, F::thread_local_mode, true) == 3);
  CHECK(all(F::global, F::relaxed, true) == 0);
  CHECK(all(F::relaxed, F::global, true) == 0);
  fake.begin_capture(stream(1));
  CHECK(driver->MemsetD8Async(0, 0, 0, nullptr) == 906);
  CHECK(fake.forbidden() == "work on the default stream");
  fake.end_capture();
  driver->EventDestroy(event);
  void* old = nullptr;
  driver->CtxPopCurrent(&old);
}

// ---- what nothing tells the end of ----

namespace {

/// A model whose groups are two blocks of a grid, and a first call of many groups, which later ones of few leave
/// behind.
struct Wide {
  Bound b{16, 40, 12};
  FakeCuda fake;
  Compiled model;
  OnFake on;
  explicit Wide(const std::shared_ptr<const jit::CudaDriver>& driver = FakeCuda::driver())
      : model((fake.gpu.multiprocessors = 4, b.compile(on_gpu(Group::grid, 2), fake.gpu))),
        on(model.to(cuda::Device(std::make_shared<const runtime::CudaDevice>(driver, FakeCuda::nvrtc(), 0)))) {
    on.run(b.items.roots, stream(1)).wait();
  }
  /// A call of one root, whether or not it takes the memory of one before, and whether what `late` lets the device do
  /// changes its results.
  bool stands(const std::function<void()>& late) {
    cuda::Result next = on.run(std::vector(b.items.roots.begin(), b.items.roots.begin() + 1), stream(3));
    next.wait();
    const std::vector<float> before = next.roots();
    late();
    return next.roots() == before && difference(before, {b.right.begin(), b.right.begin() + 16}) <= 1;
  }
};

}  // namespace

TEST_CASE("a call waits for all that its streams were given, whichever it was told of last", "[cuda]") {
  Wide w;
  {
    cuda::Result result = w.on.prepare(w.b.items.roots);
    result.launch(stream(1));
    result.record(stream(2));  // as for a reader of results there
    result.wait();
  }
  CHECK(w.stands([&] { w.fake.users_wait(0, stream(1)); }));  // where nothing is left to do
  CHECK(w.fake.problem == "");
}

namespace {
FakeCuda* captured = nullptr;  // where another thread begins to capture, just before the next event is recorded
}

TEST_CASE("the memory of a call that went out, and of which nothing tells the end, is not used again", "[cuda]") {
  auto driver = std::make_shared<jit::CudaDriver>(*FakeCuda::driver());
  static const auto record = driver->EventRecord;
  driver->EventRecord = [](void* event, void* stream) -> int {
    if (FakeCuda* const fake = std::exchange(captured, nullptr)) fake->begin_capture(cortex::test::stream(7));
    return record(event, stream);
  };
  for (const bool by_graph : {false, true}) {
    CAPTURE(by_graph);
    std::optional<Wide> w(std::in_place, driver);
    FakeCuda& fake = w->fake;
    {
      cuda::Result lost = w->on.prepare(w->b.items.roots);
      if (by_graph) {  // the graph is in the null stream, and what tells its end fails
        fake.begin_capture(stream(5));
        lost.launch(stream(5));
        fake.end_capture();
        fake.replay(nullptr);
      }
      captured = &fake;
      CHECK(error_of_call([&] { by_graph ? lost.record(nullptr) : lost.launch(nullptr); }) != "no error");
      fake.end_capture();
      CHECK_THAT(error_of_call([&] { lost.wait(); }), Contains("nothing tells when its memory is free"));
      CHECK_THAT(error_of_call([&] { lost.launch(stream(1)); }), Contains("make the call anew"));
    }
    CHECK(w->stands([&] { fake.users_wait(0, nullptr); }));  // what was sent there happens now
    CHECK(fake.problem == "");
  }
}
