#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "kernels.hpp"
#include "support/memory_limit.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::ir;
using namespace cortex::test;

namespace {

const std::string nothing = "define void @kernel(ptr %args) {\n  ret void\n}\n";

std::string refusal(const std::string& text, const std::string& symbol = "kernel") {
  try {
    jit::compile_llvm(text, symbol, jit::host_target());
  } catch (const Error& error) {
    CHECK(error.code == Code::compile_failed);
    return error.message;
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A product of `rows` x 256 by packed weights 256 x (`vectors` of the machine's width), accumulated in registers.
struct Tile {
  int rows, vectors, lanes = jit::host_target().vector_bytes / 4, depth = 256;

  int width() const { return vectors * lanes; }

  ir::Program make() const {
    const Buffer x = buffer("x", DType::f32, Role::state), w = buffer("w", DType::f32, Role::weight),
                 out = buffer("out", DType::f32);
    const Expr k = Var::make("k");
    std::vector<Buffer> accumulators;
    std::vector<Stmt> start, step, finish;
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        const Buffer sum = local("sum", {DType::f32, lanes});
        const Expr input = Broadcast::make(at(x, k + imm(r * depth)), lanes),
                   weights = at(w, Ramp::make(k * width() + imm(v * lanes), lanes));
        start.push_back(Store::make(sum, {}, constant(0, {DType::f32, lanes})));
        step.push_back(Store::make(sum, {}, Fma::make(input, weights, Load::make(sum, {}))));
        finish.push_back(set(out, Ramp::make(imm(r * width() + v * lanes), lanes), Load::make(sum, {})));
        accumulators.push_back(sum);
      }
    start.push_back(loop(k, imm(depth), Block::make(step)));
    start.insert(start.end(), finish.begin(), finish.end());
    Stmt body = Block::make(start);
    for (const Buffer& sum : accumulators) body = Alloc::make(sum, body);
    return program({x, w, out}, body);
  }
};

/// The largest tile of 6 rows that the registers hold.
Tile big_tile() { return {6, jit::host_target().vector_registers == 32 ? 4 : 2}; }

/// The lines of the loop with the most fused multiply-adds: from a label to the last jump back to it.
std::vector<std::string> hot_loop(const std::string& assembly) {
  std::vector<std::string> lines, best;
  std::istringstream stream(assembly);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const auto fmas = [](const std::vector<std::string>& part) {
    return std::count_if(part.begin(), part.end(),
                         [](const std::string& l) { return has(l, "fmadd") || has(l, "fmla"); });
  };
  for (std::size_t begin = 0; begin < lines.size(); ++begin) {
    const std::string label = lines[begin].substr(0, lines[begin].find(':'));
    if (!label.starts_with(".LBB")) continue;
    for (std::size_t end = begin + 1; end < lines.size(); ++end) {
      if (!lines[end].ends_with("\t" + label)) continue;
      const std::vector<std::string> part(lines.begin() + std::ptrdiff_t(begin), lines.begin() + std::ptrdiff_t(end));
      if (fmas(part) > fmas(best)) best = part;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("the host's target has a CPU and vectors", "[llvm_jit]") {
  const Target target = jit::host_target();
  CHECK(!target.cpu.empty());
  CHECK((target.vector_bytes == 16 || target.vector_bytes == 32 || target.vector_bytes == 64));
  CHECK((target.vector_registers == 16 || target.vector_registers == 32));
  CHECK(jit::llvm_version().find('.') != std::string::npos);
}

TEST_CASE("code that this CPU cannot run is refused before it is compiled", "[llvm_jit]") {
  const auto refused = [](const std::string& cpu, const std::string& features) {
    Target target;
    target.cpu = cpu, target.features = features;
    try {
      jit::compile_llvm(nothing, "kernel", target);
    } catch (const Error& error) {
      CHECK(error.code == Code::unavailable);
      return error.message;
    }
    return std::string("accepted");
  };
  const Target host = jit::host_target();
  CHECK(refused(host.cpu, host.features) == "accepted");
  CHECK(refused("", "") == "accepted");
  CHECK(refused("generic", "") == "accepted");
  std::string lacking = host.features.substr(host.features.find(",-") + 2);  // every CPU lacks something
  lacking = lacking.substr(0, lacking.find(','));
  CHECK(refused("", "+" + lacking) == "code for CPUs with " + lacking + " does not run on this machine");
  CHECK(refused(host.cpu, host.features + ",+" + lacking) ==
        "code for CPUs with " + lacking + " does not run on this machine");
  CHECK(has(refused("pentium3", ""), "code for the CPU 'pentium3' may need what this one, '" + host.cpu + "', lacks"));
}

TEST_CASE("the vectors of a target follow from its features", "[llvm_jit]") {
  const auto vectors = [](const std::string& features, const std::string& triple) {
    Target target;
    target.features = features;
    jit::detail::set_vectors(target, triple);
    return std::pair(target.vector_bytes, target.vector_registers);
  };
  const std::string x86 = "x86_64-pc-linux-gnu";
  CHECK(vectors("+sse2,+avx", x86) == std::pair(16, 16));
  CHECK(vectors("+avx2,+fma4,-fma", x86) == std::pair(16, 16));
  CHECK(vectors("+avx2,+fma", x86) == std::pair(32, 16));
  CHECK(vectors("+avx2,+fma,+avx512f", x86) == std::pair(32, 16));
  CHECK(vectors("+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw", x86) == std::pair(64, 32));
  CHECK(vectors("+neon", "aarch64-unknown-linux-gnu") == std::pair(16, 32));
}

TEST_CASE("a target has a matrix unit if it has all that its products take", "[llvm_jit]") {
  const auto has_unit = [](const std::string& features) {
    Target target;
    target.features = "+avx512f,+avx512vl,+avx512dq,+avx512bw" + features;
    jit::detail::set_vectors(target, "x86_64-pc-linux-gnu");
    return target.matrix_unit;
  };
  CHECK(has_unit(",+amx-tile,+amx-bf16,+avx512bf16"));
  CHECK(!has_unit(",+amx-tile,-amx-bf16,+amx-int8,+avx512bf16"));
  CHECK(!has_unit(",+amx-tile,+amx-bf16"));
  CHECK(!has_unit(""));
}

TEST_CASE("without memory to compile there is an error before LLVM ends the process", "[llvm_jit]") {
  jit::compile_llvm(nothing, "kernel", jit::host_target());
  const Target target = jit::host_target();
  const auto answer = [&] {
    const MemoryLimit limit(std::size_t(8) << 20);
    return attempt([&] { return jit::compile_llvm(nothing, "kernel", target); });
  }();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Code::out_of_memory);
  CHECK(has(answer.error().message, "LLVM may need so much to compile the model"));
  CHECK(jit::compile_llvm(nothing, "kernel", target).kernel);
}

TEST_CASE("where the system lets no memory become executable the error says so, and no more", "[llvm_jit]") {
  constexpr int set_mdwe = 65;  // PR_SET_MDWE, of Linux 6.3
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // since it cannot be taken back
    const bool forbidden = ::prctl(set_mdwe, 1, 0, 0, 0) == 0;
    const auto answer = attempt([] { return jit::compile_llvm(nothing, "kernel", jit::host_target()); });
    const std::string said = !forbidden ? "no such thing" : answer ? "no error" : answer.error().message;
    const bool right = !answer && answer.error().code == Code::unavailable;
    ::_exit(::write(pipe[1], said.data(), said.size()) == ssize_t(said.size()) && (right || !forbidden) ? 7 : 1);
  }
  ::close(pipe[1]);
  char said[1024] = {};
  REQUIRE(::read(pipe[0], said, sizeof said - 1) > 0);
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (std::string(said) == "no such thing") skip("this system cannot forbid it (PR_SET_MDWE, Linux 6.3)");
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  CHECK(has(said, "the system does not let this process make memory executable"));
  CHECK(!has(said, nothing));
}

TEST_CASE("text that does not parse is refused with LLVM's words first and the text after them", "[llvm_jit]") {
  const std::string text = "define void @kernel(ptr %args) {\n  %a = fadd float %nowhere, 1.0\n  ret void\n}\n";
  const std::string message = refusal(text);
  CHECK(message.starts_with("LLVM cannot parse the kernel: "));
  CHECK(message.find("use of undefined value '%nowhere'") < message.find(text));
}

TEST_CASE("text that parses but is no valid IR is refused with the verifier's words", "[llvm_jit]") {
  const std::string text =
      "define void @kernel(ptr %args) {\nentry:\n  br label %a\na:\n  %x = phi i32 [ 0, %b ]\n  ret void\nb:\n  br "
      "label %a\n}\n";
  const std::string message = refusal(text);
  CHECK(has(message, "PHINode should have one entry for each predecessor"));
  CHECK(has(message, text));
}

TEST_CASE("a symbol that the text does not define is refused by its name", "[llvm_jit]") {
  const std::string message = refusal(nothing, "absent");
  CHECK(has(message, "absent"));
  CHECK(has(message, nothing));
}

TEST_CASE("a function that neither the text nor the process defines is refused by its name", "[llvm_jit]") {
  const std::string text =
      "declare void @no_such_function()\ndefine void @kernel(ptr %args) {\n  call void @no_such_function()\n  ret "
      "void\n}\n";
  CHECK(has(refusal(text), "no_such_function"));
}

TEST_CASE("code outlives everything but its owner", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  jit::Compiled copy;
  {
    const jit::Compiled first = compile(program({out}, set(out, imm(0), constant(3, {DType::f32}))));
    const jit::Compiled second = compile(program({out}, set(out, imm(0), constant(4, {DType::f32}))));
    copy = first;
  }
  float result = 0;
  void* buffers[] = {&result};
  const codegen::KernelArgs args{buffers, nullptr, nullptr, 0, 1};
  copy.kernel(&args);
  CHECK(result == 3);
}

TEST_CASE("a compilation says what it cost", "[llvm_jit]") {
  const jit::Compiled compiled = jit::compile_llvm(nothing, "kernel", jit::host_target());
  CHECK(compiled.object_bytes > 0);
  CHECK(compiled.parse_ms > 0);
  CHECK(compiled.optimize_ms > 0);
  CHECK(compiled.emit_ms > 0);
}

TEST_CASE("eight threads compile at the same time", "[llvm_jit]") {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&right, t] {
      const Buffer x = buffer("x", DType::f32), out = buffer("out", DType::f32);
      float input = 1, result = 0;
      void* buffers[] = {&input, &result};
      const codegen::KernelArgs args{buffers, nullptr, nullptr, 0, 1};
      const jit::Compiled compiled = compile(
          program({x, out}, set(out, imm(0), Unary::make(UnaryOp::exp, at(x, imm(0))) * constant(t, {DType::f32}))));
      compiled.kernel(&args);
      right += result == std::exp(1.0f) * float(t);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 8);
}

TEST_CASE("a long kernel is compiled in parts, which threads may take", "[llvm_jit]") {
  static std::atomic<int> parts;
  parts = 0;
  const auto on_threads = [](int count, FunctionRef<void(int)> f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([=] { f(i), ++parts; });
    for (std::thread& thread : threads) thread.join();
  };
  const jit::Compiled compiled =
      jit::compile_llvm(many_functions(), "kernel", jit::host_target(), {sanitized}, on_threads);
  CHECK(parts >= 3);
  int sum = -1;
  int* const to = &sum;
  compiled.kernel(reinterpret_cast<const codegen::KernelArgs*>(&to));
  CHECK(sum == sum_of_many);
}

TEST_CASE("what LLVM refuses of a long kernel is refused, whichever part it is in", "[llvm_jit]") {
  for (const std::string name : {"@kernel.1(", "@kernel.40(", "@kernel("}) {
    std::string text = many_functions();
    const std::size_t at = text.find("entry:\n", text.find(" void " + name + "ptr noundef")) + 7;
    CHECK(has(refusal(text.insert(at, "  %a = fadd float %nowhere, 1.0\n")), "use of undefined value '%nowhere'"));
  }
}

TEST_CASE("the sanitizer's checks are in the code where they are asked for", "[llvm_jit]") {
  const Target target = jit::host_target();
  const Buffer out = buffer("out", DType::f32);
  const ir::Program p = program({out}, set(out, imm(0), constant(3, {DType::f32})));
  const auto assembly = [&](bool sanitize) {
    return jit::to_assembly(codegen::llvm_text(p, {"kernel", 16, sanitize}), target, {sanitize});
  };
  CHECK(has(assembly(true), "__asan_report_store"));
  CHECK(!has(assembly(false), "__asan"));
}

TEST_CASE("optimised text shows a loop's accumulator in a register", "[llvm_jit]") {
  const Target target = jit::host_target();
  const std::string text =
      jit::optimized_llvm(codegen::llvm_text(Tile{1, 1}.make(), {"kernel", target.vector_bytes}), target);
  CHECK(has(text, "llvm.fma."));
  CHECK(!has(text, "alloca"));
}

TEST_CASE("a register tile gives the product", "[llvm_jit]") {
  const Tile tile = big_tile();
  std::vector<float> x(std::size_t(tile.rows * tile.depth)), w(std::size_t(tile.depth * tile.width())),
      out(std::size_t(tile.rows * tile.width()));
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = float(int(n * 7 % 11) - 5);
  for (std::size_t n = 0; n < w.size(); ++n) w[n] = float(int(n * 5 % 13) - 6);
  run(tile.make(), {x.data(), w.data(), out.data()});
  for (int r = 0; r < tile.rows; ++r)
    for (int c = 0; c < tile.width(); ++c) {
      float sum = 0;
      for (int k = 0; k < tile.depth; ++k)
        sum += x[std::size_t(r * tile.depth + k)] * w[std::size_t(k * tile.width() + c)];
      CHECK(out[std::size_t(r * tile.width() + c)] == sum);
    }
}

TEST_CASE("a register tile spills nothing in its loop", "[llvm_jit]") {
  const Target target = jit::host_target();
  if (!has(target.features, "+fma")) skip("the machine has no fused multiply-add of x86");
  const std::string assembly =
      jit::to_assembly(codegen::llvm_text(big_tile().make(), {"kernel", target.vector_bytes}), target);
  const std::vector<std::string> lines = hot_loop(assembly);
  INFO(assembly);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return has(l, "fmadd"); }) >=
        6 * big_tile().vectors);
  CHECK(
      std::none_of(lines.begin(), lines.end(), [](const std::string& l) { return has(l, "%rsp") || has(l, "%rbp"); }));
}

