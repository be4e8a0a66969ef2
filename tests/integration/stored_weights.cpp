// Models whose weights are stored in two bytes an element or one: how far their states lie from those of f32, what is
// exactly the same, and what is refused.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cortex/base/half.hpp"
#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/ra/bounded.hpp"
#include "cortex/weights/safetensors.hpp"
#include "support/compile.hpp"
#include "weights/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Contains;
using ra::Bounded;

namespace {

struct Phrase {
  int word = 0;
  std::vector<const Phrase*> kids;
};
constexpr auto word = cortex::field<&Phrase::word>;
constexpr auto kids = cortex::children<&Phrase::kids>;
constexpr int words = 5;
constexpr DType narrow_types[] = {DType::bf16, DType::f16, DType::i8};

/// A tree of three levels below its root, of one to three children.
struct Tree {
  std::deque<Phrase> nodes;
  const Phrase* root;
  explicit Tree(unsigned seed) : random(seed) { root = grow(3); }

 private:
  std::mt19937 random;
  const Phrase* grow(int height) {
    Phrase phrase;
    phrase.word = int(random() % words);
    for (unsigned k = height ? 1 + random() % 3 : 0; k > 0; --k) phrase.kids.push_back(grow(height - 1));
    return &nodes.emplace_back(phrase);
  }
};

using Values = std::map<std::string, std::vector<float>>;

/// Values for all inputs of a model: matrices by their fan-in, tables and vectors of unit size.
template <class Make>
Values values_for(const runtime::Executable& executable, Make make) {
  Values values;
  unsigned seed = 1;
  for (const runtime::WeightSpec& input : executable.weights) {
    std::size_t count = 1;
    for (const Dim& dim : input.dims) count *= std::size_t(dim.kind() == DimKind::open ? words : dim.extent());
    const bool matrix = input.dims.size() > 1 && input.dims[0].kind() != DimKind::open;
    values[input.name] = make(count, matrix ? 1 / std::sqrt(float(input.dims.back().extent())) : 1, seed++);
  }
  return values;
}

/// Whole numbers from -3 to 3.
std::vector<float> whole(std::size_t count, float, unsigned seed) {
  std::vector<float> values = uniform(count, 3.5f, seed);
  for (float& x : values) x = std::nearbyint(x);
  return values;
}

template <class Model>
Model& bind_all(Model& model, const Values& values) {
  for (const auto& [name, elements] : values) model.bind(name, elements);
  return model;
}

template <class Result>
std::vector<float> states_of(const Result& result) {
  std::vector<float> all;
  for (std::size_t r = 0; r < result.size(); ++r) all.insert(all.end(), result[r].begin(), result[r].end());
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// h = W Emb[word] + U (sum of the children's h) + b: with whole numbers, a sum of whole numbers.
auto linear_model(int hidden = 20) {
  Dim V{"vocabulary"}, D{"input", 12}, H{"hidden", hidden};
  Model<Phrase> m("linear", cortex::tree);
  auto Emb = m.input<float>("Emb", V, D), W = m.input<float>("W", H, D), U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(D, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
           sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + b(i);
  });
  return m.recursion_op(h, body);
}

/// h = Emb[word] + a bilinear form of Emb[word] and the sum of the children's h for each output: sums inside of sums.
auto tensor_model(int hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Phrase> m("tensor", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto T = m.input<float>("T", H, H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return Emb(word(n), i) +
           sum(H, [&](auto a) { return Emb(word(n), a) * sum(H, [&](auto b) { return T(i, a, b) * s(n, b); }); });
  });
  return m.recursion_op(h, body);
}

// ---- the error of a TreeLSTM ----

/// The child-sum TreeLSTM as plain recursion over numbers with error bounds.
class BoundedLstm {
 public:
  static constexpr std::size_t D = 16, H = 32;
  /// `errors`: for each matrix, how far each stored element may lie from the element bound.
  BoundedLstm(const Values& values, const Values& errors) : values_(values), errors_(errors) {}

