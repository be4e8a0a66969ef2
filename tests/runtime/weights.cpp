// Binding: what is refused and with which words, and where each element lies afterwards.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <stdexcept>
#include <thread>

#include "cortex/base/config.hpp"
#include "cortex/explain.hpp"
#include "runtime/count_allocations.hpp"
#include "runtime/hand_made.hpp"
#include "support/in_child.hpp"
#include "support/memory_limit.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

struct PhysicalAxis {
  ir::Axis axis;
  std::int64_t extent;
};

/// A random layout of a tensor of those extents: dimensions split, the parts in any order, gaps between them.
ir::Layout random_layout(std::mt19937& random, const std::vector<std::int64_t>& extents, bool open) {
  const auto below = [&](int n) { return std::int64_t(random() % unsigned(n)); };
  std::vector<PhysicalAxis> axes;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t split = open && d == 0 ? 1 : 1 + below(int(extents[d]));
    axes.push_back({{int(d), split, 0, 0}, (extents[d] + split - 1) / split});
    if (split > 1) axes.push_back({{int(d), 1, split, 0}, split});
  }
  std::shuffle(axes.begin() + (open ? 1 : 0), axes.end(), random);
  std::int64_t stride = 1;
  ir::Layout layout;
  for (std::size_t a = axes.size(); a-- > 0;) {
    axes[a].axis.stride = stride;
    layout.axes.push_back(axes[a].axis);
    if (open && a == 0) layout.row_size = stride;
    stride = stride * axes[a].extent + below(3);
  }
  if (!open) layout.fixed_size = stride;
  return layout;
}

std::int64_t offset_of(const ir::Layout& layout, const std::vector<std::int64_t>& index) {
  std::int64_t offset = 0;
  for (const ir::Axis& axis : layout.axes) {
    std::int64_t part = index[std::size_t(axis.source)] / axis.divisor;
    if (axis.modulus) part %= axis.modulus;
    offset += part * axis.stride;
  }
  return offset;
}

/// An executable with one weight of those extents in a plain and in a packed copy.
std::shared_ptr<const runtime::Executable> one_weight(const std::vector<Dim>& dims, DType dtype,
                                                      const ir::Layout& plain, const ir::Layout& packed) {
  auto e = std::make_shared<runtime::Executable>();
  e->graph.name = "m";
  e->weights = {{"W", dtype, dims}};
  ir::BufferInfo info;
  info.name = "W";
  info.dtype = dtype;
  info.dims = dims;
  info.role = ir::Role::weight;
  info.slot = 0;
  info.layout = plain;
  const ir::Buffer original(info);
  info.name = "W_packed";
  info.slot = -1;
  info.layout = packed;
  info.packed_from = original;
  e->program.buffers = {ir::Buffer(info), original};
  return e;
}

template <class T>
bool holds(const runtime::Block& block, const ir::Layout& layout, const std::vector<std::int64_t>& extents,
           const std::vector<T>& values) {
  const T* const data = reinterpret_cast<const T*>(block.data());
  std::vector<T> expected(block.size() / sizeof(T), T(0));
  std::vector<std::int64_t> index(extents.size(), 0);
  for (const T value : values) {
    expected[std::size_t(offset_of(layout, index))] = value;
    for (std::size_t d = extents.size(); d-- > 0 && ++index[d] == extents[d];) index[d] = 0;
  }
  return std::equal(expected.begin(), expected.end(), data);
}

template <class T>
bool packs_as_defined(std::mt19937& random) {
  const bool open = random() % 2;
  std::vector<std::int64_t> extents;
  std::vector<Dim> dims;
  for (std::size_t d = 0, rank = 1 + random() % 3; d < rank; ++d) {
    extents.push_back(1 + random() % 9);
    dims.push_back(open && d == 0 ? Dim("v") : Dim("d", extents.back()));
  }
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(T(i + 1));
  const ir::Layout plain = random_layout(random, extents, open), packed = random_layout(random, extents, open);
  const auto e = one_weight(dims, dtype_of<T>, plain, packed);
  runtime::Weights weights(e);
  weights.bind("W", dtype_of<T>, values.data(), values.size());
  const auto set = weights.published().current().value;
  return holds(*set->blocks[0], packed, extents, values) && holds(*set->blocks[1], plain, extents, values);
}

}  // namespace

