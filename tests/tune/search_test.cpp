// The search of the tuner, with a clock that is told what to say.
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>

#include "support/compile.hpp"
#include "support/gru_models.hpp"
#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using tuning::Ended;
using tuning::Outcome;

namespace {

/// The rows of the tiles of each candidate, in the order in which they were tried.
std::vector<int> tried(const Tuned& tuned) {
  std::vector<int> result;
  for (const tuning::Record& record : tuned.candidates) {
    const auto at = record.schedule.find("tile_rows(");
    result.push_back(at == std::string::npos ? 0 : std::stoi(record.schedule.substr(at + 10)));
  }
  return result;
}

TuneOptions options_for(tuning::Timer& timer, const std::vector<int>& values) {
  TuneOptions options;
  options.search = TuneOptions::Search::grid;
  options.timer = &timer;
  options.space = rows(values);
  options.seconds = 1e9;
  options.final_rounds = 9;
  return options;
}

}  // namespace

TEST_CASE("a grid search tries all, in the order of the axes, and the fastest wins", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.9}, {3, 0.5}, {4, 2.0}}));
  const Tuned tuned = Tuning()(options_for(timer, {2, 3, 4}));
  CHECK(tried(tuned) == std::vector{0, 2, 3, 4});
  CHECK(tuned.ended == Ended::all_tried);
  CHECK(tuned.faster);
  CHECK(tuned.schedule == Schedule::standard().tile_rows(3));
  CHECK(tuned.ratio == Approx(0.5));
  CHECK(tuned.noise == Approx(0).margin(1e-12));
  CHECK(tuned.candidates[1].ratio == Approx(0.9));
  CHECK(tuned.candidates[1].seconds == Approx(2 * 0.9));  // two batches
}

TEST_CASE("ties keep the default", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 1.0}, {3, 0.995}}));
  const Tuned tuned = Tuning()(options_for(timer, {2, 3}));
  CHECK_FALSE(tuned.faster);
  CHECK(tuned.schedule == Schedule::standard());
  CHECK(tuned.ratio == Approx(0.995));  // faster, but by less than `least_gain`
}

TEST_CASE("a gain within the noise keeps the default", "[tune]") {
  int call = 0;
  ToldTimer timer([&](const Schedule& s) { return s.tiling.rows == 0 ? 1.0 : ++call % 3 == 0 ? 1.2 : 0.8; });
  Tuning tuning;
  tuning.phrases.batches.pop_back();
  const Tuned tuned = tuning(options_for(timer, {2}));
  CHECK(tuned.ratio == Approx(0.8));
  CHECK(tuned.noise > 0.1);
  CHECK_FALSE(tuned.faster);
}

TEST_CASE("what was fast by luck is measured again and does not win", "[tune]") {
  int call = 0;
  ToldTimer timer([&](const Schedule& s) { return s.tiling.rows == 0 ? 1.0 : ++call <= 10 ? 0.5 : 1.1; });
  const Tuned tuned = Tuning()(options_for(timer, {2}));  // two batches in five rounds are ten calls
  CHECK(tuned.candidates.back().ratio == Approx(0.5));
  CHECK(tuned.ratio == Approx(1.1));
  CHECK_FALSE(tuned.faster);
}

TEST_CASE("a candidate far behind is given up after three rounds", "[tune]") {
  ToldTimer timer(by_rows({{0, 0.1}, {2, 0.2}, {3, 0.101}}));
  const Tuned tuned = Tuning()(options_for(timer, {2, 3}));
  CHECK(tuned.candidates[1].rounds == 3);
  CHECK(tuned.candidates[2].rounds == 5);
}

TEST_CASE("what the compiler refuses is noted with its reason, and the search goes on", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.space->add(tuning::Axis("cut").add("nothing", [](const Schedule& s) { return s.refactor("nothing"); }));
  const Tuned tuned = Tuning()(options);
  REQUIRE(tuned.candidates.size() == 4);
  int refused = 0;
  for (const tuning::Record& record : tuned.candidates) {
    if (record.outcome != Outcome::refused) continue;
    ++refused;
    CHECK_THAT(record.why, Contains("nothing"));
  }
  CHECK(refused == 2);
  CHECK(tuned.schedule == Schedule::standard().tile_rows(2));
}

