// What a search of the tuner's gives as a row of results.
#pragma once

#include <cortex/tune/search.hpp>
#include <cstddef>
#include <utility>

#include "json.hpp"
#include "models.hpp"

namespace bench {

/// Binds the weights of a model, by their names.
inline auto binding(const Weights& weights) {
  return [&weights](auto& model) {
    for (const auto& spec : model.executable().weights) model.bind(spec.name, weights(spec.name));
  };
}

/// How many candidates were measured, and not refused, beside the default.
inline std::size_t num_measured(const cortex::Tuned& tuned) {
  std::size_t count = 0;
  for (const cortex::tuning::Record& record : tuned.candidates)
    count += record.outcome == cortex::tuning::Outcome::measured;
  return count ? count - 1 : 0;
}

/// The fields of a case behind those that `own` has. A ratio of 1 stands for a default than which nothing faster was
/// found.
inline Json row_of(const cortex::Tuned& tuned, const Weights& weights, std::size_t batch, Json::Fields own) {
  Json::Fields fields{{"model", name_of(weights.model)}, {"hidden", weights.hidden}, {"batch", batch}};
  for (auto& field : own) fields.push_back(std::move(field));
  fields.push_back({"ratio", tuned.ratio});
  fields.push_back({"noise", tuned.noise});
  fields.push_back({"faster", int(tuned.faster)});
  fields.push_back({"candidates", tuned.candidates.size()});
  fields.push_back({"tried", num_measured(tuned)});
  fields.push_back({"schedule", to_string(tuned.schedule)});
  return Json::object(fields);
}

}  // namespace bench
