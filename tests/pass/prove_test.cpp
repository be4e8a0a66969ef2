// Intervals and proofs: single values, the shapes that loops are split into, and random expressions against all values.
#include "cortex/pass/prove.hpp"

#include <catch2/catch.hpp>

#include "support/handmade.hpp"
#include "support/random_models.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;
using pass::Interval;
using pass::Proof;

namespace {

ir::Expr compare(ir::BinaryOp op, const ir::Expr& a, const ir::Expr& b) { return ir::binary(op, a, b); }
ir::Expr less(const ir::Expr& a, const ir::Expr& b) { return compare(ir::BinaryOp::lt, a, b); }
ir::Expr least(const ir::Expr& a, const ir::Expr& b) { return ir::binary(ir::BinaryOp::min, a, b); }
ir::Expr greatest(const ir::Expr& a, const ir::Expr& b) { return ir::binary(ir::BinaryOp::max, a, b); }
ir::Expr count(ir::UfKind kind, std::vector<ir::Expr> args = {}, int accessor = -1) {
  return ir::call(kind, "f", std::move(args), accessor);
}

/// A prover inside loops.
struct Inside : pass::Prover {
  explicit Inside(pass::KnownNodes known = {}, bool z3 = false) : Prover(std::move(known), z3) {}
  ir::Expr loop(const char* name, const ir::Expr& extent) {
    const ir::Expr v = var(name);
    scope().enter_loop(v, extent);
    return v;
  }
  ir::Expr let(const char* name, const ir::Expr& value) {
    const ir::Expr v = var(name);
    scope().enter_let(v, value);
    return v;
  }
  Interval interval(const ir::Expr& e) { return scope().interval(e); }
};

}  // namespace

TEST_CASE("an expression's interval follows from its loops", "[pass]") {
  Inside p;
  const ir::Expr i = p.loop("i", ir::imm(16)), o = p.loop("o", ir::imm(4)), word = count(ir::UfKind::field, {i}, 0);
  CHECK(p.interval(o * 16 + i) == Interval{0, 63});
  CHECK(p.interval(ir::imm(3) - i) == Interval{-12, 3});
  CHECK(p.interval(i / 4) == Interval{0, 3});
  CHECK(p.interval((i + 1) % 4) == Interval{0, 3});
  CHECK(p.interval(least(i, ir::imm(5))) == Interval{0, 5});
  CHECK(p.interval(greatest(i, o + 20)) == Interval{20, 23});
  CHECK(p.interval(ir::Select::make(less(word, i), i, ir::imm(-1))) == Interval{-1, 15});
  CHECK(p.interval(word).low == INT32_MIN);
  CHECK(p.interval((greatest(word, ir::imm(0))) % 3) == Interval{0, 2});
}

TEST_CASE("a remainder of what may be negative is not known", "[pass]") {
  Inside p;
  const ir::Expr word = count(ir::UfKind::field, {p.loop("n", count(ir::UfKind::num_nodes))}, 0);
  CHECK(p.prove(less(word % 3, ir::imm(3))) == Proof::no);
  pass::KnownNodes known;
  known.field_limit = {100};
  Inside checked(known);
  const ir::Expr same = count(ir::UfKind::field, {checked.loop("n", count(ir::UfKind::num_nodes))}, 0);
  CHECK(checked.prove(less(same % 3, ir::imm(3))) != Proof::no);
}

TEST_CASE("what may wrap is not known", "[pass]") {
  Inside p;
  const ir::Expr a = p.loop("a", ir::imm(100000)), b = p.loop("b", ir::imm(100000));
  CHECK(p.prove(less(a * b, ir::imm(INT32_MAX))) == Proof::no);
  CHECK(p.prove(compare(ir::BinaryOp::ge, a * b, ir::imm(0))) == Proof::no);
  CHECK(p.prove(less(a * 20000, ir::imm(2000000000))) == Proof::intervals);
  CHECK(p.prove(compare(ir::BinaryOp::ge, count(ir::UfKind::num_nodes) * 2, ir::imm(0))) == Proof::no);
  CHECK(p.prove(compare(ir::BinaryOp::ge, count(ir::UfKind::num_nodes) + 9, ir::imm(0))) == Proof::rules);
}

