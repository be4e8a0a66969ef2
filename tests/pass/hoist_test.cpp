// What leaves loops: conditions, work that does not change, work that is said twice, slices of workers.
#include <catch2/catch.hpp>

#include "cortex/loops.hpp"
#include "cortex/pass/hoist_shares.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Small {
  Dim H{"hidden", 4}, N{"rows", 3};
  ir::Expr i = var("i"), n = var("n"), zero = ir::imm(0);
  ir::Buffer h = buffer("h", {H}, ir::Role::state), x = buffer("x", {H}), w = buffer("w", {N}, ir::Role::weight);

  ir::Expr tanh_w(const ir::Expr& at) const { return function(ir::UnaryOp::tanh, load(w, {at})); }
  ir::Expr positive(const ir::Expr& at) const { return ir::binary(ir::BinaryOp::lt, number(0), load(w, {at})); }
};

}  // namespace

// ---- hoist_conditions ----

TEST_CASE("a condition that does not change is asked before the loop", "[pass]") {
  const Small p;
  const ir::Stmt yes = store(p.h, {p.i}, number(1)), no = store(p.h, {p.i}, number(2));
  const ir::Stmt s = pass::hoist_conditions(loop(p.i, p.H, ir::If::make(p.positive(p.zero), yes, no)));
  CHECK(ir::equal(s, ir::If::make(p.positive(p.zero), loop(p.i, p.H, yes), loop(p.i, p.H, no))));
}

TEST_CASE("a condition leaves all loops in which it does not change, and no other", "[pass]") {
  const Small p;
  const ir::Stmt inner = loop(p.i, p.H, ir::If::make(p.positive(p.n), store(p.h, {p.i}, number(1))));
  const ir::Stmt s = pass::hoist_conditions(loop(p.n, p.N, inner));
  CHECK(ir::equal(s, loop(p.n, p.N, ir::If::make(p.positive(p.n), loop(p.i, p.H, store(p.h, {p.i}, number(1)))))));
}

TEST_CASE("a condition on what the loop writes, or beside other statements, stays", "[pass]") {
  const Small p;
  const ir::Expr of_x = ir::binary(ir::BinaryOp::lt, number(0), load(p.x, {p.zero}));
  const ir::Stmt writes = loop(p.i, p.H, ir::If::make(of_x, store(p.x, {p.i}, number(1))));
  CHECK(pass::hoist_conditions(writes).same_as(writes));
  const ir::Stmt beside = loop(
      p.i, p.H, block({ir::If::make(p.positive(p.zero), store(p.h, {p.i}, number(1))), store(p.x, {p.i}, number(1))}));
  CHECK(pass::hoist_conditions(beside).same_as(beside));
}

TEST_CASE("a condition around a barrier is never made", "[pass]") {
  const Small p;
  const ir::Stmt s =
      loop(p.i, p.H, ir::If::make(p.positive(p.zero), block({store(p.h, {p.i}, number(1)), ir::Barrier::make()})));
  CHECK(pass::hoist_conditions(s).same_as(s));
}

// ---- hoist_invariants ----

TEST_CASE("a function of what does not change is computed before the loop", "[pass]") {
  const Small p;
  const ir::Stmt s =
      pass::hoist_invariants(loop(p.i, p.H, store(p.h, {p.i}, load(p.x, {p.i}) * p.tanh_w(p.zero) + p.tanh_w(p.zero))));
  CHECK(ir::print(s) ==
        "t = tanh(w[0])\n"
        "for i = 0:4:  # hidden\n"
        "  h[i] = x[i] * t + t\n");
}

TEST_CASE("work leaves as many loops as it does not change in", "[pass]") {
  const Small p;
  const ir::Stmt s =
      pass::hoist_invariants(loop(p.n, p.N, loop(p.i, p.H, store(p.h, {p.i}, p.tanh_w(p.n) * p.tanh_w(p.zero)))));
  CHECK(ir::print(s) ==
        "t = tanh(w[0])\n"
        "for n = 0:3:  # rows\n"
        "  t.2 = tanh(w[n])\n"
        "  for i = 0:4:  # hidden\n"
        "    h[i] = t.2 * t\n");
}

