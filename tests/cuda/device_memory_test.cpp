// Weights that are on a device already, and results that go to memory of the user's there.
#include <cstdint>
#include <vector>

#include "cortex/models/mv_rnn.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// What floats lie in the emulated device's memory, which is the host's.
std::vector<float> read(std::uint64_t at, std::size_t count) {
  const auto* begin = reinterpret_cast<const float*>(at);
  return {begin, begin + count};
}

/// Binds all weights from memory of the device, which is given back before anything is called.
template <class OnDevice>
void bind_from(FakeCuda& fake, const OnDevice& on, const runtime::Executable& executable, const NamedNumbers& weights) {
  for (const runtime::WeightSpec& spec : executable.weights) {
    const std::vector<float> values = floats(weights.at(spec.name));
    std::vector<std::int64_t> shape;
    std::int64_t row = 1;
    for (const Dim& dim : spec.dims) shape.push_back(dim.kind() == DimKind::open ? 0 : dim.extent());
    for (const std::int64_t extent : shape) row *= extent ? extent : 1;
    if (!shape.empty() && shape[0] == 0) shape[0] = std::int64_t(values.size()) / row;
    const std::uint64_t at = fake.users_values(0, values);
    on.bind_device(spec.name, at, shape);
    fake.give_back_users(at);
  }
}

/// A device, a model on it, and an embedding table in its memory.
struct OnFake {
  Bound b{16, 5, 12};  // whose rows are whole cache lines, as the code reads them
  FakeCuda fake;
  Compiled model = b.compile();
  // Two groups, of which each has several roots.
  decltype(model.to(cuda::Device(fake.device()))) on =
      (fake.gpu.multiprocessors = 2, model.to(cuda::Device(fake.device())));
  std::vector<float> table = floats(b.weights.at("Emb"));
  std::uint64_t there = fake.users_values(0, table);

  std::string refusal(std::uint64_t at, std::initializer_list<std::int64_t> shape = {vocabulary, 16},
                      const cuda::FromDevice& how = {}) {
    return error_of_call([&] { on.bind_device("Emb", at, shape, how); });
  }
};

}  // namespace

TEST_CASE("weights are bound from memory of the device as from the host's", "[cuda]") {
  const Bound b;
  for (const DType type : {DType::f32, DType::bf16, DType::i8}) {
    FakeCuda fake;
    auto model = cuda::compile(b.program, on_gpu(Group::cluster, 2).store_weights(type), Gpu::of(90));
    const auto on = model.to(cuda::Device(fake.device()));
    bind_from(fake, on, model.executable(), b.weights);
    cuda::Result from_device = on(b.items.roots);
    bind_all<float>(model, b.weights);
    cuda::Result from_host = on(b.items.roots);
    CHECK(all_roots(from_device) == all_roots(from_host));
    CHECK(fake.problem == "");
  }
}

TEST_CASE("weights of a device and of the host that are bound together reach calls at once, or not at all", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  const auto roots = [&] {
    cuda::Result result = on(b.items.roots);
    return all_roots(result);
  };
  const auto before = roots();
  NamedNumbers others = b.weights;
  for (double& value : others.at("Emb")) value *= 2;
  model.bind_together([&] {
    bind_all<float>(model, others);
    CHECK(roots() == before);
    bind_from(fake, on, model.executable(), others);
    CHECK(roots() == before);
  });
  const auto after = roots();
  CHECK(after != before);
  const auto fail = [&] {
    bind_from(fake, on, model.executable(), b.weights);
    throw Error(Code::invalid_argument, "the user's own");
  };
  CHECK_THROWS_AS(model.bind_together(fail), Error);
  CHECK(roots() == after);
  CHECK(fake.problem == "");
}

TEST_CASE("a table is copied on the device and does not pass through the host", "[cuda]") {
  OnFake f;
  f.fake.downloads = f.fake.uploads = 0;
  f.on.bind_device("Emb", f.there, {vocabulary, 16});
  cuda::Result result = f.on(f.b.items.roots);
  CHECK(f.fake.downloads == 0);
  CHECK(difference(all_roots(result), f.b.right) <= 1);
}

TEST_CASE("a table that is bound in place is read where it is", "[cuda]") {
  OnFake f;
  const std::vector<float> before = f.on(f.b.items.roots).roots();
  const int allocations = f.fake.allocations;
  f.on.bind_device("Emb", reinterpret_cast<const float*>(f.there), {vocabulary, 16}, {.in_place = true});
  CHECK(f.on(f.b.items.roots).roots() == before);
  for (std::size_t i = 0; i < f.table.size(); ++i) reinterpret_cast<float*>(f.there)[i] = 0;
  CHECK(f.on(f.b.items.roots).roots() != before);
  CHECK(f.fake.allocations == allocations);
}

