// Every ordered pair of primitives of loop schedules: together they keep what models compute, or the second is refused.
#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/random_loops.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// What a pair begins with: a model, a schedule of its recursion, and steps that make room for more.
struct Start {
  ra::Graph graph;
  Schedule recursion;
  Loops steps;
  int workers = 1;
};

/// A cell with what the others lack: work that is said twice, work that no iteration of a reduction changes, a branch.
ra::Graph odd_cell() {
  Dim V{"vocabulary"}, H = hidden(8);
  Model<Word> m("odd", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto s =
      m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return tanh(h(k, i)) * h(k, i); }); });
  auto gated = m.compute(
      "gated", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j) + sigmoid(s(n, i)); }); });
  auto cell = m.compute("cell", H, [&](auto n, auto i) {
    const auto t = tanh(gated(n, i) + s(n, i));
    return t * (1.0f + t);
  });
  return m.recursion_op(h, m.if_then_else([](auto n) { return is_leaf(n); }, leaf, cell)).graph();
}

std::vector<Start> starts() {
  const Schedule standard = Schedule::standard(), batched = Schedule{}.dynamic_batch();
  const auto steps = [](const char* text) { return Loops::parse(text); };
  return {
      {tree_gru(4).graph(), standard, {}},
      {tree_lstm(4).graph(), standard, {}},
      {dependency_rnn(4).graph(), batched, {}},
      {tree_gru(4).graph(), standard, steps("distribute_rows()"), 2},
      {tree_rnn(8).graph(), standard, steps("inline_temporaries(); share_work()"), 2},
      {tree_gru(4).graph(), Schedule{}, steps("distribute_rows(); fuse_nests()"), 2},
      {tree_lstm(4).graph(), standard, steps("distribute_rows()")},
      {tree_gru(4).graph(), standard, steps("distribute_rows(); fuse_nests(); forward_stores()")},
      {tree_fc(4).graph(), standard, steps("distribute_rows(); fuse_nests(); forward_stores(); remove_dead()"), 2},
      {tree_fc(4).graph(), batched, steps("distribute_rows(); hoist_conditions(); fuse_nests(); forward_stores()")},
      {odd_cell(), batched, {}},
      {odd_cell(), standard, steps("split_guarded(i.2, 3); split(i.2.o, 2)")},
      {odd_cell(), standard, steps("distribute_rows(); split_guarded(i, 3); reorder(i.o, i.i, n_idx)")},
  };
}

/// One start with what its programs are held against.
class Trial {
 public:
  Trial(const Start& start, std::uint64_t seed)
      : start_(start),
        engine_(unsigned(seed)),
        table_(random_table(17, 2, 7, engine_, true)),
        linear_(table_, 2),
        reference_(start.graph, table_, linear_.arrays, linear_.number, weights_for(start.graph, 7, 1)),
        random_(seed) {}

  /// Looks for two steps, the one behind the other, that are possible and change something, and checks what the program
  /// computes then. Whether there were such.
  bool run(const std::string& first, const std::string& second, Tally& tally) {
    const Schedule recursion = Schedule(start_.recursion).exact_activations();
    const ir::Stmt lowered = lower::lower(start_.graph, recursion).body;
    for (int attempt = 0; attempt < 6; ++attempt) {
      RandomLoops made(random_, lowered, target_, tally);
      for (const LoopStep& step : start_.steps.steps()) made.take(step);
      if (!made.take_any(first, 12) || !made.take_any(second, 25)) continue;
      const bool shared = start_.workers > 1 && (made.loops.has_barriers() || made.take({"insert_barriers", {}, {}}));
      check(recursion.workers(shared ? start_.workers : 1).loops(made.loops));
      return true;
    }
    return false;
  }

 private:
  void check(const Schedule& schedule) {
    const ir::Program program = passes_of(start_.graph, schedule, target_).back().program;
    for (const bool last_first : {false, true}) {
      const std::string wrong = reference_.difference(program, {schedule.max_workers, last_first});
      if (!wrong.empty()) FAIL(to_string(schedule) << wrong << "\n" << ir::print(program));
    }
  }

  const Start& start_;
  std::mt19937 engine_;
  NodeTable table_;
  Linear linear_;
  Reference reference_;
  Random random_;
  Target target_ = machine(16);
};

}  // namespace

TEST_CASE("every ordered pair of primitives of loop schedules is right or refused", "[differential][slow]") {
  const std::vector<Start> all = starts();
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Start& start : all) trials.push_back(std::make_unique<Trial>(start, trials.size() + 1));
  Tally tally;
  std::map<std::string, int> as_first, as_second;
  std::size_t from = 0;  // each pair begins with another start
  for (const auto& first : pass::detail::loop_primitives)
    for (const auto& second : pass::detail::loop_primitives) {
      const std::string a(first.name), b(second.name);
      bool ran = false;
      for (std::size_t i = 0; i < trials.size() && !ran; ++i)
        ran = trials[(from + i) % trials.size()]->run(a, b, tally);
      tally.cases += ran, as_first[a] += ran, as_second[b] += ran, ++from;
    }
  // The others are refused wherever they were tried, or the second found nothing to change.
  const int pairs = int(pass::detail::loop_primitives.size() * pass::detail::loop_primitives.size());
  WARN(tally.cases << " of " << pairs << " pairs ran; " << tally.text());
  CHECK(tally.cases > pairs * 7 / 8);
  for (const auto& each : pass::detail::loop_primitives) {
    INFO(each.name);
    CHECK(as_first[std::string(each.name)] >= 20);
    CHECK(as_second[std::string(each.name)] >= 20);
  }
}
