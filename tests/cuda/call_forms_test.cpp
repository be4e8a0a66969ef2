// What users give to models for GPUs and take from them, in all forms that functors have: roots, states, weights.
#include <array>
#include <list>
#include <map>
#include <memory>
#include <tuple>

#include "cortex/explain.hpp"
#include "cuda/bound.hpp"
#include "weights/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// A node whose links are indices.
struct Entry {
  int id;
  int left = -1, right = -1;
};

/// h = table[id] of leaves, and of inner nodes the sum of the children's.
auto sums() {
  constexpr auto left = child<&Entry::left>;
  constexpr auto right = child<&Entry::right>;
  Model<Entry> m("sums", cortex::tree);
  const Dim V{"vocabulary"}, H{"hidden", 4};
  auto table = m.input<float>("table", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return table(field<&Entry::id>(n), i); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return h(left(n), i) + h(right(n), i); });
  return m.recursion_op(h, m.if_then_else([](auto n) { return is_leaf(n); }, leaf, inner));
}

}  // namespace

TEST_CASE("a model on a GPU takes roots as a functor does", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto on = b.compile().to(cuda::Device(fake.device()));
  const auto resident = on.resident();
  const std::vector<const Item*>& roots = b.items.roots;
  const auto of = [&](std::vector<std::size_t> which) {
    std::vector<float> right;
    for (const std::size_t r : which)
      right.insert(right.end(), b.right.begin() + std::ptrdiff_t(16 * r),
                   b.right.begin() + std::ptrdiff_t(16 * r + 16));
    return right;
  };
  const auto check = [&](cuda::Result result, std::vector<std::size_t> which) {
    CHECK(difference(result.roots(), of(which)) <= 1);
  };
  const auto check_call = [&](const auto& model) {
    check(model(*roots[1]), {1});
    check(model(roots[1]), {1});
    check(model(std::make_shared<const Item>(*roots[1])), {1});
    check(model({roots[2], roots[0]}), {2, 0});
    check(model(std::vector<Item>{*roots[3], *roots[4]}), {3, 4});
    check(model(std::list<const Item*>{roots[3], roots[4]}), {3, 4});
    check(model(std::span(roots).first(2)), {0, 1});
    CHECK_THAT(error_of_call([&] { model({roots[0], nullptr}); }), Contains("root 1 is null"));
    check(model.try_call({roots[2], roots[0]}).value(), {2, 0});
    CHECK_THAT(model.try_call({roots[0], nullptr}).error().message, Contains("root 1 is null"));
  };
  check_call(on);
  check_call(resident);
  check(on.run({roots[4]}, stream(1)), {4});
  cuda::Result prepared = on.prepare({roots[4], roots[1]});
  prepared.launch(stream(1));
  check(std::move(prepared), {4, 1});
}

TEST_CASE("a model on a GPU takes indices into an arena as a functor does", "[cuda]") {
  FakeCuda fake;
  auto model = cuda::compile(sums(), on_gpu(Group::block, 1), fake.gpu);
  model.bind("table", {0.f, 1.f, 2.f, 3.f, 10.f, 11.f, 12.f, 13.f});
  const auto on = model.to(cuda::Device(fake.device()));
  const auto resident = on.resident();
  const std::vector<Entry> entries{{0}, {1}, {-1, 0, 1}};
  const auto nodes = arena(entries);
  const auto last = [](cuda::Result result) { return result.roots().back(); };
  const auto check_call = [&](const auto& called) {
    CHECK(last(called(nodes, 2)) == 16);
    CHECK(last(called(nodes, {0, 2})) == 16);
    CHECK(last(called(nodes, std::vector<unsigned>{2u, 1u})) == 13);
    CHECK(last(called(nodes, &entries[2])) == 16);
    CHECK_THAT(error_of_call([&] { called(nodes, {0, 3}); }), Contains("out_of_range: ") && Contains("3"));
  };
  check_call(on);
  check_call(resident);
  CHECK(last(on.run(nodes, {2}, stream(1))) == 16);
  cuda::Result prepared = on.prepare(nodes, {1, 0});
  prepared.launch(stream(1));
  CHECK(last(std::move(prepared)) == 3);
}

