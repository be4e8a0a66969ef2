// Many threads that call one model at the same time, as those of a server: each asks for one tree, and for the next one
// as soon as it has the answer.
//
//   callers [--models treelstm,treegru] [--hidden 64,256] [--callers 1,2,8] [--threads 2] [--quick] [--json FILE]
//   [--smoke]
//
// `alone`: each call is computed by the thread that makes it; `shared`: all calls share a pool of threads. Both
// alternate, twentieths of a second each, and each answer is held against that of one call for all trees, to the bit.
// With --json it is the experiment `callers` of that file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/cortex_system.hpp"
#include "support/experiment_options.hpp"
#include "support/report.hpp"
#include "support/results_file.hpp"

namespace {

using namespace bench;

struct Options : ExperimentOptions {
  std::vector<std::string> models{name_of(Model::treelstm), name_of(Model::treegru)};
  std::vector<int> hidden_sizes{64, 256}, callers{1, 2, 8};
};

/// The model, compiled for its callers alone or for a pool; and what calls of it came to.
struct Way {
  std::string name;
  std::unique_ptr<System> model;  // whose `run` any number of threads may call
  std::vector<double> times = {};
  double seconds = 0;
};

/// Calls of one root each, with the states that they have to give.
struct Requests {
  std::vector<Roots> roots;
  std::vector<float> states;
  std::size_t row;
};

/// So many threads ask for `seconds`, in turn for all roots. Throws if a state is another than it should be.
void run(Way& way, const Requests& requests, int callers, double seconds) {
  std::atomic<bool> wrong{false};
  std::atomic<int> not_ready{callers};
  std::atomic<double> begin{0};
  std::vector<std::vector<double>> times(static_cast<std::size_t>(callers));
  const auto call = [&](int caller) {
    std::vector<double>& own = times[std::size_t(caller)];
    std::vector<float> state(requests.row);
    if (--not_ready == 0) begin = now_us();
    while (begin == 0) std::this_thread::yield();
    const double end = begin + seconds * 1e6;
    for (std::size_t i = std::size_t(caller) * 7;; ++i) {
      const std::size_t root = i % requests.roots.size();
      const double start = now_us();
      way.model->run(requests.roots[root], state.data());
      const double done = now_us();
      if (done > end) return;  // no answer of these seconds
      own.push_back(done - start);
      if (!std::equal(state.begin(), state.end(), requests.states.begin() + std::ptrdiff_t(root * requests.row)))
        wrong = true;
    }
  };
  std::vector<std::thread> threads;
  for (int caller = 1; caller < callers; ++caller) threads.emplace_back(call, caller);
  call(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& own : times) way.times.insert(way.times.end(), own.begin(), own.end());
  way.seconds += seconds;
  if (way.times.empty()) throw std::runtime_error(way.name + ": no call was over in its time; take smaller states");
  if (wrong) throw std::runtime_error(way.name + ": a state is not that of one call for all trees");
}

void measure(std::vector<Json>& rows, Model kind, int hidden, const Options& options) {
  const Weights weights = random_weights(kind, hidden);
  const Batches batches = options.inputs(kind, 10);
  Roots all;
  Requests requests{{}, {}, weights.hidden};
  for (const Roots& roots : batches.roots)
    for (const Node* root : roots) all.push_back(root), requests.roots.push_back({root});
  requests.states.resize(all.size() * requests.row);
  std::vector<Way> ways;
  for (const int threads : options.all_threads())
    ways.push_back({threads > 1 ? "shared" : "alone", compiled(weights, recipe_of("cortex_nodedup", threads))});
  ways[0].model->run(all, requests.states.data());

  std::fprintf(talk(), "\n%s, hidden %d, one tree a call\n  %7s %-8s %12s %12s %10s %10s\n", name_of(kind), hidden,
               "callers", "", "requests/s", "/ 1 alone", "median us", "p99 us");
  double one_alone = 0;
  for (const int callers : options.sizes(options.callers)) {
    const double seconds = options.smoke ? 0.02 : 0.05;
    for (Way& way : ways) {
      run(way, requests, callers, seconds);  // so that there is memory for as many calls
      way.times.clear(), way.seconds = 0;
    }
    for (int round = 0; round < (options.smoke ? 1 : options.quick ? 10 : 20); ++round)
      for (Way& way : ways) run(way, requests, callers, seconds);
    for (Way& way : ways) {
      std::sort(way.times.begin(), way.times.end());
      const double rate = double(way.times.size()) / way.seconds;
      if (one_alone == 0) one_alone = rate;
      const double median = way.times[way.times.size() / 2], p99 = way.times[way.times.size() * 99 / 100];
      std::fprintf(talk(), "  %7d %-8s %12.0f %12.2f %10.1f %10.1f\n", callers, way.name.c_str(), rate,
                   rate / one_alone, median, p99);
      rows.push_back(Json::object({{"model", name_of(kind)},
                                   {"hidden", hidden},
                                   {"callers", callers},
                                   {"system", way.name},
                                   {"requests_per_s", rate},
                                   {"median_us", median},
                                   {"p99_us", p99}}));
    }
    std::fflush(talk());
  }
}

void run(const Options& options) {
  run_experiment("callers", options.json, [&](std::vector<Json>& rows, const OtherWork& others) -> Json::Fields {
    const double start = now_us();
    for (const std::string& model : options.models)
      for (const int hidden : options.hidden_sizes) measure(rows, model_named(model), options.hidden(hidden), options);
    std::fprintf(talk(), "(%.0f s)\n", (now_us() - start) / 1e6);
    return {{"data", "random"}, {"quick", int(options.quick || options.smoke)}, {"busy", int(others.share() > 0.03)}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Many threads that call one model at the same time."};
  add_models(app, options.models);
  app.add_option("--hidden", options.hidden_sizes, "Elements of a state")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--callers", options.callers, "Threads that call")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  options.add_to(app);
  app.add_flag("--smoke", options.smoke, "Measure nothing: one short round of small states");
  return run_program(app, "callers", argc, argv, [&] { return run(options), 0; });
}
