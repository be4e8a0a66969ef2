// The models of the zoo over sequences, held against their equations by hand.
#include <catch2/catch.hpp>

#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "models/check.hpp"
#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// The equations of torch's layers.
auto layers(int count, bool both, bool gru) {
  return [=](const Weights& w, const Items& items) {
    return layers_by_hand(w, count, both, gru, [&](const Item* n) { return items.next(n); });
  };
}

}  // namespace

TEST_CASE("LSTM gives what its equations give, in float and in double", "[models]") {
  check_sizes([](int D, int H) { return models::lstm<Item>(word, before, sizes(D, H)).program; }, Shape::sequence, true,
              layers(1, false, false));
  check_sizes<double>([](int D, int H) { return models::lstm<Item, double>(word, before, sizes(D, H)).program; },
                      Shape::sequence, true, layers(1, false, false), {33});
}

TEST_CASE("GRU gives what its equations give, in float and in double", "[models]") {
  check_sizes([](int D, int H) { return models::gru<Item>(word, before, sizes(D, H)).program; }, Shape::sequence, true,
              layers(1, false, true));
  check_sizes<double>([](int D, int H) { return models::gru<Item, double>(word, before, sizes(D, H)).program; },
                      Shape::sequence, true, layers(1, false, true), {33});
}

TEST_CASE("the GRU is a cell of a model of one's own", "[models]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) { return models::gru_cell(m, x, before, s); };
  check_sizes(own_model(cortex::sequence, cell), Shape::sequence, true, layers(1, false, true), {16});
}

TEST_CASE("the GRU with the reset before the product gives what its equations give", "[models]") {
  check_sizes([](int D, int H) { return models::gru_reset_before<Item>(word, before, sizes(D, H)).program; },
              Shape::sequence, true,
              [](const Weights& w, const Items&) { return tree_gru_by_hand(w, false, word_vector(w)); });
}

TEST_CASE("two layers of an LSTM and three of a GRU read each other", "[models][slow]") {
  check_sizes([](int D, int H) { return models::lstm<Item, float, 2>(word, before, sizes(D, H)).program; },
              Shape::sequence, true, layers(2, false, false), {});
  check_sizes([](int D, int H) { return models::gru<Item, float, 3>(word, before, sizes(D, H)).program; },
              Shape::sequence, true, layers(3, false, true), {});
}

TEST_CASE("LSTM and GRU go both ways", "[models]") {
  check_sizes([](int D, int H) { return models::bidirectional_lstm<Item>(word, before, sizes(D, H)).program; },
              Shape::sequence, true, layers(1, true, false), {33});
  check_sizes([](int D, int H) { return models::bidirectional_gru<Item>(word, before, sizes(D, H)).program; },
              Shape::sequence, true, layers(1, true, true), {33});
}

TEST_CASE("two layers that go both ways read both directions of the one before", "[models][slow]") {
  check_sizes(
      [](int D, int H) { return models::bidirectional_lstm<Item, float, 2>(word, before, sizes(D, H)).program; },
      Shape::sequence, true, layers(2, true, false), {});
  check_sizes([](int D, int H) { return models::bidirectional_gru<Item, float, 2>(word, before, sizes(D, H)).program; },
              Shape::sequence, true, layers(2, true, true), {});
}

TEST_CASE("sequences of 5000 steps stay as exact as short ones", "[models]") {
  const int length = built_with_llvm() ? 5000 : 500;
  Builder builder(Shape::sequence, 7);
  for (const int steps : {length, 3, length / 2}) builder.items.roots.push_back(builder.sequence(steps));
  const auto check = [&](const auto& program, const auto& oracle) {
    const Weights weights{random_weights(program.graph(), 3), 5, 7};
    for (const auto& [name, schedule] : all_schedules()) {
      auto model = compile_here(program, schedule);
      if (schedule.max_workers > 1) model.use(std::make_shared<Workers>(1));
      bind_all<float>(model, weights.values);
      CAPTURE(program.name(), name);
      CHECK(error_of<float>(model(builder.items.roots), builder.items, oracle(weights, builder.items)) <= 1);
    }
  };
  check(models::bidirectional_lstm<Item>(word, before, sizes(5, 7)).program, layers(1, true, false));
  check(models::gru<Item>(word, before, sizes(5, 7)).program, layers(1, false, true));
  check(models::gru_reset_before<Item>(word, before, sizes(5, 7)).program,
        [](const Weights& w, const Items&) { return tree_gru_by_hand(w, false, word_vector(w)); });
}

TEST_CASE("sequences that begin with the same steps share them", "[models]") {
  Builder builder(Shape::sequence, 9);
  const Item* common = builder.sequence(6);
  for (int k = 0; k < 3; ++k) {  // three ways on
    Item* end = builder.add();
    end->before = common, end->kids = {common};
    builder.items.roots.push_back(end);
  }
  const auto program = models::lstm<Item>(word, before, sizes(5, 7), cortex::dag).program;
  const Weights weights{random_weights(program.graph(), 3), 5, 7};
  auto model = compile_here(program);
  bind_all<float>(model, weights.values);
  const auto result = model(builder.items.roots);
  CHECK(result.num_nodes() == 9);
  CHECK(error_of<float>(result, builder.items, layers(1, false, false)(weights, builder.items)) <= 1);
}

TEST_CASE("the results of a bidirectional LSTM are named by its handles", "[models]") {
  const auto m = models::bidirectional_lstm<Item>(word, before, sizes(5, 7));
  auto model = compile_here(m.program);
  bind_all<float>(model, random_weights(m.program.graph(), 1));
  const Items items = forest(Shape::sequence, 2, 6, 1);
  const auto result = model(items.roots);
  CHECK(result[0].data() == result.root(0, m.forward.h).data());
  CHECK(result.root(1, m.reverse.h).size() == 7);
  CHECK(result.root(1, m.reverse.c).data() == result.root(1, "c_l0_reverse").data());
}
