// What is predicted of candidates: a few calls for all, a program for many schedules, and no longer than there is time.
#include "cortex/tune/predict.hpp"

#include <catch2/catch.hpp>

#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using tuning::Ended;

namespace {

schedule::CallShape call_of(double leaves, double roots = 1) { return {{{leaves, 0}, {leaves - 1, 2}}, roots}; }

/// A clock that moves on by a second each of the first times that it is asked, as if all between took so long.
class SlowTimer final : public tuning::Timer {
 public:
  explicit SlowTimer(int times = 1000) : times_(times) {}
  double now() override { return now_ = std::min(now_ + 1, times_); }
  double time(const Schedule&, std::size_t, FunctionRef<void()>) override { return 1e-3; }

 private:
  double now_ = 0, times_;
};

TuneOptions guided_for(tuning::Timer& timer, const std::vector<int>& values, double seconds) {
  TuneOptions options = options_for(timer, values);
  options.search = TuneOptions::Search::guided;
  options.seconds = seconds;
  return options;
}

}  // namespace

TEST_CASE("equal calls are one, and of many a few stand for all by their nodes", "[tune]") {
  tuning::CallSample sample;
  for (int i = 0; i < 50; ++i) sample.add(call_of(3));
  REQUIRE(sample.calls().size() == 1);
  CHECK(sample.calls()[0].count == 50);
  sample.add(call_of(3, 2));  // of other roots
  CHECK(sample.calls().size() == 2);

  double nodes = 50 * 5 + 5, counted = 0, most = 0;
  for (int leaves = 4; leaves < 100; ++leaves) sample.add(call_of(leaves)), nodes += 2 * leaves - 1;
  const auto calls = sample.calls();
  CHECK(calls.size() == tuning::CallSample::most);
  for (const auto& call : calls) {
    CHECK(call.shape.nodes() > most);  // from small to large
    most = call.shape.nodes();
    counted += call.count * call.shape.nodes();
  }
  CHECK(counted == Approx(nodes));
  CHECK(most > 150);
}

TEST_CASE("schedules that differ in tiles, levels, groups and workers share a program", "[tune]") {
  const auto lstm = tree_lstm(32);
  tuning::Predictor predictor(lstm.graph(), Target::interpreter());
  const Schedule start = Schedule::standard().workers(8);
  const auto* const program = &predictor.program(start);
  CHECK(program->refused == "");
  for (const Schedule& same : {start.tile_rows(3).tile_vectors(2).alternate_sweeps(), start.workers(2).groups(2),
                               start.workers_where_they_pay(), start.fill_levels(8)})
    CHECK(&predictor.program(same) == program);
  for (const Schedule& other : {start.workers(1), start.tile_gates(1), start.specialize_if_else(),
                                start.unroll("tree_lstm", 2), start.share_subtrees()})
    CHECK(&predictor.program(other) != program);
  CHECK(&predictor.program(start.refactor("i")) != &predictor.program(start.workers(4).refactor("i")));
  const Schedule open = start.refactor("i").workers_where_they_pay();  // cut by shapes, and not by 3 workers
  CHECK(&predictor.program(open) == &predictor.program(start.workers(3).workers_where_they_pay().refactor("i")));
  CHECK(&predictor.program(open) != &predictor.program(start.refactor("i")));
  CHECK(predictor.program(open).refused == predictor.program(start.refactor("i")).refused);
}

TEST_CASE("what schedules share changes nothing of what is predicted", "[tune]") {
  const auto lstm = tree_lstm(64);
  const Target target = Target::interpreter();
  const schedule::MachineModel machine = runtime::machine_model(target);
  tuning::Predictor predictor(lstm.graph(), target);
  tuning::CallSample sample;
  for (const double leaves : {5, 40, 5}) sample.add(call_of(leaves, 4));
  predictor.take(sample, false);
  const Schedule standard = Schedule::standard().share_no_subtrees();
  for (const Schedule& schedule :
       {standard, standard.workers(4), standard.workers(4).workers_where_they_pay(), standard.workers(4).groups(2),
        standard.workers(4).tile_rows(2), standard.workers(4).tile_rows(4), standard.tile_vectors(1),
        standard.workers(8), standard.unroll("tree_lstm", 2), standard.exact_activations()}) {
    INFO(to_string(schedule));
    const auto work = runtime::work_of(lstm.graph(), schedule, target);
    double seconds = 0;
    for (const double leaves : {5, 40, 5}) {
      const schedule::CallShape shape = call_of(leaves, 4);
      const int groups =
          schedule.num_groups ? schedule.num_groups : schedule::choose_groups(work, schedule, target, machine, shape);
      seconds += schedule::least_in_groups(work, schedule, target, machine, shape, groups);
    }
    CHECK(predictor.seconds(predictor.program(schedule), schedule) == Approx(seconds));
  }
}

