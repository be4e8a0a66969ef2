// A model, inputs, a clock that is told what to say, and a folder that goes away: what tests of the tuner share.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cortex/tune/tune.hpp"
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

/// TreeRNN of four elements, tuned in the interpreter.
struct Tuning {
  decltype(tree_rnn(4)) program = tree_rnn(4);
  Phrases phrases;
  std::vector<float> emb{.1f, .2f, .3f, .4f, -.1f, .5f, .25f, 1, 0, .75f, -1, .5f};

  Tuned operator()(const TuneOptions& options) const {
    return tune(
        program, phrases.batches, [&](auto& model) { model.bind("Emb", emb); }, options, interpreted());
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

}  // namespace cortex::test
