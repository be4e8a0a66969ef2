// The models of the zoo over trees and graphs, held against their equations by hand.
#include <catch2/catch.hpp>

#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "models/check.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

InputOf at_leaves_only(const Weights& w) {
  return [&w](const Item* n) { return n->kids.empty() ? w.row("Emb", n->word, w.D) : Numbers(w.D); };
}

}  // namespace

TEST_CASE("TreeFC gives what its equations give", "[models]") {
  check_sizes([](int D, int H) { return models::tree_fc<Item>(word, left, right, sizes(D, H)).program; }, Shape::binary,
              false, [](const Weights& w, const Items&) { return tree_fc_by_hand(w); });
}

TEST_CASE("DAG-RNN gives what its equations give, on graphs that share nodes", "[models]") {
  check_sizes([](int D, int H) { return models::dag_rnn<Item>(word, kids, sizes(D, H)).program; }, Shape::dag, true,
              [](const Weights& w, const Items&) { return simple_rnn_by_hand(w, test::relu); });
}

TEST_CASE("DAG-RNN gives what its equations give on a batch of grids", "[models]") {
  Builder builder(Shape::dag, 5);
  for (int g = 0; g < 10; ++g) builder.items.roots.push_back(builder.grid(10, 10));
  const auto program = models::dag_rnn<Item>(word, kids, sizes(5, 16)).program;
  Weights weights{random_weights(program.graph(), 4), 5, 16};
  for (double& u : weights.values.at("U"))
    u = float(u / 2);  // a node of a grid reads two: else states grow without end
  for (const auto& [name, schedule] : all_schedules()) {
    auto model = compile_here(program, schedule);
    if (schedule.max_workers > 1) model.use(std::make_shared<Workers>(1));
    bind_all<float>(model, weights.values);
    CAPTURE(name);
    CHECK(error_of<float>(model(builder.items.roots), builder.items, simple_rnn_by_hand(weights, test::relu)) <= 1);
  }
}

TEST_CASE("TreeRNN gives what its equations give", "[models]") {
  check_sizes([](int D, int H) { return models::tree_rnn<Item>(word, kids, sizes(D, H)).program; }, Shape::ragged, true,
              [](const Weights& w, const Items&) { return simple_rnn_by_hand(w, test::tanh); });
}

TEST_CASE("TreeGRU gives what its equations give", "[models]") {
  const auto oracle = [](const Weights& w, const Items&) { return tree_gru_by_hand(w, false, word_vector(w)); };
  check_sizes([](int D, int H) { return models::tree_gru<Item>(word, kids, sizes(D, H)).program; }, Shape::ragged, true,
              oracle);
  check_sizes<double>([](int D, int H) { return models::tree_gru<Item, double>(word, kids, sizes(D, H)).program; },
                      Shape::ragged, true, oracle, {33});
}

TEST_CASE("SimpleTreeGRU gives what its equations give", "[models]") {
  check_sizes([](int D, int H) { return models::simple_tree_gru<Item>(word, kids, sizes(D, H)).program; },
              Shape::ragged, true,
              [](const Weights& w, const Items&) { return tree_gru_by_hand(w, true, word_vector(w)); });
}

TEST_CASE("TreeLSTM gives what its equations give, in float and in double", "[models]") {
  const auto oracle = [](const Weights& w, const Items&) { return tree_lstm_by_hand(w, word_vector(w)); };
  check_sizes([](int D, int H) { return models::tree_lstm<Item>(word, kids, sizes(D, H)).program; }, Shape::ragged,
              true, oracle);
  check_sizes<double>([](int D, int H) { return models::tree_lstm<Item, double>(word, kids, sizes(D, H)).program; },
                      Shape::ragged, true, oracle, {33});
}

TEST_CASE("TreeLSTM and TreeGRU run on graphs that share nodes", "[models]") {
  check_sizes([](int D, int H) { return models::tree_lstm<Item>(word, kids, sizes(D, H), cortex::dag).program; },
              Shape::dag, true, [](const Weights& w, const Items&) { return tree_lstm_by_hand(w, word_vector(w)); },
              {16});
  check_sizes([](int D, int H) { return models::tree_gru<Item>(word, kids, sizes(D, H), cortex::dag).program; },
              Shape::dag, true,
              [](const Weights& w, const Items&) { return tree_gru_by_hand(w, false, word_vector(w)); }, {16});
}

TEST_CASE("TreeLSTM takes words at leaves alone", "[models]") {
  check_sizes([](int D, int H) { return models::tree_lstm<Item>(models::at_leaves(word), kids, sizes(D, H)).program; },
              Shape::ragged, true,
              [](const Weights& w, const Items&) { return tree_lstm_by_hand(w, at_leaves_only(w)); });
}

TEST_CASE("words at leaves alone are not read at other nodes", "[models]") {
  auto model = compile_here(models::tree_lstm<Item>(models::at_leaves(word), kids, sizes(5, 7)).program);
  bind_all<float>(model, random_weights(model.executable().graph, 1));
  Item leaf, inner;
  leaf.word = 3, inner.word = 1000;  // past the end of the table
  inner.kids = {&leaf};
  CHECK(model(inner).size() == 1);
}

