// What the experiments are asked for, and what their lists of cases come to.
#pragma once

#include <CLI/CLI.hpp>
#include <cortex/runtime/cpus.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "contest.hpp"
#include "data.hpp"

namespace bench {

struct ExperimentOptions {
  std::vector<std::string> only, systems;
  std::string json;
  unsigned seed = 1;
  bool quick = false, check = false, smoke = false;
  int threads = cortex::runtime::usable_cores();

  /// What all programs of experiments are asked.
  void add_to(CLI::App& app) {
    app.add_option("--threads", threads, "The most threads of a call")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    app.add_option("--json", json,
                   "Write the results to this file, in which those of other experiments stay (-: the standard output)");
    app.add_flag("--quick", quick, "Fewer rounds");
  }

  Effort effort() const { return smoke ? Effort{0, 1, 1} : quick ? Effort{0.15, 1, 10} : Effort{0.5, 3, 60}; }
  std::vector<int> all_threads() const { return threads > 1 ? std::vector{1, threads} : std::vector{1}; }
  std::vector<int> compiled_threads() const { return smoke ? std::vector{1, 16} : std::vector{1, 2, 3, 4, 6, 16}; }

  // What a list of cases comes to; with --smoke, where nothing is measured, to some of its ends, and states are small.
  std::vector<Model> models(const std::vector<Model>& all) const {
    return smoke && all.size() > 1 ? std::vector{all.front(), all.back()} : all;
  }
  template <class T>
  std::vector<T> sizes(const std::vector<T>& all) const {
    return smoke ? std::vector<T>(1, all.front()) : all;
  }
  Batches inputs(Model model, std::size_t size, Trees trees = Trees::random, std::size_t count = 10) const {
    return batches_for(model, size, trees, smoke ? 1 : count);
  }
  int hidden(int usual) const { return smoke ? usual / 16 : usual; }
};

}  // namespace bench
