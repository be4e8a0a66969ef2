// Models and inputs, and how searches are watched: what tests of the tuner share.
#pragma once

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cortex/tune/tune.hpp"
#include "support/compile.hpp"
#include "support/models.hpp"
#include "tune/told_timer.hpp"

namespace cortex::test {

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}
inline void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

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

/// A candidate that is told of before it does what `right` does.
class WatchedTrial final : public tuning::Trial {
 public:
  using Told = std::function<void(const runtime::Workspace&)>;
  WatchedTrial(std::unique_ptr<tuning::Trial> right, Told numbered, std::function<void()> called)
      : right_(std::move(right)), numbered_(std::move(numbered)), called_(std::move(called)) {}

  void call(std::size_t batch) override { right_->call(batch); }
  void inspect(std::size_t batch, FunctionRef<void(const tuning::CallResults&)> look) override {
    right_->inspect(batch, [&](const tuning::CallResults& call) {
      called_();
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
  Told numbered_;
  std::function<void()> called_;
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
              [this, schedule] { called(schedule); });
        }};
    return tuning::Search(subject, options).run();
  }
};

}  // namespace cortex::test
