// The least time that a batch can take by its arithmetic, on the machine as it is measured in the same run:
//
//   sum over levels max(FLOPs / P, weight bytes / bandwidth of a core's slice) + barriers + activations
//
// A level is all nodes of one height; a multiply-add counts as 2 operations. It counts all the work that the equations
// ask for: what is not done twice, because a word or a phrase comes twice, can be faster.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "level_order.hpp"
#include "machine.hpp"
#include "models.hpp"

namespace bench {

/// What a level of a model costs.
struct Work {
  double flops = 0, weight_bytes = 0, activations = 0;
  int barriers = 0;
};

/// `nodes` nodes of one height, leaves or not; `children` is how many of them there are below, for activations.
inline Work work_of_level(Model model, double H, bool leaves, double nodes, double children) {
  switch (model) {
    case Model::treefc: return leaves ? Work{} : Work{4 * H * H * nodes, 8 * H * H, 0, 1};
    case Model::dagrnn: return leaves ? Work{0, 0, H * nodes, 1} : Work{2 * H * H * nodes, 4 * H * H, H * nodes, 1};
    case Model::treernn: return {2 * H * H * nodes, 4 * H * H, H * nodes, 1};
    case Model::treegru:
    case Model::simpletreegru:
      return leaves ? Work{4 * H * H * nodes, 8 * H * H, 2 * H * nodes, 1}
                    : Work{6 * H * H * nodes, 12 * H * H, 3 * H * nodes, 2};
    case Model::gated:
      return leaves ? Work{2 * H * H * nodes, 4 * H * H, H * nodes, 1}
                    : Work{10 * H * H * nodes, 20 * H * H, 3 * H * nodes, 2};
    case Model::treelstm:
      return leaves ? Work{6 * H * H * nodes, 12 * H * H, 4 * H * nodes, 1}
                    : Work{(6 * nodes + 2 * children) * H * H, 16 * H * H, (4 * nodes + children) * H, 1};
    case Model::mvrnn: return leaves ? Work{} : Work{(4 * H * H * H + 8 * H * H) * nodes, 16 * H * H, H * nodes, 1};
    case Model::lstm: return {leaves ? 0 : 8 * H * H * nodes, leaves ? 0 : 16 * H * H, 5 * H * nodes, 1};
    default: return {leaves ? 0 : 6 * H * H * nodes, leaves ? 0 : 12 * H * H, 3 * H * nodes, 1};
  }
}

/// What each level of a batch costs, by `of_level(leaves, nodes, children)`; `shared`: whether nodes have several
/// parents.
template <class OfLevel>
std::vector<Work> work_of_levels(bool shared, const Roots& roots, OfLevel of_level) {
  LevelOrder order(shared);
  order.number(roots);
  std::vector<Work> levels;
  for (std::size_t l = 0; l < order.levels(); ++l) {
    double children = 0;
    for (std::size_t row = order.begin(l); row < order.begin(l) + order.rows(l); ++row)
      children += (order.left(row) >= 0) + (order.right(row) >= 0);
    levels.push_back(of_level(l == 0, double(order.rows(l)), children));
  }
  return levels;
}

/// The same of each batch of trees, [batch][level].
template <class OfLevel>
std::vector<std::vector<Work>> work_of_trees(const Batches& batches, OfLevel of_level) {
  std::vector<std::vector<Work>> result;
  for (const Roots& roots : batches.roots) result.push_back(work_of_levels(false, roots, of_level));
  return result;
}

/// What each level of a batch costs.
inline std::vector<Work> work_of(Model model, std::size_t hidden, const Roots& roots) {
  const double H = double(hidden);
  double all = 0;
  std::vector<Work> levels =
      work_of_levels(model == Model::dagrnn, roots, [&](bool leaves, double nodes, double children) {
        all += nodes;
        return work_of_level(model, H, leaves, nodes, children);
      });
  if (model == Model::lstm || model == Model::gru) {  // the inputs' products, all steps at once
    const double gates = model == Model::lstm ? 4 : 3;
    levels.push_back({2 * gates * H * H * all, 4 * gates * H * H, 0, 1});
  }
  return levels;
}

/// The floor of a batch whose levels these are, in microseconds; or what it would be if arithmetic were at most as fast
/// as in tiles of a product whose operands come from the first-level cache.
inline double floor_us(const std::vector<Work>& levels, int threads, const Machine& machine, bool in_tiles = false) {
  constexpr double activation_us = 0.235e-3;
  const double flops_a_us = (in_tiles ? machine.peak_tile_gflops(threads) : machine.peak_gflops(threads)) * 1e3;
  double time = 0;
  for (const Work& level : levels) {
    const double bytes_a_us = machine.bandwidth(level.weight_bytes / threads, threads) * 1e3;
    time += std::max(level.flops / flops_a_us, level.weight_bytes / bytes_a_us);
    time += level.activations * activation_us / threads;
    if (threads > 1) time += level.barriers * machine.barrier_us;
  }
  return time;
}
/// The mean over batches.
inline double floor_us(const std::vector<std::vector<Work>>& batches, int threads, const Machine& machine,
                       bool in_tiles = false) {
  double sum = 0;
  for (const std::vector<Work>& levels : batches) sum += floor_us(levels, threads, machine, in_tiles);
  return sum / double(batches.size());
}

}  // namespace bench