TEST_CASE("tiles that divide a constant extent need no guard", "[pass]") {
  Inside p;
  const ir::Expr o = p.loop("o", ir::imm(4)), i = p.loop("i", ir::imm(16));
  CHECK(p.prove(less(o * 16 + i, ir::imm(64))) == Proof::intervals);
  CHECK(p.prove(less(o * 16 + i, ir::imm(63))) == Proof::no);
}

TEST_CASE("the full tiles of a variable extent and its peeled rest need no guard", "[pass]") {
  Inside p;
  const ir::Expr b = p.loop("b", count(ir::UfKind::num_batches)), n = count(ir::UfKind::batch_length, {b});
  p.scope().within([&] {
    const ir::Expr o = p.loop("o", n / 16), i = p.loop("i", ir::imm(16));
    CHECK(p.prove(less(o * 16 + i, n)) != Proof::no);
    CHECK(p.prove(less(o * 16 + i + 1, n)) == Proof::no);
  });
  p.scope().within([&] {
    const ir::Expr o = p.loop("o", n % 16);
    CHECK(p.prove(less(n / 16 * 16 + o, n)) != Proof::no);
  });
}

TEST_CASE("the last tile of a loop that rounds up keeps its guard", "[pass]") {
  Inside p({}, true);
  const ir::Expr n = p.loop("n", ir::imm(1000)), o = p.loop("o", (n + 15) / 16), i = p.loop("i", ir::imm(16));
  CHECK(p.prove(less(o * 16 + i, n)) == Proof::no);
  CHECK(p.prove(less(o * 16, n)) != Proof::no);
  CHECK(p.prove(less(o * 16 + i, n + 15)) != Proof::no);
}

TEST_CASE("nodes of a batch are nodes, by rules", "[pass]") {
  Inside p;
  const ir::Expr b = p.loop("b", count(ir::UfKind::num_internal_batches)),
                 n = p.loop("n", count(ir::UfKind::internal_batch_length, {b})),
                 node = p.let("node", count(ir::UfKind::internal_batch_node, {b, n}));
  CHECK(p.prove(less(node, count(ir::UfKind::num_nodes))) == Proof::rules);
  CHECK(p.prove(less(node, count(ir::UfKind::num_internal))) == Proof::rules);
  CHECK(p.prove(count(ir::UfKind::is_leaf, {node}), false) == Proof::rules);
  CHECK(p.prove(less(node, count(ir::UfKind::child, {node}, 0))) == Proof::rules);
  CHECK(p.prove(less(node, count(ir::UfKind::num_batches))) == Proof::no);
}

TEST_CASE("conditions around a place count, on both sides", "[pass]") {
  Inside p;
  const ir::Expr x = p.loop("x", ir::imm(100)), y = p.loop("y", ir::imm(100));
  p.scope().within([&] {
    p.scope().assume(ir::Binary::make(ir::BinaryOp::logical_and, less(x, y), less(y, ir::imm(10))), true);
    CHECK(p.prove(less(x, ir::imm(9))) == Proof::intervals);
  });
  p.scope().within([&] {
    p.scope().assume(less(x, y), false);
    CHECK(p.prove(compare(ir::BinaryOp::ge, x, y)) == Proof::intervals);
  });
  p.scope().within([&] {
    p.scope().assume(compare(ir::BinaryOp::eq, x, ir::imm(0)), false);
    CHECK(p.prove(compare(ir::BinaryOp::ge, x, ir::imm(1))) == Proof::intervals);
  });
  CHECK(p.prove(less(x, ir::imm(99))) == Proof::no);
}

