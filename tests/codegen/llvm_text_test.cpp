#include "cortex/codegen/llvm_text.hpp"

#include <limits>
#include <string>
#include <vector>

#include "cortex/ir/build.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::ir;

namespace {

const Dim rows{"rows", 4}, columns{"columns", 64};

Buffer buffer(const std::string& name, Role role = Role::temp, DType type = DType::f32) {
  BufferInfo info;
  info.name = name, info.dtype = type, info.dims = {rows, columns}, info.role = role;
  return Buffer(info);
}

Buffer local(const std::string& name, int lanes) {
  BufferInfo info;
  info.name = name, info.scope = Scope::local, info.lanes = lanes;
  return Buffer(info);
}

Program program(std::vector<Buffer> buffers, Stmt body) {
  return {"test", std::move(buffers), std::move(body), Level::device};
}

std::string text_of(const Program& p) { return codegen::llvm_text(p, {"kernel", 64}); }

/// How often `part` occurs in `text`.
int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return {};
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

Expr at(const Buffer& b, Expr index) { return Load::make(b, {std::move(index)}); }
Stmt set(const Buffer& b, Expr index, Expr value) { return Store::make(b, {std::move(index)}, std::move(value)); }
Expr wide(Expr base) { return Ramp::make(std::move(base), 16); }

std::string refusal(const Program& p) {
  try {
    text_of(p);
  } catch (const Error& error) {
    CHECK(error.code == Code::internal);
    return error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("LLVM text of a matrix product with a barrier is the golden one", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), child = buffer("child", Role::index, DType::i32),
               h = buffer("h", Role::state);
  const Buffer sum = local("sum", 16);
  const Expr n = Var::make("n"), k = Var::make("k");
  const Expr x = Broadcast::make(at(h, at(child, n) * 64 + k), 16), zero = constant(0, {DType::f32, 16});
  const Stmt inner = For::make(k, columns, imm(64), ForKind::serial,
                               Store::make(sum, {}, Fma::make(x, at(w, wide(k * 16)), Load::make(sum, {}))));
  const Stmt body =
      Alloc::make(sum, Block::make({Store::make(sum, {}, zero), inner,
                                    set(h, wide(n * 64), Unary::make(UnaryOp::relu, Load::make(sum, {})))}));
  const Stmt loop = For::make(n, rows, at(child, imm(0)), ForKind::serial, Block::make({body, Barrier::make()}));
  check_golden("llvm_text/product.ll", text_of(program({w, child, h}, loop)));
}

TEST_CASE("every buffer is an alias scope of its own", "[llvm_text]") {
  const Buffer a = buffer("a"), b = buffer("b"), c = buffer("c");
  const std::string text = text_of(program({a, b, c}, set(c, imm(1), at(a, imm(2)) + at(b, imm(3)))));
  CHECK(line_with(text, "load float, ptr %v0").find("!alias.scope !5, !noalias !6") != std::string::npos);
  CHECK(line_with(text, "load float, ptr %v2").find("!alias.scope !7, !noalias !8") != std::string::npos);
  CHECK(line_with(text, "store float").find("!alias.scope !9, !noalias !10") != std::string::npos);
  CHECK(text.find("!5 = !{!2}\n!6 = !{!3, !4}\n!7 = !{!3}\n!8 = !{!2, !4}\n!9 = !{!4}\n!10 = !{!2, !3}\n") !=
        std::string::npos);
}

TEST_CASE("loads of what a call only reads are invariant, and no others", "[llvm_text]") {
  const Buffer w = buffer("w", Role::weight), f = buffer("f", Role::field), h = buffer("h", Role::state),
               t = buffer("t");
  const Stmt body = set(t, imm(0), at(w, imm(0)) + at(f, imm(0)) + at(h, imm(0)) + at(t, imm(0)));
  const std::string text = text_of(program({w, f, h, t}, body));
  CHECK(line_with(text, "load float, ptr %b0,").find("!invariant.load") != std::string::npos);
  CHECK(line_with(text, "load float, ptr %b1,").find("!invariant.load") != std::string::npos);
  CHECK(line_with(text, "load float, ptr %b2,").find("!invariant.load") == std::string::npos);
  CHECK(line_with(text, "load float, ptr %b3,").find("!invariant.load") == std::string::npos);
}

TEST_CASE("no parameter is noalias, because a barrier changes what pointers lead to", "[llvm_text]") {
  const Buffer a = buffer("a");
  const std::string text =
      text_of(program({a}, Block::make({set(a, imm(0), constant(1, {DType::f32})), Barrier::make()})));
  CHECK(line_with(text, "define ") == "define void @kernel(ptr noundef %args) #0 {");
}

TEST_CASE("a barrier is called only where there are several workers", "[llvm_text]") {
  const Buffer a = buffer("a");
  const std::string text =
      text_of(program({a}, Block::make({Barrier::make(), set(a, imm(0), constant(1, {DType::f32}))})));
  CHECK(text.find("  %v2 = icmp sgt i32 %workers, 1\n  br i1 %v2, label %wait0, label %done1\n"
                  "wait0:\n  call void %barrier(ptr %context) nounwind\n  br label %done1\ndone1:\n") !=
        std::string::npos);
}

TEST_CASE("no instruction has a fast-math flag", "[llvm_text]") {
  const Buffer a = buffer("a");
  const Expr x = at(a, wide(imm(0))), y = at(a, wide(imm(16)));
  std::vector<Stmt> body;
  for (const BinaryOp op :
       {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div, BinaryOp::min, BinaryOp::max, BinaryOp::pow})
    body.push_back(set(a, wide(imm(0)), Binary::make(op, x, y)));
  for (const UnaryOp op : {UnaryOp::neg, UnaryOp::abs, UnaryOp::exp, UnaryOp::sqrt, UnaryOp::sigmoid, UnaryOp::relu,
                           UnaryOp::round, UnaryOp::floor, UnaryOp::erf, UnaryOp::exponent, UnaryOp::significand})
    body.push_back(set(a, wide(imm(0)), Unary::make(op, x)));
  const std::string text = text_of(program({a}, Block::make(body)));
  for (const char* flag : {"fast", "contract", "reassoc", "nnan", "ninf", "nsz", "arcp", "afn", "fmuladd"})
    CHECK(count(text, flag) == 0);
}

TEST_CASE(
    "arithmetic on the nodes' numbers wraps, and divides by any number; of what the linearizer makes it does neither",
    "[llvm_text]") {
  const auto of_slot = [](const char* name, int slot) {
    BufferInfo info = *buffer(name, Role::index, DType::i32);
    info.slot = slot;
    return Buffer(info);
  };
  const Buffer id = of_slot("id", slot_of::field), child = of_slot("child", slot_of::child),
               edges = of_slot("edge_begin", slot_of::edge_begin), h = buffer("h"), t = buffer("t");
  const auto text = [&](const Expr& index) {
    return text_of(program({id, child, edges, h, t}, set(t, imm(0), at(h, index))));
  };
  for (const char* const op : {"add", "sub", "mul"}) {
    const auto make = [&](const Expr& a, const Expr& b) { return op[0] == 'a' ? a + b : op[0] == 's' ? a - b : a * b; };
    const auto index_by = [&](const Buffer& of) {
      const Expr x = Var::make("x");  // a minimum, of which the operation is a part
      return Let::make(x, at(of, imm(0)), binary(BinaryOp::min, make(x, at(of, imm(1))), imm(3)));
    };
    CHECK(count(text(index_by(child)), op + std::string(" nsw i32")) == 1);
    // Numbers of children add up to no more than 32 bits hold; a product of them is the user's, and may.
    CHECK(count(text(index_by(edges)), op + std::string(" nsw i32")) == (op[0] != 'm'));
    CHECK(count(text(index_by(id)), op + std::string(" nsw i32")) == 0);
    CHECK(count(text(index_by(id)), op + std::string(" i32")) == 1);
  }
  const auto counted = [&](const Expr& index) { return count(text(binary(BinaryOp::min, index, imm(3))), "nsw i32"); };
  const Expr product = Var::make("product"), number = at(edges, imm(0));
  CHECK(counted(number + 1) == 1);
  CHECK(counted(number + (1 << 30)) == 0);
  CHECK(counted(Let::make(product, number * 1000003, product + product)) == 0);
  const std::string quotient = text(at(id, imm(0)) / at(id, imm(1))), safe = "icmp ult i32 %v", of = "sdiv i32";
  CHECK(line_with(quotient, safe).find(", 2") != std::string::npos);  // -1 and 0, one added
  CHECK(count(quotient, of) == 1);
  CHECK(count(text(at(id, imm(0)) % at(id, imm(1))), "srem i32") == 1);
}

TEST_CASE("users' names stand in comments only, with odd characters replaced", "[llvm_text]") {
  const Buffer a = buffer("h\n!0 = \"evil\" %x");
  const Expr v = Var::make("i\nret void");
  Program p = program({a}, For::make(v, rows, imm(4), ForKind::serial, set(a, v, constant(1, {DType::f32}))));
  p.name = "tree\nrnn";
  const std::string text = text_of(p);
  CHECK(text.starts_with("; program tree_rnn\n; %b0 h__0____evil___x f32 temp\n\ndefine"));
  CHECK(count(text, "evil") == 1);
  CHECK(count(text, "ret void") == 1);
}

TEST_CASE("a shared handle is computed once", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight);
  Expr x = at(w, imm(3));
  for (int i = 0; i < 40; ++i) x = x * x;
  const std::string text = text_of(program({w, a}, Block::make({set(a, imm(0), x), set(a, imm(1), x + x)})));
  CHECK(count(text, "fmul") == 40);
}

TEST_CASE("what is computed in a branch or a loop is computed again after it", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight);
  const Expr x = at(w, imm(3)) * at(w, imm(4)), i = Var::make("i");
  const Stmt once = set(a, imm(0), x);
  const Expr is_first = Binary::make(BinaryOp::eq, call(UfKind::worker, "worker"), imm(0));
  CHECK(count(text_of(program({w, a}, Block::make({If::make(is_first, once, once), once}))), "fmul") == 3);
  CHECK(count(text_of(program({w, a}, Block::make({For::make(i, rows, imm(4), ForKind::serial, once), once}))),
              "fmul") == 2);
  CHECK(count(text_of(program({w, a}, Block::make({once, For::make(i, rows, imm(4), ForKind::serial, once)}))),
              "fmul") == 1);
}

