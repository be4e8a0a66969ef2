#include "cortex/codegen/cuda_text.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "cortex/ir/build.hpp"
#include "cortex/ir/print.hpp"
#include "support/comma_locale.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::ir;
using Catch::Matchers::Contains;

namespace {

const Dim rows{"rows", 4}, columns{"columns", 64};

Buffer buffer(const std::string& name, Role role = Role::temp, DType type = DType::f32, Scope scope = Scope::shared) {
  BufferInfo info;
  info.name = name, info.dtype = type, info.dims = {rows, columns}, info.role = role, info.scope = scope;
  info.layout.fixed_size = 256;
  return Buffer(info);
}

Buffer local(const std::string& name) {
  BufferInfo info;
  info.name = name, info.scope = Scope::local;
  return Buffer(info);
}

Program program(std::vector<Buffer> buffers, Stmt body) {
  return {"test", std::move(buffers), std::move(body), Level::device};
}

std::string text_of(const Program& p, codegen::CudaBarrier barrier = codegen::CudaBarrier::none, int blocks = 1) {
  const codegen::CudaText text = codegen::cuda_text(p, {barrier, blocks, 64, 0});
  return text.settings + text.kernel;
}

Expr at(const Buffer& b, Expr index) { return Load::make(b, {std::move(index)}); }
Stmt set(const Buffer& b, Expr index, Expr value) { return Store::make(b, {std::move(index)}, std::move(value)); }

std::string refusal(const Program& p) {
  try {
    text_of(p);
  } catch (const Error& error) {
    CHECK(error.code == Code::internal);
    return error.message;
  }
  return "accepted";
}

/// A level of a recursion, as threads share it: each has a column.
Program product() {
  const Buffer w = buffer("weights\"; evil(", Role::weight), child = buffer("child", Role::index, DType::i32),
               h = buffer("h", Role::state), slice = buffer("slice", Role::temp, DType::f32, Scope::chip);
  const Buffer sum = local("sum");
  const Expr n = Var::make("n"), k = Var::make("k"), column = call(UfKind::thread, "thread");
  const Stmt inner =
      For::make(k, columns, imm(64), ForKind::serial,
                Store::make(sum, {}, Fma::make(at(h, at(child, n) * 64 + k), at(slice, k), Load::make(sum, {}))));
  const Stmt body =
      Alloc::make(sum, Block::make({Store::make(sum, {}, constant(0, {DType::f32, 1})), inner,
                                    set(h, n * 64 + column, Unary::make(UnaryOp::relu, Load::make(sum, {})))}));
  const Stmt loop = For::make(n, rows, at(child, imm(0)), ForKind::serial, Block::make({body, Barrier::make()}));
  const Stmt fill = set(slice, column, at(w, call(UfKind::worker, "worker") * 64 + column));
  return program({w, child, h, slice}, Block::make({fill, Barrier::make(Meeting::threads), loop}));
}

}  // namespace

TEST_CASE("CUDA text of a level with weights on chip is the golden one", "[cuda_text]") {
  check_golden("cuda_text/product.cu", text_of(product(), codegen::CudaBarrier::lock_free, 4));
}

TEST_CASE("CUDA text of a kernel that stays, with weights on chip before its calls, is the golden one", "[cuda_text]") {
  check_golden("cuda_text/resident.cu",
               codegen::cuda_text(product(), {codegen::CudaBarrier::lock_free, 4, 64, 0}).resident);
}

TEST_CASE("a kernel that stays is a source of its own, which knows how large a group's part of a call is",
          "[cuda_text]") {
  const std::string text = codegen::cuda_text(product(), {}).resident_source();
  CHECK_THAT(text, Contains("#define PART_WORDS 8\n") && !Contains("cortex_kernel") && !Contains("#include"));
}

TEST_CASE("no name of the user's is in CUDA text", "[cuda_text]") {
  const std::string text = codegen::cuda_text(product(), {}).source();
  CHECK_THAT(text, !Contains("evil") && !Contains("weights\"") && !Contains("#include"));
}

TEST_CASE("CUDA text is the same each time", "[cuda_text]") { CHECK(text_of(product()) == text_of(product())); }

TEST_CASE("shared memory is as large as the buffers on chip", "[cuda_text]") {
  CHECK(codegen::cuda_text(product(), {}).chip_bytes == 1024);
}

