// What loop schedules rely on: the names that a program's text shows, and which iterations are independent.
#include <catch2/catch.hpp>

#include "cortex/pass/loops.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> loops_of(const ir::Stmt& body) {
  std::vector<std::string> names;
  ir::visit_with(body, [&](const ir::For& loop) { names.push_back(schedule::name_of(loop)); });
  return names;
}

/// The names behind "for " in a text, in its order.
std::vector<std::string> loops_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find("for "); at != std::string::npos; at = text.find("for ", at + 1))
    names.push_back(text.substr(at + 4, text.find(' ', at + 4) - at - 4));
  return names;
}

}  // namespace

TEST_CASE("a program's text shows the names that a schedule of its loops goes by", "[schedule][loops]") {
  for (const Schedule& schedule : {Schedule{}, Schedule{}.dynamic_batch(), Schedule::standard()})
    for (const ra::Graph& graph : {tree_lstm(4).graph(), tree_gru(4).graph(), dependency_rnn(4).graph()}) {
      const ir::Program lowered = lower::lower(graph, schedule);
      CHECK(loops_in(ir::print(lowered)) == loops_of(schedule::with_unique_names(lowered.body)));
    }
}

TEST_CASE("edges of different nodes are different, so nodes with their edges jam", "[schedule][loops]") {
  const ra::Graph graph = tree_lstm(4).graph();
  const ir::Program lowered = lower::lower(graph, Schedule::standard());
  const auto names = loops_in(ir::print(lowered));
  std::string nodes;  // the loop over a level's nodes
  for (const std::string& name : names)
    if (name.rfind("n_idx", 0) == 0) nodes = name;
  const Loops loops = Loops{}.split(nodes, 2).jam(nodes + ".i");
  ir::Stmt body = loops.named(lowered.body);
  for (std::size_t step = 0; step < loops.size(); ++step) body = loops.apply(step, body, machine(16));
  CHECK_THAT(ir::print(body), Contains("edge(node.2"));
}