TEST_CASE("a load from memory that changes is shared within its statement only", "[llvm_text]") {
  const Buffer a = buffer("a");
  const Expr x = at(a, imm(3));
  CHECK(count(text_of(program({a}, set(a, imm(0), x + x))), "load float") == 1);
  CHECK(count(text_of(program({a}, Block::make({set(a, imm(3), x + x), set(a, imm(0), x)}))), "load float") == 2);
}

TEST_CASE("one let is evaluated where it stands, once for all its uses", "[llvm_text]") {
  const Buffer a = buffer("a");
  const Expr v = Var::make("v", {DType::f32, 1});
  const Stmt body = LetStmt::make(v, at(a, imm(3)), Block::make({set(a, imm(3), v + v), set(a, imm(0), v)}));
  CHECK(count(text_of(program({a}, body)), "load float") == 1);
}

TEST_CASE("the same loop can stand twice in a program", "[llvm_text]") {
  const Buffer a = buffer("a");
  const Expr i = Var::make("i");
  const Stmt loop = For::make(i, rows, imm(4), ForKind::serial, set(a, i * 2, constant(1, {DType::f32})));
  CHECK(count(text_of(program({a}, Block::make({loop, loop}))), "= mul nsw i64") == 2);
}

TEST_CASE("a ramp is one vector access, a broadcast one scalar access, another vector index one a lane",
          "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight);
  const Expr steps = Binary::make(BinaryOp::mul, wide(imm(0)), constant(2, {DType::i32, 16}));
  const std::string ramp = text_of(program({w, a}, set(a, wide(imm(0)), at(w, wide(imm(4))))));
  CHECK(count(ramp, "load <16 x float>, ptr %v0, align 4") == 1);
  const std::string broadcast = text_of(program({w, a}, set(a, wide(imm(0)), at(w, Broadcast::make(imm(4), 16)))));
  CHECK(count(broadcast, "load float") == 1);
  CHECK(count(broadcast, "shufflevector") == 1);
  CHECK(count(text_of(program({w, a}, set(a, wide(imm(0)), at(w, steps)))), "load float") == 16);
  CHECK(count(text_of(program({w, a}, set(a, steps, at(w, wide(imm(0)))))), "store float") == 16);
}