  struct State {
    std::vector<Bounded> h, c;
  };
  State operator()(const Phrase& n) const {
    std::vector<State> below;
    for (const Phrase* k : n.kids) below.push_back((*this)(*k));
    std::vector<Bounded> x, s(H);
    for (std::size_t j = 0; j < D; ++j) x.push_back({values_.at("Emb")[std::size_t(n.word) * D + j], 0});
    for (std::size_t j = 0; j < H; ++j)
      for (const State& k : below) s[j] = math_.add(s[j], k.h[j], DType::f32);
    State state;
    for (std::size_t i = 0; i < H; ++i) {
      const Bounded update = of(ir::UnaryOp::tanh, gate("u", i, x, s));
      Bounded c = math_.mul(of(ir::UnaryOp::sigmoid, gate("i", i, x, s)), update, DType::f32);
      for (const State& k : below)
        c = math_.add(c, math_.mul(of(ir::UnaryOp::sigmoid, gate("f", i, x, k.h)), k.c[i], DType::f32), DType::f32);
      state.c.push_back(c);
      state.h.push_back(math_.mul(of(ir::UnaryOp::sigmoid, gate("o", i, x, s)), of(ir::UnaryOp::tanh, c), DType::f32));
    }
    return state;
  }

 private:
  Bounded of(ir::UnaryOp op, const Bounded& a) const { return math_.unary(op, a, DType::f32); }
  Bounded gate(const std::string& g, std::size_t i, const std::vector<Bounded>& x,
               const std::vector<Bounded>& s) const {
    return math_.add(math_.add(product("W_" + g, i, x), product("U_" + g, i, s), DType::f32),
                     {values_.at("b_" + g)[i], 0}, DType::f32);
  }
  Bounded product(const std::string& name, std::size_t i, const std::vector<Bounded>& x) const {
    auto sum = math_.sum(DType::f32);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const std::size_t at = i * x.size() + j;
      sum.add(math_.mul({values_.at(name)[at], errors_.at(name)[at]}, x[j], DType::f32));
    }
    return sum.result();
  }

  const Values &values_, &errors_;
  // Twice the unit roundoff: where scales multiply a finished sum, each of its terms is rounded once more.
  const ra::Arithmetic<Bounded> math_{ra::Rounding{.f32 = 0x1p-23}};
};

/// How far a stored element may lie from what was bound: the unit roundoff u of the type times the element (and half of
/// the least subnormal of f16); for i8 half of the scale s = max |w| / 127 of the element's row of `row` elements.
std::vector<float> storage_errors(DType type, const std::vector<float>& elements, std::size_t row) {
  std::vector<float> errors;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    float largest = 0;
    for (std::size_t j = i / row * row; j < (i / row + 1) * row; ++j)
      largest = std::max(largest, std::abs(elements[j]));
    const float w = std::abs(elements[i]);
    errors.push_back(type == DType::bf16  ? 0x1p-8f * w
                     : type == DType::f16 ? 0x1p-11f * w + 0x1p-25f
                     : type == DType::i8  ? largest / 127 / 2 * (1 + 0x1p-20f)
                                          : 0);
  }
  return errors;
}

template <class Program>
auto interpreted(const Program& program, const Schedule& schedule = Schedule::standard()) {
  CompileOptions options;
  options.target = Target::interpreter();
  return compile(program, schedule, options);
}

auto small_lstm(const Schedule& schedule) {
  return compile_here(
      models::tree_lstm<Phrase>(word, kids, {.input = int(BoundedLstm::D), .hidden = int(BoundedLstm::H)}).program,
      schedule);
}

}  // namespace

