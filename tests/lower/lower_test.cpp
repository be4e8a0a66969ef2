#include "cortex/lower/lower.hpp"

#include <catch2/catch.hpp>

#include "cortex/ir/print.hpp"
#include "cortex/ir/verify.hpp"
#include "support/golden.hpp"
#include "support/models.hpp"

using namespace cortex;

namespace {

template <class Program>
std::string lowered(const Program& program, const Schedule& schedule) {
  const ir::Program result = lower::lower(program.graph(), schedule);
  ir::verify(result, ir::Level::loops);
  return ir::print(result);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the running example, batched and specialized, lowers to the paper's Listing 2", "[lower][golden]") {
  check_golden("lower/tree_rnn_batched_specialized.ilir",
               lowered(test::tree_rnn(256), Schedule{}.dynamic_batch().specialize_if_else("body")));
}

TEST_CASE("without specialization the running example checks for leaves in the loop", "[lower][golden]") {
  check_golden("lower/tree_rnn_batched.ilir", lowered(test::tree_rnn(256), Schedule{}.dynamic_batch()));
}

TEST_CASE("without batching the running example runs node by node, leaves first if specialized", "[lower][golden]") {
  check_golden("lower/tree_rnn_specialized.ilir", lowered(test::tree_rnn(256), Schedule{}.specialize_if_else()));
  check_golden("lower/tree_rnn.ilir", lowered(test::tree_rnn(256), Schedule{}));
}

TEST_CASE("TreeLSTM lowers to one nest an operator and one per reduction", "[lower][golden]") {
  check_golden("lower/tree_lstm.ilir", lowered(test::tree_lstm(32), Schedule::standard()));
}

TEST_CASE("an input matrix product is computed ahead for all nodes as one product", "[lower][golden]") {
  check_golden("lower/dependency_rnn.ilir", lowered(test::dependency_rnn(32), Schedule::standard()));
}

TEST_CASE("leaves do no recurrent work where their initial state is zero", "[lower]") {
  const std::string text = lowered(test::dependency_rnn(32), Schedule::standard());
  const std::string leaves =
      text.substr(text.find("leaf_batch_size"), text.find("num_internal_batches") - text.find("leaf_batch_size"));
  CHECK(leaves.find("U[") == std::string::npos);
  CHECK(leaves.find("h[node") != std::string::npos);
}

TEST_CASE("an initial state common to all leaves is computed once, and copied", "[lower][golden]") {
  const std::string text = lowered(test::common_initial_state(16), Schedule::standard());
  CHECK(count(text, "A[") - 1 == 1);  // one declaration, one use
  CHECK(text.find("A[i") < text.find("leaf_batch_size"));
  check_golden("lower/common_initial_state.ilir", text);
}

TEST_CASE("what a reduction would compute for every output is computed before it", "[lower]") {
  const std::string text = lowered(test::tree_gru(16), Schedule::standard());
  CHECK(count(text, "candidate_sum_pre[") + count(text, "candidate_pre[") >= 2);
}

TEST_CASE("a schedule that names no operator of the model is refused by name", "[lower][refusal]") {
  const auto program = test::tree_rnn(8);
  CHECK_THROWS_WITH(lower::lower(program.graph(), Schedule{}.specialize_if_else("bodi")),
                    Catch::Contains("has no branch 'bodi'; did you mean 'body'?"));
}

TEST_CASE("specializing an operator without branch is refused by name", "[lower][refusal]") {
  const auto program = test::tree_rnn(8);
  CHECK_THROWS_WITH(lower::lower(program.graph(), Schedule{}.specialize_if_else("leaf")),
                    Catch::Contains("'leaf' is no if_then_else"));
}