TEST_CASE("what machine code reads from tables is predicted to take no time in calls", "[tune]") {
  const auto program = words_product(128);
  tuning::CallSample sample;
  sample.add(call_of(10));
  const auto part_left = [&](const Target& target) {  // of the time without tables
    tuning::Predictor predictor(program.graph(), target);
    predictor.take(sample, false), predictor.take(sample, true);
    const auto seconds = [&](const Schedule& s) { return predictor.seconds(predictor.program(s), s); };
    return seconds(Schedule::standard()) / seconds(Schedule::standard().tabulate_nothing());
  };
  CHECK(part_left(Target{}) < 0.5);  // a target can be described where nothing is compiled for it
  CHECK(part_left(Target::interpreter()) == Approx(1));
}

TEST_CASE("what there is no time to predict is tried last", "[tune]") {
  SlowTimer timer(15);
  TuneOptions options = guided_for(timer, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, 40);
  options.seconds_a_candidate = 0;
  options.patience = 100;
  const Tuned tuned = Tuning()(options);
  CHECK(tuned.ended == Ended::all_tried);
  REQUIRE(tuned.candidates.size() == 15);
  for (std::size_t c = 1; c <= 10; ++c) CHECK(tuned.candidates[c].predicted_seconds > 0);  // in a quarter of the time
  for (std::size_t c = 11; c < 15; ++c) CHECK(tuned.candidates[c].predicted_seconds == 0);
  CHECK(tried(tuned)[14] == 14);
}

TEST_CASE("while candidates are predicted progress is told, and a search can be cancelled", "[tune]") {
  SlowTimer timer;
  TuneOptions options = guided_for(timer, {1, 2, 3, 4, 5, 6}, 1e9);
  std::stop_source cancel;
  options.stop = cancel.get_token();
  int told = 0;
  options.progress = [&](const tuning::Progress& p) {
    CHECK(p.done == 0);
    CHECK(p.total == 6);
    CHECK(p.last.schedule == to_string(Schedule::standard()));
    if (++told == 2) cancel.request_stop();
  };
  const Tuned tuned = Tuning()(options);
  CHECK(told == 2);
  CHECK(tuned.ended == Ended::cancelled);
  CHECK(tuned.candidates.size() == 1);
}

TEST_CASE("a search without patience tries nothing, and leaves nothing in the cache", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.cache = folder / "cache";
  options.search = TuneOptions::Search::guided, options.patience = 0;
  for (int twice = 0; twice < 2; ++twice) {
    const Tuned tuned = Tuning()(options);
    CHECK(tuned.ended == Ended::no_gain);
    CHECK(tuned.not_kept == "no candidate was tried");
  }
}

TEST_CASE("a candidate is measured no longer than three rounds once the time is over", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.9}}));  // each round takes two seconds or more
  TuneOptions options = options_for(timer, {2});
  options.final_rounds = 0;
  options.seconds_a_candidate = 1000;
  options.seconds = 25;
  const Tuned tuned = Tuning()(options);
  REQUIRE(tuned.candidates.size() == 2);
  CHECK(tuned.candidates[1].rounds < 10);
  CHECK(tuned.candidates[1].rounds >= 3);
  options.seconds = 1e9;
  CHECK(Tuning()(options).candidates[1].rounds > 10);
}

TEST_CASE("a search whose time was over before it tried anything leaves nothing in the cache", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.cache = folder / "cache";
  options.seconds = 5;  // the default takes ten
  const Tuned tuned = Tuning()(options);
  CHECK(tuned.ended == Ended::seconds);
  CHECK(tried(tuned) == std::vector{0});
  CHECK(tuned.not_kept == "the time was over before a candidate was tried");
  CHECK(Tuning()(options).ended == Ended::seconds);
  options.seconds = 1e9;
  CHECK(Tuning()(options).faster);
  options.seconds = 0;
  CHECK(Tuning()(options).ended == Ended::from_cache);
}
