// What the cost model predicts of a tuner's candidates: thousands of schedules over the calls of a user's inputs, in
// the time that a few of them take to be measured.
//
//   schedules -> programs (many share one) -> times of a few calls in so many groups of workers (many share these, too)
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/runtime/caches.hpp"
#include "cortex/runtime/compile.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/schedule/choose_groups.hpp"
#include "cortex/schedule/level_fill.hpp"
#include "cortex/schedule/tile_nests.hpp"

namespace cortex::tuning {

/// Calls to predict times of, in place of all: equal ones are one, and of many each stands for those of about its size.
class CallSample {
 public:
  struct Call {
    schedule::CallShape shape;
    double count = 0;  // of the calls that it stands for, by their nodes
  };
  static constexpr std::size_t most = 8;

  void add(const schedule::CallShape& shape) {
    std::string text = std::to_string(shape.roots);
    for (const schedule::CallShape::Level& level : shape.levels)
      text += " " + std::to_string(level.nodes) + "/" + std::to_string(level.edges);
    Call& call = known_[text];
    if (call.count++ == 0) call.shape = shape;
  }

  Vector<Call> calls() const {
    Vector<Call> all;
    for (const auto& [text, call] : known_) all.push_back(call);
    std::sort(all.begin(), all.end(), [](const Call& a, const Call& b) { return a.shape.nodes() < b.shape.nodes(); });
    const std::size_t size = std::min(all.size(), most);
    Vector<Call> result;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t begin = i * all.size() / size, end = (i + 1) * all.size() / size;
      Call middle = all[(begin + end) / 2];
      double nodes = 0;
      for (std::size_t c = begin; c < end; ++c) nodes += all[c].count * all[c].shape.nodes();
      middle.count = nodes / middle.shape.nodes();
      result.push_back(std::move(middle));
    }
    return result;
  }

 private:
  std::map<std::string, Call> known_;  // by what they are of
};

/// Whether equal subtrees are computed once; where that is refused they are not. On a GPU they are where a schedule
/// asks for it.
inline bool shares_subtrees(const ra::Graph& graph, const Schedule& schedule, const Target& target) {
  if (target.backend == Backend::cuda && schedule.sharing != Sharing::on) return false;
  return ra::may_share_subtrees(graph, schedule) && ra::shares_subtrees(graph, schedule);
}

/// Predicts what schedules of a graph take.
class Predictor {
 public:
  /// A program whose tiles are not made yet: its work, or why there is none.
  struct Program {
    Vector<ir::WorkItem> work;
    std::string refused;
    bool shared = false;                                   // whether equal subtrees are computed once
    std::map<std::array<int, 4>, Vector<double>> seconds;  // of each call of the sample, by rows and vectors of tiles,
                                                           // workers and groups
  };

  Predictor(const ra::Graph& graph, const Target& target)
      : graph_(graph), target_(target), machine_(runtime::machine_model(target)) {}

  /// Calls, with their equal subtrees as one or each by itself.
  void take(const CallSample& sample, bool shared) { calls_[shared] = sample.calls(); }

  /// The program of a schedule.
  Program& program(const Schedule& schedule) {
    const Schedule own = of_program(schedule);
    const auto [found, is_new] = programs_.try_emplace(to_string(own));
    Program& program = found->second;
    if (!is_new) return program;
    try {
      program.work = runtime::work_of(graph_, own, target_);
      program.shared = shares_subtrees(graph_, own, target_);
    } catch (const Error& error) {
      program.refused = error.message;
    }
    return program;
  }

  /// By the cost model, in seconds for all calls. Looking for equal subtrees takes about as long as numbering nodes.
  double seconds(Program& program, const Schedule& schedule) const {
    const Vector<CallSample::Call>& calls = calls_[program.shared];
    double sum = 0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const schedule::CallShape& shape = calls[c].shape;
      const auto one = [&](int workers, int groups) { return in_groups(program, schedule, workers, groups)[c]; };
      const int asked = schedule.num_groups;
      const int groups = asked ? runtime::most_groups(asked, schedule.max_workers, std::size_t(shape.roots))
                               : schedule::choose_groups(schedule, shape.roots, one);
      const double looking = program.shared ? machine_.node * shape.nodes() : 0;
      sum += calls[c].count * (looking + schedule::least_in_groups(schedule, groups, one));
    }
    return sum;
  }

 private:
  /// What is the same of schedules that share a program: rows and vectors of tiles and sweeps come later, levels,
  /// pieces and groups with a call, and how many workers share loops changes none but sums that are cut.
  Schedule of_program(Schedule schedule) const {
    Tiling& tiling = schedule.tiling;
    if (!schedule.by_hand) tiling.rows = tiling.vectors = 0, tiling.sweeps = Tiling::Sweeps::where_it_pays;
    if (tiling.gates == schedule::most_gates(target_)) tiling.gates = 0;
    const bool cut = !schedule.refactored.empty();
    if (!cut || schedule.fewer_workers) schedule.max_workers = std::min(schedule.max_workers, 2);
    schedule.num_groups = 0, schedule.fewer_workers &= cut;
    if (schedule::reason_against_filling(graph_, schedule).empty()) schedule.level_fill = 1;
    if (ra::reason_against_pieces(graph_, schedule).empty() && !schedule.by_hand) schedule.piece_nodes = 0;
    return schedule;
  }

  /// What each call takes so many workers in all.
  const Vector<double>& in_groups(Program& program, const Schedule& schedule, int workers, int groups) const {
    Vector<double>& known = program.seconds[{schedule.tiling.rows, schedule.tiling.vectors, workers, groups}];
    if (!known.empty()) return known;
    Schedule own = schedule;
    own.max_workers = workers;
    const schedule::GroupCost cost(program.work, own, target_, machine_, groups);
    for (const CallSample::Call& call : calls_[program.shared])
      known.push_back(schedule::start_of(workers, machine_) + cost.of(call.shape).total());
    return known;
  }

  const ra::Graph& graph_;
  const Target target_;
  const schedule::MachineModel machine_;
  Vector<CallSample::Call> calls_[2];  // [whether equal subtrees are computed once]
  std::map<std::string, Program> programs_;
};

}  // namespace cortex::tuning