namespace {

/// A candidate that gets one element at the first root wrong by `wrong`.
class WrongTrial final : public tuning::Trial {
 public:
  WrongTrial(std::unique_ptr<tuning::Trial> right, float wrong) : right_(std::move(right)), wrong_(wrong) {}

  void call(std::size_t batch) override { right_->call(batch); }
  void inspect(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    right_->inspect(batch, [&](const runtime::Workspace& call) {
      const std::byte* const row = call.row(call.plan().states[0], call.arrays().root[0]);
      reinterpret_cast<float*>(const_cast<std::byte*>(row))[2] += wrong_;
      look(call);
    });
  }
  void number(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    right_->number(batch, look);
  }

 private:
  std::unique_ptr<tuning::Trial> right_;
  float wrong_;
};

/// Tunes with candidates that are wrong by what `wrong` says of their schedules.
Tuned tuned_wrongly(const Tuning& tuning, const TuneOptions& options,
                    const std::function<float(const Schedule&)>& wrong) {
  using F = decltype(compile(tuning.program));
  const tuning::Subject subject{
      tuning.program.graph(), Target::interpreter(), 1, 2,
      [&](const Schedule& schedule, const Target& target) -> std::unique_ptr<tuning::Trial> {
        F model = compile(tuning.program, schedule, {target});
        model.bind("Emb", tuning.emb);
        return std::make_unique<WrongTrial>(
            std::make_unique<tuning::detail::FunctorTrial<F, decltype(tuning.phrases.batches)>>(std::move(model),
                                                                                                tuning.phrases.batches),
            wrong(schedule));
      }};
  return tuning::Search(subject, options).run();
}

}  // namespace

TEST_CASE("a candidate whose results differ does not count, however fast it is", "[tune]") {
  ToldTimer timer([](const Schedule& s) { return s.max_workers == 2 ? 0.1 : s.max_workers == 3 ? 0.9 : 1.0; });
  TuneOptions options = options_for(timer, {});
  options.space = tuning::Space().add(tuning::Axis("workers").numbers({2, 3}, &Schedule::workers));
  const Tuned tuned = tuned_wrongly({}, options, [](const Schedule& s) { return s.max_workers == 2 ? 1e-7f : 0; });
  REQUIRE(tuned.candidates.size() == 3);
  CHECK(tuned.candidates[1].outcome == Outcome::wrong);
  CHECK(tuned.candidates[1].why == "batch 0: its results are not those of the default, bit by bit");
  CHECK(tuned.schedule == Schedule::standard().workers(3));
  CHECK_THAT(to_string(tuned), Contains("wrong (please report)"));
}

TEST_CASE("a candidate that rounds otherwise and leaves the error bound does not count", "[tune]") {
  ToldTimer timer([](const Schedule& s) { return s.exact ? 0.5 : 1.0; });
  TuneOptions options = options_for(timer, {});
  options.space->add(tuning::Axis("exact").add("yes", [](const Schedule& s) { return s.exact_activations(); }));
  const auto outcome = [&](float wrong) {
    const Tuned tuned = tuned_wrongly({}, options, [&](const Schedule& s) { return s.exact ? wrong : 0; });
    CHECK(tuned.faster == (tuned.candidates.at(1).outcome == Outcome::measured));
    return tuned.candidates[1].why;
  };
  CHECK(outcome(0) == "");
  CHECK_THAT(outcome(1e-4f), Contains("batch 0: state 'rnn': element 2 at node "));
}