TEST_CASE("a TreeLSTM's states are within what its storage's unit roundoff makes of them", "[stored]") {
  const Tree tree(3);
  for (const DType type : narrow_types) {
    INFO(to_string(type));
    auto model = small_lstm(Schedule::standard().store_weights(type));
    const Values values = values_for(model.executable(), uniform);
    Values errors, none;
    for (const auto& [name, elements] : values) {
      if (name[0] != 'W' && name[0] != 'U') continue;
      errors[name] = storage_errors(type, elements, name[0] == 'W' ? BoundedLstm::D : BoundedLstm::H);
      none[name].resize(elements.size());
    }
    const std::vector<float> got = states_of(bind_all(model, values)(tree.root));
    const std::vector<Bounded> right = BoundedLstm(values, errors)(*tree.root).h,
                               of_f32 = BoundedLstm(values, none)(*tree.root).h;
    double widest = 0;
    bool like_f32 = true;
    for (std::size_t i = 0; i < right.size(); ++i) {
      INFO(i << ": " << got[i] << ", right is " << right[i].value << " within " << right[i].error);
      CHECK(right[i].covers(got[i]));
      like_f32 &= of_f32[i].covers(got[i]);
      widest = std::max(widest, right[i].error);
    }
    CHECK(widest < 0.5);    // the bound says something: states are below 1
    CHECK_FALSE(like_f32);  // and so does the test: weights were rounded
  }
}

TEST_CASE("a stored weight gives to the bit what an f32 of its value gives", "[stored]") {
  const Tree tree(5);
  const auto check = [&](const auto& program, std::vector<std::string> matrices) {
    auto in_f32 = compile_here(program);
    for (const DType type : {DType::bf16, DType::f16})
      for (const bool by_name : {false, true}) {
        Schedule schedule = Schedule::standard().multiply_in_vectors();
        if (!by_name) schedule = schedule.store_weights(type);
        for (const std::string& name : matrices)
          if (by_name) schedule = schedule.store(name, type);
        auto model = compile_here(program, schedule);
        Values values = values_for(model.executable(), uniform);
        const std::vector<float> got = states_of(bind_all(model, values)(tree.root));
        CHECK_FALSE(same_bits(got, states_of(bind_all(in_f32, values)(tree.root))));
        for (const std::string& name : matrices)
          for (float& x : values[name]) x = type == DType::bf16 ? from_bf16(to_bf16(x)) : from_f16(to_f16(x));
        CHECK(same_bits(got, states_of(bind_all(in_f32, values)(tree.root))));
      }
  };
  check(linear_model(32), {"W", "U"});
  check(tensor_model(24), {"T"});
}

TEST_CASE("with small whole numbers every storage gives what f32 gives, in machine code and interpreted",
          "[stored][equality]") {
  const Tree tree(7);
  const auto check = [&](const auto& program, const char* matrix, const char* other) {
    auto reference = interpreted(program, Schedule::standard());
    const Values values = values_for(reference.executable(), whole);
    const std::vector<float> right = states_of(bind_all(reference, values)(tree.root));
    for (const DType type : narrow_types) {
      const Schedule stored = Schedule::standard().store_weights(type),
                     all = stored.store("Emb", type).store(other, type);
      for (const Schedule& schedule : {stored, all, stored.loops(Loops{}), Schedule{}.store(matrix, type)}) {
        INFO(to_string(schedule));
        auto model = interpreted(program, schedule);
        CHECK(same_bits(states_of(bind_all(model, values)(tree.root)), right));
      }
      for (const Schedule& schedule : {all, Schedule::standard().store(matrix, type)}) {
        INFO(to_string(schedule));
        auto model = compile_here(program, schedule);
        CHECK(same_bits(states_of(bind_all(model, values)(tree.root)), right));
      }
    }
  };
  check(linear_model(), "U", "b");
  check(tensor_model(4), "T", "T");
}

TEST_CASE("pieces of a loop that is cut multiply their own sums by the scales", "[stored][equality]") {
  const Tree tree(13);
  for (const bool by_row : {false, true}) {  // a scale for all rows, or one for each
    const Dim V("vocabulary"), D("rows", 5), E("columns", 8);
    Model<Phrase> m("shifted", cortex::tree);
    auto Emb = m.input<float>("Emb", V, D, E);
    auto W = m.input<float>("W", D, E);
    auto h = m.placeholder<float>("h", D, E);
    auto body = m.compute("body", D, E, [&](auto n, auto i, auto j) {
      return Emb(word(n), i, j) + sum(kids(n), [&](auto k) {
               const auto above = select(i >= 1, h(k, max(i - 1, 0), j), 0.0f);
               return (by_row ? W(i, j) : W(2, j)) * above;
             });
    });
    const auto program = m.recursion_op(h, body);
    auto reference = interpreted(program, Schedule::standard());
    const Values values = values_for(reference.executable(), whole);
    const auto root_of = [&](auto&& result) {
      std::vector<float> state(5 * 8);
      result.copy_root(0, h, state);
      return state;
    };
    const std::vector<float> right = root_of(bind_all(reference, values)(tree.root));
    for (const Schedule& schedule : {Schedule::standard(), Schedule{}.dynamic_batch(), Schedule{}}) {
      INFO(by_row << ", " << to_string(schedule));
      auto model = compile_here(program, schedule.store("W", DType::i8));
      CHECK(same_bits(root_of(bind_all(model, values)(tree.root)), right));
    }
  }
}

