// Weights bound from safetensors by name: what fits, and everything that is refused.
#include <catch2/catch.hpp>

#include "cortex/cortex.hpp"
#include "support/models.hpp"
#include "weights/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Contains;

namespace {

/// A file of these tensors, in memory.
SafetensorsFile file_of(const std::vector<TensorToWrite>& tensors) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", tensors);
  return SafetensorsFile::open(folder / "a");
}

/// h = first[word, 0] + first[word, 1] + second[word] + b: two tables of as many rows, and a bias in double.
auto two_tables() {
  Dim V{"vocabulary"}, G{"gate", 2}, H{"hidden", 3};
  Model<test::Word> m("two_tables", cortex::tree);
  auto first = m.input<float>("first", V, G, H);
  auto second = m.input<float>("second", V, H);
  auto b = m.input<double>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return first(test::word(n), 0, i) + first(test::word(n), 1, i) + second(test::word(n), i) + cast<float>(b(i)) +
           h(test::left(n), i) + h(test::right(n), i);
  });
  CompileOptions options;
  options.target = Target::interpreter();
  return compile(m.recursion_op(h, body), options);
}

std::vector<float> state(const decltype(two_tables())& model, int word = 0) {
  const test::Word leaf{word, nullptr, nullptr};
  const auto result = model(leaf);
  return {result[0].begin(), result[0].end()};
}

template <class Model>
std::string unbound(Model& model, const SafetensorsFile& file, const TensorNames& names = {},
                    UnusedTensors unused = UnusedTensors::allowed) {
  const auto bound = try_bind(model, file, names, unused);
  if (bound) return "no error";
  CHECK(bound.error().code == Code::invalid_weights);
  CHECK_THAT(bound.error().message, Catch::StartsWith(file.source() + ": "));
  return bound.error().message;
}

const std::vector<float> ones(64, 1), twos(64, 2), counted{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
std::span<const float> first_of(const std::vector<float>& values, std::size_t count) {
  return std::span(values).first(count);
}

/// Two words; all is 1.
SafetensorsFile good() {
  return file_of(
      {{"first", {2, 2, 3}, first_of(ones, 12)}, {"second", {2, 3}, first_of(ones, 6)}, {"b", {3}, first_of(ones, 3)}});
}

}  // namespace

TEST_CASE("a model is bound by the names of its inputs", "[weights]") {
  auto model = two_tables();
  bind(model, good());
  CHECK(state(model) == std::vector<float>{4, 4, 4});
}

TEST_CASE("a model is bound by foreign names, split dimensions and any floating-point type", "[weights]") {
  auto model = two_tables();
  const std::vector<float> bias{0.5f, 0.25f, 0.125f};
  bind(model,
       file_of({{"encoder.table", {2, 6}, counted},
                {"second", {2, 3}, first_of(ones, 6), TensorType::BF16},
                {"b", {3}, bias, TensorType::F16}}),
       {{"first", "encoder.table"}});
  CHECK(state(model, 1) == std::vector<float>{16.5f, 18.25f, 20.125f});  // 6 + 9 + 1, 7 + 10 + 1, 8 + 11 + 1
}

TEST_CASE("several inputs may share a tensor", "[weights]") {
  Dim H{"hidden", 3};
  Model<test::Word> m("tied", cortex::tree);
  auto a = m.input<float>("a", H), b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return a(i) + b(i) + h(test::left(n), i); });
  CompileOptions options;
  options.target = Target::interpreter();
  auto model = compile(m.recursion_op(h, body), options);
  bind(model, file_of({{"tied", {3}, first_of(twos, 3)}}), {{"a", "tied"}, {"b", "tied"}});
  const test::Word leaf{0, nullptr, nullptr};
  CHECK(model(leaf)[0][0] == 4);
}

