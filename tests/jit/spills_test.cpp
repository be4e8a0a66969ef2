// The loops over k of a whole model keep their accumulators in registers, on every kind of machine.
#include <llvm-c/Target.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cortex/codegen/llvm_text.hpp"
#include "cortex/jit/llvm_jit.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/pass/pipeline.hpp"
#include "support/models.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// How a machine's assembly text is read.
struct Isa {
  const char* fma;
  const char* divide;
  std::vector<const char*> vector;  // one of these stands in a line that handles whole vectors
  std::vector<const char*> jumps, stack;
};
const Isa avx512{"vfmadd", "vdivp", {"%zmm"}, {"\tj"}, {"(%rsp"}};
const Isa avx2{"vfmadd", "vdivp", {"%ymm"}, {"\tj"}, {"(%rsp"}};
const Isa neon{"fmla", "fdiv", {"\tq", ", q", ".4s"}, {"\tb\t", "\tb.", "\tcb", "\ttb"}, {"[sp"}};

/// What the contractions of an assembly text hold: its innermost loops with fused multiply-adds and without division,
/// which the rational activations of epilogues have.
struct Contractions {
  int loops = 0, fmas = 0;
  std::vector<std::string> spills;  // accesses of whole vectors on the stack
};

bool has(const std::string& line, const char* part) { return line.find(part) != std::string::npos; }
bool has_one(const std::string& line, const std::vector<const char*>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return has(line, part); });
}

/// A loop is what stands between a label and a jump back to it.
Contractions contractions_of(const std::string& assembly, const Isa& isa) {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> labels;
  std::vector<std::pair<std::size_t, std::size_t>> loops;
  std::vector<const char*> stack = isa.stack;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line); lines.push_back(line)) {
    const std::size_t at = lines.size(), target = line.find(".L");
    if (target == 0) labels[line.substr(0, line.find(':'))] = at;
    if (has(line, "movq\t%rsp, %rbp")) stack.push_back("(%rbp");  // else that is one more pointer to data
    const bool jumps =
        std::any_of(isa.jumps.begin(), isa.jumps.end(), [&](const char* j) { return line.starts_with(j); });
    if (!jumps || target == std::string::npos) continue;
    const auto label = labels.find(line.substr(target, line.find_first_of(" \t#", target) - target));
    if (label != labels.end()) loops.emplace_back(label->second, at);
  }
  Contractions result;
  for (const auto& [begin, end] : loops) {
    bool innermost = true;
    for (const auto& [b, e] : loops) innermost &= b < begin || e > end || (b == begin && e == end);
    if (!innermost) continue;
    int fmas = 0;
    bool divides = false;
    std::vector<std::string> spills;
    for (std::size_t i = begin; i <= end; ++i) {
      const bool whole = has_one(lines[i], isa.vector);
      fmas += whole && has(lines[i], isa.fma);
      divides |= has(lines[i], isa.divide);
      if (whole && has_one(lines[i], stack)) spills.push_back(lines[i]);
    }
    if (fmas == 0 || divides) continue;
    ++result.loops;
    result.fmas += fmas;
    result.spills.insert(result.spills.end(), spills.begin(), spills.end());
  }
  return result;
}

/// The assembly of a TreeLSTM of 256 under the default schedule.
std::string assembly_for(const Target& target) {
  const Schedule schedule = Schedule::standard();
  const ir::Program program = pass::run_pipeline(lower::lower(tree_lstm(256).graph(), schedule), schedule, target);
  return jit::to_assembly(codegen::llvm_text(program, {"kernel", target.vector_bytes}), target);
}

void check_contractions(const Contractions& found) {
  CHECK(found.loops >= 4);  // leaves and inner nodes, and several sizes of tile each
  CHECK(found.fmas > 4 * found.loops);
  CHECK(found.spills == std::vector<std::string>());
}

bool is_x86() { return jit::llvm::taken(LLVMGetDefaultTargetTriple()).starts_with("x86_64"); }

}  // namespace

TEST_CASE("spilled vectors in innermost loops are found") {
  const Contractions found = contractions_of(
      "\tmovq\t%rsp, %rbp\n.LBB0_1:\n\tvmovups\t%zmm9, (%rsp)\n.LBB0_2:                  # =>  This\n"
      "\tvfmadd231ps\t64(%rsp), %zmm1, %zmm2\n\tvmovups\t(%rbp), %zmm3\n\tmovq\t8(%rsp), %rax\n\tjne\t.LBB0_2\n"
      "\tvmovups\t%zmm7, (%rsp)\n\tjmp\t.LBB0_1\n",
      avx512);
  CHECK(found.loops == 1);
  CHECK(found.fmas == 1);
  CHECK(found.spills == std::vector<std::string>{"\tvfmadd231ps\t64(%rsp), %zmm1, %zmm2", "\tvmovups\t(%rbp), %zmm3"});
  const Contractions arm = contractions_of(
      ".LBB0_2:\n\tfmla\tv1.4s, v2.4s, v3.s[0]\n\tldr\tq2, [sp, #16]\n\tldr\tx1, [sp, #8]\n\tb.ne\t.LBB0_2\n", neon);
  CHECK(arm.loops == 1);
  CHECK(arm.spills == std::vector<std::string>{"\tldr\tq2, [sp, #16]"});
}

TEST_CASE("with AVX-512, the loops over k of a TreeLSTM keep every vector in a register") {
  if (!is_x86()) skip("LLVM's default is another kind of machine");
  Target target;
  target.cpu = "skylake-avx512", target.vector_bytes = 64, target.vector_registers = 32;
  target.features = "-prefer-256-bit";
  check_contractions(contractions_of(assembly_for(target), avx512));
}

TEST_CASE("with AVX2, the loops over k of a TreeLSTM keep every vector in a register") {
  if (!is_x86()) skip("LLVM's default is another kind of machine");
  Target target;
  target.cpu = "haswell", target.vector_bytes = 32, target.vector_registers = 16;
  check_contractions(contractions_of(assembly_for(target), avx2));
}

TEST_CASE("with NEON, the loops over k of a TreeLSTM keep every vector in a register") {
  LLVMInitializeAllTargetInfos();
  LLVMInitializeAllTargets();
  LLVMInitializeAllTargetMCs();
  LLVMInitializeAllAsmPrinters();
  LLVMTargetRef found = nullptr;
  char* message = nullptr;
  Target target;
  target.triple = "aarch64-linux-gnu", target.cpu = "neoverse-n1", target.vector_bytes = 16,
  target.vector_registers = 32;
  if (LLVMGetTargetFromTriple(target.triple.c_str(), &found, &message))
    skip("this LLVM generates no code for ARM: " + jit::llvm::taken(message));
  check_contractions(contractions_of(assembly_for(target), neon));
}

TEST_CASE("code for another kind of machine is refused where it would run") {
  Target target;
  target.triple = "aarch64-linux-gnu";
  if (!is_x86()) target.triple = "x86_64-linux-gnu";
  try {
    jit::compile_llvm("define void @kernel(ptr %args) {\n  ret void\n}\n", "kernel", target);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code == Code::unavailable);
    CHECK(error.message == "code for " + target.triple + " does not run on this machine");
  }
}