TEST_CASE("tiles of even sizes stay within their total", "[pass]") {
  constexpr int most = 5;
  for (const int usual : {most, 3}) {
    Inside p;
    const ir::Expr total = p.let("total", count(ir::UfKind::num_leaves)), filled = (total + (usual - 1)) / usual,
                   several = least(filled, greatest(ir::imm(1), total - (most - 1))),
                   tiles = p.let("tiles", usual < most ? several : filled), t = p.loop("t", tiles),
                   each = total / tiles, longer = total % tiles, base = p.let("base", t * each + least(t, longer)),
                   rows = p.let("rows", each + least(ir::imm(1), greatest(ir::imm(0), longer - t)));
    CHECK(p.prove(compare(ir::BinaryOp::le, base + rows, total)) != Proof::no);
    CHECK(p.prove(compare(ir::BinaryOp::le, rows, ir::imm(most))) != Proof::no);
    CHECK(p.prove(compare(ir::BinaryOp::ge, rows, ir::imm(1))) != Proof::no);
    CHECK(p.prove(compare(ir::BinaryOp::ge, base, ir::imm(0))) != Proof::no);
    CHECK(p.prove(compare(ir::BinaryOp::le, rows, ir::imm(most - 1))) == Proof::no);
    CHECK(p.prove(compare(ir::BinaryOp::le, base + rows + 1, total)) == Proof::no);
  }
  for (int n = 1; n < 60; ++n)
    for (int m = 1; m < 12; ++m)
      for (int usual = 1; usual <= m; ++usual) {
        const int count = std::min((n + usual - 1) / usual, usual < m ? std::max(1, n - (m - 1)) : n);
        for (int k = 0; k < count; ++k) {
          const int before = k * (n / count) + std::min(k, n % count),
                    own = n / count + std::min(1, std::max(0, n % count - k));
          if (before < 0 || before + own > n || before > n - n / count || own < 1 || own > m)
            FAIL(n << " by " << m << ", usually " << usual);
        }
      }
}

TEST_CASE("of numbers of tiles that are not known nothing is proved of a tile's rows", "[pass]") {
  Inside p;
  const ir::Expr total = p.let("total", count(ir::UfKind::num_leaves)),
                 tiles = p.let("tiles", least((total + 5) / 6, greatest(ir::imm(1), total - 3))),  // 6 of at most 4
      t = p.loop("t", tiles), each = total / tiles, longer = total % tiles,
                 rows = p.let("rows", each + least(ir::imm(1), greatest(ir::imm(0), longer - t)));
  CHECK(p.prove(compare(ir::BinaryOp::le, rows, ir::imm(4))) == Proof::no);
}

TEST_CASE("a worker's share stays within what is shared", "[pass]") {
  Inside p;
  const ir::Expr worker = count(ir::UfKind::worker), workers = count(ir::UfKind::num_workers),
                 begin = worker * 12 / workers, end = (worker + 1) * 12 / workers, i = p.loop("i", end - begin);
  CHECK(p.prove(less(begin + i, ir::imm(12))) != Proof::no);
  CHECK(p.prove(compare(ir::BinaryOp::ge, begin + i, ir::imm(0))) != Proof::no);
  CHECK(p.prove(less(begin + i, ir::imm(11))) == Proof::no);
}

TEST_CASE("Z3 proves what no chain of sums does", "[pass]") {
  need_z3();
  Inside p({}, true), alone({}, false);
  for (Inside* inside : {&p, &alone}) {
    const ir::Expr x = inside->loop("x", ir::imm(100)), y = inside->loop("y", ir::imm(100));
    inside->scope().assume(ir::Binary::make(ir::BinaryOp::logical_or, less(x, ir::imm(3)), less(x, y)), true);
    inside->scope().assume(less(y, ir::imm(50)), true);
    const bool z3 = inside == &p;
    CHECK(inside->prove(less(x, ir::imm(50))) == (z3 ? Proof::z3 : Proof::no));
    CHECK(inside->prove(compare(ir::BinaryOp::ne, x * 2, y * 2 + 1)) == (z3 ? Proof::z3 : Proof::no));
    CHECK(inside->prove(less(x, ir::imm(48))) == Proof::no);
  }
}

namespace {

/// Random integer expressions and conditions over three loop variables.
class RandomExpr {
 public:
  explicit RandomExpr(std::uint64_t seed) : random_(seed) {
    for (const char* name : {"x", "y", "z"}) {
      vars.push_back(var(name));
      extents.push_back(1 + random_.below(7));
    }
  }
  std::vector<ir::Expr> vars;
  std::vector<int> extents;

