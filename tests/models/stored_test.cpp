// The models of the zoo with weights stored in less memory: exactly what rounded weights give, and as near to what the
// weights themselves give as their roundings let it be.
#include <catch2/catch.hpp>

#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/tune/results.hpp"
#include "models/rounded_weights.hpp"
#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr DType narrow_types[] = {DType::bf16, DType::f16, DType::i8};
const int inputs = built_with_llvm() ? 19 : 7, hidden = built_with_llvm() ? 37 : 9;  // more than a sum over children has terms

models::Sizes sizes(int D = hidden) { return {.vocabulary = vocabulary, .input = D, .hidden = hidden}; }

const Vector<Dim>& dims_of(const ra::Graph& graph, const std::string& name) {
  return std::find_if(graph.ops.begin(), graph.ops.end(), [&](const ra::Op& op) { return op.name() == name; })->dims;
}
std::size_t rank_of(const ra::Graph& graph, const std::string& name) { return dims_of(graph, name).size(); }
/// How many elements of the input share a step: its last dimension, over which sums run.
std::size_t row_of(const ra::Graph& graph, const std::string& name) {
  return std::size_t(dims_of(graph, name).back().extent());
}

/// What `store_weights` stores: matrices, and not tables and vectors.
bool is_matrix(const ra::Graph& graph, const std::string& name) {
  return rank_of(graph, name) > 1 && name.rfind("Emb", 0) != 0 && name.rfind("bias", 0) != 0 && name != "B";
}

/// The types that a test stores the inputs of a model as.
using Types = std::map<std::string, DType>;

Types matrices_as(DType type, const ra::Graph& graph) {
  Types types;
  for (const auto& [name, values] : random_weights(graph, 1))
    if (is_matrix(graph, name)) types[name] = type;
  return types;
}
/// One input after the other as another type, tables and vectors too.
Types mixed(const ra::Graph& graph) {
  Types types;
  std::size_t next = 0;
  constexpr DType all[] = {DType::i8, DType::bf16, DType::f32, DType::f16};
  for (const auto& [name, values] : random_weights(graph, 1)) types[name] = all[next++ % 4];
  return types;
}
Schedule stored_as(const Types& types) {
  Schedule schedule = Schedule::standard().multiply_in_vectors().workers(2);
  for (const auto& [name, type] : types) schedule = schedule.store(name, type);
  return schedule;
}

NamedNumbers rounded(const NamedNumbers& weights, const Types& types, const ra::Graph& graph) {
  NamedNumbers result = weights;
  for (const auto& [name, type] : types) result[name] = as_stored(type, weights.at(name), row_of(graph, name));
  return result;
}

/// Matrices of whole numbers up to 127 times powers of two, another one for each row.
NamedNumbers whole(NamedNumbers weights, const ra::Graph& graph) {
  for (auto& [name, values] : weights) {
    if (!is_matrix(graph, name)) continue;
    const std::size_t row = row_of(graph, name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double step = std::exp2(-9 - double(i / row % 3)) / 2;
      values[i] = i % row == 0 ? 127 * step : std::nearbyint(std::clamp(values[i] / step, -127.0, 127.0)) * step;
    }
  }
  return weights;
}

/// The bits of all states of all nodes.
template <class Model>
auto bits_of(Model& model, const Items& items) {
  return tuning::fingerprint(model(items.roots).workspace());
}

/// Structures of one node to nine and more, all in one call.
Items some(Shape shape, std::initializer_list<int> sizes, unsigned seed) {
  Builder builder(shape, seed);
  for (const int size : sizes) builder.items.roots.push_back(builder.one(size));
  return std::move(builder.items);
}

/// The root mean square of a rounding error, as a share of the weight, or, if negative, as a number. Errors are
/// anywhere within half a unit in the last place, which is at most 2^-8 and 2^-11 of a weight, or half a step of i8; so
/// it is that over the root of 3.
double rounding_of(DType type, const Numbers& values) {
  if (type == DType::f32) return 0;
  if (type != DType::i8) return (type == DType::bf16 ? 0x1p-8 : 0x1p-11) / std::sqrt(3);
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(x));
  return -largest / 127 / 2 / std::sqrt(3);
}

