// The latency of recursive models: Cortex beside plain recursion, libtorch, OpenBLAS, oneDNN and DyNet.
//
//   latency [--models treelstm,...] [--hidden 256,512] [--batch 1,10] [--threads 1,2] [--systems cortex,...]
//           [--data random|sst] [--json FILE] [--quick]
//
// `bench/run` builds this and runs it. For each model, hidden size, batch size and number of threads, each system runs
// over the same ten batches; numbering the nodes, or building a graph, is part of its time, and it ends with the first
// state of each root. First each is held against recursion in double. Then they alternate round by round, since the
// clock of a shared machine drifts: a round takes a system through all ten batches. The floor (support/floor.hpp) is
// computed from what the machine reaches in the same run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cortex/runtime/cpus.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "support/contest.hpp"
#include "support/report.hpp"

namespace {

using namespace bench;

struct Options {
  std::vector<std::string> models{"treefc", "dagrnn", "treegru", "treelstm", "mvrnn"};
  std::vector<int> hidden;  // empty: 256 and 512, of MV-RNN 64 and 128
  std::vector<std::size_t> batch{1, 10};
  std::vector<int> threads;
  std::vector<std::string> systems;
  std::string data = "random", json, about;
  bool quick = false;
  int rounds = 0;

  std::vector<int> hidden_of(Model model) const { return hidden.empty() ? usual_hidden(model) : hidden; }
  Effort effort() const {
    if (rounds) return {0, rounds, rounds};
    return quick ? Effort{0.25, 3, 20} : Effort{1.2, 5, 100};
  }
};

/// What speaks for other work on the machine, of this system or of others on the same host; empty: nothing does.
std::string signs_of_others(double taken, double gain, double scaling) {
  char text[200] = "";
  if (taken > 0.03)
    std::snprintf(text, sizeof text, "other work took %.0f %% of this machine's CPUs", 100 * taken);
  else if (gain > 1.15)
    std::snprintf(text, sizeof text, "this machine did %.2f times as much after the rows as before them", gain);
  else if (scaling < 0.75)
    std::snprintf(text, sizeof text, "this machine's threads at once did %.2f of what each does alone", scaling);
  return text;
}

int run(const Options& options) {
  if (options.json == "-") talk() = stderr;
  const std::vector<SystemKind> systems = chosen_systems(options.systems);
  std::vector<int> threads = options.threads;
  if (threads.empty()) {
    const int cores = cortex::runtime::usable_cores();
    if (cores == 1 || !options.quick) threads.push_back(1);
    if (cores > 1) threads.push_back(cores);
  }
  for (const std::string& text : descriptions()) std::fprintf(talk(), "%s\n", text.c_str());
  std::fprintf(talk(), "%s\n", cpu_name().c_str());
  const int tries = options.rounds ? std::min(options.rounds, 10) : 10;
  Machine machine = probe_machine(threads, tries);
  print_machine(machine);

  const OtherWork others;
  std::vector<Row> rows;
  bool right = true;
  const Trees trees = options.data == "sst" ? Trees::sst : Trees::random;
  for (const std::string& name : options.models) {
    const Model model = model_named(name);
    for (const int hidden : options.hidden_of(model)) {
      for (const std::size_t batch : options.batch) {
        const Batches batches = batches_for(model, batch, trees);
        const Weights weights = random_weights(model, hidden, batches.words);
        for (const int t : threads) {
          Contest contest(weights, batches, t);
          for (const SystemKind& kind : systems) contest.add(kind);
          if (contest.contestants().empty()) continue;
          contest.run(options.effort());
          const std::vector<Row> more = contest.rows();
          print_rows(more, contest.contestants(), machine);
          for (const Row& row : more) rows.push_back(row), right = right && row.right;
        }
      }
    }
  }

  // Neighbours may have come or gone: what the machine can do is the better of before and after.
  const Machine before = machine;
  machine.add(probe_machine(threads, tries));
  std::fprintf(talk(), "\nafter all that:\n");
  print_machine(machine);
  const std::string busy = signs_of_others(others.share(), machine.gain_over(before), machine.scaling());
  if (!busy.empty()) std::fprintf(talk(), "BUSY: %s\n", busy.c_str());

  if (!options.json.empty()) {
    std::vector<Json> list;
    for (const Row& row : rows) list.push_back(json_of(row, machine));
    write_json(options.json, Json::lines(list));
  }
  if (!options.about.empty()) write_json(options.about, about(options.data, machine, !busy.empty()));
  if (!right)
    std::fprintf(talk(), "\nWRONG: a system differs from recursion in double by more than rounding explains\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"The latency of recursive models: Cortex beside plain recursion and other libraries."};
  add_models(app, options.models);
  app.add_option("--hidden", options.hidden, "Elements of a state; without it 256 and 512, of mvrnn 64 and 128")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--batch", options.batch, "Roots of a call")
      ->delimiter(',')
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads that a call may use; without it 1 and as many as there are CPUs; peers use fewer if that is "
                 "faster")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--systems", options.systems, "Systems; without it all that are there")->delimiter(',');
  app.add_option("--data", options.data, "Trees: random ones of the treebank's sizes, or the treebank's")
      ->check(CLI::IsMember({"random", "sst"}))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the rows to this file (-: the standard output)");
  app.add_option("--about", options.about, "Write to this file what machine they are of");
  app.add_option("--rounds", options.rounds, "Rounds of ten batches; without it as many as a second or so takes")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--quick", options.quick, "Fewer rounds, and on all CPUs only");
  return run_program(app, "latency", argc, argv, [&] { return run(options); });
}
