// What tuning keeps in files: the log of a search, from which it goes on, and the cache of what searches have found.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/config.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/regular_file.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/caches.hpp"
#include "cortex/tune/json.hpp"

namespace cortex::tuning {

/// What has become of a candidate.
enum class Outcome : std::uint8_t {
  measured,  // right, and timed
  refused,   // not legal for the model, or too large for the machine: `why` has the library's words
  wrong,     // its results are not those of the default, or it fails where that does not; a defect of the library
};

inline std::string_view to_string(Outcome outcome) {
  constexpr std::string_view names[] = {"measured", "refused", "wrong"};
  return names[std::size_t(outcome)];
}

/// A candidate in the log.
struct Record {
  std::string schedule;  // as text
  Outcome outcome = Outcome::measured;
  std::string why;               // refused, wrong
  double predicted_seconds = 0;  // by the cost model, for all batches; 0: it made no prediction
  double seconds = 0;            // for all batches, the least of each over the rounds
  double ratio = 0;              // to the default's, measured in turn with it
  int rounds = 0;
  bool from_log = false;  // measured by an earlier run
};

/// The order of records of one vector by what they measured, and then by who came first: std::stable_sort would do, but
/// clang warns of what libstdc++ makes it of, as it does of std::stable_partition.
inline bool is_faster(const Record* a, const Record* b) { return a->ratio != b->ratio ? a->ratio < b->ratio : a < b; }

/// What measurements hold for. They are the same model's, on the same machine, over inputs of the same shapes, with as
/// many threads, or they say nothing.
struct Key {
  std::string model, machine, shapes, threads{};
  friend bool operator==(const Key&, const Key&) = default;
};

/// A hash of `text` as 16 hexadecimal digits.
inline std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

/// The processor, its caches, and what code is compiled for.
inline std::string machine_name(const Target& target) {
  std::string cpu = "unknown processor";
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "re")) {
    char text[512];
    while (std::fgets(text, sizeof text, file)) {
      const std::string_view line = text;
      const auto colon = line.find(": ");
      if (line.rfind("model name", 0) != 0 || colon == std::string_view::npos) continue;
      cpu = line.substr(colon + 2, line.find_last_not_of('\n') - colon - 1);
      break;
    }
    std::fclose(file);
  }
  const schedule::CacheSizes caches = runtime::cache_sizes();
  const auto kilobytes = [](double bytes) { return std::to_string(long(bytes / 1024)) + "K"; };
  return cpu + ", " + std::to_string(runtime::usable_cpus()) + " CPUs, caches " + kilobytes(caches.first) + " " +
         kilobytes(caches.second) + " " + kilobytes(caches.last) + "; " +
         (target.backend == Backend::interpreter ? "interpreter" : target.cpu) + ", vectors of " +
         std::to_string(target.vector_bytes) + " bytes, " + std::to_string(target.vector_registers) + " registers, " +
         (target.matrix_unit ? "a matrix unit, " : "") + "features " + hash_of(target.features);
}

namespace detail {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
inline File open_file(const std::string& path, const char* mode) {
  return {std::fopen(path.c_str(), mode), &std::fclose};
}

/// All of a file; nothing if it cannot be read, or is none.
inline std::optional<std::string> read_all(const std::string& path) {
  if (is_special_file(path.c_str())) return {};
  const File file = open_file(path, "re");
  if (!file) return {};
  std::string text;
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, file.get())) > 0;) text.append(part, n);
  if (std::ferror(file.get())) return {};
  return text;
}

/// Writes all of `text` at the end of a file, or nothing: what was written of it is cut off again. Whether it could;
/// `errno` says why not.
inline bool append_all(int file, std::string_view text) {
  struct stat before;
  if (::fstat(file, &before) != 0) return false;
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int why = written < 0 ? errno : ENOSPC;
      while (::ftruncate(file, before.st_size) != 0 && errno == EINTR) {
      }
      errno = why;
      return false;
    }
    text.remove_prefix(std::size_t(written));
  }
  return true;
}

inline std::string header_line(const Key& key, const std::string& start) {
  return JsonLine()
      .text("log", "cortex tune")
      .text("version", CORTEX_VERSION)
      .text("model", key.model)
      .text("machine", key.machine)
      .text("shapes", key.shapes)
      .text("threads", key.threads)
      .text("start", start)
      .str();
}

inline std::string line_of(const Record& record) {
  JsonLine line;
  line.text("schedule", record.schedule).text("outcome", to_string(record.outcome));
  if (!record.why.empty()) line.text("why", record.why);
  line.number("predicted_seconds", record.predicted_seconds);
  if (record.outcome == Outcome::measured)
    line.number("seconds", record.seconds).number("ratio", record.ratio).number("rounds", record.rounds);
  return line.str();
}