TEST_CASE("places that lie equally far apart are constants away from the first", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight), u = buffer("u", Role::weight);
  const Expr i = Var::make("i"), lanes = Cast::make(DType::i64, wide(imm(0)));
  const Expr places = Binary::make(BinaryOp::add, Broadcast::make(Cast::make(DType::i64, i * 4), 16),
                                   Binary::make(BinaryOp::mul, lanes, constant(17, {DType::i64, 16})));
  const auto in_loop = [&](const Stmt& body) {
    return text_of(program({w, u, a}, For::make(i, rows, imm(4), ForKind::serial, body)));
  };
  for (const std::string& text :
       {in_loop(set(a, wide(imm(0)), at(w, places))), in_loop(set(a, places, at(w, wide(imm(0)))))}) {
    CHECK(count(text, "load float") + count(text, "store float") == 16);
    for (int lane = 1; lane < 16; ++lane) CHECK(count(text, ", i64 " + std::to_string(17 * lane) + "\n") == 1);
    CHECK(count(text, "= mul") == 1);  // of the first place
  }
  const Expr test = Broadcast::make(Binary::make(BinaryOp::eq, call(UfKind::worker, "worker"), imm(0)), 16);
  const std::string either = in_loop(set(a, wide(imm(0)), Select::make(test, at(w, places), at(u, places))));
  CHECK(count(either, "load float") == 32);
}

