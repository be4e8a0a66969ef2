// ROWS.experiments.json: the rows of each experiment by its name, and in "about", by the same names, where and when
// each was measured. Several programs and runs write to one such file; each replaces what it has measured anew and
// leaves the rest.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "json.hpp"
#include "machine.hpp"
#include "report.hpp"
#include "whole_file.hpp"

namespace bench {

class ResultsFile {
 public:
  /// Reads what is there. Throws, before anything is measured, for a file that this did not write, or could not.
  /// "-" is the standard output, and "" nothing at all.
  explicit ResultsFile(const std::string& path) : path_(path) {
    if (path_.empty() || path_ == "-") return;
    file_.emplace(path_);
    if (std::filesystem::exists(path_)) read();
    file_->try_writing();
  }

  /// Replaces an experiment, and writes the file: what comes after may fail.
  void add(const std::string& name, const std::vector<Json>& rows, const Json& about) {
    all_[name] = parsed(Json::lines(rows));
    all_["about"][name] = parsed(about);
    if (file_) file_->write(text());
  }

  /// Writes all of it to the standard output, if that is the file.
  void print() const {
    if (path_ == "-" && (std::printf("%s", text().c_str()) < 0 || std::fflush(stdout) != 0)) fail("cannot be written");
  }

 private:
  using Value = nlohmann::ordered_json;

  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error(path_ + " " + why); }
  static Value parsed(const Json& json) { return Value::parse(json.text()); }

  void read() {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) fail("cannot be read");
    if (text.empty()) return;
    try {
      all_ = Value::parse(text);
    } catch (const Value::exception& error) {
      fail(std::string("is no JSON, and nothing is measured that would replace it: ") + error.what());
    }
    if (!all_.is_object()) refuse("its value is no object");
    for (const auto& [name, value] : all_.items()) {
      const bool about = name == "about";
      if (about ? !value.is_object() : !value.is_array()) refuse("'" + name + "' is no " + (about ? "object" : "list"));
      for (const Value& one : value)
        if (!one.is_object()) refuse("'" + name + "' holds " + one.dump());
    }
  }
  [[noreturn]] void refuse(const std::string& why) const {
    fail("holds no experiments of bench/run, and nothing is measured that would replace it: " + why);
  }

  /// As the other files of rows look: a line for each row.
  std::string text() const {
    std::string result;
    for (const auto& [name, value] : all_.items()) {
      result += (result.empty() ? "{" : ", ") + Value(name).dump() + ": " + (value.is_object() ? "{" : "[");
      bool first = true;
      for (const auto& [key, one] : value.items()) {
        result += first ? "\n  " : ",\n  ";
        if (value.is_object()) result += Value(key).dump() + ": ";
        result += line(one), first = false;
      }
      result += value.is_object() ? "\n}" : "\n]";
    }
    return result + (result.empty() ? "{}\n" : "}\n");
  }
  static std::string line(const Value& value) {
    if (value.is_number_float()) return Json(value.get<double>()).text();  // in as many digits as it was written
    if (!value.is_structured()) return value.dump();
    std::string result;
    for (const auto& [key, one] : value.items()) {
      if (!result.empty()) result += ", ";
      if (value.is_object()) result += Value(key).dump() + ": ";
      result += line(one);
    }
    return value.is_object() ? "{" + result + "}" : "[" + result + "]";
  }

  const std::string path_;
  std::optional<WholeFile> file_;
  Value all_ = Value::object();
};

/// What programs of one experiment do: `measure(rows, others)` makes its rows and gives what is to be known about them
/// beside their origin, and they go to the file at `json`.
template <class Measure>
void run_experiment(const std::string& name, const std::string& json, Measure measure) {
  if (json == "-") talk() = stderr;
  ResultsFile results(json);
  const OtherWork others;
  std::vector<Json> rows;
  const Json::Fields about = measure(rows, others);
  results.add(name, rows, origin(about));
  results.print();
}

}  // namespace bench