TEST_CASE("a candidate that adds in another order counts if it keeps to the equations", "[tune]") {
  ToldTimer timer([](const Schedule& s) { return s.refactored.empty() ? 1.0 : 0.5; });
  TuneOptions options = options_for(timer, {});
  options.start = Schedule::standard().workers(2);
  options.space->add(tuning::Axis("cut").add("candidate", [](const Schedule& s) { return s.refactor("candidate"); }));
  const Token a{0, {}}, b{1, {}}, ab{2, {&a, &b}}, root{1, {&ab}};
  const std::vector<std::vector<const Token*>> batches{{&root}};
  const auto bind = [](auto& model) {
    for (const runtime::WeightSpec& spec : model.executable().weights) {
      std::size_t count = 16;
      if (spec.dims.size() == 2) count *= spec.dims[0].extent() > 0 ? 16 : 3;
      model.bind(spec.name, uniform(count, 0.4f, unsigned(spec.name[0]) + unsigned(spec.name[1])));
    }
  };
  const Tuned tuned = tune(child_sum_gru(16), batches, bind, options, Tuning::interpreted());
  REQUIRE(tuned.candidates.size() == 2);
  CHECK(tuned.candidates[1].why == "");
  CHECK(tuned.schedule == options.start->refactor("candidate"));
}

namespace {

/// A candidate that is told of before it does what `right` does.
class WatchedTrial final : public tuning::Trial {
 public:
  using Told = std::function<void(const runtime::Workspace&)>;
  WatchedTrial(std::unique_ptr<tuning::Trial> right, Told numbered, Told called)
      : right_(std::move(right)), numbered_(std::move(numbered)), called_(std::move(called)) {}

  void call(std::size_t batch) override { right_->call(batch); }
  void inspect(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    right_->inspect(batch, [&](const runtime::Workspace& call) {
      called_(call);
      look(call);
    });
  }
  void number(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    right_->number(batch, [&](const runtime::Workspace& call) {
      numbered_(call);
      look(call);
    });
  }

 private:
  std::unique_ptr<tuning::Trial> right_;
  Told numbered_, called_;
};

/// The TreeLSTM, tuned in the interpreter. `made` is told of each schedule that a trial is made of, `numbered` of each
/// call that only numbers nodes, `called` of each whose results are looked at.
struct Watched {
  std::vector<std::vector<const Word*>> batches;
  std::function<void(const Schedule&)> made = [](const Schedule&) {};
  WatchedTrial::Told numbered = [](const runtime::Workspace&) {};
  std::function<void(const Schedule&)> called = [](const Schedule&) {};

  Tuned operator()(int extent, const TuneOptions& options, const Target& target = Target::interpreter()) const {
    const auto program = tree_lstm(extent);
    using F = decltype(compile(program));
    const tuning::Subject subject{
        program.graph(), target, 1, batches.size(),
        [&](const Schedule& schedule, const Target& own) -> std::unique_ptr<tuning::Trial> {
          made(schedule);
          F model = compile(program, schedule, {own});
          for (const runtime::WeightSpec& spec : model.executable().weights) {
            const std::size_t h = std::size_t(extent), count = spec.dims.size() == 1 ? h
                                                               : spec.name == "Emb"  ? 3 * h
                                                                                     : h * h;
            model.bind(spec.name, uniform(count, 0.2f, unsigned(spec.name[0] + spec.name[1])));
          }
          return std::make_unique<WatchedTrial>(
              std::make_unique<tuning::detail::FunctorTrial<F, decltype(batches)>>(std::move(model), batches), numbered,
              [this, schedule](const runtime::Workspace&) { called(schedule); });
        }};
    return tuning::Search(subject, options).run();
  }
};

}  // namespace

TEST_CASE("weights may be stored in any way, by the default and by candidates", "[tune]") {
  const Phrases phrases;
  ToldTimer timer([](const Schedule&) { return 1.0; });
  TuneOptions options = options_for(timer, {});
  options.space->add(tuning::Axis("gates").numbers({1, 2}, &Schedule::tile_gates));
  tuning::Axis storage("storage");
  for (const DType type : {DType::bf16, DType::f16, DType::i8})
    storage.add(std::string(to_string(type)),
                [=](const Schedule& s) { return s.store_weights(type).store("Emb", type); });
  for (const Target& target : {Target::interpreter(), best_target()}) {
    for (const auto& [name, apply] : storage.choices()) {
      INFO(name);
      options.start = apply(Schedule::standard());
      const Tuned tuned = Watched{phrases.batches}(8, options, target);
      CHECK(tuned.candidates.size() == 3);
      for (const tuning::Record& record : tuned.candidates) CHECK(record.why == "");
    }
  }
  options.start = Schedule::standard();
  options.space = tuning::Space().add(storage);
  for (const Target& target : {Target::interpreter(), best_target()})
    for (const tuning::Record& record : Watched{phrases.batches}(8, options, target).candidates)
      CHECK(record.why == "");
}

