// Machine code for a matrix unit: what LLVM makes of the text, and, where there is one, what the unit computes.
#include "cortex/jit/matrix_unit.hpp"

#include <array>
#include <cstring>
#include <random>

#include "cortex/base/half.hpp"
#include "cortex/ir/build.hpp"
#include "kernels.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::ir;
using namespace cortex::test;

namespace {

constexpr int steps = 3, panels = 4, depth = steps * TileProduct::depth, outputs = panels * TileProduct::outputs;
constexpr int panel_size = steps * TileProduct::tile;

Buffer flat(const std::string& name, DType type, std::int64_t size, Role role = Role::temp) {
  return Buffer(BufferInfo{name, type, {Dim("element", size)}, role});
}

/// out = x W of `rows` rows and four panels; with `twice` the same added to itself.
ir::Program product_of(int rows, bool twice = false) {
  const Buffer w = flat("w", DType::bf16, panels * panel_size, Role::weight),
               x = flat("x", DType::bf16, steps * TileProduct::pieces * TileProduct::tile),
               out = flat("out", DType::f32, rows * outputs);
  const Buffer sums(BufferInfo{"sums", DType::f32, {Dim("element", panels * 256)}, Role::temp, Scope::local});
  Vector<Expr> weights;
  for (int p = 0; p < panels; ++p) weights.push_back(Load::make(w, {imm(p * panel_size)}));
  Vector<Stmt> stmts{TileRows::make(imm(rows))};
  for (int more = 0; more <= int(twice); ++more)
    stmts.push_back(TileProduct::make(sums, weights, Load::make(x, {imm(0)}), imm(rows), {steps, 0, 1, more > 0}));
  stmts.push_back(TileRows::make(imm(0)));
  const Expr r = Var::make("r"), p = Var::make("p"), i = Var::make("i");
  const Stmt copy = Store::make(out, {r * outputs + p * 16 + i}, Load::make(sums, {p * 256 + r * 16 + i}));
  const auto loop = [](const Expr& var, int extent, const Stmt& body) {
    return For::make(var, Dim("d", extent), imm(extent), ForKind::serial, body);
  };
  stmts.push_back(loop(r, rows, loop(p, panels, loop(i, 16, copy))));
  return {"tiles", {w, x, out}, Alloc::make(sums, Block::make(stmts)), Level::device};
}

/// Both operands, plainly and as the unit reads them.
struct Operands {
  std::vector<std::uint16_t> w = std::vector<std::uint16_t>(panels * panel_size),
                             x = std::vector<std::uint16_t>(steps * TileProduct::pieces * TileProduct::tile);
  std::vector<float> rows = std::vector<float>(16 * depth), matrix = std::vector<float>(outputs * depth);

  explicit Operands(unsigned seed, bool whole = false) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(-1, 1);
    const auto number = [&] { return whole ? float(int(random() % 129) - 64) : draw(random); };
    for (int i = 0; i < outputs; ++i)
      for (int k = 0; k < depth; ++k) {
        const std::uint16_t bits = to_bf16(number());
        matrix[std::size_t(i * depth + k)] = from_bf16(bits);
        w[std::size_t(i / 16 * panel_size + k / 32 * 512 + k % 32 / 2 * 32 + i % 16 * 2 + k % 2)] = bits;
      }
    for (int r = 0; r < 16; ++r)
      for (int k = 0; k < depth; ++k) {
        float left = rows[std::size_t(r * depth + k)] = number();
        for (int piece = 0; piece < TileProduct::pieces; ++piece) {
          const std::uint16_t bits = to_bf16(left);
          x[std::size_t((k / 32 * TileProduct::pieces + piece) * 512 + r * 32 + k % 32)] = bits;
          left -= from_bf16(bits);
        }
      }
  }
  double exact(int r, int i) const {
    double sum = 0;
    for (int k = 0; k < depth; ++k)
      sum += double(rows[std::size_t(r * depth + k)]) * matrix[std::size_t(i * depth + k)];
    return sum;
  }
};

std::vector<float> run_tiles(const ir::Program& program, Operands operands, int rows) {
  std::vector<float> out(std::size_t(rows * outputs));
  run(program, {operands.w.data(), operands.x.data(), out.data()});
  return out;
}

void need_matrix_unit() {
  if (!jit::host_target().matrix_unit || !jit::may_use_matrix_unit())
    skip("this CPU has no matrix unit for bf16, or does not give it to this process");
}

}  // namespace

TEST_CASE("LLVM knows the instructions of a matrix unit", "[llvm_jit]") {
  const std::string machine = jit::llvm::taken(LLVMGetDefaultTargetTriple());
  if (!machine.starts_with("x86_64")) skip("LLVM's default is another kind of machine");
  Target target;
  target.cpu = "sapphirerapids", target.vector_bytes = 64, target.vector_registers = 32;
  const std::string assembly = jit::to_assembly(codegen::llvm_text(product_of(5), {"kernel", 64}), target);
  const auto count = [&](const std::string& part) {
    int n = 0;
    for (std::size_t at = assembly.find(part); at != std::string::npos; at = assembly.find(part, at + 1)) ++n;
    return n;
  };
  CHECK(count("tdpbf16ps") == panels * TileProduct::pieces);
  CHECK(count("ldtilecfg") == 1);
  CHECK(count("tilerelease") == 1);
  CHECK(count("tilestored") == panels);
}

TEST_CASE("the matrix unit multiplies whole numbers exactly, and rows of f32 as exactly as f32 does", "[llvm_jit]") {
  need_matrix_unit();
  for (const int rows : {1, 2, 7, 8, 15, 16}) {
    const Operands whole(7, true), real(8);
    const std::vector<float> exact = run_tiles(product_of(rows), whole, rows),
                             close = run_tiles(product_of(rows), real, rows),
                             twice = run_tiles(product_of(rows, true), whole, rows);
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < outputs; ++i) {
        const auto at = std::size_t(r * outputs + i);
        CHECK(exact[at] == whole.exact(r, i));
        CHECK(twice[at] == 2 * whole.exact(r, i));
        CHECK(std::abs(close[at] - real.exact(r, i)) < 1e-5);
      }
  }
}

TEST_CASE("what the matrix unit gives a row does not depend on how many rows there are", "[llvm_jit]") {
  need_matrix_unit();
  const Operands operands(3);
  const std::vector<float> all = run_tiles(product_of(16), operands, 16);
  for (const int rows : {1, 5, 9}) {
    const std::vector<float> some = run_tiles(product_of(rows), operands, rows);
    CHECK(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)) == 0);
  }
}