TEST_CASE("a choice of two elements is one load from the chosen address", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight), u = buffer("u", Role::weight);
  const Expr first = Binary::make(BinaryOp::eq, call(UfKind::worker, "worker"), imm(0)), i = Var::make("i");
  const auto either = [&](const Expr& x, const Expr& y) {
    const Expr test = x.lanes() > 1 ? Broadcast::make(first, x.lanes()) : first;
    return Select::make(test, at(w, x), at(u, y));
  };
  const auto in_loop = [&](const Expr& value) {
    return text_of(program({w, u, a}, For::make(i, rows, imm(4), ForKind::serial, set(a, i, value))));
  };
  const std::string scalar = in_loop(either(imm(64) + i, i));
  CHECK(count(scalar, "load float") == 1);
  CHECK(count(scalar, ", ptr %b1\n") == 1);  // the choice, behind which the common index is added
  CHECK(line_with(scalar, "load float").find("alias") == std::string::npos);  // it may be of either
  CHECK(count(text_of(program({w, u, a}, set(a, wide(imm(0)), either(wide(imm(0)), wide(imm(32)))))),
              "load <16 x float>") == 1);
  CHECK(count(in_loop(Select::make(first, at(w, i), constant(0, {DType::f32}))), ", float 0x") == 1);
}

TEST_CASE("a prefetch asks for the first of what it names", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight);
  const std::string text =
      text_of(program({w, a}, Block::make({Prefetch::make(at(w, wide(imm(32)))), set(a, imm(0), at(w, imm(0)))})));
  CHECK(count(text, "call void @llvm.prefetch.p0(ptr %v0, i32 0, i32 3, i32 1)") == 1);
  CHECK(count(text, "load <16 x float>") == 0);
}

TEST_CASE("what is asked for ahead may lie past its buffer's end, what is loaded may not", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight), u = buffer("u", Role::weight);
  const Expr first = Binary::make(BinaryOp::eq, call(UfKind::worker, "worker"), imm(0));
  const auto inside = [&](Stmt stmt) { return count(text_of(program({w, u, a}, std::move(stmt))), "inbounds float"); };
  const Expr choice = Select::make(first, at(w, imm(3) + imm(64)), at(u, imm(5) + imm(64)));
  CHECK(inside(Prefetch::make(at(w, wide(imm(64))))) == 0);
  CHECK(inside(Prefetch::make(choice)) == 0);
  CHECK(inside(set(a, imm(0), at(w, imm(64)))) == 1);
  CHECK(inside(set(a, imm(0), choice)) >= 2);
}

TEST_CASE("local buffers are allocated in the entry block, wherever they stand", "[llvm_text]") {
  const Buffer a = buffer("a"), t = local("t", 16);
  const Expr i = Var::make("i");
  const Stmt body =
      Alloc::make(t, Block::make({Store::make(t, {}, at(a, wide(i))), set(a, wide(i), Load::make(t, {}))}));
  const std::string text = text_of(program({a}, For::make(i, rows, imm(4), ForKind::serial, body)));
  CHECK(text.find("entry:\n  %a") != std::string::npos);
  CHECK(count(text, "alloca <16 x float>") == 1);
}

