// How good the default schedules are: what the tuner finds beside them, over the inputs of the other benchmarks.
//
//   tune [--models treelstm,...] [--hidden 256,512] [--batch 1,10] [--threads 1] [--grid] [--seconds 60]
//        [--log DIRECTORY] [--json FILE]
//
// For each case the winner is measured again, interleaved with the default; "ratio" is its time to the default's. With
// --json it is the experiment `tuned` of that file.
#include <CLI/CLI.hpp>
#include <cortex/tune/tune.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "support/cortex_models.hpp"
#include "support/cortex_system.hpp"
#include "support/report.hpp"
#include "support/results_file.hpp"
#include "support/tuned.hpp"

namespace {

using namespace bench;

struct Options {
  std::vector<std::string> models{"treefc", "dagrnn", "treegru", "treelstm", "mvrnn"};
  std::vector<int> hidden;  // empty: 256 and 512, of MV-RNN 64 and 128
  std::vector<int> threads{1};
  std::vector<std::size_t> batch{1, 10};
  bool grid = false;
  double seconds = 60;
  std::size_t candidates = 1000, lines = 10;
  std::string log, json;

  std::vector<int> hidden_of(Model model) const { return hidden.empty() ? usual_hidden(model) : hidden; }
};

cortex::Tuned tuned(const Weights& weights, const Batches& batches, int threads, const std::string& log,
                    const Options& options) {
  cortex::CompileOptions compiled;
  compiled.workers = workers_for(threads);
  cortex::TuneOptions tune;
  tune.search = options.grid ? cortex::TuneOptions::Search::grid : cortex::TuneOptions::Search::guided;
  tune.seconds = options.seconds;
  tune.most_candidates = options.candidates;
  tune.log = log;
  return with_program(weights, [&](const auto& program) {
    return cortex::tune(program, batches.roots, binding(weights), tune, compiled);
  });
}

/// One case, said and as a row.
Json measured(Model model, const Weights& weights, const Batches& batches, std::size_t batch, int threads,
              const Options& options) {
  const std::string what = std::string(name_of(model)) + " " + std::to_string(weights.hidden) + " b" +
                           std::to_string(batch) + " t" + std::to_string(threads);
  std::string log = options.log;
  if (!log.empty()) {
    log += "/" + what + ".jsonl";
    for (char& c : log) c = c == ' ' ? '_' : c;
  }
  const cortex::Tuned result = tuned(weights, batches, threads, log, options);
  std::fprintf(talk(), "== %s: %zu measured beside the default; %s\n", what.c_str(), num_measured(result),
               to_string(result, options.lines).c_str());
  std::fflush(talk());
  return row_of(result, weights, batch, {{"threads", threads}});
}

void run(const Options& options) {
  run_experiment("tuned", options.json, [&](std::vector<Json>& rows, const OtherWork& others) -> Json::Fields {
    for (const std::string& name : options.models)
      for (const int hidden : options.hidden_of(model_named(name))) {
        const Model model = model_named(name);
        const Weights weights = random_weights(model, hidden);
        for (const std::size_t batch : options.batch) {
          const Batches batches = batches_for(model, batch, Trees::random);
          for (const int threads : options.threads)
            rows.push_back(measured(model, weights, batches, batch, threads, options));
        }
      }
    return {{"seconds", options.seconds}, {"busy", int(others.share() > 0.03)}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"How good the default schedules are."};
  const auto list = [&](const char* name, auto& values, const char* help) {
    app.add_option(name, values, help)->delimiter(',')->capture_default_str();
  };
  add_models(app, options.models);
  app.add_option("--hidden", options.hidden, "Elements of a state; without it 256 and 512, of mvrnn 64 and 128")
      ->delimiter(',');
  list("--batch", options.batch, "Roots of a call");
  list("--threads", options.threads, "Threads that a call may use");
  app.add_flag("--grid", options.grid, "Try all schedules, and not those that the cost model likes");
  app.add_option("--seconds", options.seconds, "Of search, for each case")->capture_default_str();
  app.add_option("--candidates", options.candidates, "At most so many, for each case")->capture_default_str();
  app.add_option("--lines", options.lines, "So many of the best are printed")->capture_default_str();
  app.add_option("--json", options.json,
                 "Write the results to this file, in which those of experiments stay (-: the standard output)");
  app.add_option("--log", options.log, "Keep logs in this directory, and go on from those that are there");
  return run_program(app, "tune", argc, argv, [&] { return run(options), 0; });
}