/// Of all states of all nodes: how far they lie from what the weights of f32 give in double, in units of what is
/// expected (`Spread`).
struct Errors {
  double largest = 0, mean = 0;  // the mean is that of squares, and the root of it
};
template <class Model>
Errors errors_of(Model& model, const Items& items, const NamedNumbers& weights, const Types& types) {
  const ra::Graph& graph = model.executable().graph;
  ra::Weights tensors;
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    ra::Tensor tensor{{}, weights.at(op.name())};
    for (const Dim& dim : op.dims) tensor.shape.push_back(dim.kind() == DimKind::open ? vocabulary : dim.extent());
    if (types.count(op.name())) tensor.rounding = rounding_of(types.at(op.name()), tensor.values);
    tensors[op.name()] = tensor;
  }
  bind_all<float>(model, weights);
  const auto result = model(items.roots);
  const ItemsView view(items, graph);
  const auto expected = ra::interpret<Spread>(graph, view, tensors);
  Errors errors;
  double squares = 0, count = 0;
  for (std::size_t s = 0; s < expected.size(); ++s)
    for (std::size_t n = 0; n < view.nodes.size(); ++n) {
      std::vector<float> got(expected[s][n].size());
      result.copy_node(view.nodes[n], model.executable().states[s].name, got);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Spread& right = expected[s][n][i];
        if (right.rms == 0 && got[i] == right.value) continue;  // a row of a table
        const double error = std::abs(got[i] - right.value) / right.rms;
        if (!(error <= errors.largest)) errors.largest = error;
        squares += error * error, ++count;
      }
    }
  errors.mean = std::sqrt(squares / count);
  return errors;
}

/// Of states' errors, which are sums of many, none is five times what is expected: of numbers that are distributed
/// normally one in two million is. Nor are they an eighth of it in the mean: significands are larger than the least,
/// by which errors are smaller by a third, and what adds up in the worst case here (two products a gate, two factors,
/// up to five children) adds up by squares there.
template <class Model>
void check_accuracy(Model& model, Shape shape, const NamedNumbers& weights, const Types& types) {
  const Errors errors = errors_of(model, some(shape, {30, 12}, 4), weights, types);
  CHECK(errors.largest <= 5);
  CHECK(errors.mean <= 1);
  CHECK(errors.mean >= 0.125);
}

/// By f32 of the rounded weights: the same bits where elements are rounded, and where all scales are powers of two; and
/// by the equations in double, within the rounding of f32, where scales are any numbers.
template <class Program, class MakeOracle>
void check_stored(const Program& program, Shape shape, std::size_t D, const MakeOracle& oracle) {
  const ra::Graph& graph = program.graph();
  const NamedNumbers weights = random_weights(graph, 3);
  const std::array batches{some(shape, {9}, 1), some(shape, {1, 7, 2}, 2),
                           some(shape, {3, 1, 2, 5, 4, 1, 3, 3, 2, 1, 4}, 3)};
  auto in_f32 = compile_here(program);

  const auto check = [&](auto& model, const NamedNumbers& bound, const Types& types, bool same_bits) {
    const Weights right{rounded(bound, types, graph), D, std::size_t(hidden)};
    bind_all<float>(model, bound);
    bind_all<float>(in_f32, bound);
    for (const Items& items : batches) {
      CAPTURE(items.roots.size());
      CHECK(error_of<float>(model(items.roots), items, oracle(right, items)) <= 1);
      CHECK((bits_of(model, items) == bits_of(in_f32, items)) == (bound == right.values));
    }
    if (!same_bits) return;
    bind_all<float>(in_f32, right.values);
    for (const Items& items : batches) CHECK(bits_of(model, items) == bits_of(in_f32, items));
  };
  for (const DType type : narrow_types) {
    CAPTURE(program.name(), to_string(type));
    const Types types = matrices_as(type, graph);
    auto model = compile_here(program, Schedule::standard().store_weights(type).multiply_in_vectors());
    check(model, weights, types, type != DType::i8);
    if (type == DType::i8) check(model, whole(weights, graph), types, true);
    check_accuracy(model, shape, weights, types);
  }
  CAPTURE(program.name(), "mixed");
  const Types types = mixed(graph);
  auto model = compile_here(program, stored_as(types));
  check(model, weights, types, false);
  check_accuracy(model, shape, weights, types);
  const auto alone = bits_of(model, batches[2]);
  model.use(std::make_shared<Workers>(1));
  CHECK(bits_of(model, batches[2]) == alone);
}

// Calls `take` with a model of the zoo, its shape, the length of its input and its equations by hand.
template <class Take>
void tree_fc(Take take) {
  take(models::tree_fc<Item>(word, left, right, sizes()).program, Shape::binary, std::size_t(hidden),
       [](const Weights& w, const Items&) { return tree_fc_by_hand(w); });
}
template <class Take>
void dag_rnn(Take take) {
  take(models::dag_rnn<Item>(word, kids, sizes(inputs)).program, Shape::dag, std::size_t(inputs),
       [](const Weights& w, const Items&) { return simple_rnn_by_hand(w, test::relu); });
}
template <class Take>
void tree_gru(Take take) {
  take(models::tree_gru<Item>(word, kids, sizes(inputs)).program, Shape::ragged, std::size_t(inputs),
       [](const Weights& w, const Items&) { return tree_gru_by_hand(w, false, word_vector(w)); });
}
template <class Take>
void tree_lstm(Take take) {
  take(models::tree_lstm<Item>(word, kids, sizes(inputs)).program, Shape::ragged, std::size_t(inputs),
       [](const Weights& w, const Items&) { return tree_lstm_by_hand(w, word_vector(w)); });
}
template <class Take>
void mv_rnn(Take take) {
  take(models::mv_rnn<Item>(word, left, right, sizes()).program, Shape::binary, std::size_t(hidden),
       [](const Weights& w, const Items&) { return mv_rnn_by_hand(w); });
}
template <class Take>
void lstm(Take take) {
  take(models::lstm<Item>(word, before, sizes(inputs)).program, Shape::sequence, std::size_t(inputs),
       [](const Weights& w, const Items& items) {
         return layers_by_hand(w, 1, false, false, [&](const Item* n) { return items.next(n); });
       });
}
template <class Take>
void gru(Take take) {
  take(models::gru<Item>(word, before, sizes(inputs)).program, Shape::sequence, std::size_t(inputs),
       [](const Weights& w, const Items& items) {
         return layers_by_hand(w, 1, false, true, [&](const Item* n) { return items.next(n); });
       });
}

}  // namespace