/// `sums` accumulators over a loop, from element `from` of `w` on, stored to `out` from `base` on.
Stmt tile_of(int sums, const Buffer& w, const Buffer& out, const Expr& base, int from = 0) {
  std::vector<Buffer> locals;
  std::vector<Stmt> zeros, steps, stores;
  const Expr k = Var::make("k");
  for (int i = 0; i < sums; ++i) {
    const Buffer& sum = locals.emplace_back(local("sum", 16));
    zeros.push_back(Store::make(sum, {}, constant(0, {DType::f32, 16})));
    steps.push_back(Store::make(sum, {}, at(w, wide(k * 16 + (from + i))) + Load::make(sum, {})));
    stores.push_back(set(out, wide(base + i * 16), Load::make(sum, {})));
  }
  Stmt body = Block::make(
      {Block::make(zeros), For::make(k, columns, imm(64), ForKind::serial, Block::make(steps)), Block::make(stores)});
  for (const Buffer& sum : locals) body = Alloc::make(sum, body);
  return body;
}

TEST_CASE("a register tile is a function of what is bound outside it, and of the buffers that it touches",
          "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state), other = buffer("other");
  const Expr n = Var::make("n"), base = Var::make("base");
  const Stmt body = Block::make(
      {set(other, imm(0), constant(0, {DType::f32, 1})), LetStmt::make(base, n * 64, tile_of(4, w, h, base))});
  const std::string text = text_of(program({w, h, other}, For::make(n, rows, imm(4), ForKind::serial, body)));
  const std::size_t tile = text.find("define internal void @kernel.0(ptr noundef %args, i32 %p"),
                    main = text.find("define void @kernel(");
  REQUIRE(tile < main);
  REQUIRE(main != std::string::npos);
  const std::string inside = text.substr(tile, main - tile), outside = text.substr(main);
  CHECK(count(inside, "alloca") == 4);
  CHECK(count(inside, "%b0 = load ptr") == 1);
  CHECK(count(inside, "%b2 = load ptr") == 0);
  CHECK(count(outside, "%b2 = load ptr") == 1);
  CHECK(count(outside, "alloca") == 0);
  CHECK(count(outside, "call void @kernel.0(ptr %args, i32 %v") == 1);
  CHECK(count(text, "attributes #2 = { noinline") == 1);
}

TEST_CASE("what has few sums stays where it is", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state);
  CHECK(count(text_of(program({w, h}, tile_of(3, w, h, imm(0)))), "define") == 1);
}

TEST_CASE("two tiles are two functions, and each computes for itself what both need", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state);
  const Expr n = Var::make("n"), both = n * 128;
  const Stmt body = Block::make({tile_of(4, w, h, both), tile_of(5, w, h, both)});
  const std::string text = text_of(program({w, h}, For::make(n, rows, imm(4), ForKind::serial, body)));
  CHECK(count(text, "define internal void @kernel.") == 2);
  CHECK(count(text, "call void @kernel.1(") == 1);
  CHECK(count(text, ", 128\n") == 2);
}

TEST_CASE("equal tiles are one function of what differs", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state);
  const Expr n = Var::make("n"), a = Var::make("a"), b = Var::make("b");
  const Stmt body = Block::make(
      {LetStmt::make(a, n * 128, tile_of(4, w, h, a)), LetStmt::make(b, n * 128 + 64, tile_of(4, w, h, b))});
  const std::string text = text_of(program({w, h}, For::make(n, rows, imm(4), ForKind::serial, body)));
  CHECK(count(text, "define internal void @kernel.") == 1);
  CHECK(count(text, "define internal void @kernel.0(ptr noundef %args, i32 %p0) #2 {") == 1);
  CHECK(count(text, "call void @kernel.0(ptr %args, i32 %v") == 2);
}

TEST_CASE("tiles whose local buffers are of two sizes are two functions", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state);
  const Expr n = Var::make("n");
  const auto tile = [&](int size) {
    BufferInfo info{"row", DType::f32, {Dim("row", size)}, Role::temp};
    info.scope = Scope::local;
    const Buffer row(info);
    return Alloc::make(row, Block::make({set(row, imm(0), constant(0, {DType::f32, 1})), tile_of(4, w, h, n * 64)}));
  };
  const auto functions = [&](int size, int other) {
    const Stmt body = Block::make({tile(size), tile(other)});
    const std::string text = text_of(program({w, h}, For::make(n, rows, imm(4), ForKind::serial, body)));
    return count(text, "define internal void @kernel.");
  };
  CHECK(functions(8, 4) == 2);
  CHECK(functions(8, 8) == 1);
}