TEST_CASE("what the code reads in a layout of its own is not bound in place", "[cuda]") {
  OnFake f;
  const std::uint64_t matrix = f.fake.users_values(0, floats(f.b.weights.at("U")));
  CHECK_THAT(
      error_of_call([&] {
        f.on.bind_device("U", matrix, {16, 16}, {.in_place = true});
      }),
      Contains("weight 'U' of model 'tree_rnn'") && Contains("to be read in place, but the code reads it in a layout"));
}

TEST_CASE("values that a stream has still to make are waited for", "[cuda]") {
  OnFake f;
  const std::uint64_t late = f.fake.users_memory(0, f.table.size() * sizeof(float));
  f.fake.enqueue_users(0, stream(5), [&] {
    std::memcpy(reinterpret_cast<void*>(late), f.table.data(), f.table.size() * sizeof(float));
  });
  f.on.bind_device("Emb", late, {vocabulary, 16}, {.stream = stream(5)});
  cuda::Result result = f.on(f.b.items.roots);
  CHECK(difference(all_roots(result), f.b.right) <= 1);
}

TEST_CASE("memory that is no place for a weight is refused by the weight's name", "[cuda]") {
  OnFake f;
  const auto named =
      Contains("invalid_weights: weight 'Emb' of model 'tree_rnn' is f32 [vocabulary, input 16] but was given");
  CHECK_THAT(f.refusal(0), named && Contains("a null pointer"));
  CHECK_THAT(f.refusal(reinterpret_cast<std::uint64_t>(f.table.data())), named && Contains("in no GPU's memory"));
  f.fake.devices = 2;
  CHECK_THAT(f.refusal(f.fake.users_memory(1, 1472)),
             named && Contains("memory of GPU 1, and is for GPU 0, emulated GPU 0"));
  CHECK_THAT(f.refusal(f.there + 2), named && Contains("no multiple of 4 bytes"));
  CHECK_THAT(f.refusal(f.there + 4, {vocabulary, 16}, {.in_place = true}),
             named && Contains("no multiple of 16 bytes"));
  CHECK_THAT(f.refusal(f.there + 40), named && Contains("goes on for 1432 bytes, but 1472 are needed"));
}

TEST_CASE("a weight of another shape or type on the device is refused", "[cuda]") {
  OnFake f;
  CHECK_THAT(f.refusal(f.there, {vocabulary, 6}), Contains("was given the shape [23, 6], which differs in dimension"));
  CHECK_THAT(f.refusal(f.there, {}), Contains("was given no shape, which says how many rows there are"));
  CHECK_THAT(f.refusal(f.there, {vocabulary, 16}, {.dtype = DType::bf16}), Contains("was given bf16 elements"));
  CHECK_THAT(error_of_call([&] {
               f.on.bind_device("Emb", reinterpret_cast<const double*>(f.there), {23, 16});
             }),
             Contains("was given f64 elements"));
  CHECK_THAT(error_of_call([&] { f.on.bind_device("Em", f.there, {23, 16}); }), Contains("did you mean 'Emb'?"));
}

TEST_CASE("a refused binding leaves the weight as it was", "[cuda]") {
  OnFake f;
  CHECK(f.refusal(f.there + 40) != "no error");
  cuda::Result result = f.on(f.b.items.roots);
  CHECK(difference(all_roots(result), f.b.right) <= 1);
}

TEST_CASE("other devices get a copy of a weight that is on one of them", "[cuda]") {
  OnFake f;
  f.fake.devices = 2;
  const auto other = f.model.to(cuda::Device(f.fake.device(1)));
  std::fill(f.table.begin(), f.table.end(), 0.0f);
  f.model.bind("Emb", f.table);
  f.on.bind_device("Emb", f.there, {vocabulary, 16}, {.in_place = true});
  cuda::Result result = other(f.b.items.roots);
  CHECK(f.fake.problem == "");
  CHECK(difference(all_roots(result), f.b.right) <= 1);
}

