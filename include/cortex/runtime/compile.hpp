// The compile seam: from an operator graph and its schedule to an executable. The one non-template function between the
// user's templates and the compiler; with `CORTEX_COMPILED` it is only declared, and the library `cortex::compiled` has
// it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cortex/base/config.hpp"
#include "cortex/runtime/executable.hpp"
#if !CORTEX_COMPILED
#include "cortex/runtime/compile_graph.hpp"
#endif

namespace cortex::ir {
struct WorkItem;
}

namespace cortex::runtime {

/// Whose closures of lambdas both sides have in common, in inline functions of which the linker keeps one: compilers
/// lay them out each in its own way.
enum class Compiler { gcc, clang };
#if defined(__clang__)
inline constexpr Compiler this_compiler = Compiler::clang;
#else
inline constexpr Compiler this_compiler = Compiler::gcc;
#endif

/// What headers and the library `cortex::compiled` have to agree on, in the seam's name: where they do not, the linker
/// misses `compile_graph(..., Abi<...>)`. The size of a std::vector tells whether the standard library checks itself
/// (-D_GLIBCXX_DEBUG), with which its containers are others.
template <int version, Compiler compiler, std::size_t... sizes>
struct Abi {};
using ThisAbi =
    Abi<CORTEX_ABI, this_compiler, sizeof(Executable), sizeof(ra::Graph), sizeof(ra::Op), sizeof(ra::Accessor),
        sizeof(Schedule), sizeof(Target), sizeof(ir::BufferInfo), sizeof(ir::Program), sizeof(std::vector<int>)>;

#if CORTEX_COMPILED

/// Compiles `graph` under `schedule` for `target`. Throws `invalid_model`, `invalid_schedule`, `unavailable` (a target
/// that this build cannot compile for), or `compile_failed` with LLVM's words.
std::shared_ptr<const Executable> compile_graph(const ra::Graph& graph, const Schedule& schedule, const Target& target,
                                                ThisAbi = {});

/// What a graph's calls do under a schedule, as the cost model sees it, but for what they read from tables: the program
/// is neither tiled nor compiled.
/// Throws `invalid_model` and `invalid_schedule`.
Vector<ir::WorkItem> work_of(const ra::Graph& graph, const Schedule& schedule, const Target& target, ThisAbi = {});

/// The machine that the program runs on, with its widest vectors. Without LLVM in the build: `unavailable`.
Target host_target();

/// Writes the model's machine code to an object file.
void write_code(const Executable& executable, const std::string& path, ThisAbi = {});

/// A stage of the model as text: 'ra', 'ilir', 'scheduled', 'tiled' or 'llvm'.
std::string text_of(const Executable& executable, std::string_view form, ThisAbi = {});

#else

inline std::shared_ptr<const Executable> compile_graph(const ra::Graph& graph, const Schedule& schedule,
                                                       const Target& target, ThisAbi = {}) {
  return build_executable(graph, schedule, target);
}

inline Vector<ir::WorkItem> work_of(const ra::Graph& graph, const Schedule& schedule, const Target& target,
                                    ThisAbi = {}) {
  return count_scheduled_work(graph, schedule, target);
}

inline Target host_target() { return this_machine(); }

inline void write_code(const Executable& executable, const std::string& path, ThisAbi = {}) {
  write_code_of(executable, path);
}

inline std::string text_of(const Executable& executable, std::string_view form, ThisAbi = {}) {
  return text_of_form(executable, form);
}

#endif

}  // namespace cortex::runtime
