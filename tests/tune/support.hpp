// Models, inputs, a clock that is told what to say, and a folder that goes away: what tests of the tuner share.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cortex/tune/tune.hpp"
#include "support/compile.hpp"
#include "support/models.hpp"

namespace cortex::test {

/// A folder of its own for each object.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("cortex_tune_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Says of each schedule what `seconds` says, whatever the machine does. `asked` counts how often, by the schedule.
class ToldTimer final : public tuning::Timer {
 public:
  explicit ToldTimer(std::function<double(const Schedule&)> seconds) : seconds_(std::move(seconds)) {}

  double now() override { return now_; }
  double time(const Schedule& schedule, std::size_t, FunctionRef<void()>) override {
    ++asked[to_string(schedule)];
    const double seconds = seconds_(schedule);
    now_ += seconds;
    return seconds;
  }

  std::map<std::string, int> asked;

 private:
  std::function<double(const Schedule&)> seconds_;
  double now_ = 0;
};

/// Three trees of words, in two batches.
struct Phrases {
  Word a{0, nullptr, nullptr}, b{1, nullptr, nullptr}, c{2, nullptr, nullptr}, d{1, nullptr, nullptr};
  Word ab{-1, &a, &b}, abc{-1, &ab, &c};
  std::vector<std::vector<const Word*>> batches{{&abc, &d}, {&d}};
};

/// Leaves' states are products of their words alone, which tables can hold, and those of other nodes are sums.
inline auto words_product(std::int64_t hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Word> m("words_product", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute(
      "leaf", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); })); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return h(left(n), i) + h(right(n), i); });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, rec));
}

/// TreeRNN of four elements, tuned in the interpreter.
struct Tuning {
  decltype(tree_rnn(4)) program = tree_rnn(4);
  Phrases phrases;
  std::vector<float> emb{.1f, .2f, .3f, .4f, -.1f, .5f, .25f, 1, 0, .75f, -1, .5f};
  CompileOptions compiled = interpreted();

  Tuned operator()(const TuneOptions& options) const {
    return tune(
        program, phrases.batches, [&](auto& model) { model.bind("Emb", emb); }, options, compiled);
  }
  static CompileOptions interpreted() {
    CompileOptions compiled;
    compiled.target = Target::interpreter();
    return compiled;
  }
};

/// A space of one axis: the rows of tiles.
inline tuning::Space rows(const std::vector<int>& values) {
  return tuning::Space().add(tuning::Axis("rows").numbers(values, &Schedule::tile_rows));
}

/// Seconds by the rows of tiles, 0 standing for the default.
inline std::function<double(const Schedule&)> by_rows(std::map<int, double> seconds) {
  return [=](const Schedule& s) { return seconds.at(s.tiling.rows); };
}

/// The rows of the tiles of each candidate, in the order in which they were tried.
inline std::vector<int> tried(const Tuned& tuned) {
  std::vector<int> result;
  for (const tuning::Record& record : tuned.candidates) {
    const auto at = record.schedule.find("tile_rows(");
    result.push_back(at == std::string::npos ? 0 : std::stoi(record.schedule.substr(at + 10)));
  }
  return result;
}

inline TuneOptions options_for(tuning::Timer& timer, const std::vector<int>& values) {
  TuneOptions options;
  options.search = TuneOptions::Search::grid;
  options.timer = &timer;
  options.space = rows(values);
  options.seconds = 1e9;
  options.final_rounds = 9;
  return options;
}

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

}  // namespace cortex::test
