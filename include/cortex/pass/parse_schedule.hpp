// A whole schedule read from text: what `to_string` wrote, or a person.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/pass/loops.hpp"

namespace cortex {

namespace pass::detail {

/// A decision of a schedule as a step: what it takes, an operator o, an element type t or a number n, and what it does.
struct Decision {
  std::string_view name, arguments;
  Schedule (*apply)(const Schedule&, const LoopStep&);
};

/// The type that weights are stored as under this name.
inline std::optional<DType> type_named(std::string_view name) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::i8})
    if (to_string(type) == name) return type;
  return {};
}

/// The schedule with another decision about GPUs.
template <class Change>
Schedule with_gpu(const Schedule& schedule, Change change) {
  GpuSchedule gpu = schedule.gpu;
  change(gpu);
  return schedule.on_gpu(gpu);
}

/// The place of `name` in `names`; a name that is not there is refused.
inline std::size_t choice(const LoopStep& step, std::span<const std::string_view> names) {
  std::string all;
  std::size_t place = 0;
  for (const std::string_view name : names) {
    if (name == step.names[0]) return place;
    ++place;
    all.append(all.empty() ? "" : ", ").append(name);
  }
  throw Error(Code::invalid_schedule, step.primitive + " has no choice '" + step.names[0] + "'; there are " + all);
}

inline constexpr std::array decisions{
    Decision{"dynamic_batch", "", [](const Schedule& s, const LoopStep&) { return s.dynamic_batch(); }},
    Decision{"specialize_where_it_pays", "",
             [](const Schedule& s, const LoopStep&) { return s.specialize_where_it_pays(); }},
    Decision{"specialize_if_else", "", [](const Schedule& s, const LoopStep&) { return s.specialize_if_else(); }},
    Decision{"specialize_if_else", "o",
             [](const Schedule& s, const LoopStep& step) { return s.specialize_if_else(step.names[0]); }},
    Decision{"specialize_leaves", "", [](const Schedule& s, const LoopStep&) { return s.specialize_leaves(); }},
    Decision{"unroll", "on",
             [](const Schedule& s, const LoopStep& step) { return s.unroll(step.names[0], int(step.numbers[0])); }},
    Decision{"refactor", "o", [](const Schedule& s, const LoopStep& step) { return s.refactor(step.names[0]); }},
    Decision{"share_subtrees", "", [](const Schedule& s, const LoopStep&) { return s.share_subtrees(); }},
    Decision{"share_subtrees_where_it_pays", "",
             [](const Schedule& s, const LoopStep&) { return s.share_subtrees_where_it_pays(); }},
    Decision{"share_no_subtrees", "", [](const Schedule& s, const LoopStep&) { return s.share_no_subtrees(); }},
    Decision{"sort_by_matrix", "", [](const Schedule& s, const LoopStep&) { return s.sort_by_matrix(); }},
    Decision{"sort_by_matrix_where_it_pays", "",
             [](const Schedule& s, const LoopStep&) { return s.sort_by_matrix_where_it_pays(); }},
    Decision{"sort_by_no_matrix", "", [](const Schedule& s, const LoopStep&) { return s.sort_by_no_matrix(); }},
    Decision{"tabulate", "n", [](const Schedule& s, const LoopStep& step) { return s.tabulate(int(step.numbers[0])); }},
    Decision{"tabulate_where_it_pays", "",
             [](const Schedule& s, const LoopStep&) { return s.tabulate_where_it_pays(); }},
    Decision{"tabulate_nothing", "", [](const Schedule& s, const LoopStep&) { return s.tabulate_nothing(); }},
    Decision{"workers", "n", [](const Schedule& s, const LoopStep& step) { return s.workers(int(step.numbers[0])); }},
    Decision{"workers_where_they_pay", "",
             [](const Schedule& s, const LoopStep&) { return s.workers_where_they_pay(); }},
    Decision{"fill_levels", "n",
             [](const Schedule& s, const LoopStep& step) { return s.fill_levels(int(step.numbers[0])); }},
    Decision{"fill_levels_where_it_pays", "",
             [](const Schedule& s, const LoopStep&) { return s.fill_levels_where_it_pays(); }},
    Decision{"pieces", "n", [](const Schedule& s, const LoopStep& step) { return s.pieces(int(step.numbers[0])); }},
    Decision{"pieces_where_they_pay", "", [](const Schedule& s, const LoopStep&) { return s.pieces_where_they_pay(); }},
    Decision{"whole_calls", "", [](const Schedule& s, const LoopStep&) { return s.whole_calls(); }},
    Decision{"groups", "n", [](const Schedule& s, const LoopStep& step) { return s.groups(int(step.numbers[0])); }},
    Decision{"store_weights", "t",
             [](const Schedule& s, const LoopStep& step) { return s.store_weights(*type_named(step.names[0])); }},
    Decision{
        "store", "ot",
        [](const Schedule& s, const LoopStep& step) { return s.store(step.names[0], *type_named(step.names[1])); }},
    Decision{"tile_rows", "n",
             [](const Schedule& s, const LoopStep& step) { return s.tile_rows(int(step.numbers[0])); }},
    Decision{"tile_vectors", "n",
             [](const Schedule& s, const LoopStep& step) { return s.tile_vectors(int(step.numbers[0])); }},
    Decision{"tile_gates", "n",
             [](const Schedule& s, const LoopStep& step) { return s.tile_gates(int(step.numbers[0])); }},
    Decision{"alternate_sweeps", "", [](const Schedule& s, const LoopStep&) { return s.alternate_sweeps(); }},
    Decision{"sweep_forward", "", [](const Schedule& s, const LoopStep&) { return s.sweep_forward(); }},
    Decision{"multiply_in_vectors", "", [](const Schedule& s, const LoopStep&) { return s.multiply_in_vectors(); }},
    Decision{"exact_activations", "", [](const Schedule& s, const LoopStep&) { return s.exact_activations(); }},
    Decision{"fuse_nothing", "", [](const Schedule& s, const LoopStep&) { return s.fuse_nothing(); }},
    Decision{"gpu_group", "on",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) {
                 gpu.group = GpuSchedule::Group(choice(step, GpuSchedule::group_names));
                 gpu.blocks = int(step.numbers[0]);
               });
             }},
    Decision{"gpu_threads", "n",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) { gpu.threads = int(step.numbers[0]); });
             }},
    Decision{"gpu_rows", "n",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) { gpu.rows = int(step.numbers[0]); });
             }},
    Decision{"gpu_parts", "n",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) { gpu.parts = int(step.numbers[0]); });
             }},
    Decision{"gpu_recent_rows", "n",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) { gpu.recent_rows = int(step.numbers[0]); });
             }},
    Decision{"gpu_weights", "o",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) {
                 gpu.weights = GpuSchedule::Weights(choice(step, GpuSchedule::weights_names));
               });
             }},
    Decision{"gpu_tensor_cores", "o",
             [](const Schedule& s, const LoopStep& step) {
               return with_gpu(s, [&](GpuSchedule& gpu) {
                 gpu.tensor_cores = GpuSchedule::TensorCores(choice(step, GpuSchedule::tensor_cores_names));
               });
             }},
    Decision{"gpu_lock_free_barrier", "",
             [](const Schedule& s, const LoopStep&) {
               return with_gpu(s, [](GpuSchedule& gpu) { gpu.lock_based = false; });
             }},
};

