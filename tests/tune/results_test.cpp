// Whether results are told from wrong ones, and calls from each other.
#include "cortex/tune/results.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "cortex/base/half.hpp"
#include "support/compile.hpp"
#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// The TreeLSTM, whose two states depend on products, at a tree of three words and at one word.
struct Called {
  explicit Called(const Schedule& schedule, const Target& target = Target::interpreter())
      : Called(schedule, CompileOptions{target}) {}
  Called(const Schedule& schedule, const CompileOptions& options) : model(compile(tree_lstm(6), schedule, options)) {
    unsigned seed = 1;
    for (const runtime::WeightSpec& spec : model.executable().weights)
      model.bind(spec.name, uniform(spec.dims.size() == 1 ? 6 : spec.name == "Emb" ? 18 : 36, 0.5f, seed++));
    output = model(phrases.batches[0]);
  }
  /// The call anew, with these roots.
  const runtime::Workspace& call(const std::vector<const Word*>& roots) {
    output = {};
    output = model(roots);
    return call();
  }
  const runtime::Workspace& call() const { return output.workspace(); }
  /// An element of a state at the first root.
  float& element(std::size_t state, std::size_t i) {
    const runtime::StateView& view = call().plan().states[state];
    return reinterpret_cast<float*>(const_cast<std::byte*>(call().row(view, call().arrays().root[0])))[i];
  }

  Phrases phrases;
  decltype(compile(tree_lstm(6))) model;
  decltype(model)::Output output;
};

CompileOptions two_threads() {
  return CompileOptions{Target::interpreter()}.with_workers(std::make_shared<Workers>(1));
}

}  // namespace

TEST_CASE("schedules that round alike give one fingerprint", "[tune]") {
  const auto expected = tuning::fingerprint(Called(Schedule::standard()).call());
  CHECK(expected.size() == 2 * 6);  // two states at six nodes
  CHECK(tuning::round_alike(Schedule::standard().workers(2).groups(2), Schedule::standard(), Target::interpreter()));
  CHECK(tuning::fingerprint(Called(Schedule::standard().workers(2), two_threads()).call()) == expected);
}

TEST_CASE("roots have one fingerprint whichever groups of workers they are in", "[tune]") {
  Phrases first, second;
  const std::vector<const Word*> roots{&first.ab, &first.c, &second.d, &second.abc};
  const auto expected = tuning::fingerprint(Called(Schedule::standard()).call(roots));
  CHECK(expected.size() == 2 * (3 + 1 + 1 + 5));
  Called divided(Schedule::standard().workers(2).groups(2), two_threads());
  REQUIRE(divided.call(roots).num_groups() == 2);
  CHECK(tuning::fingerprint(divided.call()) == expected);
}

TEST_CASE("equal subtrees have one fingerprint, whether they are computed once or each", "[tune]") {
  Phrases one, two;
  const Word halves{-1, &one.abc, &two.abc}, shared{-1, &one.abc, &one.ab}, dag{-1, &shared, &two.ab};
  const auto check = [](const auto& program, const Word& root, std::size_t nodes, std::size_t different) {
    for (const Target& target : {Target::interpreter(), best_target()}) {
      const Schedule each = Schedule::standard().share_no_subtrees(), once = each.share_subtrees();
      const auto call = [&](const Schedule& schedule) {
        auto model = compile(program, schedule, CompileOptions{target});
        model.bind("Emb", uniform(12, 0.9f, 3));
        auto result = model(root);
        CHECK(std::size_t(result.num_computed()) == (schedule == once ? different : nodes));
        return tuning::fingerprint(result.workspace());
      };
      CHECK(tuning::round_alike(each, once, target));
      CHECK(call(each) == call(once));
    }
  };
  check(tree_rnn(4), halves, 11, 6);
  Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Word> m("graph", cortex::dag);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return tanh(h(left(n), i) + 2 * h(right(n), i)); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  check(m.recursion_op(h, body), dag, 10, 7);
}

TEST_CASE("machine code rounds alike whether or not nodes run in batches, and in tiles of any rows", "[tune]") {
  need_llvm();
  const Target here = host_target();
  const auto expected = tuning::fingerprint(Called(Schedule::standard(), here).call());
  for (const Schedule& schedule :
       {Schedule{}.specialize_where_it_pays().specialize_leaves(), Schedule::standard().tile_rows(3).tile_vectors(2)}) {
    INFO(to_string(schedule));
    CHECK(tuning::round_alike(schedule, Schedule::standard(), here));
    CHECK(tuning::fingerprint(Called(schedule, here).call()) == expected);
  }
}

