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
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "support/contest.hpp"
#include "support/json.hpp"
#include "support/systems.hpp"

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

  std::vector<int> hidden_of(Model model) const {
    if (!hidden.empty()) return hidden;
    return model == Model::mvrnn ? std::vector{64, 128} : std::vector{256, 512};
  }
  Effort effort() const {
    if (rounds) return {0, rounds, rounds};
    return quick ? Effort{0.25, 1, 20} : Effort{1.2, 5, 100};
  }
};

// What is read by programs goes to the file; if that is the standard output, what is read by people goes elsewhere.
std::FILE* talk = stdout;

std::vector<SystemKind> chosen_systems(const Options& options) {
  std::vector<SystemKind> chosen;
  std::vector<std::string> names;
  for (const SystemKind& kind : all_systems()) {
    names.push_back(kind.name);
    const bool wanted = options.systems.empty() ||
                        std::find(options.systems.begin(), options.systems.end(), kind.name) != options.systems.end();
    if (wanted && !kind.absent.empty())
      std::fprintf(talk, "%s is left out: %s\n", kind.name.c_str(), kind.absent.c_str());
    else if (wanted)
      chosen.push_back(kind);
  }
  for (const std::string& name : options.systems)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw CLI::ValidationError("--systems",
                                 "there is no system '" + name + "'; there are " + CLI::detail::join(names, ", "));
  if (chosen.empty()) throw CLI::ValidationError("--systems", "none of these is in this build");
  return chosen;
}

void print_machine(const Machine& machine) {
  for (std::size_t t = 0; t < machine.threads.size(); ++t) {
    std::fprintf(talk, "%d thread%s: %.0f GFLOP/s; reads of slices a thread, GB/s:", machine.threads[t],
                 machine.threads[t] == 1 ? "" : "s", machine.gflops[t]);
    for (std::size_t s = 0; s < machine.slices.size(); ++s)
      std::fprintf(talk, " %.0f (%zu KB)", machine.gigabytes[t][s], machine.slices[s] / 1024);
    std::fprintf(talk, "\n");
  }
  std::fprintf(talk, "a barrier of two threads: %.2f us\n", machine.barrier_us);
}

void print_rows(const std::vector<Row>& rows, const std::vector<Contestant>& contestants, const Machine& machine) {
  const Row& first = rows[0];
  const double floor = first.floor_us(machine);
  std::fprintf(talk, "\n%s, hidden %zu, batch %zu (%.1f nodes), %d thread%s; floor %.1f us\n", first.model.c_str(),
               first.hidden, first.batch, first.nodes, first.threads, first.threads == 1 ? "" : "s", floor);
  std::fprintf(talk, "  %-16s %7s %12s %12s %8s %12s %12s %12s\n", "system", "threads", "median us", "min us", "runs",
               "/ floor", "/ first", "max abs err");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::fprintf(talk, "  %-16s %7d %12.1f %12.1f %8ld %12.2f %12.2f %12.1e%s\n", row.system.c_str(),
                 contestants[i].threads, row.median_us, row.min_us, row.runs, row.median_us / floor,
                 row.median_us / first.median_us, row.max_abs_err, row.right ? "" : "  WRONG");
  }
  std::fflush(talk);
}

Json json_of(const Row& row, const Machine& machine) {
  return Json::object({{"model", row.model},
                       {"hidden", row.hidden},
                       {"batch", row.batch},
                       {"threads", row.threads},
                       {"system", row.system},
                       {"median_us", row.median_us},
                       {"min_us", row.min_us},
                       {"runs", row.runs},
                       {"max_abs_err", row.max_abs_err},
                       {"floor_us", row.floor_us(machine)},
                       {"linearize_us", row.linearize_us},
                       {"nodes", row.nodes}});
}

/// Where and when, and what the machine reaches: for the figures and the table.
Json about(const Options& options, const Machine& machine) {
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::vector<Json> bandwidths;
  for (const auto& row : machine.gigabytes) bandwidths.push_back(Json::list(row));
  return Json::object({{"date", date},
                       {"machine", cpu_name()},
                       {"cpus", int(std::thread::hardware_concurrency())},
                       {"compiler", "g++ " __VERSION__},
                       {"libraries", Json::list(descriptions())},
                       {"data", options.data},
                       {"threads", Json::list(machine.threads)},
                       {"gflops", Json::list(machine.gflops)},
                       {"slices", Json::list(machine.slices)},
                       {"gigabytes", Json::lines(bandwidths)},
                       {"barrier_us", machine.barrier_us}});
}

int run(const Options& options) {
  if (options.json == "-") talk = stderr;
  const std::vector<SystemKind> systems = chosen_systems(options);
  std::vector<int> threads = options.threads;
  if (threads.empty()) {
    const int cpus = cortex::runtime::usable_cpus();
    if (cpus == 1 || !options.quick) threads.push_back(1);
    if (cpus > 1) threads.push_back(cpus);
  }
  for (const std::string& text : descriptions()) std::fprintf(talk, "%s\n", text.c_str());
  std::fprintf(talk, "%s\n", cpu_name().c_str());
  Machine machine = probe_machine(threads);
  print_machine(machine);

  std::vector<Row> rows;
  bool right = true;
  const Trees trees = options.data == "sst" ? Trees::sst : Trees::random;
  for (const std::string& name : options.models) {
    const Model model = model_named(name);
    for (const int hidden : options.hidden_of(model)) {
      const Weights weights = random_weights(model, hidden);
      for (const std::size_t batch : options.batch) {
        const Batches batches = batches_for(model, batch, trees);
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
  machine.add(probe_machine(threads));
  std::fprintf(talk, "\nafter all that:\n");
  print_machine(machine);
  if (const double gain = machine.gain_over(before); gain > 1.15)
    std::fprintf(talk,
                 "BUSY: the machine reaches %.2f times of what it did before. Floors above are too high, times too\n",
                 gain);

  if (!options.json.empty()) {
    std::vector<Json> list;
    for (const Row& row : rows) list.push_back(json_of(row, machine));
    write_json(options.json, Json::lines(list));
  }
  if (!options.about.empty()) write_json(options.about, about(options, machine));
  if (!right) std::fprintf(talk, "\nWRONG: a system differs from recursion in double by more than rounding explains\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"The latency of recursive models: Cortex beside plain recursion and other libraries."};
  std::vector<std::string> models(model_names.begin(), model_names.end());
  app.add_option("--models", options.models, "Models: " + CLI::detail::join(models, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(models))
      ->capture_default_str();
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
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fflush(talk);
    std::fprintf(stderr, "latency: %s\n", error.what());
    return 2;
  }
}
