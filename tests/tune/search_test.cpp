// The search of the tuner, with a clock that is told what to say: what is tried, in what order, and what wins.
#include <catch2/catch.hpp>
#include <deque>

#include "support/compile.hpp"
#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tuning::Ended;

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

TEST_CASE("there are six final rounds or more, as certainty takes", "[tune]") {
  for (const auto& [asked, made] : {std::pair(1, 6), std::pair(5, 6), std::pair(6, 6), std::pair(7, 7)}) {
    ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
    TuneOptions options = options_for(timer, {2});
    options.final_rounds = asked;
    CHECK(Tuning()(options).faster);
    CHECK(timer.asked.at(to_string(Schedule::standard().tile_rows(2))) == 2 * (5 + made));
  }
}

TEST_CASE("a candidate far behind is given up after three rounds", "[tune]") {
  ToldTimer timer(by_rows({{0, 0.1}, {2, 0.2}, {3, 0.101}}));
  const Tuned tuned = Tuning()(options_for(timer, {2, 3}));
  CHECK(tuned.candidates[1].rounds == 3);
  CHECK(tuned.candidates[2].rounds == 5);
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

TEST_CASE("equal subtrees are predicted to be computed once where there are some, and looked for", "[tune]") {
  Phrases one, two;
  const Word halves{-1, &one.abc, &two.abc};
  ToldTimer timer([](const Schedule& s) { return s.sharing == Sharing::on ? 0.5 : 1.0; });
  const auto ratio = [&](const Word& root) {  // of what is predicted
    TuneOptions options = options_for(timer, {});
    options.space = tuning::default_space(tree_rnn(4).graph(), Target::interpreter(), 1);
    options.search = TuneOptions::Search::guided;
    options.most_candidates = 4;
    Tuning tuning;
    tuning.phrases.batches = {{&root}};
    const Tuned tuned = tuning(options);
    for (const tuning::Record& record : tuned.candidates) {
      CHECK(record.why == "");
      if (record.schedule.find("share_subtrees()") == std::string::npos) continue;
      CHECK(tuned.schedule.sharing == Sharing::on);
      return record.predicted_seconds / tuned.candidates[0].predicted_seconds;
    }
    return 0.0;
  };
  const double where_some_are = ratio(halves);
  CHECK((where_some_are > 0 && where_some_are < 1));
  CHECK(ratio(one.abc) == 0);  // not among the first
}

TEST_CASE("ways to divide calls are tried where some are large enough", "[tune]") {
  const std::deque<Word> leaves(100, Word{0, nullptr, nullptr});
  std::vector<const Word*> roots;
  for (const Word& leaf : leaves) roots.push_back(&leaf);
  ToldTimer timer([](const Schedule& s) { return s.piece_nodes > 0 ? 0.5 : 1.0; });
  const auto wins = [&](int nodes) {
    TuneOptions options = options_for(timer, {});
    options.space = tuning::Space().add(tuning::Axis("pieces").numbers({nodes}, &Schedule::pieces));
    Tuning tuning;
    tuning.phrases.batches = {roots};
    const Tuned tuned = tuning(options);
    CHECK(tuned.space_size == (tuned.faster ? 2 : 1));
    return tuned.schedule.piece_nodes == nodes;
  };
  CHECK(wins(1));
  CHECK(wins(50));
  CHECK_FALSE(wins(51));
  roots.resize(30);
  CHECK(wins(15));
  CHECK_FALSE(wins(16));
}

TEST_CASE("the neighbours of the best schedule for a GPU are tried first, all of them", "[tune]") {
  // No device: the interpreter takes the candidates' place, which does not look at how a GPU shares the work.
  const auto program = tree_rnn(4);
  const Phrases phrases;
  using F = decltype(compile(program));
  const tuning::Subject subject{program.graph(), Target::cuda(), 1, phrases.batches.size(),
                                [&](const Schedule& schedule, const Target&) -> std::unique_ptr<tuning::Trial> {
                                  F model = compile(program, schedule, Tuning::interpreted());
                                  model.bind("Emb", Tuning().emb);
                                  return std::make_unique<tuning::detail::FunctorTrial<F, decltype(phrases.batches)>>(
                                      std::move(model), phrases.batches);
                                }};
  ToldTimer timer([](const Schedule& s) {
    if (s.gpu == GpuSchedule{.group = GpuSchedule::Group::block, .blocks = 1}) return 0.995;  // within the noise
    return s.gpu.rows == 2 ? s.gpu.threads == 512 ? 0.25 : 0.5 : 1.0;
  });
  TuneOptions options = options_for(timer, {});
  options.search = TuneOptions::Search::guided;
  options.patience = 1;
  options.space = tuning::gpu_space(program.graph(), Gpu::of(90));
  const Tuned tuned = tuning::Search(subject, options).run();
  const std::size_t neighbours = tuning::most_neighbours(*options.space);
  constexpr auto cluster = GpuSchedule::Group::cluster;
  CHECK(tuned.ended == tuning::Ended::no_gain);
  CHECK(tuned.schedule == Schedule::standard().on_gpu({.threads = 512, .rows = 2}));
  CHECK(tuned.candidates.at(1).ratio == Approx(0.995));
  CHECK(tuned.candidates.at(2).schedule == to_string(Schedule::standard().on_gpu({.group = cluster, .blocks = 2})));
  CHECK(tuned.candidates.size() > 2 * neighbours);
  CHECK(tuned.candidates.size() < 4 * neighbours);
  for (const tuning::Record& record : tuned.candidates) CHECK(record.predicted_seconds == 0);
}

TEST_CASE("what comes from tables is predicted to take no time in calls", "[tune]") {
  const auto program = words_product(4);
  ToldTimer timer([](const Schedule&) { return 1.0; });
  TuneOptions options = options_for(timer, {});
  options.start = Schedule::standard().tabulate(1);
  options.space =
      tuning::Space().add(tuning::Axis("tables").add("none", [](const Schedule& s) { return s.tabulate_nothing(); }));
  const Phrases phrases;
  const std::vector<float> emb(12, 0.5f), matrix(16, 0.25f);
  const Tuned tuned = tune(
      program, phrases.batches, [&](auto& model) { model.bind("Emb", emb).bind("W", matrix); }, options,
      Tuning::interpreted());
  REQUIRE(tuned.candidates.size() == 2);
  CHECK(tuned.candidates[1].why == "");
  CHECK(tuned.candidates[0].predicted_seconds < tuned.candidates[1].predicted_seconds);
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
    std::size_t total = 0;
    options.progress = [&](const tuning::Progress& p) { total = p.total; };
    options.most_candidates = 3;
    const Tuned tuned = Tuning()(options);
    CHECK(tried(tuned) == std::vector{0, 2, 3});
    CHECK(tuned.ended == Ended::candidates);
    CHECK(total == 2);
    options.most_candidates = 1;
    CHECK(tried(Tuning()(options)) == std::vector{0});
    options.most_candidates = 4;  // all of them
    CHECK(Tuning()(options).ended == Ended::all_tried);
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

TEST_CASE("a search needs inputs, and weights for the default", "[tune][refusal]") {
  Tuning tuning;
  CHECK_THROWS_WITH(tune(
                        tuning.program, tuning.phrases.batches, [](auto&) {}, {}, Tuning::interpreted()),
                    Contains("weights are bound: 'Emb'"));
  tuning.phrases.batches.push_back({nullptr});
  CHECK_THROWS_WITH(tuning({}), StartsWith("tune: batch 2: root 0 is null"));
  const Word unknown{3, nullptr, nullptr};
  tuning.phrases.batches.back() = {&tuning.phrases.d, &unknown};
  CHECK_THROWS_WITH(tuning({}),
                    StartsWith("tune: batch 2: field 'id' of node 1 of the walk (reached from root 1) is 3"));
  tuning.phrases.batches.back().clear();
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

TEST_CASE("a pool may have more threads than a call takes", "[tune]") {
  Tuning tuning;
  tuning.compiled.workers = std::make_shared<Workers>(Workers::most_threads);
  ToldTimer timer(by_rows({{0, 1.0}, {2, 0.5}}));
  CHECK(tuning(options_for(timer, {2})).faster);
}

TEST_CASE("machine code is tuned by the system's clock", "[tune]") {
  need_llvm();
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