TEST_CASE("a barrier of workers is that of the group, and one of the block where a group is one", "[cuda_text]") {
  using enum codegen::CudaBarrier;
  const auto after = [](const std::string& meet) {
    return "  if (launch.after) {\n" + meet +
           "    move_rows(rows_after(head, end_of(launch.call, head, false)), worker);\n  }\n";
  };
  // Where the loop does not run, blocks have not met behind what stands before it.
  CHECK_THAT(text_of(product(), cluster, 4),
             Contains("sync_cluster();\n  }\n" + after("    sync_cluster();\n") + "  sync_cluster();\n}"));
  CHECK_THAT(text_of(product(), lock_based, 4), Contains("sync_grid(own, worker);"));
  CHECK_THAT(text_of(product()), Contains("sync_block();\n  }\n" + after("") + "}"));
}

TEST_CASE("the words of a barrier are a counter and arrivals, or two flags a block", "[cuda_text]") {
  CHECK(codegen::cuda_barrier_words(codegen::CudaBarrier::lock_based, 4) == 5);
  CHECK(codegen::cuda_barrier_words(codegen::CudaBarrier::lock_free, 4) == 8);
  CHECK(codegen::cuda_barrier_words(codegen::CudaBarrier::cluster, 4) == 0);
}

TEST_CASE("constants of CUDA text are exact", "[cuda_text]") {
  CHECK(codegen::cuda_float(0.1, DType::f32) == "0.100000001f");
  CHECK(codegen::cuda_float(0.1, DType::f64) == "0.10000000000000001");
  CHECK(codegen::cuda_float(-0.0, DType::f32) == "(-0.0f)");
  CHECK(codegen::cuda_float(3, DType::f32) == "3.0f");
  CHECK(codegen::cuda_float(1e30, DType::f32) == "1.00000002e+30f");
  CHECK(codegen::cuda_float(-std::numeric_limits<double>::infinity(), DType::f32) == "(-bits_to_real(0x7f800000))");
  CHECK(codegen::cuda_int(-5, DType::i64) == "(-5ll)");
}

TEST_CASE("two loads are a pair if the first is at an even place, whatever its variables are", "[cuda_text]") {
  const Buffer x = buffer("x", Role::state);
  const Expr n = Var::make("n"), t = Var::make("t");
  const auto at = [&](std::int64_t stride, std::int64_t step, std::int64_t k) {
    return Load::make(x, {Cast::make(DType::i64, n) * stride + Cast::make(DType::i64, t * step + k)});
  };
  const auto pair = [](const Expr& a, const Expr& b) { return codegen::are_pair(a, b); };
  CHECK(pair(at(16, 2, 0), at(16, 2, 1)));
  CHECK(pair(at(16, 2, 8), at(16, 2, 9)));
  CHECK(!pair(at(16, 2, 1), at(16, 2, 2)));  // from an odd place on
  CHECK(!pair(at(5, 2, 0), at(5, 2, 1)));    // rows of odd length
  CHECK(!pair(at(16, 1, 0), at(16, 1, 1)));
  CHECK(!pair(at(16, 2, 0), at(16, 2, 2)));
  CHECK(!pair(at(16, 2, 0), at(16, 4, 1)));
  CHECK(!pair(at(16, 2, 1), at(16, 2, 0)));
}

TEST_CASE("four neighbours that statements read are one load if the first is at a multiple of four", "[cuda_text]") {
  const Buffer x = buffer("x", Role::state), sum = local("sum");
  const Expr t = Var::make("t");
  const auto adding = [&](const Buffer& to, std::int64_t first, int count) {
    Vector<Stmt> stmts;
    for (int k = 0; k < count; ++k) stmts.push_back(Store::make(to, {}, at(x, t * 8 + (first + k))));
    return Block::make(stmts);
  };
  const auto quads = [](const Stmt& body) { return codegen::quads_in(body).size(); };
  CHECK(quads(adding(sum, 0, 4)) == 1);
  CHECK(quads(adding(sum, 4, 4)) == 1);
  CHECK(quads(adding(sum, 0, 8)) == 2);
  CHECK(quads(adding(sum, 1, 4)) == 0);  // from an odd place on
  CHECK(quads(adding(sum, 2, 4)) == 0);
  CHECK(quads(adding(sum, 0, 3)) == 0);
  CHECK(quads(Block::make({adding(sum, 0, 4), Store::make(x, {t}, constant(1, {DType::f32, 1}))})) ==
        0);                                                                         // which is stored to
  CHECK(quads(If::make(binary(BinaryOp::lt, t, imm(3)), adding(sum, 0, 4))) == 0);  // seen when the text is inside
}

