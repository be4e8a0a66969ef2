// The tuner: finds the schedule that is fastest for a model, on this machine, for inputs like yours.
//
//   auto tuned = cortex::tune(program, batches, [&](auto& model) { model.bind("U", u); });
//   auto model = cortex::compile(program, tuned.schedule);
//
// A header of its own, beside cortex.hpp. Paper section 6 (grid search over schedules).
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/functor.hpp"
#include "cortex/tune/search.hpp"

namespace cortex {

namespace tuning::detail {

template <class T>
inline constexpr bool is_tuple = false;
template <class... Ts>
inline constexpr bool is_tuple<std::tuple<Ts...>> = true;

/// A call with a batch: roots, or an arena and roots.
template <class Called, class Batch>
auto call_with(const Called& called, const Batch& batch) {
  if constexpr (is_tuple<Batch>)
    return std::apply(called, batch);
  else
    return called(batch);
}
/// Of a model that only numbers the nodes.
template <class Model, class Batch>
auto number_with(const Model& model, const Batch& batch) {
  if constexpr (is_tuple<Batch>)
    return model.number(std::get<1>(batch), std::get<0>(batch));
  else
    return model.number(batch);
}

/// A compiled candidate of a model with its node type.
template <class Functor, class Batches>
class FunctorTrial final : public Trial {
 public:
  FunctorTrial(Functor model, const Batches& batches) : model_(std::move(model)), batches_(batches) {}

  void call(std::size_t batch) override { (void)call_with(model_, batches_[batch]); }
  void inspect(std::size_t batch, FunctionRef<void(const CallResults&)> look) override {
    look(call_with(model_, batches_[batch]).workspace());
  }
  void number(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    look(number_with(model_, batches_[batch]).workspace());
  }

 private:
  Functor model_;
  const Batches& batches_;
};

}  // namespace tuning::detail

/// Searches the schedules around the default for the one under which `batches` run fastest.
///
/// `batches`: what the model is to be called with, such as `std::vector<std::vector<const Node*>>`: each element is
/// what a functor takes, or, where links are indices, a `std::tuple` of the arena and the roots. They should be like
/// those of the program's daily work, and some more than one. `bind` binds the weights of the functor that it is given.
/// `compiled`: the target, and workers that may share calls.
///
/// Every candidate is checked before it counts: its results at each node have to be the default's, bit by bit, where
/// its schedule rounds alike; where it adds in another order, they are held against the model's equations with a
/// running error bound. Candidates are measured in turn with the default. The best ones are measured again, side by
/// side with it, and win only by more than the noise. Nothing of that changes what the model computes.
///
/// Compiles a model for each candidate: seconds to minutes, bounded by `options`. Throws what `compile`, `bind` and
/// calls throw under the default schedule, and `Error{invalid_argument}` if there are no batches or one has no roots,
/// for a log that is of something else or that another search is writing, or for a cache that cannot be written to.
template <class... Types, class Batches, class Bind>
Tuned tune(const Program<Types...>& program, const Batches& batches, Bind bind, const TuneOptions& options = {},
           const CompileOptions& compiled = {}) {
  using Functor = cortex::Functor<Types...>;
  using Trial = tuning::detail::FunctorTrial<Functor, Batches>;
  const tuning::Subject subject{
      program.graph(),
      compiled.target ? *compiled.target : runtime::host_target(),
      compiled.workers ? std::min(compiled.workers->size() + 1, runtime::max_call_workers) : 1,
      std::size(batches),
      [&](const Schedule& schedule, const Target& target) -> std::unique_ptr<tuning::Trial> {
        CompileOptions own = compiled;
        own.target = target;
        Functor model = compile(program, schedule, own);
        bind(model);
        return std::make_unique<Trial>(std::move(model), batches);
      },
      compiled.workers ? compiled.workers->placement() : Placement::anywhere};
  return tuning::Search(subject, options).run();
}

/// What a search has done, as text to read: how it ended, the winner, and the candidates by their times.
inline std::string to_string(const Tuned& tuned, std::size_t most_lines = 10) {
  constexpr const char* ends[] = {"all were tried",    "no more was gained", "the number of candidates was reached",
                                  "the time was over", "it was cancelled",   "the result is from the cache"};
  const auto one_line = [](std::string text) {
    for (char& c : text)
      if (c == '\n') c = ' ';
    return text;
  };
  char line[160];
  std::string text;
  if (tuned.ended != tuning::Ended::from_cache) {
    const auto refused =
        std::count_if(tuned.candidates.begin(), tuned.candidates.end(),
                      [](const tuning::Record& record) { return record.outcome == tuning::Outcome::refused; });
    std::snprintf(line, sizeof line, "%zu of %zu schedules tried, %zu refused; ",
                  tuned.candidates.size() - std::size_t(refused), tuned.space_size, std::size_t(refused));
    text = line;
  }
  text += std::string(ends[std::size_t(tuned.ended)]) + "\n";
  if (tuned.ratio == 1)
    std::snprintf(line, sizeof line, "the default stays; none was found to be faster\n");
  else
    std::snprintf(line, sizeof line, "%s takes %.3f of the default's time, or up to %.3f more\n",
                  tuned.faster ? "the winner" : "the default stays; the best other one", tuned.ratio, tuned.noise);
  text += line + ("schedule: " + one_line(to_string(tuned.schedule))) + "\n";
  if (!tuned.not_read.empty()) text += "not read: " + tuned.not_read + "\n";
  if (!tuned.not_kept.empty()) text += "not kept: " + tuned.not_kept + "\n";
  Vector<const tuning::Record*> order;
  for (const tuning::Record& record : tuned.candidates)
    if (record.outcome == tuning::Outcome::measured) order.push_back(&record);
  std::sort(order.begin(), order.end(), tuning::is_faster);
  if (!order.empty()) text += "\n     ratio  us measured  predicted\n";
  for (std::size_t i = 0; i < std::min(order.size(), most_lines); ++i) {
    char predicted[32] = "-";
    if (order[i]->predicted_seconds > 0)
      std::snprintf(predicted, sizeof predicted, "%.1f", order[i]->predicted_seconds * 1e6);
    std::snprintf(line, sizeof line, "  %8.3f  %11.1f  %9s  ", order[i]->ratio, order[i]->seconds * 1e6, predicted);
    text += line + one_line(order[i]->schedule) + "\n";
  }
  for (const tuning::Record& record : tuned.candidates)
    if (record.outcome == tuning::Outcome::wrong)
      text += "  wrong (please report): " + one_line(record.schedule) + ": " + record.why + "\n";
  return text;
}

}  // namespace cortex
