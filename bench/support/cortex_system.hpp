// `cortex` and `cortex_nodedup`: the library itself.
#pragma once

#include <cortex/cortex.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shortcuts.hpp"
#include "system.hpp"

namespace bench {

struct Cell;

/// The threads that help `threads - 1` callers' calls; all systems of the process share them.
inline std::shared_ptr<cortex::Workers> workers_for(int threads) {
  static std::map<int, std::shared_ptr<cortex::Workers>> all;
  if (threads <= 1) return nullptr;
  auto& workers = all[threads];
  if (!workers) workers = std::make_shared<cortex::Workers>(threads - 1);  // the caller works too
  return workers;
}

/// How a system of Cortex's is compiled.
struct Recipe {
  cortex::Schedule schedule;
  cortex::CompileOptions options;
};

/// What a user gets who writes no schedule and has so many threads.
inline cortex::Schedule default_schedule(int threads) {
  return cortex::Schedule::standard().workers(threads).workers_where_they_pay();
}

/// The one place where `cortex` and `cortex_nodedup` differ: the latter does all the arithmetic that the equations ask
/// for, even if a word, or a whole phrase, comes twice in a batch.
inline Recipe recipe_of(std::string_view system, int threads) {
  cortex::Schedule schedule = default_schedule(threads);
  if (system == "cortex_nodedup") schedule = schedule.share_no_subtrees().tabulate_nothing();
  Recipe recipe{schedule, {}};
  recipe.options.workers = workers_for(threads);
  return recipe;
}

/// A system of Cortex's, and what only these can tell.
class CortexSystem : public System {
 public:
  struct Times {
    double linearize_us = 0, execute_us = 0;
  };
  virtual Times times(const Roots& roots) = 0;
  virtual cortex::CallMemory memory_of_call(const Roots& roots) = 0;
  virtual cortex::ModelMemory memory() const = 0;
  virtual const cortex::runtime::Executable& executable() const = 0;
};

namespace detail {

template <class Functor>
class CompiledSystem : public CortexSystem {
 public:
  CompiledSystem(Functor functor, Functor timed, const Weights& weights)
      : functor_(std::move(functor)), timed_(std::move(timed)), weights_(weights) {
    bind(functor_);
  }

  void run(const Roots& roots, float* out) override { functor_(roots, std::span(out, roots.size() * weights_.hidden)); }
  double linearize_us(const Roots& roots) override { return times(roots).linearize_us; }
  Times times(const Roots& roots) override {
    if (!timed_is_bound_) bind(timed_);
    timed_is_bound_ = true;
    const auto result = timed_(roots);
    return {double(result.linearize_ns()) / 1e3, double(result.execute_ns()) / 1e3};
  }
  std::string shortcuts() const override { return shortcuts_of(executable(), memory().tables > 0); }
  cortex::CallMemory memory_of_call(const Roots& roots) override { return functor_(roots).memory(); }
  cortex::ModelMemory memory() const override { return functor_.memory(); }
  const cortex::runtime::Executable& executable() const override { return functor_.executable(); }

 private:
  void bind(Functor& functor) {
    for (const auto& spec : functor.executable().weights) functor.bind(spec.name, weights_(spec.name));
  }

  Functor functor_, timed_;  // the same code, the latter reading clocks
  const Weights& weights_;
  bool timed_is_bound_ = false;
};

}  // namespace detail

/// Compiles `program` once, for this machine unless the recipe names a target; `weights` outlives the system.
template <class... Types>
std::unique_ptr<CortexSystem> compiled(const cortex::Program<Types...>& program, const Recipe& recipe,
                                       const Weights& weights) {
  using Functor = cortex::Functor<Types...>;
  cortex::CompileOptions timed = recipe.options;
  timed.timings = true;
  const auto executable = cortex::runtime::compile_graph(program.graph(), recipe.schedule,
                                                         recipe.options.target.value_or(cortex::host_target()));
  return std::make_unique<detail::CompiledSystem<Functor>>(Functor(executable, recipe.options),
                                                           Functor(executable, timed), weights);
}

/// One of the models benchmarked, and a random cell with weights of its own.
std::unique_ptr<CortexSystem> compiled(const Weights& weights, const Recipe& recipe);
std::unique_ptr<CortexSystem> compiled(const Cell& cell, const Weights& weights, const Recipe& recipe);

/// What compiling one of the models takes, in milliseconds, and by what it is taken.
cortex::runtime::CompileTimes compile_times(Model model, int hidden, const cortex::Schedule& schedule);

}  // namespace bench