/// Whether it is a number that a measurement may give.
inline bool is_measure(double number) { return number >= 0 && number <= std::numeric_limits<double>::max(); }

inline std::optional<Record> record_of(const Json& json) {
  Record record;
  record.schedule = text_of(json, "schedule"), record.why = text_of(json, "why");
  record.predicted_seconds = number_of(json, "predicted_seconds"), record.seconds = number_of(json, "seconds");
  record.ratio = number_of(json, "ratio");
  const double rounds = number_of(json, "rounds");
  for (const double number : {record.predicted_seconds, record.seconds, record.ratio, rounds})
    if (!is_measure(number)) return {};
  if (rounds > std::numeric_limits<int>::max()) return {};
  record.rounds = int(rounds), record.from_log = true;
  for (const Outcome outcome : {Outcome::measured, Outcome::refused, Outcome::wrong})
    if (to_string(outcome) == text_of(json, "outcome")) {
      record.outcome = outcome;
      if (!json.count("schedule") || (outcome == Outcome::measured && !(record.ratio > 0))) return {};
      return record;
    }
  return {};
}

}  // namespace detail

/// The log of a search: a line that says of what, and a line for each candidate, written as soon as it is known, so
/// that a search that was broken off goes on where it was. A last line without its end was being written when that
/// happened, and is taken away.
class Log {
 public:
  Log() = default;

  /// Opens the log at `path`, or begins one; an empty path: none is kept. `start` is the default as text, to which
  /// times are compared. Throws `Error{invalid_argument}` for a log of another model, machine, default, shapes, or
  /// threads, naming what differs, for a file that is no log, a pipe or a device among them, and for one that another
  /// search is writing, in any process. A line behind the first that is no candidate is skipped: what a long search has
  /// found is worth more than that line.
  Log(const std::string& path, const Key& key, const std::string& start) : path_(path) {
    if (path.empty()) return;
    if (path.find('\0') != std::string::npos) fail("it has a zero in its name");
    if (is_special_file(path.c_str())) fail("it is no regular file; give another path");
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) fail("it cannot be written to: " + std::string(std::strerror(errno)));
    // A child that this process forks has the file, too, and would keep the lock.
    file_ = {::fdopen(file, "a"), [](std::FILE* log) { return ::flock(::fileno(log), LOCK_UN), std::fclose(log); }};
    // Before it is read: two that begin it would each write a first line. Where there are no locks, it goes without.
    if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      fail("another search is writing it; wait for that one, or give another path");
    const std::optional<std::string> all = detail::read_all(path);
    if (!all) fail("it cannot be read");
    std::string text = *all;
    const std::string header = detail::header_line(key, start) + "\n";
    const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is none
    if (whole == 0 && header.compare(0, text.size(), text) != 0) no_log();
    const bool cut = whole < text.size();
    text.resize(whole);
    read(text, key, start);
    if (cut && ::truncate(path.c_str(), off_t(whole)) != 0) fail("it cannot be written to");
    if (text.empty() && !detail::append_all(::fileno(file_.get()), header)) fail("a line cannot be written");
  }

  /// The candidates of earlier runs.
  const Vector<Record>& records() const { return records_; }
  /// What was written of it last: one that was measured may have cost the device in the final rounds.
  const Record* find(const std::string& schedule) const {
    for (const Record& record : reversed(records_))
      if (record.schedule == schedule) return &record;
    return nullptr;
  }

  /// Writes a candidate. Where that fails, as on a full disk, nothing more is written: a search is worth more than its
  /// log.
  void add(const Record& record) {
    if (!file_ || !failure_.empty() || detail::append_all(::fileno(file_.get()), detail::line_of(record) + "\n"))
      return;
    failure_ = "tuning log '" + path_ + "': a line cannot be written (" + std::strerror(errno) +
               "); the candidates from there on are not in it";
  }

  /// How many lines of earlier runs are no candidates, and were skipped; empty: none.
  std::string skipped() const {
    if (skipped_ == 0) return {};
    const std::string line = std::to_string(first_skipped_);
    return "tuning log '" + path_ + "': " +
           (skipped_ == 1 ? "line " + line + " is no candidate, and was"
                          : std::to_string(skipped_) + " lines are no candidates, line " + line +
                                " the first of them, and were") +
           " skipped; what stood there is tried again";
  }

  /// Why the log does not have all candidates; empty: it has.
  const std::string& failure() const { return failure_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::invalid_argument, "tuning log '" + path_ + "': " + what);
  }

  [[noreturn]] void no_log() const {
    fail("it is no log of a tuner: its first line does not say so; give another path");
  }

  void read(const std::string& text, const Key& key, const std::string& start) {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t end = text.find('\n', at);
      const auto json = parse_json(std::string_view(text).substr(at, end - at));
      at = end + 1;
      if (number == 0) {
        check_header(json, key, start);
        continue;
      }
      const auto record = json ? detail::record_of(*json) : std::nullopt;
      if (record)
        records_.push_back(*record);
      else if (++skipped_ == 1)
        first_skipped_ = number + 1;
    }
  }

  void check_header(const std::optional<Json>& json, const Key& key, const std::string& start) const {
    if (!json || text_of(*json, "log") != "cortex tune") no_log();
    const auto check = [&](const char* what, const char* other, const std::string& expected) {
      if (const std::string is = text_of(*json, what); is != expected)
        fail("it is of " + std::string(other) + " (" + is + ", and not " + expected +
             "); give another path, or remove it");
    };
    check("version", "another version", CORTEX_VERSION);
    check("model", "another model", key.model);
    check("machine", "another machine", key.machine);
    check("shapes", "inputs of other shapes", key.shapes);
    check("threads", "other threads", key.threads);
    check("start", "another default", start);
  }

  std::string path_, failure_;
  Vector<Record> records_;
  std::size_t skipped_ = 0, first_skipped_ = 0;  // lines: how many, and the number of the first, from 1 on
  detail::File file_{nullptr, &std::fclose};
};