TEST_CASE("the states of roots are written into the user's memory, without waiting", "[cuda]") {
  OnFake f;
  f.on(f.b.items.roots);
  const std::uint64_t out = f.fake.users_memory(0, f.b.right.size() * sizeof(float));
  f.fake.waits = 0;
  cuda::Result result = f.on.run(f.b.items.roots, stream(1));
  result.roots_into(reinterpret_cast<float*>(out), f.b.right.size(), stream(1));
  CHECK(f.fake.waits == 0);
  f.fake.users_wait(0, stream(1));
  CHECK(f.fake.problem == "");
  CHECK(read(out, f.b.right.size()) == result.roots());
}

TEST_CASE("results go to a stream other than the call's behind the call", "[cuda]") {
  OnFake f;
  const std::uint64_t out = f.fake.users_memory(0, f.b.right.size() * sizeof(float));
  {
    cuda::Result result = f.on.run(f.b.items.roots, stream(1));
    result.roots_into(out, f.b.right.size() * sizeof(float), stream(2));
  }
  std::vector<const Item*> others{f.b.items.roots[1]};
  cuda::Result next = f.on.run(others, stream(3));  // takes no memory that is still in use
  next.wait();
  f.fake.users_wait(0, stream(2));
  CHECK(f.fake.problem == "");
  CHECK(difference(read(out, f.b.right.size()), f.b.right) <= 1);
}

TEST_CASE("results of a call are read whatever has been bound since", "[cuda]") {
  FakeCuda fake;
  const auto program = models::mv_rnn<Item>(word, left, right, {.hidden = 4}).program;
  const Items items = forest(Shape::binary, 3, 9, 5);
  auto model = cuda::compile(program, on_gpu(Group::block, 1), fake.gpu);
  bind_all<float>(model, random_weights(program.graph(), 3));
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result result = on(items.roots);
  const Vector<float> before = result.node(items.roots[0]);
  const std::size_t nodes = result.num_nodes();
  model.bind("Emb_v", std::vector<float>(4));  // a vocabulary of another size than that of Emb_M
  CHECK_THAT(error_of_call([&] { on(items.roots); }), Contains("invalid_weights") && Contains("bind both alike"));
  CHECK(result.num_nodes() == nodes);
  CHECK(result.node(items.roots[0]) == before);
}

TEST_CASE("states of several dimensions and of doubles are written without what pads them", "[cuda]") {
  FakeCuda fake;
  fake.gpu.multiprocessors = 2;
  const auto program = models::mv_rnn<Item>(word, left, right, {.vocabulary = vocabulary, .hidden = 5}).program;
  const Items items = forest(Shape::binary, 3, 9, 5);
  auto model = cuda::compile(program, on_gpu(Group::block, 1), fake.gpu);
  bind_all<float>(model, random_weights(program.graph(), 3));
  cuda::Result result = model.to(cuda::Device(fake.device()))(items.roots);
  for (const runtime::StateSpec& state : model.executable().states) {
    const std::vector<float> right = result.roots(state.name);
    const std::uint64_t out = fake.users_memory(0, right.size() * sizeof(float));
    result.roots_into(out, right.size() * sizeof(float), stream(1), state.name);
    fake.users_wait(0, stream(1));
    CHECK(read(out, right.size()) == right);
  }
  CHECK(fake.problem == "");
}

TEST_CASE("memory that has no room for the states of the roots is refused", "[cuda]") {
  OnFake f;
  cuda::Result result = f.on(f.b.items.roots);
  const std::size_t bytes = f.b.right.size() * sizeof(float);
  const auto refusal = [&](std::uint64_t at, std::size_t size) {
    return error_of_call([&] { result.roots_into(at, size, nullptr); });
  };
  CHECK_THAT(refusal(f.there, bytes - 1),
             Contains("invalid_argument: the output needs room for 320 bytes of state 'h', but has 319"));
  CHECK_THAT(refusal(f.there + 1472 - 256, bytes),
             Contains("the output of state 'h' was given an address behind which"));
  CHECK_THAT(refusal(reinterpret_cast<std::uint64_t>(f.table.data()), bytes), Contains("in no GPU's memory"));
  CHECK_THAT(error_of_call([&] { result.roots_into(reinterpret_cast<double*>(f.there), 80, nullptr); }),
             Contains("holds f32 elements, but is asked for as f64"));
}

TEST_CASE("the handle of another model's input is refused on a device too", "[cuda]") {
  OnFake f;
  Model<Item> other("other", cortex::tree);
  const auto Emb = other.input<float>("Emb", Dim("words", 2), Dim("hidden", 2));
  CHECK_THAT(error_of_call([&] {
               f.on.bind_device(Emb, f.there, {2, 2});
             }),
             Contains("'Emb' belongs to another model than"));
}