TEST_CASE("what is added up otherwise does not round alike", "[tune]") {
  const Schedule cut = Schedule{}.workers(2).refactor("a");
  for (const Target& target : {Target{}, Target::interpreter()}) {
    CHECK_FALSE(tuning::round_alike(Schedule{}.exact_activations(), Schedule{}, target));
    CHECK_FALSE(tuning::round_alike(cut, Schedule{}.workers(2), target));
    CHECK(tuning::round_alike(cut, cut, target));
    CHECK_FALSE(tuning::round_alike(cut, cut.workers(3), target));
    const Schedule open = cut.workers_where_they_pay();  // cut by shapes alone
    CHECK_FALSE(tuning::round_alike(cut, open, target));
    CHECK(tuning::round_alike(open, cut.workers(3).workers_where_they_pay(), target));
  }
  CHECK_FALSE(tuning::round_alike(Schedule{}.fuse_nothing(), Schedule{}, Target{}));  // as may those of what is fused
  // What a version computes together, or ahead, others may not.
  for (const Schedule& apart : {Schedule{}.specialize_leaves(), Schedule{}.specialize_if_else()})
    for (const Target& target : {Target{}, Target::cuda(Gpu::of(90))})
      CHECK_FALSE(tuning::round_alike(apart, Schedule{}, target));
  CHECK(tuning::round_alike(cut, cut.tile_rows(2), Target{}));
  CHECK_FALSE(tuning::round_alike(cut, cut.tile_gates(1), Target{}));  // two sums side by side may become one
  CHECK_FALSE(tuning::round_alike(cut, cut.tile_rows(2), Target::interpreter()));
}

TEST_CASE("what a matrix unit multiplies in one schedule and vectors in another does not round alike", "[tune]") {
  Target with_unit;
  with_unit.matrix_unit = true;
  const Schedule bf16 = Schedule::standard().store_weights(DType::bf16);
  CHECK_FALSE(tuning::round_alike(bf16, bf16.multiply_in_vectors(), with_unit));
  CHECK(tuning::round_alike(bf16, bf16.multiply_in_vectors(), Target{}));
  CHECK(tuning::round_alike(bf16, bf16.workers(3).groups(2).fill_levels(4), with_unit));
  CHECK(tuning::round_alike(Schedule{}, Schedule{}.dynamic_batch(), with_unit));
  const Schedule one = Schedule{}.store("U", DType::bf16);
  CHECK_FALSE(tuning::round_alike(one, one.dynamic_batch(), with_unit));
}

TEST_CASE("a fingerprint changes with the last bit of any element, and not with the sign of zero", "[tune]") {
  Called one(Schedule::standard());
  const auto before = tuning::fingerprint(one.call());
  for (const std::size_t state : {0, 1}) {
    float& element = one.element(state, 3);
    const float was = std::exchange(element, std::nextafter(element, 9.0f));
    CHECK(tuning::fingerprint(one.call()) != before);
    element = was;
  }
  one.element(0, 0) = 0.0f;
  const auto with_zero = tuning::fingerprint(one.call());
  one.element(0, 0) = -0.0f;
  CHECK(tuning::fingerprint(one.call()) == with_zero);
}

TEST_CASE("results keep to the equations, in any order of nodes and sums", "[tune]") {
  for (const Schedule& schedule : {Schedule::standard(), Schedule{}, Schedule::standard().exact_activations()})
    CHECK(tuning::mismatch(Called(schedule).call()).value_or("") == "");
}

TEST_CASE("a state that no right evaluation gives is found, with where it stands", "[tune]") {
  Called one(Schedule::standard());
  const int root = one.call().arrays().root[0];
  one.element(0, 4) += 1e-5f;
  CHECK_THAT(tuning::mismatch(one.call()).value_or(""),
             Contains("state 'h': element 4 at node " + std::to_string(root) + " is "));
  Called other(Schedule::standard());
  other.element(1, 2) = NAN;
  CHECK_THAT(tuning::mismatch(other.call()).value_or(""), Contains("state 'c': element 2"));
}

