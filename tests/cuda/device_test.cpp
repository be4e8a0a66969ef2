// What a user does with a GPU beside the library: graphs, streams, contexts, memory that is gone, several devices, and
// the ways to keep weights. The same on the emulated driver as on the devices of this machine.
#include <dlfcn.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/bound.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using jit::CudaHandle;
using jit::CudaResult;

/// The calls of the driver that the library has no use for.
struct UsersCalls {
  std::function<CudaResult(CudaHandle stream)> begin_capture;
  std::function<CudaResult(CudaHandle stream, CudaHandle* graph)> end_capture;
  std::function<CudaResult(CudaHandle* runnable, CudaHandle graph)> instantiate;
  std::function<CudaResult(CudaHandle runnable, CudaHandle stream)> launch;
  std::function<CudaResult(CudaHandle* context, int device)> make_context;  // which is current then
  std::function<CudaResult(CudaHandle context)> destroy_context;
};

/// Libcuda's; it is there where devices are.
UsersCalls calls_of_libcuda() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library);
  const auto bound = [&](auto* type, const char* symbol) {
    auto* const function = reinterpret_cast<decltype(type)>(::dlsym(library, symbol));
    INFO(symbol);
    REQUIRE(function);
    return function;
  };
  const auto begin = bound((CudaResult(*)(CudaHandle, int))(nullptr), "cuStreamBeginCapture_v2");
  const auto end = bound((CudaResult(*)(CudaHandle, CudaHandle*))(nullptr), "cuStreamEndCapture");
  const auto instantiate =
      bound((CudaResult(*)(CudaHandle*, CudaHandle, unsigned long long))(nullptr), "cuGraphInstantiateWithFlags");
  const auto launch = bound((CudaResult(*)(CudaHandle, CudaHandle))(nullptr), "cuGraphLaunch");
  const auto make = bound((CudaResult(*)(CudaHandle*, unsigned, int))(nullptr), "cuCtxCreate_v2");
  const auto destroy = bound((CudaResult(*)(CudaHandle))(nullptr), "cuCtxDestroy_v2");
  return {[=](CudaHandle stream) { return begin(stream, 0); },  // nothing that a capture may forbid is allowed
          end,
          [=](CudaHandle* runnable, CudaHandle graph) { return instantiate(runnable, graph, 0); },
          launch,
          [=](CudaHandle* context, int device) { return make(context, 0, device); },
          destroy};
}

UsersCalls calls_of(FakeCuda& fake) {
  return {[&](CudaHandle stream) { return fake.begin_capture(stream), 0; },
          [&](CudaHandle, CudaHandle*) { return fake.end_capture(), 0; },
          [](CudaHandle*, CudaHandle) { return 0; },
          [&](CudaHandle, CudaHandle stream) { return fake.enqueue_users(0, stream, [&] { fake.replay(); }), 0; },
          [](CudaHandle* context, int) {
            *context = stream(77);
            return FakeCuda::driver()->CtxPushCurrent(*context);
          },
          [](CudaHandle) {
            CudaHandle old = nullptr;
            return FakeCuda::driver()->CtxPopCurrent(&old);
          }};
}

/// A user of a device, with a stream and room for floats on it.
class User {
 public:
  User(cuda::Device device, std::size_t count)
      : device_(std::move(device)), count_(count), room_(device_.shared(), count * sizeof(float)) {
    call([&](const jit::CudaDriver& d) { return d.StreamCreate(&stream_, jit::cuda::non_blocking); });
  }
  User(const User&) = delete;
  User& operator=(const User&) = delete;
  ~User() {
    device_.shared()->in_context([&](const jit::CudaDriver& d) { return d.StreamDestroy(stream_); });
  }

  cuda::Stream stream() const { return stream_; }
  std::uint64_t at() const { return room_.at(); }
  float* room() const { return reinterpret_cast<float*>(room_.at()); }
  std::size_t count() const { return count_; }

  /// On the stream, as all that follows is.
  void write(const std::vector<float>& values) const {
    call([&](const jit::CudaDriver& d) {
      return d.MemcpyHtoDAsync(room_.at(), values.data(), count_ * sizeof(float), stream_);
    });
  }
  void clear() const {
    call([&](const jit::CudaDriver& d) { return d.MemsetD8Async(room_.at(), 0, count_ * sizeof(float), stream_); });
  }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    call([&](const jit::CudaDriver& d) {
      const int failed = d.MemcpyDtoHAsync(values.data(), room_.at(), count_ * sizeof(float), stream_);
      return failed ? failed : d.StreamSynchronize(stream_);
    });
    return values;
  }
  template <class F>
  void call(F&& f) const {
    device_.shared()->call("what the user does", std::forward<F>(f));
  }

 private:
  cuda::Device device_;
  std::size_t count_;
  runtime::CudaBlock room_;
  cuda::Stream stream_ = nullptr;
};

