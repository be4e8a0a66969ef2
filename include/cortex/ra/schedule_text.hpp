// A schedule as text, one decision a line; `parse_schedule` of `cortex/loops.hpp` reads it back.
#pragma once

#include <string>
#include <string_view>

#include "cortex/ra/schedule.hpp"

namespace cortex {

namespace detail {

/// `name` as it stands in the text of a schedule: as it is if it is a word, else in quotes, so that it is told from a
/// number and may hold anything.
inline std::string quoted(std::string_view name) {
  bool word = false, odd = name.empty();
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    word |= letter;
    odd |= !letter && !(c >= '0' && c <= '9') && c != '.';
  }
  if (word && !odd) return std::string(name);
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text + '"';
}

}  // namespace detail

/// The decisions of a schedule, one a line, as the member functions that take them are called; after `loops()` come the
/// steps of a loop schedule.
///
///     dynamic_batch()
///     specialize_if_else(body)
///     workers(2)
///     loops()
///     split(i, 16)
inline std::string to_string(const Schedule& schedule) {
  std::string text;
  const auto line = [&](const std::string& decision, const std::string& arguments = {}) {
    text += decision + "(" + arguments + ")\n";
  };
  if (schedule.batched) line("dynamic_batch");
  if (schedule.level_fill == 0) line("fill_levels_where_it_pays");
  if (schedule.level_fill != 0 && schedule.level_fill != 1) line("fill_levels", std::to_string(schedule.level_fill));
  if (schedule.piece_nodes == Schedule::by_the_caches)
    line("pieces_where_they_pay");
  else if (schedule.piece_nodes != 0)
    line("pieces", std::to_string(schedule.piece_nodes));
  if (schedule.specializes_where_it_pays) line("specialize_where_it_pays");
  if (schedule.specialize_every) line("specialize_if_else");
  for (const std::string& branch : schedule.specialized) line("specialize_if_else", detail::quoted(branch));
  if (schedule.leaves_apart) line("specialize_leaves");
  for (const auto& [name, depth] : schedule.unrolled)
    line("unroll", detail::quoted(name) + ", " + std::to_string(depth));
  for (const std::string& op : schedule.refactored) line("refactor", detail::quoted(op));
  if (schedule.sharing == Sharing::on) line("share_subtrees");
  if (schedule.sharing == Sharing::where_it_pays) line("share_subtrees_where_it_pays");
  if (schedule.sorting == Sorting::on) line("sort_by_matrix");
  if (schedule.sorting == Sorting::where_it_pays) line("sort_by_matrix_where_it_pays");
  if (schedule.tabulating == Tabulating::on) line("tabulate", std::to_string(schedule.table_megabytes));
  if (schedule.tabulating == Tabulating::where_it_pays) line("tabulate_where_it_pays");
  if (schedule.max_workers != 1) line("workers", std::to_string(schedule.max_workers));
  if (schedule.fewer_workers) line("workers_where_they_pay");
  if (schedule.num_groups) line("groups", std::to_string(schedule.num_groups));
  if (schedule.weight_type != DType::f32) line("store_weights", std::string(to_string(schedule.weight_type)));
  for (const auto& [name, type] : schedule.stored)
    line("store", detail::quoted(name) + ", " + std::string(to_string(type)));
  if (schedule.tiling.rows) line("tile_rows", std::to_string(schedule.tiling.rows));
  if (schedule.tiling.vectors) line("tile_vectors", std::to_string(schedule.tiling.vectors));
  if (schedule.tiling.gates) line("tile_gates", std::to_string(schedule.tiling.gates));
  if (schedule.tiling.sweeps == Tiling::Sweeps::alternating) line("alternate_sweeps");
  if (schedule.tiling.sweeps == Tiling::Sweeps::forward) line("sweep_forward");
  if (schedule.vectors_alone) line("multiply_in_vectors");
  if (schedule.exact) line("exact_activations");
  if (!schedule.fuses) line("fuse_nothing");
  const GpuSchedule& gpu = schedule.gpu;
  const auto named = [](const auto& names, auto choice) { return std::string(names[std::size_t(choice)]); };
  if (gpu.group != GpuSchedule::Group::automatic || gpu.blocks)
    line("gpu_group", named(GpuSchedule::group_names, gpu.group) + ", " + std::to_string(gpu.blocks));
  if (gpu.threads) line("gpu_threads", std::to_string(gpu.threads));
  if (gpu.rows) line("gpu_rows", std::to_string(gpu.rows));
  if (gpu.parts) line("gpu_parts", std::to_string(gpu.parts));
  if (gpu.recent_rows != GpuSchedule().recent_rows) line("gpu_recent_rows", std::to_string(gpu.recent_rows));
  if (gpu.weights != GpuSchedule::Weights::automatic)
    line("gpu_weights", named(GpuSchedule::weights_names, gpu.weights));
  if (gpu.tensor_cores != GpuSchedule::TensorCores::off)
    line("gpu_tensor_cores", named(GpuSchedule::tensor_cores_names, gpu.tensor_cores));
  if (!gpu.lock_based) line("gpu_lock_free_barrier");
  if (!schedule.by_hand) return text;
  line("loops");
  for (std::size_t step = 0; step < schedule.by_hand->size(); ++step) text += schedule.by_hand->text(step) + "\n";
  return text;
}

}  // namespace cortex