TEST_CASE("with stored weights any number of workers gives the same bits", "[stored]") {
  const Tree tree(9);
  const auto program = linear_model(48);
  auto workers = std::make_shared<Workers>(2);
  for (const DType type : {DType::bf16, DType::i8}) {
    INFO(to_string(type));
    auto model = compile_here(program, Schedule::standard().store_weights(type).workers(3));
    bind_all(model, values_for(model.executable(), uniform));
    const std::vector<float> alone = states_of(model(tree.root));
    model.use(workers);
    for (int call = 0; call < 5; ++call) CHECK(same_bits(states_of(model(tree.root)), alone));
  }
}

TEST_CASE("weights that are bound again are stored again, and take fewer bytes", "[stored]") {
  const Tree tree(11);
  const auto program = linear_model(64);
  auto reference = interpreted(program);
  const Values first = values_for(reference.executable(), whole), second = [&] {
    Values twice = first;
    for (float& x : twice["U"]) x *= 2;
    return twice;
  }();
  const std::vector<float> one = states_of(bind_all(reference, first)(tree.root)),
                           two = states_of(bind_all(reference, second)(tree.root));
  auto model = interpreted(program, Schedule::standard().store_weights(DType::i8));
  CHECK(same_bits(states_of(bind_all(model, first)(tree.root)), one));
  CHECK(same_bits(states_of(bind_all(model, second)(tree.root)), two));
  CHECK(same_bits(states_of(model.bind("U", first.at("U"))(tree.root)), one));
  CHECK(model.memory().weights < reference.memory().weights / 2);
}

TEST_CASE("a file of 16-bit floats is bound to weights stored alike, without a rounding", "[stored]") {
  const Tree tree(13);
  const auto program = linear_model();
  const TemporaryFolder folder;
  for (const auto& [type, in_file] :
       {std::pair(DType::bf16, TensorType::BF16), std::pair(DType::f16, TensorType::F16)}) {
    auto model = interpreted(program, Schedule::standard().store_weights(type)), reference = interpreted(program);
    Values values = values_for(model.executable(), uniform);
    std::vector<TensorToWrite> tensors;
    for (const runtime::WeightSpec& input : model.executable().weights) {
      std::vector<std::int64_t> shape;
      for (const Dim& dim : input.dims) shape.push_back(dim.kind() == DimKind::open ? words : dim.extent());
      tensors.push_back({input.name, shape, std::span<const float>(values[input.name]), in_file});
    }
    write_safetensors(folder / "weights", tensors);
    const SafetensorsFile file = SafetensorsFile::open(folder / "weights");
    bind(model, file);
    bind(reference, file);
    CHECK(same_bits(states_of(model(tree.root)), states_of(reference(tree.root))));
  }
}

TEST_CASE("infinity and NaN in weights of 16 bits reach the states", "[stored]") {
  const Phrase leaf{1, {}};
  const auto check = [&](auto model) {
    Values values = values_for(model.executable(), whole);
    values["Emb"].assign(values["Emb"].size(), 1);
    values["W"][0] = INFINITY, values["W"][12] = NAN;
    const std::vector<float> h = states_of(bind_all(model, values)(leaf));
    CHECK((h[0] == INFINITY && std::isnan(h[1]) && std::isfinite(h[2])));
  };
  for (const DType type : {DType::bf16, DType::f16}) {
    const Schedule schedule = Schedule::standard().store_weights(type);
    check(interpreted(linear_model(), schedule));
    check(compile_here(linear_model(), schedule));
  }
}