TEST_CASE("TreeLSTM takes a vector of the node as its input", "[models]") {
  check_sizes(
      [](int D, int H) { return models::tree_lstm<Item>(features, kids, sizes(D, H)).program; }, Shape::ragged, true,
      [](const Weights& w, const Items&) {
        return tree_lstm_by_hand(w, [](const Item* n) { return Numbers(n->features.begin(), n->features.end()); });
      },
      {33});
}

TEST_CASE("TreeLSTM takes a vector at leaves alone as its input", "[models]") {
  check_sizes(
      [](int D, int H) { return models::tree_lstm<Item>(models::at_leaves(features), kids, sizes(D, H)).program; },
      Shape::ragged, true,
      [](const Weights& w, const Items&) {
        return tree_lstm_by_hand(w, [](const Item* n) {
          return n->kids.empty() ? Numbers(n->features.begin(), n->features.end()) : Numbers(5);
        });
      },
      {});
}

TEST_CASE("the N-ary TreeLSTM gives what its equations give, with children absent in any position", "[models]") {
  check_sizes([](int D, int H) { return models::nary_tree_lstm<Item>(word, by_position, sizes(D, H)).program; },
              Shape::positional, true, [](const Weights& w, const Items&) { return nary_tree_lstm_by_hand(w, 3); });
}

TEST_CASE("the N-ary TreeLSTM takes the first children of a container", "[models]") {
  const std::tuple first_two{[](auto n) { return kids(n)[0]; }, [](auto n) { return kids(n)[1]; }};
  check_sizes([&](int D, int H) { return models::nary_tree_lstm<Item>(word, first_two, sizes(D, H)).program; },
              Shape::binary, true, [](const Weights& w, const Items&) { return nary_tree_lstm_by_hand(w, 2); }, {16});
}

TEST_CASE("the simple TreeGRU is a cell of a model of one's own", "[models]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) {
    return models::simple_tree_gru_cell(m, x, kids, s);
  };
  check_sizes(own_model(cortex::tree, cell), Shape::ragged, true,
              [](const Weights& w, const Items&) { return tree_gru_by_hand(w, true, word_vector(w)); }, {16});
}

TEST_CASE("MV-RNN gives what its equations give", "[models]") {
  check_sizes([](int D, int H) { return models::mv_rnn<Item>(word, left, right, sizes(D, H)).program; }, Shape::binary,
              false, [](const Weights& w, const Items&) { return mv_rnn_by_hand(w); });
}

TEST_CASE("a cell is a part of a model of one's own, several times if need be", "[models]") {
  const int inputs = 5, hidden = 7;
  Dim D("input", inputs), H("hidden", hidden), C("class", 3);
  Model<Item> m("classifier", cortex::tree);
  auto Emb = m.input<float>("Emb", Dim("vocabulary"), D);
  auto x = [&](auto n, auto j) { return Emb(word(n), j); };
  auto [h, c] = models::tree_lstm_cell(m, x, kids, {.input = D, .hidden = H});
  auto down = models::tree_gru_cell(m, h, cortex::parents<kids>, {.input = H, .hidden = H, .prefix = "down."});
  auto W = m.input<float>("W", C, H);
  auto logits = m.output<float>(
      "logits", C, [&](auto n, auto k) { return sum(H, [&](auto j) { return W(k, j) * (down(n, j) + c(n, j)); }); });
  const auto program = m.program(logits);

  const Items items = forest(Shape::ragged, 5, 30, 3);
  Weights weights{random_weights(program.graph(), 2), std::size_t(inputs), std::size_t(hidden)};
  std::map<const Item*, const Item*> parent;
  for (const Item& n : items.all)
    for (const Item* k : n.kids) parent[k] = &n;
  const Oracle up = tree_lstm_by_hand(weights, word_vector(weights));
  const Oracle oracle = recursively([&](const auto& self, const Item* n) -> States {
    Weights w = weights;
    for (const auto& [name, values] : weights.values)
      if (name.rfind("down.", 0) == 0) w.values[name.substr(5)] = values;
    Item fake = *n;  // its parent in the place of its children
    fake.kids.clear();
    if (const auto above = parent.find(n); above != parent.end()) fake.kids = {above->second};
    const Oracle gru = recursively([&](const auto& again, const Item* at) -> States {
      if (at != &fake) return {{"h", self(at).at("down.h")}};
      const Numbers s = sum_of_kids(w, again, at), u = up(n).at("h");
      const Numbers r = test::sigmoid(w.linear("_r", u, s)), z = test::sigmoid(w.linear("_z", u, s));
      return {{"h", z * s + one_minus(z) * test::tanh(w.linear("_h", u, r * s))}};
    });
    const Numbers d = gru(&fake).at("h");
    const Numbers both = d + up(n).at("c");
    Numbers logit(3);
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t j = 0; j < both.size(); ++j) logit[k] += weights("W")[k * both.size() + j] * both[j];
    return {{"h", up(n).at("h")}, {"down.h", d}, {"logits", logit}};
  });
  for (const auto& [name, schedule] : all_schedules()) {
    auto model = compile_here(program, schedule);
    if (schedule.max_workers > 1) model.use(std::make_shared<Workers>(1));
    bind_all<float>(model, weights.values);
    CAPTURE(name);
    CHECK(error_of<float>(model(items.roots), items, oracle) <= 1);
  }
}
