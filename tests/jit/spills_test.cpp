// The loops over k of a whole model keep their accumulators in registers.
#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cortex/jit/llvm_jit.hpp"
#include "cortex/runtime/compile_graph.hpp"
#include "support/models.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// What the contractions of an x86 assembly text hold: its innermost loops with fused multiply-adds and without division,
/// which the rational activations of epilogues have.
struct Contractions {
  int loops = 0, fmas = 0;
  std::vector<std::string> spills;  // accesses of whole vectors on the stack
};

bool has(const std::string& line, const char* part) { return line.find(part) != std::string::npos; }

/// A loop is what stands between a label and a jump back to it.
Contractions contractions_of(const std::string& assembly) {
  std::vector<std::string> lines;
  std::map<std::string, std::size_t> labels;
  std::vector<std::pair<std::size_t, std::size_t>> loops;
  bool frame = false;  // rbp points to the stack, and is not one more pointer to data
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line); lines.push_back(line)) {
    const std::size_t at = lines.size(), target = line.find(".L");
    if (target == 0) labels[line.substr(0, line.find(':'))] = at;
    frame |= has(line, "movq\t%rsp, %rbp");
    if (!line.starts_with("\tj") || target == std::string::npos) continue;
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
      fmas += has(lines[i], "vfmadd") && has(lines[i], "%zmm");
      divides |= has(lines[i], "vdivp");
      if (has(lines[i], "%zmm") && (has(lines[i], "(%rsp") || (frame && has(lines[i], "(%rbp")))) spills.push_back(lines[i]);
    }
    if (fmas == 0 || divides) continue;
    ++result.loops;
    result.fmas += fmas;
    result.spills.insert(result.spills.end(), spills.begin(), spills.end());
  }
  return result;
}

}  // namespace

TEST_CASE("spilled vectors in innermost loops are found") {
  const Contractions found = contractions_of(
      "\tmovq\t%rsp, %rbp\n.LBB0_1:\n\tvmovups\t%zmm9, (%rsp)\n.LBB0_2:                  # =>  This\n"
      "\tvfmadd231ps\t64(%rsp), %zmm1, %zmm2\n\tvmovups\t(%rbp), %zmm3\n\tmovq\t8(%rsp), %rax\n\tjne\t.LBB0_2\n"
      "\tvmovups\t%zmm7, (%rsp)\n\tjmp\t.LBB0_1\n");
  CHECK(found.loops == 1);
  CHECK(found.fmas == 1);
  CHECK(found.spills == std::vector<std::string>{"\tvfmadd231ps\t64(%rsp), %zmm1, %zmm2", "\tvmovups\t(%rbp), %zmm3"});
}

TEST_CASE("the loops over k of a TreeLSTM of 256 keep every vector in a register") {
  const Target target = jit::host_target();
  if (target.vector_bytes < 64) skip("this machine has no AVX-512");
  const auto executable = runtime::build_executable(tree_lstm(256).graph(), Schedule::standard(), target);
  const Contractions found = contractions_of(jit::to_assembly(executable->llvm_text, target));
  CHECK(found.loops >= 4);  // leaves and inner nodes, and several sizes of tile each
  CHECK(found.fmas > 4 * found.loops);
  CHECK(found.spills == std::vector<std::string>());
}