TEST_CASE("a candidate whose call fails is noted, and the search goes on", "[tune]") {
  const Phrases phrases;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.1}, {3, 0.2}, {4, 0.5}}));
  Watched watched{phrases.batches};
  watched.called = [](const Schedule& s) {
    if (s.tiling.rows == 2) throw Error(Code::internal, "two rows");
    if (s.tiling.rows == 3) throw Error(Code::out_of_memory, "three rows");
  };
  const Tuned tuned = watched(4, options_for(timer, {2, 3, 4}));
  REQUIRE(tried(tuned) == std::vector{0, 2, 3, 4});
  CHECK(tuned.candidates[1].outcome == Outcome::wrong);
  CHECK(tuned.candidates[1].why == "two rows");
  CHECK(tuned.candidates[2].outcome == Outcome::refused);  // no defect
  CHECK(tuned.candidates[2].why == "three rows");
  CHECK(tuned.schedule.tiling.rows == 4);
}

TEST_CASE("inputs are told apart by the heights of their nodes, however levels are filled", "[tune]") {
  std::deque<Word> nodes;
  const auto leaf = [&](int id) { return &nodes.emplace_back(Word{id, nullptr, nullptr}); };
  const auto above = [&](const Word* a, const Word* b) { return &nodes.emplace_back(Word{-1, a, b}); };
  std::vector<const Word*> roots{above(above(above(above(leaf(0), leaf(0)), leaf(0)), leaf(0)), leaf(0))};
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 0), std::pair(1, 2)})
    roots.push_back(above(leaf(a), leaf(b)));
  const auto lengths = [](const runtime::Workspace& call) {
    const structure::Arrays& a = call.arrays();
    return std::vector<int>(a.batch_length, a.batch_length + a.num_batches);
  };
  const std::vector<int> heights{3, 5, 1, 1, 1};  // equal leaves are one
  REQUIRE(lengths(compile(tree_lstm(256), Tuning::interpreted()).number(roots).workspace()) != heights);

  ToldTimer timer(by_rows({{0, 1.0}}));
  TuneOptions options = options_for(timer, {});
  std::stop_source cancel;
  options.stop = cancel.get_token();
  Watched watched{{roots}};
  watched.numbered = [&](const runtime::Workspace& call) {
    CHECK(lengths(call) == heights);
    cancel.request_stop();
  };
  CHECK(watched(256, options).ended == Ended::cancelled);
}

TEST_CASE("without final rounds the default stays, and nothing is kept", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.final_rounds = 0;
  options.cache = folder / "cache";
  const Tuned tuned = Tuning()(options);
  CHECK(tried(tuned) == std::vector{0, 2});
  CHECK(tuned.candidates[1].ratio == Approx(0.5));
  CHECK_FALSE(tuned.faster);
  CHECK(tuned.schedule == Schedule::standard());
  CHECK(tuned.ratio == 1);
  options.final_rounds = 9;
  CHECK(Tuning()(options).faster);
}

TEST_CASE("a search that is cancelled before it has begun compiles nothing", "[tune]") {
  const Phrases phrases;
  std::stop_source cancel;
  int made = 0;
  Watched watched{phrases.batches};
  watched.made = [&](const Schedule&) { ++made; };
  ToldTimer timer([&](const Schedule&) { return cancel.request_stop(), 1.0; });
  TuneOptions options = options_for(timer, {2});
  options.space->add(tuning::Axis("cut").add("nothing", [](const Schedule& s) { return s.refactor("nothing"); }));
  options.stop = cancel.get_token();
  SECTION("while the default is measured") {
    const Tuned tuned = watched(4, options);
    CHECK(tuned.ended == Ended::cancelled);
    CHECK(tuned.candidates.empty());  // nor looks at what would be refused
    CHECK(timer.asked.size() == 1);
    CHECK(made == 2);
  }
  SECTION("beforehand") {
    cancel.request_stop();
    const Tuned tuned = watched(4, options);
    CHECK(tuned.ended == Ended::cancelled);
    CHECK(tuned.candidates.empty());
    CHECK(tuned.schedule == Schedule::standard());
    CHECK(timer.asked.empty());
    CHECK(made == 1);  // that of the inputs' shapes
  }
}