TEST_CASE("four stores to neighbours are one if the first is at a multiple of four and none reads there",
          "[cuda_text]") {
  const Buffer x = buffer("x", Role::state), y = buffer("y", Role::state), w = buffer("w", Role::weight);
  const Expr t = call(UfKind::thread, "thread");
  const auto copy = [&](const Buffer& to, const Buffer& from, std::int64_t first, std::int64_t apart = 1,
                        int count = 4) {
    Vector<Stmt> stmts;
    for (int k = 0; k < count; ++k) stmts.push_back(set(to, t * 4 + (first + k * apart), at(from, t * 4 + k)));
    return Block::make(stmts);
  };
  const auto stores = [&](const Stmt& body) { return text_of(program({x, y, w}, body)); };
  CHECK_THAT(stores(copy(x, w, 0)), Contains("store_quad(b0, ") && !Contains("store(b0, "));
  CHECK_THAT(stores(copy(x, w, 4)), Contains("store_quad(b0, "));
  CHECK_THAT(stores(Block::make({copy(x, w, 0), copy(y, w, 0)})),
             Contains("store_quad(b0, ") && Contains("store_quad(b1, "));
  CHECK_THAT(stores(copy(x, w, 2)), !Contains("store_quad("));     // 8 bytes behind such a place
  CHECK_THAT(stores(copy(x, w, 0, 4)), !Contains("store_quad("));  // no neighbours
  CHECK_THAT(stores(copy(x, w, 3, -1)), !Contains("store_quad("));
  CHECK_THAT(stores(copy(x, w, 0, 1, 3)), !Contains("store_quad("));
  CHECK_THAT(stores(copy(x, x, 4)), !Contains("store_quad("));  // what the first has stored is read by the others
  CHECK_THAT(stores(Block::make({set(x, t * 4, at(w, t)), set(y, t * 4 + 1, at(w, t)), set(x, t * 4 + 2, at(w, t)),
                                 set(x, t * 4 + 3, at(w, t))})),
             !Contains("store_quad("));
  CHECK_THAT(refusal(program({x, y, w}, copy(w, x, 0))), Contains("a store to w, which a call only reads"));
}

TEST_CASE("what is no program for a GPU is refused", "[cuda_text]") {
  const Buffer x = buffer("x"), w = buffer("w", Role::weight);
  const Expr i = Var::make("i");
  CHECK_THAT(refusal(program({x}, set(x, i, at(x, imm(0))))), Contains("variable i is used outside its scope"));
  CHECK_THAT(refusal(program({}, set(x, imm(0), at(x, imm(0))))), Contains("buffer x is not the program's"));
  CHECK_THAT(refusal(program({w}, set(w, imm(0), constant(1, {DType::f32, 1})))), Contains("a store to w"));
  CHECK_THAT(refusal(program({x}, set(x, Ramp::make(imm(0), 4), constant(1, {DType::f32, 4})))), Contains("a vector"));
  CHECK_THAT(refusal(program({x}, Store::make(x, {imm(0), imm(0)}, constant(1, {DType::f32, 1})))),
             Contains("buffer x is not flat: it has 2 indices"));
  CHECK_THAT(
      refusal(program({x}, For::make(i, rows, imm(4), ForKind::parallel, set(x, i, constant(1, {DType::f32, 1}))))),
      Contains("a loop over rows that is not serial"));
  Program early = program({x}, set(x, imm(0), constant(1, {DType::f32, 1})));
  early.level = Level::scheduled;
  CHECK_THAT(refusal(early), Contains("program test is not at device level"));
}

TEST_CASE("numbers are written with a point whatever the locale says", "[codegen]") {
  const test::CommaLocale comma;
  CHECK(codegen::cuda_float(-0.5, DType::f32) == "(-0.5f)");
  CHECK(codegen::cuda_float(1e300, DType::f64) == "1.0000000000000001e+300");
  CHECK(codegen::cuda_float(3, DType::f64) == "3.0");
  CHECK(print(FloatImm::make(-0.25, DType::f32)) == "-0.25");
}