TEST_CASE("weights are packed as their layouts say, with zeros in the gaps", "[runtime]") {
  std::mt19937 random(7);
  int right = 0;
  for (int i = 0; i < 300; ++i) right += packs_as_defined<float>(random) + packs_as_defined<double>(random);
  CHECK(right == 600);
}

TEST_CASE("an open dimension has as many elements as values are bound for", "[runtime]") {
  auto m = functor(sum_executable());
  CHECK_NOTHROW(m.bind("Emb", embedding(5)));
  CHECK_NOTHROW(m.bind("Emb", embedding(3), {3, 8}));
  CHECK_NOTHROW(m.bind("Emb", embedding(3).data(), 24, {3, 8}));
  CHECK_NOTHROW(m.bind(std::string("Emb"), std::span<const float>(embedding(2))));
}

TEST_CASE("a few values are bound as they are written", "[runtime]") {
  auto m = functor(sum_executable());
  m.bind("Emb", {0.f, 1, 2, 3, 4, 5, 6, 7.5f, 10, 11, 12, 13, 14, 15, 16, 17});
  const Word word{1};
  CHECK(m(word)[0][7] == 17);
  CHECK_THROWS_WITH(m.bind("Emb", {1.f, 2.f}), Contains("weight 'Emb'"));
}

TEST_CASE("binding refuses what does not fit and says what would", "[runtime]") {
  auto m = functor(sum_executable());
  const auto refused = [&](auto... arguments) {
    return error_of(Code::invalid_weights, [&] { m.bind(arguments...); });
  };
  CHECK_THAT(refused("emb", embedding(2)),
             Contains("model 'sum' has no weight 'emb'; did you mean 'Emb'?; its weights are 'Emb'"));
  CHECK_THAT(refused("kernel", embedding(2)), !Contains("did you mean") && Contains("its weights are 'Emb'"));
  CHECK_THAT(refused("Emb", std::vector<double>(16)),
             Contains("'Emb' of model 'sum' is f32 [vocabulary, hidden 8] but was given f64 elements"));
  CHECK_THAT(refused("Emb", std::vector<float>(15)),
             Contains("given 15 elements, which is no whole number of rows of 8"));
  CHECK_THAT(refused("Emb", std::vector<float>()), Contains("given no elements; it has at least one row of 8"));
  const auto with_shape = [&](std::initializer_list<std::int64_t> shape) {
    return error_of(Code::invalid_weights, [&] { m.bind("Emb", embedding(2), shape); });
  };
  CHECK_THAT(with_shape({8, 2}), Contains("given the shape [8, 2], which differs in dimension 'hidden'"));
  CHECK_THAT(with_shape({16}), Contains("given the shape [16] of 1 dimensions"));
  CHECK_THAT(with_shape({3, 8}), Contains("given the shape [3, 8] of 24 elements with 16 elements"));
  CHECK_THAT(with_shape({0, 8}), Contains("given the shape [0, 8], but of 'vocabulary' there is at least 1"));
  CHECK_THAT(with_shape({std::int64_t(1) << 62, 8}), Contains("no memory holds"));
  CHECK_THAT(error_of(Code::invalid_weights, [&] { m.bind("Emb", static_cast<const float*>(nullptr), 16); }),
             Contains("null pointer"));
  const std::vector<float> few(8);
  for (const std::size_t count : {std::size_t(1) << 63, std::size_t(1) << 61, std::size_t(-8)})
    CHECK_THAT(refused("Emb", few.data(), count),
               Contains("given " + std::to_string(count) + " elements, which no memory holds"));
  CHECK_THAT(error_of(Code::invalid_weights,
                      [&] {
                        m.bind("Emb", few.data(), std::size_t(1) << 62, {std::int64_t(1) << 59, 8});
                      }),
             Contains("no memory holds"));
  CHECK_THAT(refused(static_cast<const char*>(nullptr), embedding(2)),
             Contains("a weight of model 'sum' was to be bound, but its name is a null pointer"));
  const auto tried = m.try_bind("Emb", embedding(2), {8, 2});
  CHECK_FALSE(tried);
  CHECK(tried.error().code == Code::invalid_weights);
  CHECK(m.try_bind("Emb", embedding(2)));
}

