// Expressions on the two sides of where a condition on an index changes.
#include "cortex/ir/cuts.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "cortex/ir/print.hpp"

using namespace cortex;
using namespace cortex::ir;

namespace {

const Expr i = Var::make("i");

/// The value of an integer expression of `var`.
std::int64_t value(const Expr& e, const Expr& var, std::int64_t at) {
  if (e.same_as(var)) return at;
  if (const auto constant = as_int(e)) return *constant;
  if (const auto* n = e.as<Select>())
    return value(n->condition, var, at) ? value(n->then_value, var, at) : value(n->else_value, var, at);
  if (const auto* n = e.as<Unary>()) return !value(n->a, var, at);
  const auto& n = *e.as<Binary>();
  const std::int64_t a = value(n.a, var, at), b = value(n.b, var, at);
  if (n.op == BinaryOp::logical_and) return a && b;
  if (n.op == BinaryOp::logical_or) return a || b;
  return fold(n.op, a, b);
}

class RandomExpression {
 public:
  explicit RandomExpression(int seed) : random_(unsigned(seed)) {}

  Expr number(int depth) {
    using enum BinaryOp;
    switch (depth ? below(5) : below(2)) {
      case 0: return imm(below(25) - 4);
      case 1: return shifted();
      case 2: return Select::make(condition(depth - 1), number(depth - 1), number(depth - 1));
      case 3:
        return below(2) ? Binary::make(below(2) ? min : max, number(depth - 1), number(0))
                        : Binary::make(below(2) ? min : max, number(0), number(depth - 1));
      default: return Binary::make(below(2) ? add : sub, number(depth - 1), number(depth - 1));
    }
  }

 private:
  int below(int n) { return int(random_() % unsigned(n)); }
  Expr shifted() { return below(2) ? i : Binary::make(below(2) ? BinaryOp::add : BinaryOp::sub, i, imm(below(9) - 2)); }
  Expr condition(int depth) {
    using enum BinaryOp;
    if (depth > 0 && below(3) == 0)
      return Binary::make(below(2) ? logical_and : logical_or, condition(depth - 1), condition(depth - 1));
    if (depth > 0 && below(4) == 0) return Unary::make(UnaryOp::logical_not, condition(depth - 1));
    const BinaryOp ops[] = {lt, le, gt, ge, eq, ne};
    const Expr a = shifted(), b = imm(below(20) - 2);
    const BinaryOp op = ops[below(6)];
    return below(2) ? Binary::make(op, a, b) : Binary::make(op, b, a);
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("an expression is cut where its conditions change", "[ir]") {
  const Expr halves = Select::make(binary(BinaryOp::lt, i, imm(8)), binary(BinaryOp::min, i, imm(7)),
                                   binary(BinaryOp::max, i - 8, imm(0)));
  CHECK(cuts_of(halves, i, 16) == Vector<std::int64_t>{0, 8, 16});
  CHECK(print(between(halves, i, Var::make("i"), 0, 8)) == "i");
  CHECK(print(between(halves, i, Var::make("i"), 8, 16)) == "i");
  CHECK(cuts_of(halves, i, 8) == Vector<std::int64_t>{0, 8});
  CHECK(cuts_of(halves, Var::make("j"), 16) == Vector<std::int64_t>{0, 16});
  const Expr one = Select::make(binary(BinaryOp::eq, i, imm(8)), imm(1), imm(0));
  CHECK(cuts_of(one, i, 16) == Vector<std::int64_t>{0, 16});  // not for one element
  const Expr wraps = Select::make(binary(BinaryOp::lt, i + INT32_MAX, imm(4)), imm(1), imm(0));
  CHECK(cuts_of(wraps, i, 16) == Vector<std::int64_t>{0, 16});
  CHECK(print(between(wraps, i, i, 8, 16)).find("select") == 0);
  const Expr inside = Select::make(
      binary(BinaryOp::logical_and, binary(BinaryOp::gt, imm(12), i + 1), binary(BinaryOp::le, imm(3), i)), i, imm(0));
  CHECK(cuts_of(inside, i, 16) == Vector<std::int64_t>{0, 3, 11, 16});
  CHECK(print(between(inside, i, Var::make("j"), 3, 11)) == "j + 3");
  CHECK(print(between(inside, i, Var::make("j"), 11, 16)) == "0");
}

TEST_CASE("a piece of an expression has the values of the whole", "[ir]") {
  constexpr std::int64_t extent = 16;
  int cut = 0, simpler = 0;
  for (int seed = 1; seed <= 2000; ++seed) {
    const Expr whole = RandomExpression(seed).number(3);
    const Vector<std::int64_t> cuts = cuts_of(whole, i, extent);
    cut += cuts.size() > 2;
    INFO(print(whole));
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const Expr from = Var::make("from"), piece = between(whole, i, from, cuts[c], cuts[c + 1]);
      simpler += print(piece).size() < print(whole).size();
      for (std::int64_t at = cuts[c]; at < cuts[c + 1]; ++at)
        CHECK(value(piece, from, at - cuts[c]) == value(whole, i, at));
    }
  }
  CHECK(cut > 400);
  CHECK(simpler > 800);
}
