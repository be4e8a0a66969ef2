// Whether a candidate counts: what is refused, wrong, or fails, and what is right by the equations.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/gru_models.hpp"
#include "tune/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using tuning::Outcome;

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
  CHECK_THAT(to_string(tuned), Contains("2 of 4 schedules tried, 2 refused; all were tried"));
  CHECK(tuned.schedule == Schedule::standard().tile_rows(2));
}

namespace {

/// A candidate that gets one element at the first root wrong by `wrong`.
class WrongTrial final : public tuning::Trial {
 public:
  WrongTrial(std::unique_ptr<tuning::Trial> right, float wrong) : right_(std::move(right)), wrong_(wrong) {}

  void call(std::size_t batch) override { right_->call(batch); }
  void inspect(std::size_t batch, FunctionRef<void(const tuning::CallResults&)> look) override {
    right_->inspect(batch, [&](const tuning::CallResults& call) {
      const tuning::CallResults::Group& first = call.groups[0];
      const std::byte* const row = first.row(call.plan.states[0], first.arrays.root[0]);
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

TEST_CASE("calls that take no measurable time are refused, and the log can be read", "[tune][log]") {
  const Folder folder;
  TuneOptions options;
  const auto search = [&](const std::map<int, double>& seconds) {
    ToldTimer timer(by_rows(seconds));
    options = options_for(timer, {2, 3});
    options.log = folder / "log.jsonl";
    return Tuning()(options);
  };
  SECTION("those of a candidate") {
    for (int run = 0; run < 2; ++run) {
      const Tuned tuned = search({{0, 1.0}, {2, 0.0}, {3, 0.5}});
      REQUIRE(tried(tuned) == std::vector{0, 2, 3});
      CHECK(tuned.candidates[1].from_log == (run == 1));
      CHECK(tuned.candidates[1].outcome == Outcome::refused);
      CHECK(tuned.candidates[1].why == "calls take no measurable time; give larger batches");
      CHECK(tuned.schedule.tiling.rows == 3);
    }
  }
  SECTION("those of the default") {
    for (int run = 0; run < 2; ++run) {
      const Tuned tuned = search({{0, 0.0}, {2, 0.0}, {3, 0.5}});
      for (std::size_t c = 1; c < 3; ++c) CHECK(tuned.candidates[c].outcome == Outcome::refused);
      CHECK_FALSE(tuned.faster);
      CHECK(tuned.ratio == 1);
    }
  }
  SECTION("those of the final rounds") {
    int calls = 0;
    ToldTimer timer([&](const Schedule& s) { return s.tiling.rows == 0 ? 1.0 : ++calls > 10 ? 0.0 : 0.5; });
    const Tuned tuned = Tuning()(options_for(timer, {2}));
    CHECK(tuned.candidates[1].outcome == Outcome::measured);
    CHECK_FALSE(tuned.faster);
    CHECK(tuned.ratio == 1);
  }
}

TEST_CASE("a difference that infinite weights may make is no defect, and does not count", "[tune]") {
  Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Word> m("sum_of_products", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    auto before = cortex::optional_child<&Word::left>(n);
    return tanh(Emb(word(n), i) + sum(H, [&](auto j) { return U(i, j) * h(before, j); }));
  });
  const auto program = m.recursion_op(h, body);
  ToldTimer timer([](const Schedule& s) { return s.leaves_apart ? 0.5 : 1.0; });
  TuneOptions options = options_for(timer, {});
  options.start = Schedule{}.dynamic_batch();
  options.space->add(tuning::Axis("leaves").add("apart", [](const Schedule& s) { return s.specialize_leaves(); }));
  const Word one{0, nullptr, nullptr}, two{1, &one, nullptr};
  const std::vector<std::vector<const Word*>> batches{{&two}};
  for (const Target& target : {Target::interpreter(), best_target()}) {
    const auto candidate = [&](float weight) {
      std::vector<float> u(16, 0.25f);
      u[5] = weight;
      const Tuned tuned = tune(
          program, batches, [&](auto& model) { model.bind("Emb", std::vector<float>(8, 0.5f)).bind("U", u); }, options,
          CompileOptions{target});
      REQUIRE(tuned.candidates.size() == 2);
      CHECK(tuned.faster == (tuned.candidates[1].outcome == Outcome::measured));
      CHECK_THAT(to_string(tuned), !Contains("please report"));
      return tuned.candidates[1];
    };
    CHECK(candidate(0.5f).outcome == Outcome::measured);
    const tuning::Record refused = candidate(INFINITY);  // times the zeros of a child that is not there
    CHECK(refused.outcome == Outcome::refused);
    CHECK_THAT(refused.why, Contains("not all finite") && Contains("batch 0: "));
  }
}

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
