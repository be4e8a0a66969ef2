// What is kept of a search: its log, from which it goes on, and the cache of results.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tuning::Ended;

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
  CHECK_THAT(tuned.not_kept, Contains("without final rounds there is no result"));
  options.final_rounds = 9;
  CHECK(Tuning()(options).faster);
  CHECK(Tuning()(options).not_kept == "");
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

TEST_CASE("a search goes on behind a damaged line of its log, and tries again what stood there", "[tune][log]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}, {3, 0.75}}));
  TuneOptions options = options_for(timer, {2, 3});
  options.log = folder / "log.jsonl";
  CHECK(Tuning()(options).not_read == "");
  std::string text = read(options.log);
  const std::size_t second = text.find('\n', text.find('\n') + 1) + 1;  // of the last candidate
  text.insert(second, "?");
  write(options.log, text);
  const Tuned again = Tuning()(options);
  CHECK(tried(again) == std::vector{0, 2, 3});
  CHECK(again.candidates[1].from_log);
  CHECK_FALSE(again.candidates[2].from_log);
  CHECK_THAT(again.not_read, Contains("line 3 is no candidate"));
  CHECK_THAT(to_string(again), Contains("not read: " + again.not_read));
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
  const std::string winner = "the winner takes 0.500 of the default's time, or up to 0.000 more\nschedule: ";
  CHECK_THAT(to_string(first), StartsWith("2 of 2 schedules tried, 0 refused; all were tried\n" + winner) &&
                                   Contains("ratio  us measured  predicted\n"));
  CHECK_THAT(to_string(again), StartsWith("the result is from the cache\n" + winner) && !Contains("predicted"));

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
  SECTION("but not for another manner of searching") {
    const TuneOptions before = options;
    const auto searched = [&](auto change) {
      options = before;
      change();
      return other(options).ended != Ended::from_cache;
    };
    CHECK(searched([&] { options.search = TuneOptions::Search::guided; }));
    CHECK(searched([&] { options.search = TuneOptions::Search::guided, options.patience = 21; }));
    CHECK(searched([&] { options.least_gain = 0.6; }));
    CHECK(searched([&] { options.checked_nodes = 0; }));
    CHECK(searched([&] { options.seconds_a_check = 3; }));
    CHECK(searched([&] { options.final_rounds = 30; }));
    CHECK(searched([&] { options.seconds_a_candidate = 9; }));
    CHECK_FALSE(searched([&] { options.most_candidates = 99; }));
  }
  SECTION("but not for another space") {
    options.space = rows({2, 1});
    ToldTimer three(by_rows({{0, 1.0}, {1, 1.0}, {2, 1.0}}));
    options.timer = &three;
    CHECK(other(options).ended == Ended::all_tried);
  }
}

TEST_CASE("what has been found with some threads says nothing of others", "[tune][cache][log]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.start = Schedule::standard();  // whatever the pool
  options.cache = folder / "cache";
  const auto on = [&](int threads, Placement placement) {
    Tuning tuning;
    if (threads) tuning.compiled.workers = std::make_shared<Workers>(threads, placement);
    return tuning(options);
  };
  using enum Placement;
  CHECK(on(0, anywhere).key.threads == "1 thread");
  CHECK(on(0, anywhere).ended == Ended::from_cache);
  CHECK(on(1, anywhere).ended == Ended::all_tried);
  CHECK(on(2, anywhere).ended == Ended::all_tried);
  CHECK(on(1, anywhere).ended == Ended::from_cache);
  CHECK(on(1, pinned).key.threads == "2 threads, pinned");
  CHECK(on(1, pinned).ended == Ended::from_cache);
  CHECK(on(1, anywhere).key.threads == "2 threads");

  options.cache = "";
  options.log = folder / "log.jsonl";
  CHECK(on(1, anywhere).faster);
  CHECK(on(1, anywhere).candidates[1].from_log);
  CHECK_THROWS_WITH(on(2, anywhere), Contains("it is of other threads (2 threads, and not 3 threads)"));
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
  CHECK(search(1e9, 2).ended == Ended::candidates);
  CHECK(search(1e9, 3).faster);
  CHECK(search(1e9, 1000).ended == Ended::from_cache);  // all had been tried
  CHECK(search(HUGE_VAL, 1000).schedule == Schedule::standard().tile_rows(3));
}

TEST_CASE("what a search has found whose predictions were cut short is not that of longer ones", "[tune]") {
  /// Each look at the clock takes a second, and no call takes long.
  struct Ticking final : tuning::Timer {
    double at = 0;
    double now() override { return ++at; }
    double time(const Schedule&, std::size_t, FunctionRef<void()>) override { return at += 0.01, 0.01; }
  };
  const Folder folder;
  const auto search = [&](double seconds) {
    Ticking timer;
    TuneOptions options = options_for(timer, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    options.search = TuneOptions::Search::guided;
    options.seconds = seconds, options.patience = 1, options.seconds_a_candidate = 1;
    options.cache = folder / "cache";
    return Tuning()(options).ended;
  };
  CHECK(search(40) == Ended::no_gain);
  CHECK(search(39) == Ended::from_cache);
  CHECK(search(1e6) == Ended::no_gain);
  CHECK(search(1e7) == Ended::from_cache);  // all was predicted
}

TEST_CASE("a child process keeps no log from a later search", "[tune][log]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  TuneOptions options = options_for(timer, {2});
  options.log = folder / "log.jsonl";
  int child = 0;
  options.progress = [&](const tuning::Progress&) {
    if (child) return;
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  };
  CHECK(Tuning()(options).faster);
  REQUIRE(child > 0);
  CHECK(Tuning()(options).candidates.at(1).from_log);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

namespace {

/// As long as it lives, no file can become larger than so many bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_;
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("a log that can no longer be written to costs nothing that was found", "[tune][log]") {
  const Folder folder;
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.75}, {3, 0.5}, {4, 0.6}}));
  TuneOptions options = options_for(timer, {2, 3, 4});
  options.log = folder / "log.jsonl";
  std::unique_ptr<FullDisk> full;
  std::string before;
  options.progress = [&](const tuning::Progress& p) {
    if (p.done == 1) {
      before = read(options.log);
      full = std::make_unique<FullDisk>(before.size() + 20);  // the next line fits in part
    } else {
      full.reset();  // which does not bring the candidates back that are missing
    }
  };
  const Tuned tuned = Tuning()(options);
  CHECK(tried(tuned) == std::vector{0, 2, 3, 4});
  CHECK(tuned.schedule == Schedule::standard().tile_rows(3));
  CHECK(tuned.not_kept == "tuning log '" + options.log +
                              "': a line cannot be written (File too large); the candidates from there on are not in "
                              "it");
  CHECK(read(options.log) == before);

  options.progress = nullptr;
  const Tuned again = Tuning()(options);
  CHECK(again.candidates[1].from_log);
  CHECK_FALSE(again.candidates[2].from_log);
  CHECK(again.not_kept == "");

  full = std::make_unique<FullDisk>(20);
  options.log = folder / "another.jsonl";
  CHECK_THROWS_WITH(Tuning()(options), Contains("a line cannot be written"));
  full.reset();
  CHECK(read(options.log) == "");
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