TEST_CASE("tiles that differ in their buffers are one function, which is given these", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state), other = buffer("other", Role::state),
               unlike = buffer("unlike", Role::weight);
  const Expr n = Var::make("n");
  const auto text_with = [&](const Buffer& weights, const Buffer& to) {
    const Stmt body = Block::make({tile_of(4, w, h, n), tile_of(5, w, h, n), tile_of(4, weights, to, n)});
    return text_of(program({w, h, other, unlike}, For::make(n, rows, imm(4), ForKind::serial, body)));
  };
  const std::string text = text_with(w, other);
  CHECK(count(text, "define internal void @kernel.") == 2);
  CHECK(count(text, "define internal void @kernel.0(ptr noundef %args, i32 %p0, ptr noundef %b0, ptr noundef %b1)") ==
        1);
  const std::string main = text.substr(text.find("void @kernel(p")), row = line_with(main, " = phi i32");
  const std::string operands = "(ptr %args, i32 " + row.substr(2, row.find(" = ") - 2);
  CHECK(count(text, "call void @kernel.0" + operands + ", ptr %b0, ptr %b1) nounwind") == 1);
  CHECK(count(text, "call void @kernel.0" + operands + ", ptr %b0, ptr %b2) nounwind") == 1);
  CHECK(count(text, "call void @kernel.1" + operands + ") nounwind") == 1);
  const std::string given = text.substr(0, text.find("@kernel.1("));
  CHECK(count(given, "getelementptr inbounds ptr, ptr %buffers") == 0);
  for (const char* pointer : {"%b0 = load ptr", "%b1 = load ptr", "%b2 = load ptr"}) CHECK(count(main, pointer) == 1);
  CHECK(text.find_first_of("\1\2\3") == std::string::npos);

  // Two in one role are not one in both; and a state is loaded otherwise than a weight.
  CHECK(count(text_with(h, h), "define internal void @kernel.") == 3);
  CHECK(count(text_with(other, h), "define internal void @kernel.") == 3);
  CHECK(count(text_with(unlike, h), "define internal void @kernel.") == 2);
}

TEST_CASE("tiles of two parts of a batch are one function, which is given where each part begins", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight), h = buffer("h", Role::state);
  BufferInfo info{"part_begin", DType::i32, {Dim("part", 12)}, Role::index};
  info.slot = slot_of::part_begin;
  const Buffer begins(info);
  info.name = "group_begin", info.slot = slot_of::group_begin;
  const Buffer groups(info);
  const Expr b = Var::make("b"), n = Var::make("n");
  const auto text_with = [&](const Buffer& of, const Expr& first, const Expr& second) {
    const auto tile = [&](const Expr& index) {
      const Expr base = Var::make("base");
      return tile_of(4, w, h, Let::make(base, at(of, index), (base + n) * 64));
    };
    const Stmt body = Block::make({tile(first), tile(second)});
    return text_of(program({w, h, begins, groups}, For::make(b, rows, imm(4), ForKind::serial,
                                                             For::make(n, rows, imm(4), ForKind::serial, body))));
  };
  const std::string text = text_with(begins, b * 3 + 1, b * 3 + 2);
  CHECK(count(text, "define internal void @kernel.") == 1);
  CHECK(count(text.substr(0, text.find("define void @kernel(")), "load i32, ptr %v") == 0);
  const auto inside = [&](int part) {
    const Expr q = Var::make("q");
    return Let::make(q, b * 3, q + part);
  };
  CHECK(count(text_with(begins, inside(1), inside(2)), "define internal void @kernel.") == 2);
  // Other arrays need not have an element wherever the index is bound.
  CHECK(count(text_with(groups, b * 3 + 1, b * 3 + 2), "define internal void @kernel.") == 2);
  CHECK(count(text_with(begins, at(groups, b), at(groups, b) + 1), "define internal void @kernel.") == 2);
}

