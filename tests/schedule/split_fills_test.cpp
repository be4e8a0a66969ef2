// What a kernel that serves many calls does once, apart from what each call needs.
#include "cortex/schedule/split_fills.hpp"

#include <catch2/catch.hpp>

#include "support/handmade.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Dim columns{"columns", 8};
const ir::Buffer weight = buffer("W", {columns}, ir::Role::weight), out = buffer("out", {columns}),
                 words = buffer("words", {columns}, ir::Role::index, DType::i32);

ir::Buffer kept(const char* name, ir::Scope scope, ir::Role role) {
  ir::BufferInfo info{name, DType::f32, {columns}, role};
  info.scope = scope;
  return ir::Buffer(std::move(info));
}
const ir::Buffer slice = kept("slice", ir::Scope::chip, ir::Role::temp),
                 registers = kept("registers", ir::Scope::local, ir::Role::weight);

/// `to[i] = from[i]` for all i.
ir::Stmt copy(const ir::Buffer& to, const ir::Buffer& from) {
  const ir::Expr i = var("i");
  return loop(i, columns, store(to, {i}, load(from, {i})));
}

}  // namespace

TEST_CASE("what weights alone fill stands apart, wherever it was on the way", "[schedule]") {
  const ir::Expr rows = var("rows");
  const ir::Stmt work = copy(out, registers), rest = block({copy(out, slice), ir::Barrier::make(), work});
  const ir::Stmt body =
      block({copy(slice, weight),
             ir::LetStmt::make(rows, load(words, {ir::imm(0)}),
                               block({copy(out, slice), ir::Barrier::make(),
                                      ir::Alloc::make(registers, block({copy(registers, weight), work}))}))});
  const schedule::SplitFills split = schedule::split_fills(body);
  REQUIRE(split.registers.size() == 1);
  CHECK(split.registers[0] == registers);
  CHECK(ir::print(split.fills) == ir::print(block({copy(slice, weight), copy(registers, weight)})));
  CHECK(ir::print(split.rest) == ir::print(ir::LetStmt::make(rows, load(words, {ir::imm(0)}), rest)));
}

TEST_CASE("what a call decides is no fill that stands apart", "[schedule]") {
  const ir::Expr first = var("first"), i = var("i");
  const ir::Stmt of_words = store(slice, {ir::imm(0)}, load(weight, {load(words, {ir::imm(0)})}));
  const ir::Stmt of_let = loop(i, columns, store(slice, {i}, load(weight, {first})));
  const ir::Stmt mixed = block({copy(slice, weight), copy(out, slice)});
  for (const ir::Stmt& body : {of_words, ir::LetStmt::make(first, load(words, {ir::imm(0)}), of_let), copy(slice, out),
                               loop(i, columns, mixed)}) {
    const schedule::SplitFills split = schedule::split_fills(body);
    CHECK(ir::print(split.fills) == ir::print(block({})));
    CHECK(ir::print(split.rest) == ir::print(body));
  }
}