TEST_CASE("work of a loop that may have no iterations, of a condition, or of what the loop writes stays", "[pass]") {
  const Small p;
  const auto stays = [](const ir::Stmt& s) { return pass::hoist_invariants(s).same_as(s); };
  const ir::Stmt work = store(p.h, {p.i}, p.tanh_w(p.zero));
  CHECK(stays(ir::For::make(p.i, p.H, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial, work)));
  CHECK(stays(loop(p.i, p.H, ir::If::make(p.positive(p.i), work))));
  CHECK(stays(loop(p.i, p.H, store(p.x, {p.i}, function(ir::UnaryOp::tanh, load(p.x, {p.zero}))))));
  CHECK(stays(loop(p.i, p.H, store(p.h, {p.i}, load(p.w, {p.zero}) * number(2)))));  // a product is no work
}

TEST_CASE("what other workers write while a loop waits for them is not read before it", "[pass]") {
  const Small p;
  const ir::Stmt s =
      loop(p.i, p.H, block({ir::Barrier::make(), store(p.h, {p.i}, function(ir::UnaryOp::tanh, load(p.x, {p.zero})))}));
  CHECK(pass::hoist_invariants(s).same_as(s));
}

// ---- share_subexpressions ----

TEST_CASE("work that a statement does twice is done once, the inner part first", "[pass]") {
  const Small p;
  const ir::Expr a = p.tanh_w(p.zero), b = function(ir::UnaryOp::exp, a + number(1));
  CHECK(ir::print(pass::share_subexpressions(store(p.h, {p.zero}, b * b + a))) ==
        "t = tanh(w[0])\n"
        "t.2 = exp(t + 1.0)\n"
        "h[0] = t.2 * t.2 + t\n");
}

TEST_CASE("work that is done once stays", "[pass]") {
  const Small p;
  const ir::Stmt s = store(p.h, {p.zero}, p.tanh_w(p.zero) * p.tanh_w(ir::imm(1)));
  CHECK(pass::share_subexpressions(s).same_as(s));
}

// ---- hoist_shares ----

namespace {

int divisions_in(const ir::Stmt& s) {
  int count = 0;
  ir::visit_with(s, [&](const ir::Binary& n) { count += n.op == ir::BinaryOp::div; });
  return count;
}

}  // namespace

TEST_CASE("where a worker's slices begin and end is computed once, before all loops", "[pass]") {
  const Small p;
  const ir::Expr begin = ir::worker() * 4 / ir::num_workers(), end = (ir::worker() + 1) * 4 / ir::num_workers();
  const auto slice = [&](const ir::Buffer& to) {
    return ir::For::make(p.i, p.H, end - begin, ir::ForKind::serial, store(to, {begin + p.i}, number(1)));
  };
  const ir::Stmt hoisted = pass::hoist_shares(loop(p.n, p.N, ir::Block::make({slice(p.h), slice(p.x)})));
  CHECK(divisions_in(hoisted) == 2);
  const auto* first = hoisted.as<ir::LetStmt>();
  REQUIRE(first);
  const auto* second = first->body.as<ir::LetStmt>();
  REQUIRE(second);
  CHECK(divisions_in(second->body) == 0);
  const auto once = [&](const ir::Buffer& to) {
    return ir::For::make(p.i, p.H, first->var - second->var, ir::ForKind::serial,
                         store(to, {second->var + p.i}, number(1)));
  };
  CHECK(ir::equal(first->value, end));
  CHECK(ir::equal(second->value, begin));
  CHECK(ir::equal(second->body, loop(p.n, p.N, ir::Block::make({once(p.h), once(p.x)}))));
}

TEST_CASE("slices of what a call decides are computed where they are, and programs of one worker have none",
          "[pass][noop]") {
  const Small p;
  const ir::Expr rows = ir::call(ir::UfKind::num_nodes, "num_nodes");
  const ir::Stmt shared = loop(p.n, p.N, store(p.h, {rows * ir::worker() / ir::num_workers()}, number(1))),
                 alone = loop(p.n, p.N, store(p.h, {p.n * 4 / 2}, number(1)));
  CHECK(pass::hoist_shares(shared).same_as(shared));
  CHECK(pass::hoist_shares(alone).same_as(alone));
}