TEST_CASE("speed of register tiles", "[.bench]") {
  const Target target = jit::host_target();
  std::cout << "LLVM " << jit::llvm_version() << ", " << target.cpu << ", one core, k = 256\n";
  for (const auto& [rows, vectors] : {std::pair{1, 8}, {2, 8}, {3, 4}, {4, 4}, {5, 4}, {6, 4}, {12, 2}}) {
    const Tile tile{rows, vectors};
    const jit::Compiled compiled =
        jit::compile_llvm(codegen::llvm_text(tile.make(), {"kernel", target.vector_bytes}), "kernel", target);
    std::vector<float> x(std::size_t(rows * tile.depth), 1.0f), w(std::size_t(tile.depth * tile.width()) + 16, 1.0f),
        out(std::size_t(rows * tile.width()) + 16);
    const auto aligned = [](float* p) -> void* {
      return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64);
    };
    void* buffers[] = {x.data(), aligned(w.data()), aligned(out.data())};
    const codegen::KernelArgs args{buffers, nullptr, nullptr, 0, 1};
    double best = 1e9;
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto begin = std::chrono::steady_clock::now();
      for (int n = 0; n < 1000; ++n) compiled.kernel(&args);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 1000);
    }
    std::cout << "R=" << rows << " V=" << vectors << ": " << int(2e-9 * rows * tile.width() * tile.depth / best)
              << " GFLOP/s; parse " << compiled.parse_ms << " optimise " << compiled.optimize_ms << " emit "
              << compiled.emit_ms << " ms, " << compiled.object_bytes << " bytes\n";
  }
}
