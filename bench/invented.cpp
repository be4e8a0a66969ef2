// Cells that are like no ready-made model (support/invented_cells.hpp), each beside the ready-made TreeLSTM of the same
// size: how many multiply-adds a second the compiler reaches where nobody has looked.
//
//   invented [--hidden 256] [--threads 2] [--quick] [--json FILE] [--smoke]
//
// All work is done, without tables and shared subtrees, on ten random trees a call. All cells and the TreeLSTM
// alternate round by round. Cells are held against the interpreter: all trees of a batch with small states, and one
// tree with states of the size that is timed. With --json it is the experiment `invented` of that file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/contest.hpp"
#include "support/experiment_options.hpp"
#include "support/invented_cells.hpp"
#include "support/report.hpp"
#include "support/results_file.hpp"

namespace {

using namespace bench;

constexpr const char* timed_system = "cortex_nodedup";

struct Options : ExperimentOptions {
  std::vector<int> sizes{256};
};

/// A cell of one size with its weights.
struct Case {
  Case(InventedCell made, int hidden) : cell(std::move(made)), weights(cell.weights(hidden)) {}

  /// `batches` as a subject whose states are known of these roots, which stand first in the first batch.
  std::shared_ptr<const Subject> subject(const Batches& batches, const Roots& known) const {
    const auto interpreter =
        cell.compiled(weights, {cortex::Schedule{}, cortex::CompileOptions{}.on(cortex::Target::interpreter())});
    std::vector<float> states(known.size() * weights.hidden);
    interpreter->run(known, states.data());
    return std::make_shared<const Subject>(
        Subject{{std::vector<double>(states.begin(), states.end())}, cell.work(weights.hidden, batches)});
  }
  void add_to(Contest& contest, std::shared_ptr<const Subject> subject, int threads) const {
    contest.add(timed_system, cell.compiled(weights, recipe_of(timed_system, threads)), std::move(subject));
  }

  InventedCell cell;
  Weights weights;
};

/// Throws for a cell whose states of a batch are not those of the interpreter. States are small and no multiple of a
/// vector.
void check_small(const InventedCell& cell, const std::vector<int>& all_threads) {
  const Case small(cell, 40);
  const Batches batches = batches_for(Model::gated, 10, Trees::random, 1);
  const auto subject = small.subject(batches, batches.roots[0]);
  for (const int threads : all_threads) {
    Contest contest(cell.name, small.weights, batches, threads, *subject);
    small.add_to(contest, subject, threads);
    if (!contest.contestants().back().right) throw std::runtime_error(cell.name + " differs from the interpreter");
  }
}

/// Billions of operations a second, by the work that the equations ask for.
double gflops(const Row& row) {
  double flops = 0;
  for (const std::vector<Work>& levels : row.work)
    for (const Work& level : levels) flops += level.flops;
  return flops / double(row.work.size()) / row.median_us / 1e3;
}

/// The TreeLSTM and all cells, timed in turn on so many threads.
void contest(std::vector<Json>& rows, const std::vector<Case>& cases, int hidden, int threads, const Batches& batches,
             const std::vector<std::shared_ptr<const Subject>>& subjects, const Machine& machine,
             const Options& options) {
  const Weights of_treelstm = random_weights(Model::treelstm, hidden);
  Contest contest(of_treelstm, batches, threads);
  contest.add(timed_system, compiled(of_treelstm, recipe_of(timed_system, threads)));
  for (std::size_t c = 0; c < cases.size(); ++c) cases[c].add_to(contest, subjects[c], threads);
  contest.run(options.effort());

  const std::vector<Row> measured = contest.rows();
  std::fprintf(talk(), "\nhidden %d, batch %zu (%.1f nodes), %d thread%s\n", hidden, measured[0].batch,
               measured[0].nodes, threads, threads == 1 ? "" : "s");
  std::fprintf(talk(), "  %-22s %10s %10s %6s %10s %8s %9s %12s %12s\n", "cell", "median us", "min us", "runs",
               "floor us", "/ floor", "GFLOP/s", "of treelstm", "max abs err");
  for (std::size_t r = 0; r < measured.size(); ++r) {
    Row row = measured[r];
    row.model = "invented";
    const std::string cell = r == 0 ? name_of(Model::treelstm) : cases[r - 1].cell.name;
    const double rate = gflops(row), share = rate / gflops(measured[0]), floor = row.floor_us(machine);
    std::fprintf(talk(), "  %-22s %10.1f %10.1f %6ld %10.1f %8.2f %9.1f %12.2f %12.1e%s\n", cell.c_str(), row.median_us,
                 row.min_us, row.runs, floor, row.median_us / floor, rate, share, row.max_abs_err,
                 row.right ? "" : "  WRONG");
    rows.push_back(json_of(row, machine, {{"cell", cell}, {"gflops", rate}, {"of_treelstm", share}}));
    if (!row.right) throw std::runtime_error(cell + " differs from its reference");
  }
  std::fflush(talk());
}

Json::Fields measure(std::vector<Json>& rows, const OtherWork& others, const Options& options) {
  const double start = now_us();
  Machine machine = probe_machine(options.all_threads(), options.smoke ? 1 : 10);
  print_machine(machine);
  for (const InventedCell& cell : invented_cells()) check_small(cell, options.all_threads());
  const Batches batches = options.inputs(Model::gated, 10);
  for (const int size : options.sizes) {
    const int hidden = options.hidden(size);
    std::vector<Case> cases;
    std::vector<std::shared_ptr<const Subject>> subjects;
    for (InventedCell& cell : invented_cells()) {
      cases.emplace_back(std::move(cell), hidden);
      subjects.push_back(cases.back().subject(batches, {batches.roots[0][0]}));
    }
    for (const int threads : options.all_threads()) {
      if (!options.smoke) machine.add(probe_machine(options.all_threads()));  // a floor of a busy moment is none
      contest(rows, cases, hidden, threads, batches, subjects, machine, options);
    }
  }
  std::fprintf(talk(), "(%.0f s)\n", (now_us() - start) / 1e6);
  return {{"data", "random"},
          {"quick", int(options.quick || options.smoke)},
          {"busy", int(others.share() > 0.03 || machine.scaling() < 0.75)}};
}

void run(const Options& options) {
  run_experiment("invented", options.json,
                 [&](auto& rows, const auto& others) { return measure(rows, others, options); });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Cells that are like no ready-made model, beside the ready-made TreeLSTM."};
  app.add_option("--hidden", options.sizes, "Elements of a state, multiples of 4, as there are four heads")
      ->delimiter(',')
      ->check(CLI::Range(4, 4096))
      ->check(
          [](const std::string& size) { return std::stoi(size) % 4 ? size + " is no multiple of 4" : std::string(); })
      ->capture_default_str();
  options.add_to(app);
  app.add_flag("--smoke", options.smoke, "Measure nothing: one round of small states");
  return run_program(app, "invented", argc, argv, [&] { return run(options), 0; });
}