TEST_CASE("as many nodes are held against the equations as there is time for", "[tune]") {
  Called one(Schedule::standard());
  const int nodes = one.call().arrays().num_nodes;
  one.element(0, 4) += 1e-5f;
  tuning::Effort none{100, 0}, all{100, 1e9};
  CHECK_FALSE(tuning::mismatch(one.call(), none));
  CHECK(none.nodes == 100);
  CHECK(tuning::mismatch(one.call(), all));
  Called right(Schedule::standard());
  tuning::Effort enough{100, 1e9};
  CHECK_FALSE(tuning::mismatch(right.call(), enough));
  CHECK(enough.nodes == 100 - nodes);
}

TEST_CASE("weights are read from their copies as they are stored", "[tune]") {
  Called reference(Schedule::standard());
  for (const DType type : {DType::bf16, DType::f16, DType::i8})
    for (const Target& target : {Target::interpreter(), best_target()}) {
      INFO(to_string(type));
      const Called one(Schedule::standard().store_weights(type).store("Emb", type), target);
      const ra::Weights stored = tuning::detail::weights_of(one.call()),
                        bound = tuning::detail::weights_of(reference.call());
      int other = 0, wrong = 0;
      for (const char* name : {"Ui", "Uf", "Emb"}) {
        const std::vector<double>&is = stored.at(name).values, &was = bound.at(name).values;
        REQUIRE(is.size() == was.size());
        CHECK(stored.at(name).rounding == (type == DType::i8 ? 0x1p-24 : 0));
        for (std::size_t row = 0; row < is.size(); row += 6) {
          double largest = 0;
          for (std::size_t i = row; i < row + 6; ++i) largest = std::max(largest, std::abs(was[i]));
          for (std::size_t i = row; i < row + 6; ++i) {
            const float x = float(was[i]);
            const double half = largest / 127 / 2 * (1 + 1e-6);
            wrong += type == DType::bf16  ? is[i] != from_bf16(to_bf16(x))
                     : type == DType::f16 ? is[i] != from_f16(to_f16(x))
                                          : std::abs(is[i] - was[i]) > half;
            other += is[i] != was[i];
          }
        }
      }
      CHECK(wrong == 0);
      CHECK(other > 50);
      CHECK(stored.at("bi").values == bound.at("bi").values);
      CHECK(tuning::mismatch(one.call()).value_or("") == "");
    }
}

TEST_CASE("an element that a scale multiplies is rounded once, and right", "[tune]") {
  for (const Target& target : {Target::interpreter(), best_target()}) {
    auto model = compile(tree_rnn(4), Schedule::standard().store("Emb", DType::i8), CompileOptions{target});
    const Phrases phrases;
    model.bind("Emb", uniform(12, 0.9f, 3));
    CHECK(tuning::mismatch(model(phrases.batches[0]).workspace()).value_or("") == "");
  }
}

TEST_CASE("a wrong result of stored weights is found", "[tune]") {
  Called one(Schedule::standard().store_weights(DType::i8).store("Emb", DType::i8));
  one.element(0, 4) += 1e-5f;
  CHECK_THAT(tuning::mismatch(one.call()).value_or(""), Contains("state 'h': element 4"));
}

TEST_CASE("what is stored otherwise does not round alike", "[tune]") {
  const Schedule plain = Schedule::standard();
  for (const Target& target : {Target{}, Target::interpreter()}) {
    CHECK_FALSE(tuning::round_alike(plain.store_weights(DType::bf16), plain, target));
    CHECK_FALSE(tuning::round_alike(plain.store("Emb", DType::bf16), plain, target));
    CHECK_FALSE(tuning::round_alike(plain.store("Emb", DType::bf16), plain.store("Emb", DType::f16), target));
    CHECK(tuning::round_alike(plain.store_weights(DType::i8), plain.store_weights(DType::i8).workers(2), target));
  }
}

TEST_CASE("the shape of a call has the nodes and edges of each level", "[tune]") {
  const Called one(Schedule::standard());
  const schedule::CallShape shape = tuning::shape_of(one.call());
  REQUIRE(shape.levels.size() == 3);
  CHECK(shape.levels[0].nodes == 4);
  CHECK(shape.levels[0].edges == 0);
  CHECK(shape.levels[1].nodes == 1);
  CHECK(shape.levels[1].edges == 2);
  CHECK(shape.levels[2].edges == 2);
  CHECK(shape.roots == 2);
  CHECK(shape.nodes() == 6);
}
