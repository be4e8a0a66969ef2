// A clock that is told what to say, and a folder that goes away: what tests of the tuner share, of whatever models.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cortex/tune/options.hpp"

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

/// A space of one axis: the rows of tiles.
inline tuning::Space rows(const std::vector<int>& values) {
  return tuning::Space().add(tuning::Axis("rows").numbers(values, &Schedule::tile_rows));
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

}  // namespace cortex::test