TEST_CASE("what a storage cannot hold is refused when it is bound, and nothing is changed", "[stored][refusal]") {
  const Phrase leaf{1, {}};
  const auto program = linear_model();
  const auto refused = [&](DType type, float value) {
    auto model = interpreted(program, Schedule::standard().store_weights(type));
    Values values = values_for(model.executable(), whole);
    const std::vector<float> before = states_of(bind_all(model, values)(leaf));
    values["W"][3 * 12 + 7] = value;
    const auto answer = model.try_bind("W", values["W"]);
    if (answer) return std::string("no error");
    CHECK(answer.error().code == Code::invalid_weights);
    CHECK(same_bits(states_of(model(leaf)), before));
    return answer.error().message;
  };
  CHECK_THAT(
      refused(DType::f16, 70000),
      Contains("weight 'W' of model 'linear' is f32 [hidden 20, input 12] but element [3, 7] is 70000, which f16, "
               "as which the schedule stores it, does not hold: its largest is 65504"));
  CHECK_THAT(refused(DType::i8, -INFINITY), Contains("element [3, 7] is -inf, which i8, as which"));
  CHECK_THAT(refused(DType::i8, NAN), Contains("element [3, 7] is nan, which i8, as which"));
  CHECK_THAT(refused(DType::bf16, -3.4e38f),
             Contains("element [3, 7] is -3.4e+38, which bf16, as which the schedule stores it, does not hold: its "
                      "largest is 3.38953e+38"));
  CHECK(refused(DType::bf16, 1e30f) == "no error");
}

TEST_CASE("a schedule that stores what is no input of f32, or as no such type, is refused", "[stored][refusal]") {
  Dim H{"hidden", 4};
  Model<Phrase> m("two_types", cortex::tree);
  auto A = m.input<double>("A", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return cast<float>(sum(H, [&](auto j) { return A(i, j); })) + b(i) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, body);
  const auto refused = [&](const Schedule& schedule) {
    CompileOptions options;
    options.target = Target::interpreter();
    const auto answer = try_compile(program, schedule, options);
    if (answer) return std::string("no error");
    CHECK(answer.error().code == Code::invalid_schedule);
    return answer.error().message;
  };
  CHECK_THAT(refused(Schedule{}.store("B", DType::bf16)),
             Contains("store: model 'two_types' has no input 'B'; its inputs are 'A', 'b'"));
  CHECK_THAT(refused(Schedule{}.store(A, DType::bf16)),
             Contains("store: input 'A' of model 'two_types' is f64; inputs of f32 alone are stored as another type"));
  CHECK_THAT(
      refused(Schedule{}.store_weights(DType::i8)),
      Contains("store: input 'A' of model 'two_types' is f64; store_weights is for models whose matrices are f32"));
  CHECK_THAT(refused(Schedule{}.store(b, DType::f64)),
             Contains("store: weights are stored as f32, bf16, f16 or i8, and not as f64"));
  CHECK_THAT(refused(Schedule{}.store_weights(DType::boolean)), Contains("and not as bool"));
  for (const int none : {9, 50, 255}) CHECK_THAT(refused(Schedule{}.store(b, DType(none))), Contains("and not as ?"));
  CHECK(refused(Schedule{}.store(b, DType::bf16)) == "no error");
}

TEST_CASE("an explanation tells what weights are stored as, and their bytes", "[stored][explain]") {
  const Schedule schedule = Schedule::standard().store_weights(DType::i8).store("Emb", DType::bf16);
  const std::string text = explain(interpreted(linear_model(), schedule));
  CHECK_THAT(text, Contains("stored: those that sums of products read as i8, Emb as bf16; arithmetic is in f32"));
  CHECK_THAT(text,
             Contains("i8 [hidden 20, input 12]") && Contains("of W\n") && Contains("bf16 [vocabulary, input 12]"));
  CHECK_THAT(text, Contains("scales of U"));
}