TEST_CASE("a guided search goes by the predicted times and ends when nothing more is gained", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {1, 1.0}, {2, 1.0}, {3, 1.0}, {4, 1.0}, {5, 1.0}, {6, 1.0}}));
  TuneOptions options = options_for(timer, {1, 2, 3, 4, 5, 6});
  options.search = TuneOptions::Search::guided;
  options.patience = 4;
  const Tuned tuned = Tuning()(options);
  CHECK(tuned.ended == Ended::no_gain);
  REQUIRE(tuned.candidates.size() == 5);
  for (std::size_t i = 2; i < 5; ++i)
    CHECK(tuned.candidates[i].predicted_seconds >= tuned.candidates[i - 1].predicted_seconds);
  CHECK(tuned.candidates[1].predicted_seconds > 0);
}

TEST_CASE("a guided search looks around the best one first", "[tune]") {
  ToldTimer timer([](const Schedule& s) { return s.tiling.rows == 5 ? 0.5 : 1.0; });
  TuneOptions options = options_for(timer, {4, 5, 6});
  options.search = TuneOptions::Search::guided;
  options.space->add(tuning::Axis("vectors").numbers({2, 4}, &Schedule::tile_vectors));
  const Tuned tuned = Tuning()(options);
  std::size_t first = 0;
  while (tuned.candidates[first].schedule.find("tile_rows(5)") == std::string::npos) ++first;
  REQUIRE(first + 2 < tuned.candidates.size());
  for (std::size_t next = first + 1; next < first + 3; ++next) {
    const std::string &best = tuned.candidates[first].schedule, &other = tuned.candidates[next].schedule;
    const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
    CHECK(std::abs(lines(best) - lines(other)) <= 1);
  }
  CHECK(tuned.faster);
}

TEST_CASE("the budget of a search is kept", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}, {3, 1.0}, {4, 1.0}}));
  TuneOptions options = options_for(timer, {2, 3, 4});
  SECTION("of candidates") {
    options.most_candidates = 2;
    const Tuned tuned = Tuning()(options);
    CHECK(tried(tuned) == std::vector{0, 2, 3});
    CHECK(tuned.ended == Ended::candidates);
  }
  SECTION("of seconds") {
    options.seconds = 25;  // the default takes ten, and the first candidate five and ten for the default beside it
    options.final_rounds = 31;
    const Tuned tuned = Tuning()(options);
    CHECK(tried(tuned) == std::vector{0, 2});
    CHECK(tuned.ended == Ended::seconds);
    CHECK(timer.asked.at(to_string(tuned.schedule)) == 2 * (5 + 9));  // nine final rounds at least
  }
}

TEST_CASE("progress is told after each candidate", "[tune]") {
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}, {3, 0.75}}));
  TuneOptions options = options_for(timer, {2, 3});
  std::vector<std::string> told;
  options.progress = [&](const tuning::Progress& p) {
    told.push_back(std::to_string(p.done) + "/" + std::to_string(p.total) + " " + std::to_string(p.last.ratio) + " " +
                   std::to_string(p.best_ratio));
  };
  Tuning()(options);
  CHECK(told == std::vector<std::string>{"1/2 0.500000 0.500000", "2/2 0.750000 0.500000"});
}

