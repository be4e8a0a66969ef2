// Lesson 11: tuning. The compiler's own schedule is good for most models and inputs; which one is the best for yours,
// on your machine, is measured: `cortex::tune` tries schedules on your own data and keeps what is faster by more than
// noise.
#include <unistd.h>

#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/tune/tune.hpp>  // apart from cortex.hpp, which does not need it
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "support/measure.hpp"
#include "support/models.hpp"  // tree_lstm
#include "support/ptb.hpp"
#include "support/recursion.hpp"

using cortex::Schedule, cortex::tuning::Axis, cortex::tuning::Space;

// Without LLVM loops are interpreted: what is measured then says nothing, but all works.
cortex::Target target() {
  try {
    return cortex::host_target();
  } catch (const cortex::Error&) {
    return cortex::Target::interpreter();
  }
}

int main() try {
  using namespace examples;
  cortex::CompileOptions compiled;
  compiled.target = target();
  const int hidden = compiled.target->backend == cortex::Backend::interpreter ? 8 : 64;
  const auto program = tree_lstm(hidden, hidden);

  // What to measure with: inputs like those of every day, here sentences, ten a call.
  Treebank bank;
  read_ptb(examples_directory() / "data" / "sentences.txt", bank);
  std::vector<std::vector<const Phrase*>> batches(2);
  for (std::size_t t = 0; t < 20; ++t) batches[t / 10].push_back(bank.trees[t]);
  const TreeLstmWeights weights = TreeLstmWeights::random(bank.vocabulary.size(), hidden, hidden);
  const auto bind = [&](auto& model) { bind_all(model, weights); };

  // What to try: an axis for each decision, whose choices each add to a schedule. Left out, `options.space` holds what
  // the library knows to vary, some hundreds of schedules, and `options.seconds` bounds how long that may take.
  cortex::TuneOptions options;
  options.space =
      Space()
          .add(Axis("nodes of a tile").numbers({4, 8}, &Schedule::tile_rows))
          .add(Axis("unrolling").add("two levels", [](const Schedule& s) { return s.unroll("tree_lstm", 2); }));
  options.search =
      cortex::TuneOptions::Search::grid;  // all of them; `guided` begins with what a cost model thinks best
  options.seconds_a_candidate = 0.05;

  // A log, from which a search goes on that was broken off; and a cache, in which its result is found the next time.
  const auto folder = std::filesystem::temp_directory_path() / ("cortex_lesson_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  options.log = folder / "tree_lstm.jsonl";
  options.cache = folder / "cache";

  // It can be watched, and cancelled from any thread: here after two candidates.
  std::stop_source cancel;
  options.stop = cancel.get_token();
  options.progress = [&](const cortex::tuning::Progress& p) {
    std::printf("  %zu of %zu: %.2f of the default's time, the best %.2f\n", p.done, p.total, p.last.ratio,
                p.best_ratio);
    if (p.done == 2) cancel.request_stop();
  };
  const cortex::Tuned cancelled = cortex::tune(program, batches, bind, options, compiled);
  bool right = cancelled.ended == cortex::tuning::Ended::cancelled && cancelled.schedule == Schedule::standard();

  // The same again, to its end. The two that are in the log are not measured anew.
  std::printf("cancelled; and on\n");
  options.stop = {};
  const cortex::Tuned tuned = cortex::tune(program, batches, bind, options, compiled);
  std::printf("\n%s", to_string(tuned).c_str());
  right &= tuned.ended == cortex::tuning::Ended::all_tried && tuned.candidates[2].from_log;

  // Every candidate was held against the default before it counted; none may have been wrong.
  for (const cortex::tuning::Record& candidate : tuned.candidates)
    right &= candidate.outcome == cortex::tuning::Outcome::measured;

  // A schedule is plain data. The winner's model gives what plain recursion gives, like every other.
  auto model = cortex::compile(program, tuned.schedule, compiled);
  bind(model);
  TreeLstm<float> recursion(weights);
  const auto h = model(batches[0]);
  double difference = 0;
  for (std::size_t t = 0; t < batches[0].size(); ++t)
    if (const double here = largest_difference(h[t].data(), recursion(batches[0][t]), std::size_t(hidden));
        !(here <= difference))
      difference = here;  // a NaN too
  std::printf("\nlargest difference from plain recursion: %.1e\n", difference);
  right &= difference < 2e-6;

  // The next start of the program finds the result in the cache: of this model, machine and these shapes of inputs.
  cortex::Tuned again;
  const double ms = microseconds([&] { again = cortex::tune(program, batches, bind, options, compiled); }) / 1e3;
  std::printf("from the cache in %.0f ms: %s\n", ms, again.schedule == tuned.schedule ? "the same" : "another");
  right &= again.ended == cortex::tuning::Ended::from_cache && again.schedule == tuned.schedule;

  std::filesystem::remove_all(folder);
  return right ? 0 : 1;
} catch (const std::exception& error) {  // among them cortex::Error
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