TEST_CASE("tiles of two matrices of a weight are one function, which is given where each begins", "[llvm_text]") {
  const auto functions = [](int num_matrices, int first, int second) {
    BufferInfo info{"matrices", DType::f32, {Dim("tags", num_matrices), Dim("a", 64), Dim("b", 16)}, Role::weight};
    info.layout.axes = {{2, 1, 0, 1}, {1, 1, 0, 16}, {0, 1, 0, 1024}};
    info.layout.fixed_size = num_matrices * 1024;
    const Buffer w(info), h = buffer("h", Role::state);
    const Expr n = Var::make("n");
    const Stmt body = Block::make({tile_of(4, w, h, n, first), tile_of(4, w, h, n, second)});
    const std::string text = text_of(program({w, h}, For::make(n, rows, imm(4), ForKind::serial, body)));
    for (const int begin : {first, second})
      CHECK(count(text, "(ptr %args, i32 " + std::to_string(begin / 1024 * 1024) + ", i32 ") > 0);
    return count(text, "define internal void @kernel.");
  };
  CHECK(functions(3, 0, 2048) == 1);
  CHECK(functions(3, 1024, 2048) == 1);
  CHECK(functions(3, 1024, 2064) == 2);  // another place in the matrix
}

TEST_CASE("of a long kernel, loops are functions", "[llvm_text]") {
  const Buffer h = buffer("h", Role::state);
  const auto kernel = [&](int loops) {
    const Expr n = Var::make("n");
    std::vector<Stmt> all;
    for (int l = 0; l < loops; ++l) {
      const Expr i = Var::make("i");
      std::vector<Stmt> stores;
      for (int s = 0; s < 20; ++s) stores.push_back(set(h, n * 64 + i, constant(l * 20 + s, {DType::f32, 1})));
      all.push_back(For::make(i, columns, imm(64), ForKind::serial, Block::make(stores)));
    }
    return text_of(program({h}, For::make(n, rows, imm(4), ForKind::serial, Block::make(all))));
  };
  CHECK(count(kernel(50), "define internal void") == 0);
  const std::string text = kernel(51);
  CHECK(count(text, "define internal void @kernel.") == 51);
  CHECK(count(text.substr(text.find("define void @kernel(")), "store float") == 0);
  CHECK(count(text, "call void @kernel.50(ptr %args, i32 %i") == 1);
}

TEST_CASE("LLVM text of a product of tiles is the golden one", "[llvm_text]") {
  const Buffer w = buffer("weights", Role::weight, DType::bf16), x = buffer("pieces", Role::temp, DType::bf16),
               h = buffer("h", Role::state);
  BufferInfo info{"sums", DType::f32, {Dim("element", 512)}};
  info.scope = Scope::local;
  const Buffer sums(info);
  const Expr n = Var::make("n"), rows_of_tile = Var::make("rows");
  const auto product = [&](bool more) {
    return TileProduct::make(sums, {at(w, n * 1056), at(w, n * 1056 + 528)}, at(x, imm(0)), rows_of_tile,
                             {4, 0, 1, more});
  };
  const Stmt body =
      Alloc::make(sums, Block::make({TileRows::make(rows_of_tile), product(false), product(true),
                                     set(h, wide(n * 64), at(sums, wide(imm(256)))), TileRows::make(imm(0))}));
  const Stmt loop = For::make(n, rows, imm(4), ForKind::serial, LetStmt::make(rows_of_tile, n + 1, body));
  check_golden("llvm_text/tiles.ll", text_of(program({w, x, h}, loop)));
}

TEST_CASE("constants are exact and infinities and NaN are constants too", "[llvm_text]") {
  CHECK(codegen::llvm_float(1.0, DType::f32) == "0x3FF0000000000000");
  CHECK(codegen::llvm_float(0.1, DType::f32) == "0x3FB99999A0000000");
  CHECK(codegen::llvm_float(0.1, DType::f64) == "0x3FB999999999999A");
  CHECK(codegen::llvm_float(-std::numeric_limits<double>::infinity(), DType::f32) == "0xFFF0000000000000");
  CHECK(codegen::llvm_constant(2, {DType::i32, 16}) == "splat (i32 2)");
}

