// States of leaves that are rows of a weight are read where they lie.
#include <catch2/catch.hpp>

#include "support/differential.hpp"
#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Whether the pass leaves `graph` as it is.
bool stays(const ra::Graph& graph, const Schedule& schedule = Schedule::standard()) {
  for (const Snapshot& s : passes_of(graph, schedule, machine(16)))
    if (s.pass == "read_in_place") return false;
  return true;
}

/// The running example with another state at leaves, or of other children.
template <class Leaf, class Left>
ra::Graph phrases(Leaf leaf_of, Left left_of) {
  const Dim V{"vocabulary"}, H = hidden(8);
  Model<Word> m("phrases", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return leaf_of(Emb, n, i); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return tanh(left_of(h, n, i) + h(right(n), i)); });
  return m
      .recursion_op(h, m.if_then_else(
                           "body", [](auto n) { return is_leaf(n); }, leaf, rec))
      .graph();
}
constexpr auto its_row = [](auto& Emb, auto n, auto i) { return Emb(word(n), i); };
constexpr auto left_of = [](auto& h, auto n, auto i) { return h(left(n), i); };

}  // namespace

TEST_CASE("leaves of the running example are read from the table of words", "[pass][golden]") {
  check_golden("pass/read_in_place/tree_rnn.ilir",
               text_after("read_in_place", tree_rnn(8).graph(), Schedule::standard().exact_activations()));
}

TEST_CASE("without a store at leaves, nobody waits for them", "[pass]") {
  const std::string before = text_after("tile_nests", tree_fc(8).graph(), Schedule::standard().workers(2)),
                    after = text_after("read_in_place", tree_fc(8).graph(), Schedule::standard().workers(2));
  CHECK(count(after, "barrier") == count(before, "barrier") - 1);
}

TEST_CASE("only rows as they are, of children with a name, are read in place", "[pass]") {
  CHECK(!stays(phrases(its_row, left_of)));
  CHECK(stays(phrases([](auto& Emb, auto n, auto i) { return 2 * Emb(word(n), i); }, left_of)));
  CHECK(stays(phrases([](auto& Emb, auto n, auto i) { return Emb(word(n) + 1, i); }, left_of)));
  CHECK(stays(phrases([](auto& Emb, auto n, auto i) { return Emb(word(n), 7 - i); }, left_of)));
  CHECK(stays(phrases(its_row, [](auto& h, auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); })));
  CHECK(stays(phrases(its_row, left_of), Schedule::standard().store("Emb", DType::bf16)));
}

TEST_CASE("matrices of words and of phrases are right after every pass", "[pass][equality]") {
  int target = 0;
  for (const int extent : {4, 16, 19}) {
    std::mt19937 random(3);
    const NodeTable table = random_table(30, 2, 9, random, true);
    const Linear linear(table, 2);
    check_every_schedule(mv_phrases(extent).graph(), table, linear.arrays, linear.number, 9, target++);
  }
}