TEST_CASE("an index that is not inside for certain is checked by each call on a GPU, where it is read", "[cuda]") {
  struct Bush {
    std::vector<const Bush*> kids;
  };
  constexpr auto parts = children<&Bush::kids>;
  Model<Bush> m("counted", cortex::tree.with_max_children(4));
  const Dim R{"rows", 3}, H{"hidden", 4};
  auto table = m.input<float>("table", R, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto, auto i) { return 0 * table(0, i); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return table(num_children(parts(n)) - 1, i) + sum(parts(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, m.if_then_else([](auto n) { return is_leaf(n); }, leaf, inner));
  FakeCuda fake;
  auto model = cuda::compile(program, on_gpu(Group::block, 1), fake.gpu);
  model.bind("table", {0.f, 1.f, 2.f, 3.f, 10.f, 11.f, 12.f, 13.f, 20.f, 21.f, 22.f, 23.f});
  const auto on = model.to(cuda::Device(fake.device()));
  const std::vector<Bush> leaves(5);
  const Bush one{{&leaves[0]}}, two{{&one, &leaves[1]}}, four{{&leaves[1], &leaves[2], &leaves[3], &leaves[4]}};
  CHECK(on(one).roots() == std::vector<float>{0, 1, 2, 3});
  CHECK(on(two).roots() == std::vector<float>{10, 12, 14, 16});
  CHECK_THAT(error_of_call([&] { on(four); }),
             Contains("operator 'inner' of model 'counted' reads 'table' at index 3 of dimension 'rows'"));
}

TEST_CASE("an index that is not inside is told of by the numbers of the whole call", "[cuda]") {
  const Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Entry> m("even", cortex::tree);
  auto table = m.input<float>("table", V, H);
  auto h = m.placeholder<float>("h", H);
  const auto program =
      m.recursion_op(h, m.compute("body", H, [&](auto n, auto i) { return table(2 * field<&Entry::id>(n), i); }));
  FakeCuda fake;
  auto model = cuda::compile(program, on_gpu(Group::block, 1), fake.gpu);
  model.bind("table", std::vector<float>(12));
  auto on_host = compile(program, CompileOptions{}.on(Target::interpreter()));
  on_host.bind("table", std::vector<float>(12));
  const std::vector<Entry> entries{{0}, {1}, {2}, {0}};
  const auto on = model.to(cuda::Device(fake.device()));
  REQUIRE(on.most_groups() > 1);
  CHECK_THAT(error_of_call([&] { on(entries); }), Contains("node 2"));
  CHECK(error_of_call([&] { on(entries); }) == error_of_call([&] { on_host(entries); }));
}

TEST_CASE("a readout of a call on a GPU has a value at roots, whatever other roots reach them", "[cuda]") {
  const Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Item> m("doubled", cortex::tree);
  auto table = m.input<float>("table", V, H);
  auto h = m.placeholder<float>("h", H);
  auto sums = m.recursion(h, m.compute("body", H, [&](auto n, auto i) {
    return table(word(n), i) + sum(kids(n), [&](auto k) { return h(k, i); });
  }));
  auto doubled = m.readout<float>("doubled", H, [&](auto r, auto i) { return 2 * sums(r, i); });
  FakeCuda fake;
  auto model = cuda::compile(m.program(sums, doubled), on_gpu(Group::block, 1), fake.gpu);
  model.bind("table", std::vector<float>(4 * vocabulary, 1.f));
  Item leaf, inner, top;
  leaf.word = inner.word = top.word = 0;
  inner.kids = {&leaf}, top.kids = {&inner};
  cuda::Result result = model.to(cuda::Device(fake.device()))({&top, &inner});  // a group each
  CHECK(result.node(&top, "doubled")[0] == 6);
  CHECK(result.node(&inner, "doubled")[0] == 4);
  CHECK(result.node(&leaf, "h")[0] == 1);
  CHECK_THAT(error_of_call([&] { result.node(&leaf, "doubled"); }),
             Contains("invalid_argument: readout 'doubled' is asked for at a node that is no root"));
}

TEST_CASE("a call that was prepared and never launched has no results", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto on = b.compile().to(cuda::Device(fake.device()));
  on(b.items.roots);  // whose states the next call's memory holds
  cuda::Result result = on.prepare(b.items.roots[1]);
  const std::uint64_t out = fake.users_memory(0, 16 * sizeof(float));
  const auto check_refused = [&](const auto& use) {
    CHECK_THAT(error_of_call(use), Contains("invalid_argument: a call was prepared and never launched"));
  };
  check_refused([&] { result.wait(); });
  check_refused([&] { (void)result.ready(); });
  check_refused([&] { result.root(0); });
  check_refused([&] { result.roots(); });
  check_refused([&] { result.node(b.items.roots[1]); });
  check_refused([&] { result.roots_into(out, 16 * sizeof(float), stream(1)); });
  check_refused([&] { result.let_wait(stream(1)); });
  check_refused([&] { result.record(stream(1)); });
  result.launch(stream(1));
  CHECK(difference(result.roots(), {b.right.begin() + 16, b.right.begin() + 32}) <= 1);
  CHECK(on.prepare(std::vector<const Item*>()).roots().empty());
}

TEST_CASE("handles that were moved from are handles still, and a result has nothing then", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  cuda::Device device(fake.device());
  auto on = model.to(device);
  auto resident = on.resident();
  const auto moved = std::make_tuple(std::move(model), std::move(device), std::move(on), std::move(resident));
  CHECK(device.name() == fake.device()->name());
  CHECK(model.to(device)(b.items.roots).num_roots() == 5);
  cuda::Result first = on(b.items.roots), result = std::move(first);
  CHECK(resident(b.items.roots).num_roots() == 5);
  CHECK(first.num_roots() == 0);
  CHECK(first.num_nodes() == 0);
  const auto check_refused = [&](const auto& use) {
    CHECK_THAT(error_of_call(use), Contains("invalid_argument: a result is asked for what another holds now"));
  };
  check_refused([&] { first.wait(); });
  check_refused([&] { first.roots(); });
  check_refused([&] { first.launch(stream(1)); });
  check_refused([&] { first.root(0, "h"); });
  check_refused([&] { first.counters(); });
  first = on(b.items.roots[1]);
  CHECK(difference(first.roots(), {b.right.begin() + 16, b.right.begin() + 32}) <= 1);
  CHECK(difference(result.roots(), b.right) <= 1);
}

TEST_CASE("weights of a model for GPUs are bound together, or none of them", "[cuda]") {
  const Bound b;
  auto model = b.compile();
  CHECK(model.try_bind_together([&] { bind_all<float>(model, b.weights); }));
  const auto refused = model.try_bind_together([&] { model.bind("Emb", {1.f}); });
  REQUIRE(!refused);
  CHECK_THAT(refused.error().message, Contains("Emb"));
}

TEST_CASE("states of a call on a GPU are named, or given by placeholder", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto other = models::tree_rnn<Item>(word, kids, {.input = 5, .hidden = 16});
  const auto m = models::tree_rnn<Item>(word, kids, {.input = 5, .hidden = 16});
  auto model = cuda::compile(m.program, on_gpu(Group::block, 1), fake.gpu);
  bind_all<float>(model, b.weights);
  cuda::Result result = model.to(cuda::Device(fake.device()))(b.items.roots);
  CHECK(result.root(1, m.h) == result.root(1));
  CHECK(result.root(1, m.h) == result.root(1, "h"));
  CHECK(result.roots(m.h) == result.roots());
  CHECK(result.node(b.items.roots[2], m.h) == result.root(2));
  CHECK(result.device_pointer(2, m.h) == result.device_pointer(2));
  std::array<float, 5 * 16> out{};  // the emulation's memory is the host's
  CHECK_THAT(error_of_call([&] { result.roots_into(out.data(), 79, stream(1), m.h); }), Contains("320 bytes"));
  CHECK_THAT(error_of_call([&] { result.root(0, other.h); }), Contains("'h' belongs to another model"));
  CHECK_THAT(error_of_call([&] { result.root(0, "c"); }), Contains("'c'"));
}

TEST_CASE("a weights file is bound to a model for GPUs as to one for CPUs", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  std::map<std::string, std::vector<float>> values;
  for (const auto& [name, numbers] : b.weights) values[name].assign(numbers.begin(), numbers.end());
  std::vector<TensorToWrite> tensors;
  auto model = cuda::compile(b.program, on_gpu(Group::block, 1), fake.gpu);
  for (const runtime::WeightSpec& input : model.executable().weights) {
    const std::vector<float>& held = values.at(input.name);
    std::vector<std::int64_t> shape;
    std::int64_t rest = std::int64_t(held.size());
    for (std::size_t d = input.dims.size(); d-- > 0;) {
      shape.insert(shape.begin(), d ? input.dims[d].extent() : rest);
      rest /= shape.front();
    }
    tensors.push_back({input.name, shape, std::span<const float>(held)});
  }
  const TemporaryFolder folder;
  write_safetensors(folder / "weights", tensors);
  const auto on = model.to(cuda::Device(fake.device()));
  bind(model, SafetensorsFile::open(folder / "weights"));
  CHECK(difference(on(b.items.roots).roots(), b.right) <= 1);
  tensors.pop_back();
  write_safetensors(folder / "weights", tensors);
  CHECK(try_bind(model, SafetensorsFile::open(folder / "weights")).error().code == Code::invalid_weights);
}

TEST_CASE("what CPUs refuse of a schedule, or of a target, GPUs refuse, too", "[cuda]") {
  const auto refusal = [](const Schedule& schedule, const Gpu& gpu = Gpu::of(90)) {
    return error_of_call([&] { cuda::compile(tree_rnn_program(), schedule, gpu); });
  };
  const Schedule standard = Schedule::standard();
  CHECK_THAT(refusal(standard.groups(-1)), Contains("invalid_schedule: groups: -1 were asked for"));
  CHECK_THAT(refusal(standard.workers(4)), Contains("workers is for CPUs; leave it out for a GPU"));
  CHECK_THAT(refusal(standard.multiply_in_vectors()), Contains("multiply_in_vectors is for CPUs"));
  CHECK_THAT(refusal(standard.pieces(100)), Contains("pieces is for CPUs"));
  CHECK_THAT(refusal(standard, {90, 0, 0, 65536}), Contains("with 0 multiprocessors"));
  CHECK_THAT(refusal(standard, {90, 132, -1, 65536}), Contains("-1 bytes of shared memory"));
  CHECK_THAT(refusal(standard, {90, 132, 0, 0}), Contains("0 registers"));
}

TEST_CASE("a model on a device is explained as the model is", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto model = b.compile();
  const std::string on_device = explain(model.to(cuda::Device(fake.device())));
  CHECK(on_device.substr(0, on_device.find("compil")) == explain(model).substr(0, on_device.find("compil")));
}
