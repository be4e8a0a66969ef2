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
/// A state of three dimensions whose rows at leaves are a table's with the first of them last, and what else inner
/// nodes read of the table.
template <class More>
ra::Graph turned_boxes(int extent, More more_of) {
  const Dim V{"vocabulary"}, A("a", 2), B("b", 3), C("c", extent);
  Model<Word> m("turned_boxes", cortex::tree);
  auto T = m.input<float>("T", V, B, C, A);
  auto h = m.placeholder<float>("h", A, B, C);
  auto leaf = m.compute("leaf", A, B, C, [&](auto n, auto a, auto b, auto c) { return T(word(n), b, c, a); });
  auto rec = m.compute("rec", A, B, C, [&](auto n, auto a, auto b, auto c) {
    return h(left(n), a, b, c) - 2 * h(right(n), a, b, c) + more_of(T, n, a, b, c);
  });
  return m
      .recursion_op(h, m.if_then_else(
                           "body", [](auto n) { return is_leaf(n); }, leaf, rec))
      .graph();
}

constexpr auto no_more = [](auto&, auto...) { return 0; };
constexpr auto its_row = [](auto& Emb, auto n, auto i) { return Emb(word(n), i); };
constexpr auto left_of = [](auto& h, auto n, auto i) { return h(left(n), i); };

}  // namespace

TEST_CASE("leaves of the running example are read from the table of words", "[pass][golden]") {
  check_golden("pass/read_in_place/tree_rnn.ilir",
               text_after("read_in_place", tree_rnn(8).graph(), Schedule::standard().exact_activations()));
}

TEST_CASE("a table whose rows lie otherwise than the state's is laid out like the state", "[pass][golden]") {
  check_golden("pass/read_in_place/mv_phrases_by_rows.ilir",
               text_after("read_in_place", mv_phrases(4, true).graph(), Schedule::standard().exact_activations()));
}

TEST_CASE("a table that something else reads is not laid out anew, which would make two of it", "[pass]") {
  CHECK(!stays(turned_boxes(6, no_more)));
  CHECK(stays(turned_boxes(6, [](auto& T, auto n, auto a, auto b, auto c) { return T(word(n), b, c, a); })));
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
    check_every_schedule(mv_phrases(extent, extent == 16).graph(), table, linear.arrays, linear.number, 9, target++);
  }
}

TEST_CASE("rows of three dimensions are right in another order", "[pass][equality]") {
  std::mt19937 random(3);
  const NodeTable table = random_table(20, 2, 9, random, true);
  const Linear linear(table, 2);
  const ra::Graph graph = turned_boxes(5, no_more);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
  CHECK(first_difference(reference, Schedule::standard().workers(2), machine(16)) == "");
}