TEST_CASE("values of a weight come in one array, in braces, or in rows, and shapes in any container", "[runtime]") {
  auto m = functor(sum_executable());
  const Word second{1};
  const auto first_of_second = [&] { return m(second)[0][0]; };
  std::vector<std::vector<float>> rows(3, std::vector<float>(8, 1.0f));
  rows[1][0] = 2;
  CHECK(m.bind("Emb", rows)(second)[0][0] == 2);
  rows[1][0] = 3;
  CHECK(m.bind("Emb", rows, {3, 8})(second)[0][0] == 3);
  std::array<std::array<float, 8>, 2> fixed{};
  fixed[1][0] = 4;
  CHECK(m.bind("Emb", fixed)(second)[0][0] == 4);
  float plain[2][8] = {};
  plain[1][0] = 5;
  CHECK(m.bind("Emb", plain)(second)[0][0] == 5);
  CHECK(m.bind("Emb", {0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0}, {2, 8})(second)[0][0] == 6);
  std::vector<float> dense(16);
  dense[8] = 7;
  CHECK(m.bind("Emb", dense, std::vector<int>{2, 8})(second)[0][0] == 7);
  dense[8] = 8;
  const std::int64_t shape[] = {2, 8};
  CHECK(m.bind("Emb", dense, shape)(second)[0][0] == 8);

  const auto refused = [&](const auto&... values) {
    return error_of(Code::invalid_weights, [&] { m.bind("Emb", values...); });
  };
  rows[2].pop_back();
  CHECK_THAT(refused(rows),
             Contains("weight 'Emb' was given rows of 8 and of 7 elements; all have to be of one length"));
  rows[2].push_back(0);
  CHECK_THAT(refused(rows, std::vector<unsigned>{2, 8}), Contains("given the shape [2, 8] of 16 elements with 24"));
  CHECK_THAT(refused(std::vector<std::vector<std::vector<float>>>(2, rows)), Contains("given the shape [2, 3, 8]"));
  CHECK_THAT(refused(std::vector<std::vector<float>>()), Contains("given the shape [0]"));
  CHECK_THAT(refused(dense, std::vector<int>{-2, 8}), Contains("given the shape [-2, 8]"));
  CHECK_THAT(refused(std::vector<std::vector<double>>(2, std::vector<double>(8))), Contains("was given f64 elements"));
  CHECK(first_of_second() == 8);
}

TEST_CASE("a weight for which there is no memory is named, and the one that is bound stays", "[runtime]") {
  auto m = functor(sum_executable());
  m.bind("Emb", embedding(2));
  const std::vector<float> vast(std::size_t(24) << 20);  // more than an allocator keeps of what was freed
  const Word leaf{1};
  const float before = m(leaf)[0][0];
  const auto tried = [&] {
    const MemoryLimit limit(std::size_t(4) << 20);
    return m.try_bind("Emb", vast);
  }();
  REQUIRE_FALSE(tried);
  CHECK(tried.error().code == Code::out_of_memory);
  CHECK_THAT(tried.error().message, Contains("weight 'Emb' of model 'sum' is not bound: ") &&
                                        Contains("no memory for 96 MB more") && Contains("store weights in less"));
  CHECK_THAT(tried.error().message, !Contains("roots"));
  CHECK(m(leaf)[0][0] == before);
  m.bind("Emb", vast);
  CHECK(m(leaf)[0][0] == 0);
}