inline const Decision* decision_of(const LoopStep& step) {
  const std::string arguments = std::string(step.names.size(), 'o') + std::string(step.numbers.size(), 'n');
  const auto takes = [&](std::string_view kinds) {
    if (kinds.size() != arguments.size()) return false;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (kinds[i] == 't' ? arguments[i] != 'o' || !type_named(step.names[i]) : kinds[i] != arguments[i]) return false;
    return true;
  };
  for (const Decision& decision : decisions)
    if (decision.name == step.primitive && takes(decision.arguments)) return &decision;
  return nullptr;
}

/// A decision as it is written.
inline std::string form_of(const Decision& decision) {
  std::string arguments;
  for (const char c : decision.arguments)
    arguments += (arguments.empty() ? "" : ", ") + std::string(c == 'o'   ? "operator"
                                                               : c == 't' ? "f32|bf16|f16|i8"
                                                                          : "number");
  return std::string(decision.name) + "(" + arguments + ")";
}

/// Why a step is no decision: how those of its name are written, or all that there are.
inline std::string no_decision(const LoopStep& step) {
  std::string own, all;
  for (const Decision& decision : decisions) {
    all += form_of(decision) + ", ";
    if (decision.name == step.primitive) own += (own.empty() ? "" : " or ") + form_of(decision);
  }
  if (!own.empty()) return to_string(step) + ": it is written " + own;
  return "there is no decision " + to_string(step) + "; there are " + all +
         "and loops() with the steps of a loop schedule after it";
}

}  // namespace pass::detail

/// The schedule that `to_string` wrote, or that was written like it: one decision a line or with ';' between them, '#'
/// begins a comment, and after `loops()` come the steps of a loop schedule, as `Loops::parse` reads them:
///
///     parse_schedule("dynamic_batch(); specialize_leaves(); workers(2)") ==
///         Schedule{}.dynamic_batch().specialize_leaves().workers(2)
///
/// Throws `Error{invalid_schedule}` naming the line. Whether a model has the operators is for `compile` to say.
inline Schedule parse_schedule(std::string_view text) {
  pass::detail::StepReader reader(text, "schedule");
  Schedule schedule;
  while (const auto step = reader.next()) {
    if (step->primitive == "loops" && step->names.empty() && step->numbers.empty())
      return schedule.loops(Loops(pass::detail::read_loop_steps(reader)));
    const pass::detail::Decision* decision = pass::detail::decision_of(*step);
    if (!decision) reader.fail(pass::detail::no_decision(*step));
    for (const std::int64_t number : step->numbers)
      if (number != int(number)) reader.fail(to_string(*step) + ": the number is too large");
    try {
      schedule = decision->apply(schedule, *step);
    } catch (const Error& error) {
      reader.fail(error.message);
    }
  }
  return schedule;
}

}  // namespace cortex