TEST_CASE("a search that is cancelled keeps the default, and goes on from its log", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}, {3, 0.75}, {4, 0.6}}));
  TuneOptions options = options_for(timer, {2, 3, 4});
  options.log = folder / "log.jsonl";
  options.cache = folder / "cache";
  std::stop_source cancel;
  options.stop = cancel.get_token();
  options.progress = [&](const tuning::Progress& p) { p.done == 2 ? cancel.request_stop() : false; };
  const Tuned cancelled = Tuning()(options);
  CHECK(cancelled.ended == Ended::cancelled);
  CHECK(cancelled.schedule == Schedule::standard());
  CHECK(tried(cancelled) == std::vector{0, 2, 3});

  timer.asked.clear();
  options.stop = {};
  options.progress = nullptr;
  const Tuned resumed = Tuning()(options);
  CHECK(resumed.ended == Ended::all_tried);
  CHECK(tried(resumed) == std::vector{0, 2, 3, 4});
  CHECK(resumed.candidates[1].from_log);
  CHECK_FALSE(resumed.candidates[3].from_log);
  CHECK(resumed.candidates[2].ratio == cancelled.candidates[2].ratio);
  // In the final rounds alone, two batches each; the new one in five rounds before.
  CHECK(timer.asked.at(to_string(Schedule::standard().tile_rows(2))) == 2 * 9);
  CHECK(timer.asked.at(to_string(Schedule::standard().tile_rows(4))) == 2 * (9 + 5));
  CHECK(resumed.schedule == Schedule::standard().tile_rows(2));
}

TEST_CASE("what has been found is taken from the cache", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.cache = folder / "cache";
  const Tuned first = Tuning()(options);
  CHECK(first.ended == Ended::all_tried);
  timer.asked.clear();
  const Tuned again = Tuning()(options);
  CHECK(again.ended == Ended::from_cache);
  CHECK(timer.asked.empty());
  CHECK(again.faster);
  CHECK(again.schedule == Schedule::standard().tile_rows(2));
  CHECK(again.ratio == Approx(0.5));

  Tuning other;
  SECTION("but not for inputs of other shapes") {
    other.phrases.batches[1].push_back(&other.phrases.ab);
    CHECK(other(options).ended == Ended::all_tried);
  }
  SECTION("but not for weights of other shapes") {
    other.emb.resize(16);
    CHECK(other(options).ended == Ended::all_tried);
  }
  SECTION("but not for another model") {
    const auto program = tree_rnn(2);
    const Tuned tuned = tune(
        program, other.phrases.batches, [&](auto& model) { model.bind("Emb", std::vector<float>(6, 1)); }, options,
        Tuning::interpreted());
    CHECK(tuned.ended == Ended::all_tried);
  }
  SECTION("but not for another machine") {
    CompileOptions compiled = Tuning::interpreted();
    compiled.target->vector_registers = 32;
    const Tuned tuned = tune(
        other.program, other.phrases.batches, [&](auto& model) { model.bind("Emb", other.emb); }, options, compiled);
    CHECK(tuned.ended == Ended::all_tried);
  }
  SECTION("but not for another space") {
    options.space = rows({2, 1});
    ToldTimer three(by_rows({{0, 1.0}, {1, 1.0}, {2, 1.0}}));
    options.timer = &three;
    CHECK(other(options).ended == Ended::all_tried);
  }
}

TEST_CASE("what a short search has found is taken by shorter ones alone", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 1.0}, {3, 0.5}}));
  TuneOptions options = options_for(timer, {2, 3});
  options.cache = folder / "cache";
  const auto search = [&](double seconds, std::size_t candidates) {
    options.seconds = seconds, options.most_candidates = candidates;
    return Tuning()(options);
  };
  CHECK(search(25, 100).ended == Ended::seconds);
  CHECK(search(25, 100).ended == Ended::from_cache);
  CHECK(search(20, 50).ended == Ended::from_cache);
  CHECK(search(0, 1000).ended == Ended::from_cache);
  CHECK(search(1e9, 1).ended == Ended::candidates);
  CHECK(search(1e9, 2).faster);
  CHECK(search(1e9, 1000).ended == Ended::from_cache);  // all had been tried
  CHECK(search(HUGE_VAL, 1000).schedule == Schedule::standard().tile_rows(3));
}

TEST_CASE("a cache that cannot be written to is refused before the search", "[tune][refusal]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.cache = folder / "no/such";
  CHECK_THROWS_WITH(Tuning()(options), Contains("no file can be written there"));
  CHECK(timer.asked.empty());
}