TEST_CASE("a call before all weights are bound names those that are missing", "[runtime]") {
  runtime::Executable e = sum_executable();
  const Dim K{"k", 2};
  e.weights.push_back({"W", DType::f32, {K}});
  e.weights.push_back({"U", DType::f32, {K}});
  auto m = functor(e);
  m.bind("W", std::vector<float>(2));
  const Word leaf{0};
  CHECK_THAT(error_of(Code::invalid_weights, [&] { m(leaf); }),
             Contains("model 'sum' is called before these weights are bound: 'Emb', 'U'"));
}

TEST_CASE("a weight that no result depends on need not be bound", "[runtime]") {
  const Dim V{"vocabulary"}, H{"hidden", 8};
  Model<Word> m("spare", cortex::tree);
  auto Emb = m.input("Emb", V, H), Spare = m.input("Spare", V, H);
  m.input("Unused", H);
  auto h = m.placeholder("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return Emb(word(n), i) + h(left(n), i) + h(right(n), i); });
  m.compute("nowhere", H, [&](auto n, auto i) { return Spare(word(n), i); });  // read by an operator that is not
  auto model = compile(m.recursion_op(h, body), Schedule::standard(), CompileOptions{}.on(Target::interpreter()));
  const Word leaf{1};
  CHECK_THAT(error_of(Code::invalid_weights, [&] { model(leaf); }),
             Contains("model 'spare' is called before these weights are bound: 'Emb'"));
  model.bind("Emb", embedding(3));
  const float before = model(leaf)[0][3];
  model.bind("Spare", embedding(7)).bind("Unused", std::vector<float>(8));  // but may be: of any number of rows
  CHECK(model(leaf)[0][3] == before);
  CHECK_THAT(explain(model), Contains("Spare, Unused: no result depends on it, so it need not be bound"));
}

TEST_CASE("the handle of another model's input is refused, whatever its name", "[runtime]") {
  const auto make = [](const char* name, const char* input) {
    const Dim V{"vocabulary"}, H{"hidden", 8};
    Model<Word> m(name, cortex::tree);
    auto Emb = m.input(input, V, H);
    auto h = m.placeholder("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) { return Emb(word(n), i) + h(left(n), i) + h(right(n), i); });
    return std::pair{Emb, m.recursion_op(h, body)};
  };
  const auto [own, program] = make("first", "Emb");
  const auto [namesake, second] = make("second", "Emb");
  const auto [stranger, third] = make("third", "Table");
  auto model = compile(program, Schedule::standard(), CompileOptions{}.on(Target::interpreter()));
  const std::vector<float> values = embedding(3);
  const auto refusal = [&](const auto& handle) {
    return error_of(Code::invalid_weights, [&] { model.bind(handle, values); });
  };
  CHECK(refusal(namesake) ==
        "'Emb' belongs to another model than 'first', which has one of that name: bind it by the name, or by its own "
        "handle");
  CHECK(refusal(stranger) == "'Table' belongs to another model than 'first': bind what belongs to this one");
  CHECK(model.try_bind(namesake, values).error().code == Code::invalid_weights);
  model.bind(own, values);
  model.bind("Emb", values);
}

TEST_CASE("weights that share an open dimension must agree on its extent when the model is called", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.weights.push_back({"Scale", DType::f32, {e.weights[0].dims[0]}});
  auto m = functor(e);
  const Word leaf{0};
  m.bind("Emb", embedding(3));
  m.bind("Scale", std::vector<float>(4));
  CHECK_THAT(error_of(Code::invalid_weights, [&] { m(leaf); }),
             Contains("dimension 'vocabulary' has 3 elements in weight 'Emb' and 4 in 'Scale'"));
  m.bind("Emb", embedding(4));
  CHECK(m(leaf)[0][0] == 1);
}

TEST_CASE("weights that are bound together must agree on the extent of an open dimension then", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.weights.push_back({"Scale", DType::f32, {e.weights[0].dims[0]}});
  auto m = functor(e);
  const Word leaf{0};
  const auto bind = [&](int rows, std::size_t scales) {
    m.bind_together([&] { m.bind("Emb", embedding(rows)).bind("Scale", std::vector<float>(scales)); });
  };
  CHECK_THAT(error_of(Code::invalid_weights, [&] { bind(3, 4); }), Contains("and 4 in 'Scale'; bind both alike"));
  CHECK_THAT(error_of(Code::invalid_weights, [&] { m(leaf); }), Contains("weights are bound: 'Emb', 'Scale'"));
  bind(3, 3);
  CHECK_THAT(error_of(Code::invalid_weights, [&] { bind(4, 5); }), Contains("has 4 elements in weight 'Emb'"));
  CHECK(error_of(Code::invalid_weights, [&] { m.bind_together([&] { m.bind("Emb", embedding(4)); }); }) != "");
  CHECK(m(leaf)[0][0] == 1);  // with those that agreed
}

TEST_CASE("binding copies the values and shares what does not change", "[runtime]") {
  runtime::Executable e = sum_executable();
  const Dim K{"k", 2};
  e.weights.push_back({"W", DType::f32, {K}});
  e.program.buffers.push_back(buffer("W", DType::f32, {K}, ir::Role::weight, 1));
  runtime::Weights weights(std::make_shared<const runtime::Executable>(e));
  std::vector<float> values = embedding(2);
  weights.bind("Emb", DType::f32, values.data(), values.size());
  const auto before = weights.published().current().value;
  values.assign(16, -1);
  weights.bind("W", DType::f32, values.data(), 2);
  const auto after = weights.published().current().value;
  CHECK(before->blocks[weight_emb] == after->blocks[weight_emb]);
  CHECK(reinterpret_cast<const float*>(after->blocks[weight_emb]->data())[0] == 1);
  CHECK_FALSE(before->fault.empty());
  CHECK(after->fault.empty());
}

namespace {

/// The sum of two inputs at every leaf.
auto two_inputs() {
  const Dim H{"hidden", 8};
  Model<Word> m("two", cortex::tree);
  auto a = m.input("a", H), b = m.input("b", H);
  auto h = m.placeholder("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return a(i) + b(i) + h(left(n), i) + h(right(n), i); });
  auto model = compile(m.recursion_op(h, body), Schedule::standard(), CompileOptions{}.on(Target::interpreter()));
  return model.bind("a", std::vector<float>(8, 1)).bind("b", std::vector<float>(8, 1));
}

std::vector<float> all(float value) { return std::vector<float>(8, value); }

}  // namespace

TEST_CASE("weights that are bound together take effect when all of them are, or not at all", "[runtime]") {
  auto model = two_inputs();
  const Word leaf{0};
  const auto value = [&] { return model(leaf)[0][0]; };
  model.bind_together([&] {
    model.bind("a", all(10));
    CHECK(value() == 2);
    model.bind("a", all(20)).bind("b", all(30));
    CHECK(value() == 2);
  });
  CHECK(value() == 50);
  CHECK_THROWS_AS(model.bind_together([&] {
    model.bind("a", all(7));
    model.bind("b", std::vector<float>(9));  // one too many
  }),
                  Error);
  CHECK(value() == 50);
  CHECK_THROWS_AS(model.bind_together([&] {
    model.bind("a", all(7)).bind("b", all(7));
    throw std::runtime_error("the user's own");
  }),
                  std::runtime_error);
  CHECK(value() == 50);
  const auto tried = model.try_bind_together([&] { model.bind("a", all(7)).bind("c", all(7)); });
  REQUIRE_FALSE(tried);
  CHECK_THAT(tried.error().message, Contains("model 'two' has no weight 'c'"));
  CHECK(value() == 50);
  CHECK(model.try_bind_together([&] { model.bind("a", all(20)); }));
  model.bind_together([] {});
  model.bind("a", all(1));  // nothing is left of those that failed
  CHECK(value() == 31);
}

TEST_CASE("a functor may become another while weights are bound together to the model that it was", "[runtime]") {
  auto model = two_inputs();
  const auto other = two_inputs();
  const Word leaf{0};
  model.bind_together([&] {
    model.bind("a", all(10));
    model = other;  // the last functor of the first model
    model.bind("b", all(30));
  });
  CHECK(model(leaf)[0][0] == 31);
  CHECK(other(leaf)[0][0] == 31);
}

TEST_CASE("weights may be bound together in parts, and other threads bind meanwhile", "[runtime]") {
  auto model = two_inputs();
  const Word leaf{0};
  const auto value = [&] { return model(leaf)[0][0]; };
  model.bind_together([&] {
    model.bind_together([&] { model.bind("a", all(10)); });
    CHECK(value() == 2);
    CHECK_THROWS_AS(model.bind_together([&] { model.bind("a", all(99)), throw std::runtime_error("in this part"); }),
                    std::runtime_error);
    std::thread([&] { model.bind("b", all(5)); }).join();
    CHECK(value() == 6);
  });
  CHECK(value() == 15);
}

TEST_CASE("a child process has nothing to do with weights that another thread was binding together", "[runtime]") {
  auto model = two_inputs();
  const Word leaf{0};
  std::atomic<bool> binding{false}, over{false};
  std::thread other([&] {
    [[maybe_unused]] volatile char deep[100000];  // where the child's threads, which get its stack, do not write
    deep[0] = 0;
    model.bind_together([&] {
      model.bind("a", all(10));
      binding = true;
      while (!over) std::this_thread::yield();
    });
  });
  while (!binding) std::this_thread::yield();
  const int ended = in_child([&] {
    std::atomic<int> right{0}, done{0};
    std::vector<std::thread> threads;  // one of them gets the stack of the thread that is no more
    for (int t = 0; t < 50; ++t) {
      threads.emplace_back([&, t] {
        model.bind("a", all(float(t)));
        right += model(leaf)[0][0] == float(t) + 1;
        ++done;
        while (done < 50) std::this_thread::yield();
      });
      while (done <= t) std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    return right == 50 ? 7 : 1;
  });
  CHECK(ended == 7);
  const int within = in_child([&] {
    model.bind_together([&] { model.bind("a", all(20)), model.bind("b", all(30)); });
    return int(model(leaf)[0][0]);
  });
  CHECK(within == 50);
  over = true;
  other.join();
  CHECK(model(leaf)[0][0] == 11);
  int forked = 0;  // within: the child is this thread
  model.bind_together([&] {
    model.bind("a", all(3));
    forked = in_child([&] {
      model.bind("b", all(4));
      return int(model(leaf)[0][0]);
    });
  });
  CHECK(forked == 11);
  CHECK(model(leaf)[0][0] == 4);
}

TEST_CASE("weights that are bound together are bound all or not at all where any one allocation fails", "[runtime]") {
  const Word leaf{0};
  const std::vector<float> ten = all(10), thirty = all(30);
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    auto model = two_inputs();
    model.bind_together([&] {
      refuse_allocation(failures);
      const auto part = model.try_bind_together([&] {
        for (int times = 0; times < 8; ++times) model.bind("a", ten);  // more than the list has room for at first
        model.bind("b", thirty);
      });
      failed = refuse_allocation(-1);
      CHECK(failed != part.has_value());
    });
    CHECK(model(leaf)[0][0] == (failed ? 2 : 40));
  }
#if !CORTEX_ADDRESS_SANITIZER
  CHECK(failures > 10);
#endif
}

TEST_CASE("a call never has some of the weights that are bound together and lacks others", "[runtime]") {
  auto model = two_inputs();
  std::atomic<bool> stop{false};
  std::atomic<int> mixed{0};
  std::thread caller([&] {
    const Word leaf{0};
    while (!stop) mixed += int(model(leaf)[0][0]) % 2 != 0;
  });
  for (int round = 0; round < 2000; ++round)
    model.bind_together([&] { model.bind("a", all(float(round))).bind("b", all(float(round))); });
  stop = true;
  caller.join();
  CHECK(mixed == 0);
}