TEST_CASE("stored weights give what rounded ones give, near to those of f32: TreeFC and DAG-RNN", "[models][stored]") {
  tree_fc([](const auto&... model) { check_stored(model...); });
  dag_rnn([](const auto&... model) { check_stored(model...); });
}
TEST_CASE("stored weights give what rounded ones give, near to those of f32: TreeGRU", "[models][stored]") {
  tree_gru([](const auto&... model) { check_stored(model...); });
}
TEST_CASE("stored weights give what rounded ones give, near to those of f32: TreeLSTM", "[models][stored]") {
  tree_lstm([](const auto&... model) { check_stored(model...); });
}
TEST_CASE("stored weights give what rounded ones give, near to those of f32: MV-RNN", "[models][stored]") {
  mv_rnn([](const auto&... model) { check_stored(model...); });
}
TEST_CASE("stored weights give what rounded ones give, near to those of f32: LSTM", "[models][stored]") {
  lstm([](const auto&... model) { check_stored(model...); });
}
TEST_CASE("stored weights give what rounded ones give, near to those of f32: GRU", "[models][stored]") {
  gru([](const auto&... model) { check_stored(model...); });
}

TEST_CASE("channels of zeros, with an outlier, and of the smallest numbers are stored as they should be",
          "[models][stored]") {
  const auto check = [](const auto& program, Shape shape, std::size_t D, const auto& oracle) {
    const ra::Graph& graph = program.graph();
    NamedNumbers weights = random_weights(graph, 5);
    for (auto& [name, values] : weights) {
      const std::size_t row = row_of(graph, name);
      if (rank_of(graph, name) < 2) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t r = i / row % 7, column = i % row;
        double& x = values[i];
        if (r == 0) x = 0;
        if (r == 1 && column == r) x = 10000;
        if (r == 2) x *= 0x1p-130;
        if (r == 3 && column) x *= 0x1p-130;
        if (r == 4) x *= 0x1p-20;
        x = double(float(x));
      }
    }
    const Items items = some(shape, {4, 1, 2, 5, 3, 1, 1, 2, 1, 1, 1, 2, 1, 1}, 5);
    auto in_f32 = compile_here(program);
    for (const DType type : narrow_types) {
      CAPTURE(program.name(), to_string(type));
      Types types;
      for (const auto& [name, values] : weights) types[name] = type;
      const Weights right{rounded(weights, types, graph), D, std::size_t(hidden)};
      auto model = compile_here(program, stored_as(types));
      bind_all<float>(model, weights);
      bind_all<float>(in_f32, right.values);
      CHECK(error_of<float>(model(items.roots), items, oracle(right, items)) <= 1);
      if (type != DType::i8) CHECK(bits_of(model, items) == bits_of(in_f32, items));
    }
  };
  tree_fc(check);
  tree_lstm(check);
}

TEST_CASE("subnormal weights are multiplied as they are stored", "[models][stored]") {
  tree_fc([](const auto& program, Shape shape, std::size_t D, const auto& oracle) {
    NamedNumbers weights = random_weights(program.graph(), 6);
    for (double& x : weights["Emb"]) x *= 0x1p113;  // times 127, the sum of a row is finite
    for (std::size_t i = 0; i < weights["W"].size(); ++i)
      weights["W"][i] = double(float(std::ldexp(weights["W"][i], -117 - int(i / std::size_t(hidden) % 6))));
    const Items items = some(shape, {3, 3, 5}, 6);
    auto in_f32 = compile_here(program);
    for (const DType type : narrow_types) {
      CAPTURE(to_string(type));
      const Weights right{rounded(weights, {{"W", type}}, program.graph()), D, std::size_t(hidden)};
      auto model = compile_here(program, stored_as({{"W", type}}));
      bind_all<float>(model, weights);
      CHECK(error_of<float>(model(items.roots), items, oracle(right, items)) <= 1);
      bind_all<float>(in_f32, right.values);
      if (type != DType::i8) CHECK(bits_of(model, items) == bits_of(in_f32, items));
      CHECK((right("W") == Numbers(right("W").size())) == (type == DType::f16));
    }
  });
}