TEST_CASE("the greater of two vectors is found as is best for the machine, of two scalars as LLVM finds it",
          "[llvm_text]") {
  using codegen::Limits;
  const auto text = [](BinaryOp op, Limits limits, DType type, int lanes) {
    const Buffer a = buffer("a", Role::temp, type);
    const auto part = [&](int first) { return at(a, lanes == 1 ? imm(first) : Ramp::make(imm(first), lanes)); };
    const Stmt body = set(a, lanes == 1 ? imm(0) : Ramp::make(imm(0), lanes), Binary::make(op, part(0), part(lanes)));
    return codegen::llvm_text(program({a}, body), {"kernel", 64, false, false, limits});
  };
  const auto max = [&](Limits limits, DType type, int lanes) { return text(BinaryOp::max, limits, type, lanes); };
  CHECK(count(max(Limits::by_llvm, DType::f32, 16), "@llvm.maximum.v16f32(") == 2);  // declared and called
  CHECK(count(max(Limits::by_ternary_logic, DType::f32, 1), "@llvm.maximum.f32(") == 2);
  const std::string logic = max(Limits::by_logic, DType::f32, 16);
  CHECK((count(logic, "fcmp ogt") == 2 && count(logic, " select ") == 2 && count(logic, "@llvm") == 0));
  CHECK(count(logic, "splat (i32 2147483647)") == 1);
  CHECK(count(max(Limits::by_ternary_logic, DType::f32, 16), "@llvm.x86.avx512.pternlog.d.512(") == 2);
  CHECK(count(max(Limits::by_ternary_logic, DType::f32, 16), "splat (i32 2147483647), i32 232)") == 1);
  CHECK(count(max(Limits::by_ternary_logic, DType::f32, 4), "@llvm.x86.avx512.pternlog.d.128(") == 2);
  CHECK(count(max(Limits::by_ternary_logic, DType::f64, 4), "@llvm.x86.avx512.pternlog.q.256(") == 2);
  CHECK(count(max(Limits::by_ternary_logic, DType::f32, 2), "@llvm") == 0);  // no register is that small
  const std::string least = text(BinaryOp::min, Limits::by_ternary_logic, DType::f32, 16);
  CHECK((count(least, "fcmp olt") == 2 && count(least, " or <16 x i32>") == 1 && count(least, "@llvm") == 0));
}

TEST_CASE("the widest vectors and the sanitizer are attributes of the function", "[llvm_text]") {
  const Program p = program({}, Block::make({}));
  CHECK(codegen::llvm_text(p, {"k", 64}).find("\"prefer-vector-width\"=\"512\" \"min-legal-vector-width\"=\"512\"") !=
        std::string::npos);
  CHECK(codegen::llvm_text(p, {"k", 32}).find("\"prefer-vector-width\"=\"256\"") != std::string::npos);
  CHECK(codegen::llvm_text(p, {"k", 16}).find("vector-width") == std::string::npos);
  CHECK(codegen::llvm_text(p, {"k", 16}).find("sanitize_address") == std::string::npos);
  CHECK(codegen::llvm_text(p, {"k", 16, true}).find("sanitize_address") != std::string::npos);
}

TEST_CASE("a program that is not flat is refused with what is left to do", "[llvm_text]") {
  const Buffer a = buffer("a"), w = buffer("w", Role::weight);
  const Expr i = Var::make("i"), one = constant(1, {DType::f32});
  Program early = program({a}, Block::make({}));
  early.level = Level::scheduled;
  CHECK(refusal(early) == "LLVM text: program test is not at device level");
  CHECK(refusal(program({a}, For::make(i, rows, imm(4), ForKind::parallel, set(a, i, one)))) ==
        "LLVM text: a loop over rows that is not serial");
  CHECK(refusal(program({a}, Store::make(a, {imm(0), imm(1)}, one))) ==
        "LLVM text: buffer a is not flat: it has 2 indices");
  CHECK(refusal(program({a}, set(a, call(UfKind::num_nodes, "num_nodes"), one))) ==
        "LLVM text: uninterpreted function num_nodes has no meaning yet");
  CHECK(refusal(program({a}, set(a, i, one))) == "LLVM text: variable i is used outside its scope");
  CHECK(refusal(program({a}, set(w, imm(0), one))) == "LLVM text: a store to w, which loads take as constant");
  CHECK(refusal(program({a}, set(a, imm(0), at(buffer("b"), imm(0))))) == "LLVM text: buffer b is not the program's");
}

TEST_CASE("a symbol that LLVM would have to quote is refused", "[llvm_text]") {
  CHECK_THROWS_AS(codegen::llvm_text(program({}, Block::make({})), {"two words", 64}), Error);
  CHECK_THROWS_AS(codegen::llvm_text(program({}, Block::make({})), {"", 64}), Error);
}

TEST_CASE("the text is the same each time", "[llvm_text]") {
  const auto make = [] {
    const Buffer a = buffer("a");
    const Expr x = at(a, imm(0));
    return program({a}, set(a, imm(0), Unary::make(UnaryOp::tanh, Unary::make(UnaryOp::exp, Fma::make(x, x, x)))));
  };
  CHECK(text_of(make()) == text_of(make()));
}