TEST_CASE("a cache that cannot be written to at the end costs nothing that was found", "[tune]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.cache = folder / "cache";
  options.progress = [&](const tuning::Progress&) {
    std::filesystem::remove_all(options.cache);
    write(options.cache, "in the way");
  };
  const Tuned tuned = Tuning()(options);
  CHECK(tuned.faster);
  CHECK(tuned.schedule == Schedule::standard().tile_rows(2));
  CHECK_THAT(tuned.not_kept, Contains("no file can be written there"));
  CHECK_THAT(to_string(tuned), Contains("not kept: " + tuned.not_kept));
}

TEST_CASE("a search needs inputs, and weights for the default", "[tune][refusal]") {
  Tuning tuning;
  CHECK_THROWS_WITH(tune(
                        tuning.program, tuning.phrases.batches, [](auto&) {}, {}, Tuning::interpreted()),
                    Contains("weights are bound: 'Emb'"));
  tuning.phrases.batches.push_back({});
  CHECK_THROWS_WITH(tuning({}), "tune: batch 2 has no roots; calls of it take no time");
  tuning.phrases.batches.clear();
  CHECK_THROWS_WITH(tuning({}), "tune: there are no batches to measure with; give some of your own inputs");
}

TEST_CASE("options of a search that mean nothing are refused by their names", "[tune][refusal]") {
  Tuning tuning;
  CHECK_THROWS_WITH(tuning({.seconds = -1}), "tune: TuneOptions::seconds is -1; give 0 or more");
  CHECK_THROWS_WITH(tuning({.seconds_a_candidate = -0.5}),
                    "tune: TuneOptions::seconds_a_candidate is -0.5; give 0 or more");
  CHECK_THROWS_WITH(tuning({.least_gain = -0.01}),
                    "tune: TuneOptions::least_gain is -0.01; give 0 or more, a share of the default's time");
  CHECK_THROWS_WITH(tuning({.final_rounds = -1}), "tune: TuneOptions::final_rounds is -1; give 0 or more");
  CHECK_THROWS_WITH(tuning({.checked_nodes = -1}), "tune: TuneOptions::checked_nodes is -1; give 0 or more");
  CHECK_THROWS_WITH(tuning({.seconds_a_check = -3}), "tune: TuneOptions::seconds_a_check is -3; give 0 or more");
  CHECK_THROWS_WITH(tuning({.most_candidates = 0}),
                    "tune: TuneOptions::most_candidates is 0; give 1 or more: the default is one of them");
}

TEST_CASE("nodes in an arena are tuned with", "[tune]") {
  struct Item {
    int id;
    std::int32_t next;
  };
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("chain", sequence);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(Emb(cortex::field<&Item::id>(n), i) + h(cortex::optional_child<&Item::next>(n), i));
  });
  const auto program = m.recursion_op(h, body);
  const std::vector<Item> items{{0, 1}, {1, 2}, {0, -1}};
  const std::vector<std::tuple<Arena<Item>, std::vector<std::int32_t>>> batches{{arena(items), {0}}};
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  const Tuned tuned = tune(
      program, batches, [&](auto& model) { model.bind("Emb", std::vector<float>(8, 0.5f)); }, options_for(timer, {2}),
      Tuning::interpreted());
  CHECK(tuned.candidates.size() == 2);
  CHECK(tuned.faster);
}

#if CORTEX_LLVM
TEST_CASE("machine code is tuned by the system's clock", "[tune]") {
  const auto program = tree_lstm(32);
  const Phrases phrases;
  const auto bind = [](auto& model) {
    for (const runtime::WeightSpec& spec : model.executable().weights)
      model.bind(spec.name, uniform(spec.dims.size() == 1 ? 32
                                    : spec.name == "Emb"  ? 96
                                                          : 1024,
                                    0.2f, unsigned(spec.name[0] + spec.name[1])));
  };
  TuneOptions options;
  options.space = rows({1, 3});
  options.seconds_a_candidate = 0.01;
  const Tuned tuned = tune(program, phrases.batches, bind, options);
  CHECK(tuned.candidates.size() == 3);
  for (const tuning::Record& record : tuned.candidates) {
    CHECK(record.why == "");
    CHECK(record.seconds > 0);
    CHECK(record.predicted_seconds > 0);
  }
  CHECK(tuned.faster == !(tuned.schedule == tuned.start));
}
#endif
