// Index checks decided by bounds, against their evaluation at every node.
#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "cortex/runtime/guards.hpp"
#include "runtime/hand_made.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Checks at random nodes of a random index, with a guard and ranges at random.
class RandomCheck {
 public:
  explicit RandomCheck(std::uint64_t seed) : random_(seed) {
    for (int r = below(3); r > 0; --r) {
      const ir::Expr var = ir::Var::make("i" + std::to_string(r));
      const ir::Expr extent = below(2) ? ir::imm(below(4)) : ir::binary(ir::BinaryOp::min, number(1), ir::imm(4));
      check.ranges.push_back({var, extent, false});
    }
    if (below(2)) check.guard = condition(2);
    for (const auto& range : check.ranges) vars_.push_back(range.var);
    check.index = number(3);
  }

  void ask_only(unsigned nodes) {
    if (nodes == ra::all_nodes) return;
    const ir::Expr leaf = ir::call(ir::UfKind::is_leaf, "is_leaf", {check.node});
    check.guard =
        ir::both(nodes == ra::leaf_nodes ? leaf : ir::Unary::make(ir::UnaryOp::logical_not, leaf), check.guard);
  }

  std::vector<const Word*> forest() {
    words_.clear();
    const int largest = below(8) ? 4 + below(30) : INT32_MAX, least = below(2) ? 0 : below(8) ? -3 : INT32_MIN;
    for (int n = 1 + below(40); n > 0; --n) {
      const auto id = int(std::uniform_int_distribution<std::int64_t>(least, largest)(random_));
      const auto* above = words_.size() < 2 || below(2) ? nullptr : &words_.back();
      words_.push_back({id, above, above ? &words_[words_.size() - 2] : nullptr});
    }
    return {&words_.back()};
  }

  int below(int n) { return int(random_() % unsigned(n)); }

  runtime::GuardedCheck check{ir::Var::make("node"), {}, {}, {}, {"Emb", Dim("vocabulary"), 0, 0}, "leaf"};

 private:
  ir::Expr number(int depth) {
    using enum ir::BinaryOp;
    if (depth == 0 || below(4) == 0) {
      if (!vars_.empty() && below(3) == 0) return vars_[std::size_t(below(int(vars_.size())))];
      if (below(3) == 0) return ir::imm(below(16) ? below(10) - 2 : INT32_MAX);
      const int child = below(4);
      const ir::Expr of =
          child < 2 ? ir::call(ir::UfKind::child, child ? "right" : "left", {check.node}, child) : check.node;
      return ir::call(ir::UfKind::field, "id", {of}, 0);
    }
    switch (below(10)) {
      case 0: return ir::Unary::make(ir::UnaryOp::neg, number(depth - 1));
      case 1: return ir::Unary::make(ir::UnaryOp::abs, number(depth - 1));
      case 2: return ir::Select::make(condition(depth - 1), number(depth - 1), number(depth - 1));
      default: break;
    }
    const ir::BinaryOp ops[] = {add, sub, mul, div, mod, min, max};
    return ir::Binary::make(ops[below(7)], number(depth - 1), number(depth - 1));
  }

  ir::Expr condition(int depth) {
    using enum ir::BinaryOp;
    if (depth > 0 && below(3) == 0)
      return ir::Binary::make(below(2) ? logical_and : logical_or, condition(depth - 1), condition(depth - 1));
    if (depth > 0 && below(4) == 0) return ir::Unary::make(ir::UnaryOp::logical_not, condition(depth - 1));
    if (below(3) == 0) return ir::call(ir::UfKind::is_leaf, "is_leaf", {check.node});
    const ir::BinaryOp ops[] = {lt, gt, le, ge, eq, ne};
    return ir::Binary::make(ops[below(6)], number(depth ? depth - 1 : 0), number(0));
  }

  std::mt19937_64 random_;
  Vector<ir::Expr> vars_;
  std::deque<Word> words_;
};

}  // namespace

TEST_CASE("bounds allow an index only where each node's evaluation does", "[runtime][differential]") {
  int decided = 0, walked = 0, refused = 0;
  structure::Workspace workspace;
  for (int seed = 0; seed < wanted_cases(3000); ++seed) {
    RandomCheck random(std::uint64_t(seed) + 1);
    runtime::Executable e = sum_executable();
    const auto nodes = unsigned(1 + random.below(3));  // those that read the field
    e.fields[0] = {structure::Where(nodes), -1, -1, {}};
    const structure::FieldCheck field{e.fields[0].where};
    random.ask_only(nodes);
    const runtime::Plan plan(std::make_shared<const runtime::Executable>(e), runtime::accessor_order<WordSet>(e.graph));
    for (int f = 0; f < 4; ++f) {
      const auto roots = random.forest();
      structure::Linearizer<Word, WordSet>::run(workspace, cortex::dag, std::array{field}, roots);
      runtime::detail::NodesOfCall known(plan, workspace.arrays());
      const std::int64_t extent = 1 + random.below(60);
      const bool inside = runtime::IndexBounds(known).are_inside(random.check, extent);
      bool passes = true;
      try {
        runtime::detail::GuardChecker(plan, workspace).run(random.check, extent);
      } catch (const Error& error) {
        passes = error.code != Code::out_of_range;
      }
      INFO("seed " << seed << ": " << ir::print(random.check.index) << " of " << extent);
      CHECK((passes || !inside));
      (inside ? decided : passes ? walked : refused)++;
    }
  }
  CHECK(decided > walked / 2);
  CHECK(refused > decided / 4);
}
