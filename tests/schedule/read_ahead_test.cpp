// What can be read from memory before the statements that need it.
#include "cortex/schedule/read_ahead.hpp"

#include <catch2/catch.hpp>

#include "support/handmade.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Dim rows{"rows", 8};
const ir::Buffer state = buffer("h", {rows}, ir::Role::state), other = buffer("c", {rows}, ir::Role::state),
                 sum = local("a");
const ir::Expr node = var("node"), child = var("child");

ir::Buffer on_chip() {
  ir::BufferInfo info{"bias", DType::f32, {rows}, ir::Role::temp};
  info.scope = ir::Scope::chip;
  return ir::Buffer(std::move(info));
}

std::string rest_of(const schedule::ReadAhead& ahead) { return ir::print(ir::Block::make(ahead.rest)); }

}  // namespace

TEST_CASE("what waits for no sum is read ahead of it, and once", "[schedule]") {
  const ir::Expr c = load(other, {child});
  const schedule::ReadAhead ahead({store(state, {node}, load(sum, {}) * c + c)});
  REQUIRE(ahead.loads.size() == 1);
  CHECK(ir::print(ahead.loads[0].second) == "c[child]");
  CHECK(rest_of(ahead) == "h[node] = a * ahead + ahead\n");
}

TEST_CASE("an element is not read ahead of a store to its memory", "[schedule]") {
  const schedule::ReadAhead ahead(
      {store(state, {node}, load(state, {child})), store(other, {node}, load(state, {child}))});
  REQUIRE(ahead.loads.size() == 1);
  CHECK(rest_of(ahead) == "h[node] = ahead\nc[node] = h[child]\n");
}

TEST_CASE("what a variable or a sum of the statements decides is not read ahead of them", "[schedule]") {
  const ir::Expr own = var("own");
  const ir::Buffer number = local("number");
  const schedule::ReadAhead ahead({ir::LetStmt::make(own, node + 1, store(state, {node}, load(other, {own}))),
                                   store(state, {node}, load(other, {ir::Cast::make(DType::i32, load(number, {}))}))});
  CHECK(ahead.loads.empty());
}

TEST_CASE("what is on chip, in a loop or under a condition is not read ahead", "[schedule]") {
  const ir::Expr i = var("i");
  const ir::Buffer chip = on_chip();
  const schedule::ReadAhead ahead(
      {store(state, {node}, load(chip, {child})), loop(i, rows, store(state, {node}, load(other, {child}))),
       ir::If::make(ir::binary(ir::BinaryOp::lt, node, child), store(state, {node}, load(other, {child})))});
  CHECK(ahead.loads.empty());
}