  ir::Expr number(int depth) {
    if (depth == 0) return random_.chance(0.7) ? vars[std::size_t(random_.below(3))] : ir::imm(random_.below(9) - 2);
    const ir::Expr a = number(depth - 1), b = number(random_.below(depth));
    switch (random_.below(9)) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * std::int64_t(random_.below(5) - 1);
      case 3: return greatest(a, ir::imm(0)) / (1 + random_.below(5));
      case 4: return greatest(a, ir::imm(0)) % (1 + random_.below(5));
      case 5: return least(a, b);
      case 6: return greatest(a, b);
      case 7: return ir::Select::make(condition(0), a, b);
      default: return a * b;
    }
  }
  ir::Expr condition(int depth) {
    if (depth > 0 && random_.chance(0.4)) {
      const ir::BinaryOp op = random_.chance(0.5) ? ir::BinaryOp::logical_and : ir::BinaryOp::logical_or;
      return ir::Binary::make(op, condition(depth - 1), condition(depth - 1));
    }
    if (random_.chance(0.1)) return ir::Unary::make(ir::UnaryOp::logical_not, condition(depth));
    const auto op = ir::BinaryOp(int(ir::BinaryOp::eq) + random_.below(6));
    return ir::Binary::make(op, number(depth), number(random_.below(2)));
  }

  /// The value of `e`; conditions are 0 or 1.
  std::int64_t value(const ir::Expr& e, const std::vector<int>& at) const {
    if (const auto* n = e.as<ir::IntImm>()) return n->value;
    for (std::size_t v = 0; v < vars.size(); ++v)
      if (e.same_as(vars[v])) return at[v];
    if (const auto* n = e.as<ir::Unary>()) return !value(n->a, at);
    if (const auto* n = e.as<ir::Select>())
      return value(n->condition, at) ? value(n->then_value, at) : value(n->else_value, at);
    const auto& n = *e.as<ir::Binary>();
    return ir::fold(n.op, value(n.a, at), value(n.b, at));
  }

  template <class F>
  void for_all(F f) const {
    for (int x = 0; x < extents[0]; ++x)
      for (int y = 0; y < extents[1]; ++y)
        for (int z = 0; z < extents[2]; ++z) f(std::vector<int>{x, y, z});
  }

 private:
  Random random_;
};

}  // namespace

TEST_CASE("intervals hold all values of random expressions, and what is proved is true", "[pass][random]") {
  pass::ProofCounts counts;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    RandomExpr make(seed);
    pass::Prover prover({}, seed % 4 == 0);
    for (std::size_t v = 0; v < 3; ++v) prover.scope().enter_loop(make.vars[v], ir::imm(make.extents[v]));
    const ir::Expr given = make.condition(1), e = make.number(3), goal = make.condition(2);
    const Interval all = prover.scope().interval(e);
    prover.scope().assume(given, true);
    const Proof yes = prover.prove(goal, true), no = prover.prove(goal, false);
    counts.add(yes), counts.add(no);
    make.for_all([&](const std::vector<int>& at) {
      const std::int64_t v = make.value(e, at);
      if (v < all.low || v > all.high) FAIL("seed " << seed << ": " << ir::print(e) << " is " << v);
      if (!make.value(given, at)) return;
      const bool truth = make.value(goal, at) != 0;
      if ((yes != Proof::no && !truth) || (no != Proof::no && truth))
        FAIL("seed " << seed << ": " << ir::print(goal) << " given " << ir::print(given));
    });
  }
  CHECK(counts.proved() > 400);
}

TEST_CASE("a proof is found each time in the same way", "[pass]") {
  const auto run = [] {
    pass::ProofCounts counts;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      RandomExpr make(seed);
      pass::Prover prover;
      for (std::size_t v = 0; v < 3; ++v) prover.scope().enter_loop(make.vars[v], ir::imm(make.extents[v]));
      counts.add(prover.prove(make.condition(2)));
    }
    return counts;
  };
  CHECK(run() == run());
}
