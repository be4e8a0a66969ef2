// The models of the zoo against PyTorch: the fixtures of tests/fixtures/torch_reference.py hold weights under the names
// that the models give them, structures, and what float64 arithmetic in torch makes of them.
#include <catch2/catch.hpp>
#include <deque>
#include <span>

#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cortex/weights/safetensors.hpp"
#include "models/check.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// The structure of a fixture: slots are positions, and kids those that are there.
std::deque<Item> items_of(const SafetensorsFile& file) {
  const auto children = file.read<int>("children"), words = file.read<int>("word");
  const std::size_t slots = std::size_t(file.tensor("children").shape[1]);
  std::deque<Item> items;
  for (std::size_t n = 0; n < words.size(); ++n) {
    Item& item = items.emplace_back();
    item.word = words[n];
    const Item* by_slot[3] = {};
    for (std::size_t k = 0; k < slots; ++k) {
      const int child = children[n * slots + k];
      if (child < 0) continue;
      item.kids.push_back(&items[std::size_t(child)]);
      if (k < 3) by_slot[k] = item.kids.back();
    }
    item.left = item.before = by_slot[0], item.right = by_slot[1], item.third = by_slot[2];
  }
  return items;
}

const models::Sizes sizes{.vocabulary = 11, .input = 5, .hidden = 7};

/// Holds a program against the fixture `model`: `expected` says what state each of its results is, those of several
/// states side by side.
template <class Program>
void check_fixture(const std::string& model, const Program& program,
                   const std::map<std::string, std::vector<std::string>>& expected) {
  const auto file = SafetensorsFile::open(tests_directory() / "fixtures" / "torch" / (model + ".safetensors"));
  const std::deque<Item> items = items_of(file);
  std::vector<const Item*> roots;
  for (const int root : file.read<int>("roots")) roots.push_back(&items[std::size_t(root)]);
  for (const Schedule& schedule : {Schedule{}, Schedule::standard()}) {
    CAPTURE(model, schedule.batched);
    auto functor = compile_here(program, schedule);
    cortex::bind(functor, file);
    const auto result = functor(roots);
    REQUIRE(result.num_nodes() == items.size());
    double worst = 0;
    for (const auto& [what, states] : expected) {
      const auto right = file.read<double>("expected." + what);
      const std::size_t size = right.size() / items.size();
      for (std::size_t n = 0; n < items.size(); ++n) {
        std::vector<float> values(size);
        for (std::size_t s = 0; s < states.size(); ++s)
          result.copy_node(&items[n], states[s], std::span(values).subspan(s * size / states.size()));
        if (what == "M") {
          const Numbers by_rows = transposed(Numbers(values.begin(), values.end()), std::size_t(sizes.hidden));
          std::copy(by_rows.begin(), by_rows.end(), values.begin());
        }
        for (std::size_t i = 0; i < size; ++i) {
          const double r = right[n * size + i];
          const double error = std::abs(double(values[i]) - r) / (1e-5 * std::abs(r) + 1e-6);  // as in check.hpp
          if (!(error <= worst)) worst = error;
        }
      }
    }
    CHECK(worst <= 1);
  }
}

}  // namespace

TEST_CASE("TreeFC gives what PyTorch gives", "[models][torch]") {
  check_fixture("tree_fc", models::tree_fc<Item>(word, left, right, sizes).program, {{"h", {"h"}}});
}
TEST_CASE("DAG-RNN gives what PyTorch gives", "[models][torch]") {
  check_fixture("dag_rnn", models::dag_rnn<Item>(word, kids, sizes).program, {{"h", {"h"}}});
}
TEST_CASE("TreeRNN gives what PyTorch gives", "[models][torch]") {
  check_fixture("tree_rnn", models::tree_rnn<Item>(word, kids, sizes).program, {{"h", {"h"}}});
}
TEST_CASE("TreeGRU and SimpleTreeGRU give what PyTorch gives", "[models][torch]") {
  check_fixture("tree_gru", models::tree_gru<Item>(word, kids, sizes).program, {{"h", {"h"}}});
  check_fixture("simple_tree_gru", models::simple_tree_gru<Item>(word, kids, sizes).program, {{"h", {"h"}}});
}
TEST_CASE("TreeLSTM gives what PyTorch gives", "[models][torch]") {
  check_fixture("tree_lstm", models::tree_lstm<Item>(word, kids, sizes).program, {{"h", {"h"}}, {"c", {"c"}}});
}
TEST_CASE("the N-ary TreeLSTM gives what PyTorch gives", "[models][torch]") {
  check_fixture("nary_tree_lstm", models::nary_tree_lstm<Item>(word, by_position, sizes).program,
                {{"h", {"h"}}, {"c", {"c"}}});
}
TEST_CASE("MV-RNN gives what PyTorch gives", "[models][torch]") {
  check_fixture("mv_rnn", models::mv_rnn<Item>(word, left, right, sizes).program,
                {{"v", {"v"}}, {"M", {"M_transposed"}}});
}
TEST_CASE("LSTM and GRU give what torch.nn gives", "[models][torch]") {
  check_fixture("lstm", models::lstm<Item>(word, before, sizes).program, {{"h", {"h_l0"}}, {"c", {"c_l0"}}});
  check_fixture("gru", models::gru<Item>(word, before, sizes).program, {{"h", {"h_l0"}}});
}
TEST_CASE("the GRU with the reset before the product gives what PyTorch gives", "[models][torch]") {
  check_fixture("gru_reset_before", models::gru_reset_before<Item>(word, before, sizes).program, {{"h", {"h"}}});
}
TEST_CASE("two bidirectional layers of an LSTM give what torch.nn gives", "[models][torch]") {
  check_fixture("lstm_bidirectional_2layer", models::bidirectional_lstm<Item, float, 2>(word, before, sizes).program,
                {{"h", {"h_l1", "h_l1_reverse"}}});
}
