// Programs built by hand for the tests of the JIT, compiled for this machine and run.
#pragma once

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cortex/base/config.hpp"
#include "cortex/codegen/llvm_text.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/jit/llvm_jit.hpp"

namespace cortex::test {

#if CORTEX_ADDRESS_SANITIZER
inline constexpr bool sanitized = true;  // the process can run instrumented kernels, so they are
#else
inline constexpr bool sanitized = false;
#endif

inline const Dim any{"any", 1};

inline ir::Buffer buffer(const std::string& name, DType type, ir::Role role = ir::Role::temp) {
  ir::BufferInfo info;
  info.name = name, info.dtype = type, info.dims = {any}, info.role = role;
  return ir::Buffer(info);
}

inline ir::Buffer local(const std::string& name, ir::Type type, std::vector<Dim> dims = {}) {
  ir::BufferInfo info;
  info.name = name, info.dtype = type.dtype, info.lanes = type.lanes, info.dims = std::move(dims),
  info.scope = ir::Scope::local;
  return ir::Buffer(info);
}

inline ir::Program program(std::vector<ir::Buffer> buffers, ir::Stmt body) {
  return {"test", std::move(buffers), std::move(body), ir::Level::device};
}

inline ir::Stmt loop(const ir::Expr& var, ir::Expr extent, ir::Stmt body) {
  return ir::For::make(var, any, std::move(extent), ir::ForKind::serial, std::move(body));
}

inline ir::Expr at(const ir::Buffer& b, ir::Expr index) { return ir::Load::make(b, {std::move(index)}); }
inline ir::Stmt set(const ir::Buffer& b, ir::Expr index, ir::Expr value) {
  return ir::Store::make(b, {std::move(index)}, std::move(value));
}
inline ir::Expr lanes_at(ir::Expr base, int lanes) {
  return lanes == 1 ? base : ir::Ramp::make(std::move(base), lanes);
}

inline jit::Compiled compile(const ir::Program& p, codegen::Limits limits = codegen::Limits::by_llvm) {
  const Target target = jit::host_target();
  const codegen::LlvmTextOptions options{"kernel", target.vector_bytes, sanitized, false, limits};
  return jit::compile_llvm(codegen::llvm_text(p, options), "kernel", target, {sanitized});
}

/// Compiles and runs once, by one worker.
inline void run(const ir::Program& p, const std::vector<void*>& buffers,
                codegen::Limits limits = codegen::Limits::by_llvm) {
  const jit::Compiled compiled = compile(p, limits);
  const codegen::KernelArgs args{buffers.data(), nullptr, nullptr, 0, 1};
  compiled.kernel(&args);
}

/// A text of 400 kilobytes: forty functions, which each add their number to where the first word of the kernel's
/// argument points to, in steps of one. `sum_of_many` is what is there when the kernel has begun with 0.
inline constexpr int sum_of_many = 40 * 41 / 2;
inline std::string many_functions() {
  std::string text, calls;
  for (int f = 1; f <= 40; ++f) {
    const std::string name = "@kernel." + std::to_string(f);
    text += "define internal void " + name + "(ptr noundef %args) #0 {\nentry:\n  %to = load ptr, ptr %args\n" +
            "  %v0 = load i32, ptr %to\n";
    for (int i = 0; i < 400; ++i)  // all text but the first few lines adds nothing
      text += "  %v" + std::to_string(i + 1) + " = add i32 %v" + std::to_string(i) + (i < f ? ", 1\n" : ", 0\n");
    text += "  store i32 %v400, ptr %to\n  ret void\n}\n\n";
    calls += "  call void " + name + "(ptr %args) nounwind\n";
  }
  return text +
         "define void @kernel(ptr noundef %args) {\nentry:\n  %to = load ptr, ptr %args\n  store i32 0, ptr %to\n" +
         calls + "  ret void\n}\n\nattributes #0 = { noinline nounwind }\n";
}

/// Equal to the bit, except that one NaN is as good as another.
template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  else
    return a == b;
}

/// What `f` makes of the elements of `x`, `y` and `z`, taken `lanes` at a time; the sizes are multiples of `lanes`.
template <class Out, class In>
std::vector<Out> map(int lanes, std::vector<In> x, std::vector<In> y, std::vector<In> z,
                     const std::function<ir::Expr(ir::Expr, ir::Expr, ir::Expr)>& f,
                     codegen::Limits limits = codegen::Limits::by_llvm) {
  const ir::Buffer bx = buffer("x", dtype_of<In>), by = buffer("y", dtype_of<In>), bz = buffer("z", dtype_of<In>);
  const ir::Buffer out = buffer("out", dtype_of<Out>);
  const ir::Expr i = ir::Var::make("i"), index = lanes_at(i * lanes, lanes);
  std::vector<Out> result(x.size());
  run(program({bx, by, bz, out}, loop(i, ir::imm(std::int64_t(x.size()) / lanes),
                                      set(out, index, f(at(bx, index), at(by, index), at(bz, index))))),
      {x.data(), y.data(), z.data(), result.data()}, limits);
  return result;
}

}  // namespace cortex::test