void check_graphs(const cuda::Device& device, const UsersCalls& calls) {
  const Bound b;
  const auto model = b.compile(on_gpu(Group::block, 1), device.gpu());
  cuda::Result call = model.to(device).prepare(b.items.roots);
  const User user(device, b.right.size());
  CudaHandle graph = nullptr, runnable = nullptr;
  user.call([&](const jit::CudaDriver&) { return calls.begin_capture(user.stream()); });
  call.launch(user.stream());
  call.roots_into(user.room(), user.count(), user.stream());
  user.call([&](const jit::CudaDriver&) { return calls.end_capture(user.stream(), &graph); });
  user.call([&](const jit::CudaDriver&) { return calls.instantiate(&runnable, graph); });
  for (int turn = 0; turn < 3; ++turn) {
    user.clear();
    user.call([&](const jit::CudaDriver&) { return calls.launch(runnable, user.stream()); });
    CHECK(difference(user.read(), b.right) <= 1);
  }
}

/// Weights that a stream has still to write, a call on another, and its results on a third.
void check_streams(const cuda::Device& device) {
  const Bound b(16, 6, 12);
  auto model = b.compile(on_gpu(Group::block, 1), device.gpu());
  const std::vector<float> table(b.weights.at("Emb").begin(), b.weights.at("Emb").end());
  const User weights(device, table.size()), caller(device, 1), results(device, b.right.size());
  const auto on = model.to(device);
  model.bind("Emb", std::vector<float>(table.size()));
  for (const bool in_place : {false, true}) {
    results.clear();
    weights.write(table);
    on.bind_device("Emb", weights.at(), {vocabulary, 16}, {.stream = weights.stream(), .in_place = in_place});
    cuda::Result call = on.run(b.items.roots, caller.stream());
    call.roots_into(results.room(), results.count(), results.stream());
    CHECK(difference(results.read(), b.right) <= 1);
    CHECK(difference(all_roots(call), b.right) <= 1);
  }
}

void check_own_context(const cuda::Device& device, const UsersCalls& calls,
                       const std::shared_ptr<const jit::CudaDriver>& driver,
                       const std::shared_ptr<const jit::Nvrtc>& nvrtc) {
  const Bound b;
  const auto model = b.compile(on_gpu(Group::block, 1), device.gpu());
  CudaHandle context = nullptr, current = nullptr;
  REQUIRE(calls.make_context(&context, device.shared()->number()) == 0);
  {
    const cuda::Device own(runtime::cuda_device_of(driver, context, nvrtc));
    CHECK(own.gpu().sm == device.gpu().sm);
    const User user(own, b.right.size());
    cuda::Result call = model.to(own).run(b.items.roots, user.stream());
    call.roots_into(user.room(), user.count(), user.stream());
    CHECK(difference(user.read(), b.right) <= 1);
    const User other(device, b.right.size());
    CHECK_THAT(error_of_call([&] { call.roots_into(other.room(), other.count(), user.stream()); }),
               Contains("memory of another context"));
  }
  CHECK(driver->CtxPopCurrent(&current) == 0);
  CHECK(current == context);  // whatever the library has made current meanwhile
  CHECK(driver->CtxPushCurrent(context) == 0);
  CHECK(calls.destroy_context(context) == 0);
}

/// The user takes all of a device's memory, and gives it back.
void check_too_little_memory(const cuda::Device& device, std::size_t most) {
  const Bound b;
  const auto model = b.compile(on_gpu(Group::block, 1), device.gpu());
  const auto on = model.to(device);
  on(b.items.roots).roots();
  std::vector<std::uint64_t> taken;
  for (std::size_t bytes = most; bytes >= 4096; bytes /= 2) {
    std::uint64_t at = 0;
    while (device.shared()->in_context([&](const jit::CudaDriver& d) { return d.MemAlloc(&at, bytes); }) == 0)
      taken.push_back(at);
  }
  const Items many = forest(Shape::ragged, 4000, 60, 9);
  CHECK_THAT(error_of_call([&] { on(many.roots); }), Contains("out_of_memory: ") && Contains("nothing is lost"));
  for (const std::uint64_t at : taken)
    CHECK(device.shared()->in_context([&](const jit::CudaDriver& d) { return d.MemFree(at); }) == 0);
  cuda::Result result = on(b.items.roots);
  CHECK(difference(all_roots(result), b.right) <= 1);
}

