// Calls of one model by many threads, on one device and on two, on the same stream and on others, while weights are
// bound.
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

using OnFake = decltype(std::declval<Compiled>().to(std::declval<cuda::Device>()));

/// A model on two devices, a batch for each thread, and what is right for it.
struct Shared {
  static constexpr int threads = 6;
  Bound b{16, threads, 7};
  FakeCuda fake;
  Compiled model;
  std::vector<OnFake> on;

  Shared() : model((fake.devices = 2, fake.gpu.multiprocessors = 2, b.compile())) {
    for (int d = 0; d < 2; ++d) on.push_back(model.to(cuda::Device(fake.device(d))));
  }
  std::vector<const Item*> roots(int thread) const {
    return {b.items.roots[std::size_t(thread)], b.items.roots[std::size_t(thread + 1) % threads]};
  }
  std::vector<float> results(int thread) {
    cuda::Result result = on[0](roots(thread));
    return result.roots();
  }
  /// Every thread is in the middle of a call at the same time, on each device.
  void warm_up() {
    std::vector<cuda::Result> results;
    for (const OnFake& device : on)
      for (int t = 0; t < threads; ++t) results.push_back(device.run(b.items.roots, nullptr)), results.back().roots();
  }
  /// Runs `work(thread)` on all threads, which begin together; how many have thrown.
  template <class Work>
  int on_all(const Work& work) {
    std::atomic<int> thrown = 0;
    std::barrier begin(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        begin.arrive_and_wait();
        try {
          work(t);
        } catch (const Error&) {
          ++thrown;
        }
      });
    for (std::thread& thread : all) thread.join();
    return thrown;
  }
};

}  // namespace

TEST_CASE("threads that bring models to one device at the same time each get a model of their own", "[cuda]") {
  Shared s;
  std::atomic<int> wrong = 0;
  const int thrown = s.on_all([&](int t) {
    const auto on = s.b.compile().to(cuda::Device(s.fake.device()));
    cuda::Result result = on(s.roots(t));
    std::vector<float> right = s.results(t);
    if (result.roots() != right) ++wrong;
  });
  CHECK(thrown == 0);
  CHECK(wrong == 0);
  CHECK(s.fake.problem == "");
}

TEST_CASE("threads that call a model on two devices each get their own results, and allocate nothing", "[cuda]") {
  Shared s;
  std::vector<std::vector<float>> right;
  for (int t = 0; t < Shared::threads; ++t) right.push_back(s.results(t));
  s.warm_up();
  const int allocations = s.fake.allocations;
  std::atomic<int> wrong = 0;
  const int thrown = s.on_all([&](int t) {
    for (int turn = 0; turn < 4; ++turn) {
      cuda::Result result = s.on[std::size_t(t + turn) % 2].run(s.roots(t), stream(t < 3 ? 1 : 1 + t));
      if (result.roots() != right[std::size_t(t)]) ++wrong;
    }
  });
  CHECK(thrown == 0);
  CHECK(wrong == 0);
  CHECK(s.fake.allocations == allocations);
  CHECK(s.fake.problem == "");
}

TEST_CASE("results that threads have sent to their own memory stay whole when nobody waits for the calls", "[cuda]") {
  Shared s;
  const std::size_t count = 2 * 16;
  std::vector<std::vector<float>> right;
  std::vector<std::uint64_t> out;
  for (int t = 0; t < Shared::threads; ++t) {
    right.push_back(s.results(t));
    out.push_back(s.fake.users_memory(t % 2, count * sizeof(float)));
  }
  const int thrown = s.on_all([&](int t) {
    const OnFake& on = s.on[std::size_t(t % 2)];
    for (int turn = 0; turn < 4; ++turn)
      on.run(s.roots(t), stream(t / 2)).roots_into(out[std::size_t(t)], count * sizeof(float), stream(t / 2));
  });
  CHECK(thrown == 0);
  for (int t = 0; t < Shared::threads; ++t) {
    s.fake.users_wait(t % 2, stream(t / 2));
    const auto* written = reinterpret_cast<const float*>(out[std::size_t(t)]);
    CHECK(std::vector<float>(written, written + count) == right[std::size_t(t)]);
  }
  CHECK(s.fake.problem == "");
}