/// How far a search goes, at most. One that ends by itself has no limits.
struct Reach {
  static constexpr double unlimited = std::numeric_limits<double>::max();
  double seconds = unlimited, candidates = unlimited;

  /// Whether a search of `asked` would come no farther. One of no time goes nowhere.
  bool covers(const Reach& asked) const {
    return asked.seconds == 0 || (seconds >= asked.seconds && candidates >= asked.candidates);
  }
};

/// What a search has found.
struct Found {
  std::string schedule;  // as text
  double ratio = 1;      // to the default's time
  double noise = 0;      // of that ratio
  Reach searched = {};
};

/// A folder of results, a file each, named by what they hold for.
class Cache {
 public:
  /// `searched` is what was searched: the space, and the schedule that it begins with. An empty folder: none is kept.
  Cache(std::string folder, const Key& key, const std::string& searched) : folder_(std::move(folder)) {
    line_.text("cache", "cortex tune").text("version", CORTEX_VERSION).text("model", key.model);
    line_.text("machine", key.machine).text("shapes", key.shapes).text("threads", key.threads);
    line_.text("searched", searched);
  }

  /// What an earlier search has found that went as far as `asked`. A file that is not whole, or of something else,
  /// counts as none.
  std::optional<Found> find(const Reach& asked) const {
    const auto text = folder_.empty() ? std::nullopt : detail::read_all(path());
    if (!text || text->empty() || text->back() != '\n') return {};
    const auto json = parse_json(std::string_view(*text).substr(0, text->size() - 1));
    const auto expected = parse_json(line_.str());
    if (!json) return {};
    for (const char* name : {"schedule", "ratio", "noise", "seconds", "candidates"})
      if (!json->count(name)) return {};
    for (const auto& [name, value] : *expected)
      if (text_of(*json, name) != value) return {};
    const Reach searched{number_of(*json, "seconds"), number_of(*json, "candidates")};
    if (!searched.covers(asked)) return {};
    const Found found{text_of(*json, "schedule"), number_of(*json, "ratio"), number_of(*json, "noise"), searched};
    if (!detail::is_measure(found.ratio) || found.ratio == 0 || !detail::is_measure(found.noise)) return {};
    return found;
  }

  /// Makes the folder if it is not there. Throws `Error{invalid_argument}` if nothing can be kept in it, which is to be
  /// known before a search and not after it.
  void open() const {
    if (folder_.empty()) return;
    ::mkdir(folder_.c_str(), 0777);
    if (::access(folder_.c_str(), W_OK | X_OK) != 0) fail();
  }

  /// Keeps `found`. Another process sees all of it or nothing. Throws `Error{invalid_argument}` if it cannot be
  /// written.
  void keep(const Found& found) const {
    if (folder_.empty()) return;
    open();
    JsonLine line = line_;
    line.text("schedule", found.schedule).number("ratio", found.ratio).number("noise", found.noise);
    line.number("seconds", found.searched.seconds).number("candidates", found.searched.candidates);
    const std::string text = line.str() + "\n";
    // Of this process and moment: processes of two containers may have the same number.
    const std::string fresh = path() + "." + std::to_string(::getpid()) + "." +
                              std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) fail();
    const bool written = detail::append_all(file, text);
    if (::close(file) == 0 && written && std::rename(fresh.c_str(), path().c_str()) == 0) return;
    ::unlink(fresh.c_str());
    fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(Code::invalid_argument, "tuning cache '" + folder_ + "': no file can be written there");
  }
  std::string path() const { return folder_ + "/" + hash_of(line_.str()) + ".json"; }

  std::string folder_;
  JsonLine line_;
};

}  // namespace cortex::tuning
