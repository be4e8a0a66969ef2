// The program after every pass of the pipeline gives what the recursion as written gives.
#include <catch2/catch.hpp>

#include "cortex/structure/linearizer.hpp"
#include "support/differential.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/odd_models.hpp"

using namespace cortex;

namespace {

constexpr int words = 9;

/// Shared children, up to four of them: batches and numbers of children of every size.
test::NodeTable graph_table(int count) {
  std::mt19937 random(7);
  test::NodeTable table = test::random_table(count, 4, words, random, false, true);
  for (int n = 0; n < count; ++n) table.data.push_back({float(n) / 8, 0.5f - float(n % 3), 0.25f});
  return table;
}

test::NodeTable binary_table(int count) {
  std::mt19937 random(3);
  return test::random_table(count, 2, words, random, true);
}

void check_on(const ra::Graph& graph, const test::NodeTable& table, int first_target) {
  const test::Linear linear(table, 2);
  test::check_every_schedule(graph, table, linear.arrays, linear.number, words, first_target);
}

/// Extents below, at and above the lanes of each target.
void check_odd(ra::Graph model(int)) {
  int target = 0;
  for (const int extent : {1, 7, 16, 19}) check_on(model(extent), graph_table(extent == 16 ? 9 : 24), target++);
}

}  // namespace

TEST_CASE("the running example is right after every pass", "[pass][equality]") {
  for (const int extent : {5, 16}) check_on(test::tree_rnn(extent).graph(), binary_table(30), extent);
}

TEST_CASE("TreeLSTM is right after every pass", "[pass][equality]") {
  for (const int extent : {5, 16}) check_on(test::tree_lstm(extent).graph(), binary_table(20), extent);
}

TEST_CASE("a model without branch is right after every pass", "[pass][equality]") {
  for (const int extent : {5, 20}) check_on(test::dependency_rnn(extent).graph(), graph_table(24), extent);
}

TEST_CASE("TreeGRU is right after every pass", "[pass][equality]") {
  for (const int extent : {5, 20}) check_on(test::tree_gru(extent).graph(), binary_table(20), extent);
}

TEST_CASE("a common initial state is right after every pass", "[pass][equality]") {
  for (const int extent : {5, 20}) check_on(test::common_initial_state(extent).graph(), binary_table(20), extent);
}

TEST_CASE("a chain is right after every pass", "[pass][equality]") {
  check_on(test::dependency_rnn(8).graph(), test::chain_table(7), 0);
}

TEST_CASE("one node alone is right after every pass", "[pass][equality]") {
  check_on(test::tree_lstm(8).graph(), binary_table(1), 0);
}

TEST_CASE("a call without nodes is right after every pass", "[pass][equality]") {
  check_on(test::tree_lstm(8).graph(), test::NodeTable(), 0);
}

TEST_CASE("a state of one number a node is right after every pass", "[pass][equality]") {
  check_on(test::odd::scalar_state(), graph_table(24), 0);
}

TEST_CASE("a state that is a matrix is right after every pass", "[pass][equality]") {
  check_odd(test::odd::matrix_state);
  check_odd(test::odd::matrix_rows);
  check_on(test::odd::matrix_rows(32), graph_table(4), 1);  // two slices of rows
}

TEST_CASE("greatest, least and product are right after every pass", "[pass][equality]") {
  check_odd(test::odd::extremes);
}

TEST_CASE("states that share a body are right after every pass", "[pass][equality]") {
  check_odd(test::odd::shared_bodies);
}

TEST_CASE("an operator needed under several conditions is right after every pass", "[pass][equality]") {
  check_odd(test::odd::conditions);
}

TEST_CASE("what leaves alone have in common is right after every pass", "[pass][equality]") {
  check_odd(test::odd::free_at_leaves);
}

TEST_CASE("children that are not there and indices that are no variables are right after every pass",
          "[pass][equality]") {
  check_odd(test::odd::indices);
}

TEST_CASE("attention over the children in f64 is right after every pass", "[pass][equality]") {
  check_odd(test::odd::attention);
}

TEST_CASE("a tensor product is right after every pass", "[pass][equality]") { check_odd(test::odd::tensor_product); }

TEST_CASE("a sum over children beside a contraction is right after every pass", "[pass][equality]") {
  check_odd(test::odd::beside);
}

TEST_CASE("f32 and f64 over one dimension are right after every pass", "[pass][equality]") {
  check_odd(test::odd::mixed_types);
}

TEST_CASE("work ahead of what leaves and inner nodes compute differently is right after every pass",
          "[pass][equality]") {
  check_odd(test::odd::degrees);
}

TEST_CASE("numbers and vectors that no node changes are right after every pass", "[pass][equality]") {
  check_odd(test::odd::constants);
}

TEST_CASE("numbers that no node changes, and what is computed of them, are right after every pass",
          "[pass][equality]") {
  check_odd(test::odd::common_number);
}

TEST_CASE("children chosen by an index variable are right after every pass", "[pass][equality]") {
  check_odd(test::odd::chosen_children);
}

TEST_CASE("products of each child with a matrix of its own are right after every pass", "[pass][equality]") {
  check_odd(test::odd::own_matrices_of_four);
  std::mt19937 random(11);
  for (const int most : {1, 2, 3})
    check_on(test::odd::own_matrices(9, most), test::random_table(16, most, words, random, false, true), most);
}

TEST_CASE("an operator that is a contraction at inner nodes alone is right after every pass", "[pass][equality]") {
  check_odd(test::odd::half_contracted);
}

TEST_CASE("random models on random structures are right after every pass", "[pass][equality][random]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const test::RandomModel model(seed);
    test::Random random(seed + 1000);
    const test::Forest forest = test::random_forest(random, model.graph, 12);
    structure::Workspace workspace;
    const std::vector<structure::FieldCheck> checks(2);
    using Linearizer = structure::Linearizer<test::Vertex, test::VertexSet>;
    const structure::Arrays& arrays =
        Linearizer::run(workspace, Structure{structure::Kind(int(model.graph.structure))}, checks, forest.roots);
    const ra::ArraysView<structure::Arrays> view(arrays, model.graph);
    std::vector<std::int32_t> number(std::size_t(arrays.num_nodes));
    std::iota(number.begin(), number.end(), 0);
    INFO("seed " << seed << "\n" << ra::print(model.graph) << test::describe(forest));
    test::check_every_schedule(model.graph, view, arrays, number, test::num_words, int(seed));
  }
}