/// A weight that lies on one device, and calls on another.
void check_pair(const cuda::Device& first, const cuda::Device& second) {
  const Bound b(16, 4, 9);
  auto model = b.compile(on_gpu(Group::block, 1), first.gpu());
  const std::vector<float> table(b.weights.at("Emb").begin(), b.weights.at("Emb").end());
  const User user(first, table.size());
  user.write(table);
  const auto here = model.to(first), there = model.to(second);
  model.bind("Emb", std::vector<float>(table.size()));
  here.bind_device("Emb", user.at(), {vocabulary, 16}, {.stream = user.stream()});
  cuda::Result near = here(b.items.roots), far = there(b.items.roots);
  CHECK(difference(all_roots(near), b.right) <= 1);
  CHECK(all_roots(far) == all_roots(near));
}

/// Weights of each type, and such as no block has room for, of which each of a cluster keeps a part.
void check_weights(const cuda::Device& device, int hidden) {
  const auto check = [&](const auto& program, const Schedule& schedule) {
    const NamedNumbers weights = random_weights(program.graph(), 3);
    const Items items = forest(Shape::ragged, 4, 12, 5);
    auto model = cuda::compile(program, schedule, device.gpu());
    bind_all<float>(model, weights);
    cuda::Result result = model.to(device)(items.roots);
    CHECK(difference(all_roots(result), interpreted(program, weights, items, schedule)) <= 1);
    return model.executable().program.buffers;
  };
  const auto gru = models::tree_gru<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 24}).program;
  for (const DType type : {DType::bf16, DType::f16, DType::i8}) {
    INFO(to_string(type));
    check(gru, on_gpu(Group::block, 1).store_weights(type));
    check(gru, on_gpu(Group::grid, 2).store_weights(type));
  }
  if (!device.gpu().has_clusters()) return;
  const auto rnn = models::tree_rnn<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = hidden}).program;
  GpuSchedule how = on_gpu(Group::cluster, 8).gpu;
  how.recent_rows = 0;
  const auto buffers = check(rnn, Schedule::standard().unroll(rnn, 2).on_gpu(how));
  CHECK(any_of(buffers, [](const ir::Buffer& buffer) { return buffer->scope == ir::Scope::spread; }));
}

/// Calls `check` with each device of this machine.
void on_devices(const std::function<void(const cuda::Device&)>& check) {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty()) skip(devices.why());
  for (const cuda::Device& device : devices) check(device);
}

}  // namespace

TEST_CASE("a user's graphs, streams, contexts and memory go together with models on the emulated driver", "[cuda]") {
  FakeCuda fake;
  fake.devices = 2;
  fake.gpu.multiprocessors = 16, fake.gpu.shared_bytes = 64 * 64 * 4 / 2;
  const cuda::Device device(fake.device());
  check_graphs(device, calls_of(fake));
  check_streams(device);
  check_own_context(device, calls_of(fake), FakeCuda::driver(), FakeCuda::nvrtc());
  fake.memory_limit = 4 << 20;
  check_too_little_memory(device, 1 << 20);
  check_pair(device, cuda::Device(fake.device(1)));
  check_weights(device, 64);
  CHECK(fake.problem == "");
  CHECK(fake.forbidden() == "");
}

TEST_CASE("the devices of this machine run graphs that a user has captured", "[cuda][device]") {
  on_devices([](const cuda::Device& device) { check_graphs(device, calls_of_libcuda()); });
}

TEST_CASE("the devices of this machine work on a user's streams", "[cuda][device]") { on_devices(check_streams); }

TEST_CASE("the devices of this machine work in a user's context", "[cuda][device]") {
  on_devices([](const cuda::Device& device) {
    std::string why;
    check_own_context(device, calls_of_libcuda(), jit::find_cuda_driver(why), nullptr);
  });
}

TEST_CASE("the devices of this machine lose nothing when a user has all of their memory", "[cuda][device][alone]") {
  on_devices([](const cuda::Device& device) { check_too_little_memory(device, std::size_t(1) << 36); });
}

TEST_CASE("the devices of this machine read weights of each type, and from each other's shared memory",
          "[cuda][device]") {
  on_devices([](const cuda::Device& device) { check_weights(device, 512); });
}

TEST_CASE("devices of this machine have copies of a weight that is on one of them", "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.size() < 2) skip("there are no two GPUs: " + devices.why());
  check_pair(devices[0], devices[1]);
  check_pair(devices[1], devices[0]);
}