TEST_CASE("calls that go on while a weight is bound anew have the old one or the new one, and nothing is left",
          "[cuda]") {
  Shared s;
  const std::vector<float> old(s.b.weights.at("Emb").begin(), s.b.weights.at("Emb").end());
  std::vector<float> changed(old.rbegin(), old.rend());
  const std::uint64_t there = s.fake.users_values(0, changed);
  std::vector<std::vector<float>> first, second;
  for (int t = 0; t < Shared::threads; ++t) first.push_back(s.results(t));
  s.model.bind("Emb", changed);
  for (int t = 0; t < Shared::threads; ++t) second.push_back(s.results(t));
  CHECK(first != second);

  std::atomic<int> wrong = 0;
  const int thrown = s.on_all([&](int t) {
    for (int turn = 0; turn < 4; ++turn) {
      if (t == 0) {
        s.model.bind("Emb", old);
        s.on[0].bind_device("Emb", there, {vocabulary, 16}, {.stream = stream(9), .in_place = turn % 2 == 0});
        continue;
      }
      cuda::Result result = s.on[std::size_t(t) % 2].run(s.roots(t), stream(t / 2));
      const std::vector<float> got = result.roots();
      if (got != first[std::size_t(t)] && got != second[std::size_t(t)]) ++wrong;
    }
  });
  CHECK(thrown == 0);
  CHECK(wrong == 0);
  CHECK(s.fake.problem == "");
  CHECK(s.results(1) == second[1]);
  s.model.bind("Emb", old);
  s.on.clear();
  CHECK(s.fake.alive() == 0);
}

TEST_CASE("weights that are bound anew take no more memory, however many calls there have been at a time", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile(on_gpu(Group::block, 1).tabulate(1));
  const auto on = model.to(cuda::Device(fake.device()));
  const std::vector<float> table(b.weights.at("Emb").begin(), b.weights.at("Emb").end());
  int alive = 0;
  for (int turn = 0; turn < 3; ++turn) {
    model.bind("Emb", table);
    cuda::Result first = on(b.items.roots), second = on(b.items.roots);
    if (turn == 0) alive = fake.alive();
    CHECK(fake.alive() == alive);
  }
}

TEST_CASE("a stream of the user's waits for results, and the host does not", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  cuda::Result result = model.to(cuda::Device(fake.device())).run(b.items.roots, stream(1));
  const int waits = fake.waits;
  std::vector<float> row;
  result.let_wait(stream(2));
  fake.enqueue_users(0, stream(2), [&] {
    const auto* state = reinterpret_cast<const float*>(result.device_pointer(0));
    row.assign(state, state + 16);
  });
  fake.users_wait(0, stream(2));
  CHECK(fake.waits == waits);
  CHECK(row == result.root(0));
}

TEST_CASE("the next calls are numbered and sent while the device is at work on the last", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  { cuda::Result first = on(b.items.roots), second = on(b.items.roots); }
  fake.waits = 0;
  on.run(b.items.roots, stream(1));
  on.run(b.items.roots, stream(1));
  CHECK(fake.waits == 0);
  const int allocations = fake.allocations;
  cuda::Result third = on.run(b.items.roots, stream(2));  // when two have to be waited for, for the older one
  CHECK(fake.waits == 1);
  CHECK(fake.allocations == allocations);
  CHECK(difference(all_roots(third), b.right) <= 1);
}

namespace {
/// What another thread does while the driver takes its time to take memory back, once.
std::function<void()> while_memory_is_taken_back;
}  // namespace

TEST_CASE("threads go on calling while the driver waits before it takes back weights that were replaced", "[cuda]") {
  Bound b{16, 3, 6};
  FakeCuda fake;
  fake.gpu.multiprocessors = 3;
  auto driver = std::make_shared<jit::CudaDriver>(*FakeCuda::driver());
  static const auto free = driver->MemFree;
  driver->MemFree = [](std::uint64_t at) -> int {
    if (const auto work = std::exchange(while_memory_is_taken_back, nullptr)) work();
    return free(at);
  };
  Compiled model = b.compile(on_gpu(Group::block, 1), fake.gpu);
  const auto on = model.to(cuda::Device(std::make_shared<const runtime::CudaDevice>(driver, FakeCuda::nvrtc(), 0)));
  // The last to have them is a model that brings others, or a call that ends.
  for (const bool in_a_call : {false, true}) {
    CAPTURE(in_a_call);
    std::optional<cuda::Result> held(on(b.items.roots));
    if (!in_a_call) held.reset();
    bind_all<float>(model, b.weights);
    if (in_a_call) on(b.items.roots);
    bool waited = false, called = false;
    std::future<void> other;
    while_memory_is_taken_back = [&] {
      waited = true;
      other = std::async(std::launch::async, [&] { on(b.items.roots); });
      called = other.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    };
    in_a_call ? held.reset() : void(on(b.items.roots));
    REQUIRE(waited);
    CHECK(called);
    other.wait();
  }
  CHECK(fake.problem == "");
}