TEST_CASE("an input that no result depends on may lack its tensor", "[weights]") {
  Dim H{"hidden", 3};
  Model<test::Word> m("spare", cortex::tree);
  auto b = m.input("b", H);
  m.input("unused", H);
  auto h = m.placeholder("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return b(i) + h(test::left(n), i) + h(test::right(n), i); });
  auto model = compile(m.recursion_op(h, body), Schedule::standard(), CompileOptions{}.on(Target::interpreter()));
  bind(model, file_of({{"b", {3}, first_of(twos, 3)}}));
  CHECK(model(test::Word{0, nullptr, nullptr})[0][1] == 2);
  CHECK_THAT(unbound(model, file_of({{"unused", {3}, first_of(twos, 3)}})), Contains("it has no tensor 'b'"));
}

TEST_CASE("a tensor fits if its dimensions are split or joined, and not if they are regrouped", "[weights]") {
  Dim V{"vocabulary"}, A{"a", 4}, B{"b", 6}, C{"c", 5}, one{"one", 1};
  const auto fits = [](const std::vector<Dim>& dims, const std::vector<std::int64_t>& shape) {
    return weights::fitted(dims, shape).has_value();
  };
  CHECK(fits({A, B}, {4, 6}));
  CHECK(fits({A, B}, {24}));           // split
  CHECK(fits({A, B, C}, {24, 5}));     // the first split
  CHECK(fits({A, B, C}, {4, 30}));     // the last
  CHECK(fits({A, B}, {2, 2, 6}));      // joined
  CHECK(fits({A, B, C}, {2, 2, 30}));  // one joined, others split
  CHECK(fits({A, B}, {1, 24}));        // dimensions of one element stand anywhere
  CHECK(fits({A, B}, {4, 1, 6, 1}));
  CHECK(fits({one, A}, {4}));
  CHECK(fits({one}, {}));              // a scalar
  CHECK_FALSE(fits({A, B}, {6, 4}));   // as many elements, regrouped
  CHECK_FALSE(fits({A, B}, {2, 12}));  // 4 x 6 = (2 x 2) x 6, but 12 = 2 x 6
  CHECK_FALSE(fits({A, B}, {8, 3}));
  CHECK_FALSE(fits({A, B}, {4, 5}));
  CHECK_FALSE(fits({A, B}, {4, 6, 2}));
  CHECK_FALSE(fits({A, B}, {4}));
  CHECK_FALSE(fits({A}, {}));
  CHECK_FALSE(fits({A}, {0}));
  CHECK_FALSE(fits({A, B}, {2, INT64_MAX}));
  CHECK(weights::fitted({V, A, B}, {7, 24}) == std::vector<std::int64_t>{7, 4, 6});  // an open one is the first
  CHECK(weights::fitted({V, A}, {1, 4}) == std::vector<std::int64_t>{1, 4});
  CHECK_FALSE(fits({V, A}, {28}));
}

TEST_CASE("all inputs that do not fit are named, and nothing is bound", "[weights][refusal]") {
  auto model = two_tables();
  bind(model, good());
  const auto file = file_of({{"first", {12}, first_of(twos, 12)},
                             {"encoder.Second", {2, 3}, first_of(twos, 6)},
                             {"b", {2}, first_of(twos, 2)}});
  const std::string message = unbound(model, file);
  CHECK_THAT(
      message,
      Contains("tensor 'first' has shape [12], which does not fit input 'first' [vocabulary, gate 2, hidden 3]"));
  CHECK_THAT(
      message,
      Contains("it has no tensor 'second' for input 'second' [vocabulary, hidden 3]; did you mean 'encoder.Second'?"));
  CHECK_THAT(message, Contains("tensor 'b' has shape [2], which does not fit input 'b' [hidden 3]"));
  CHECK(state(model) == std::vector<float>{4, 4, 4});
}

TEST_CASE("a table without rows is refused, and nothing is bound", "[weights][refusal]") {
  auto model = two_tables();
  bind(model, good());
  const auto file =
      file_of({{"first", {2, 2, 3}, first_of(twos, 12)}, {"second", {0, 3}, {}}, {"b", {3}, first_of(twos, 3)}});
  CHECK_THAT(unbound(model, file),
             Contains("tensor 'second' has shape [0, 3], which leaves no elements for input 'second'"));
  CHECK(state(model) == std::vector<float>{4, 4, 4});
}

TEST_CASE("tables that disagree on an open dimension are refused, and nothing is bound", "[weights][refusal]") {
  auto model = two_tables();
  bind(model, good());
  const auto file = file_of({{"first", {2, 2, 3}, first_of(twos, 12)},
                             {"second", {5, 3}, first_of(twos, 15)},
                             {"b", {3}, first_of(twos, 3)}});
  CHECK_THAT(unbound(model, file),
             Contains("dimension 'vocabulary' has 2 elements in tensor 'first' and 5 in 'second'"));
  CHECK(state(model) == std::vector<float>{4, 4, 4});
}

TEST_CASE("integers are refused, and nothing is bound", "[weights][refusal]") {
  auto model = two_tables();
  bind(model, good());
  const std::vector<std::int64_t> integers{1, 2, 3};
  const auto file =
      file_of({{"first", {2, 2, 3}, first_of(twos, 12)}, {"second", {2, 3}, first_of(twos, 6)}, {"b", {3}, integers}});
  CHECK_THAT(unbound(model, file),
             Contains("tensor 'b' holds I64, but input 'b' [hidden 3] takes floating-point numbers"));
  CHECK(state(model) == std::vector<float>{4, 4, 4});
}

TEST_CASE("values that a storage does not hold are refused, and nothing is bound", "[weights][refusal]") {
  Dim H{"hidden", 3}, D{"input", 3};
  Model<test::Word> m("narrow", cortex::tree);
  auto a = m.input<float>("a", H);
  auto w = m.input<float>("w", H, D);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return a(i) + sum(D, [&](auto j) { return w(i, j); }) + h(test::left(n), i) + h(test::right(n), i);
  });
  const auto program = m.recursion_op(h, body);
  const test::Word leaf{0, nullptr, nullptr};
  for (const auto& [type, bad, words] : {std::tuple(DType::f16, 70000.f, "element [1, 1] is 70000, which f16"),
                                         std::tuple(DType::i8, NAN, "element [1, 1] is nan, which i8")}) {
    auto model = compile(program, Schedule::standard().store("w", type), CompileOptions{}.on(Target::interpreter()));
    bind(model, file_of({{"a", {3}, first_of(ones, 3)}, {"w", {3, 3}, first_of(ones, 9)}}));
    std::vector<float> values(9, 2);
    values[4] = bad;
    const std::string message = unbound(model, file_of({{"a", {3}, first_of(twos, 3)}, {"w", {3, 3}, values}}));
    CHECK_THAT(message,
               Contains("tensor 'w': weight 'w' of model 'narrow' is f32 [hidden 3, input 3] but ") && Contains(words));
    CHECK(model(leaf)[0][0] == 4);  // 1 + 3 * 1, and not 2 + 3 * 1
  }
}

TEST_CASE("a foreign name for no input of the model is refused", "[weights][refusal]") {
  auto model = two_tables();
  CHECK_THAT(unbound(model, good(), {{"frist", "first"}}),
             Contains("model 'two_tables' has no input 'frist' to bind tensor 'first' to; did you mean 'first'?"));
}

TEST_CASE("tensors that no input asks for are left alone, or refused", "[weights][refusal]") {
  auto model = two_tables();
  const auto file = file_of({{"first", {2, 2, 3}, first_of(ones, 12)},
                             {"second", {2, 3}, first_of(ones, 6)},
                             {"b", {3}, first_of(ones, 3)},
                             {"optimizer.step", {}, first_of(ones, 1)}});
  CHECK_THAT(unbound(model, file, {}, UnusedTensors::refused),
             Contains("tensor 'optimizer.step' is taken by no input; of the model's inputs"));
  CHECK(unbound(model, file) == "no error");
  CHECK(unbound(model, good(), {}, UnusedTensors::refused) == "no error");
}
