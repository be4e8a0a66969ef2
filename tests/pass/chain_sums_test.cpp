// Sums that are only added up go on in one accumulator.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/small_loops.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::test::small;

TEST_CASE("TreeFC's two products end in one sum", "[pass][golden]") {
  check_golden("pass/chain_sums/tree_fc.ilir",
               text_after("chain_sums", tree_fc(8).graph(), Schedule::standard().exact_activations()));
}

TEST_CASE("sums that are more than added up stay apart", "[pass]") {
  const auto stays = [](auto then) {
    const ir::Stmt s = two_sums(then);
    return pass::chain_sums(s).same_as(s);
  };
  using E = const ir::Expr&;
  CHECK(!stays([](E i, E a, E b) { return store(y, {i}, a + b); }));
  CHECK(!stays([](E i, E a, E b) { return store(y, {i}, load(x, {i}) * (b + a)); }));
  CHECK(stays([](E i, E a, E b) { return store(y, {i}, a - b); }));
  CHECK(stays([](E i, E a, E b) { return store(y, {i}, a + load(x, {i}) + b); }));
  CHECK(stays([](E i, E a, E b) { return block({store(y, {i}, a + b), store(y2, {i}, a)}); }));
  CHECK(stays([](E i, E a, E b) { return block({store(y, {i}, a + b), store(y2, {i}, a + b)}); }));
  CHECK(stays([](E i, E a, E) { return store(y, {i}, a + a); }));
}

TEST_CASE("the variable of a sum goes with it", "[pass]") {
  const ir::Stmt let = two_sums([&](const ir::Expr& i, const ir::Expr& a, const ir::Expr& b) {
    const ir::Expr of_a = ir::Var::make("of_a", {DType::f32, 1});
    return ir::LetStmt::make(of_a, a, store(y, {i}, of_a + b));
  });
  const std::string text = ir::print(pass::chain_sums(let));
  CHECK(text.find("of_a") == std::string::npos);
  CHECK(text.find("y[i] = a\n") != std::string::npos);
}

TEST_CASE("a sum that is read before another one is complete stays apart", "[pass]") {
  const ir::Buffer a = local("a"), b = local("b");
  const ir::Stmt s = over(H, "i", [&](auto& i) {
    const auto adding = [&](const ir::Buffer& sum, const ir::Buffer& M, const ir::Expr& by) {
      const ir::Expr r = var("r");
      return loop(r, K, store(sum, {}, ir::Fma::make(load(M, {i, r}), by, load(sum, {}))));
    };
    return ir::Alloc::make(
        a, ir::Alloc::make(b, block({store(a, {}, number(0)), store(b, {}, number(0)), adding(a, W, number(2)),
                                     adding(b, U, load(a, {})), store(y, {i}, load(a, {}) + load(b, {}))})));
  });
  CHECK(pass::chain_sums(s).same_as(s));
}
