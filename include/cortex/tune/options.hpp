// What a search is told, what it tells, and what it finds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/tune/log.hpp"
#include "cortex/tune/space.hpp"

namespace cortex {

namespace tuning {

/// How times are taken. Tests put one in its place that is told what they are.
class Timer {
 public:
  virtual ~Timer() = default;
  /// Seconds since some moment.
  virtual double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// Seconds that `call` takes, which runs a batch under that schedule.
  virtual double time(const Schedule&, std::size_t /*batch*/, FunctionRef<void()> call) {
    const double begin = now();
    call();
    return now() - begin;
  }
};

/// Told after each candidate, and, as long as candidates are predicted, now and then: then none is done, and `last` is
/// the default.
struct Progress {
  std::size_t done, total;  // candidates beside the default
  const Record& last;
  double best_ratio;  // the least so far, to the default's time; 1 if none is faster
  double seconds;     // since the search began
};

/// Why a search ended.
enum class Ended : std::uint8_t {
  all_tried,   // every schedule of the space
  no_gain,     // guided: as many as `patience` in a row were no better
  candidates,  // as many as `most_candidates`
  seconds,     // as long as `seconds`
  cancelled,
  from_cache,  // nothing was tried
};

}  // namespace tuning

/// How `tune` searches.
struct TuneOptions {
  /// `guided`: in the order of the time that the cost model predicts, or on a GPU of how few decisions are not the
  /// default's, the neighbours of the best one first, until nothing is gained. `grid`: all, in the order of the axes.
  enum class Search : std::uint8_t { guided, grid } search = Search::guided;
  std::optional<Schedule> start;       // the default; none: `Schedule::standard()` for at most the workers there are
  std::optional<tuning::Space> space;  // what is varied of it; none: `tuning::default_space`
  std::size_t most_candidates = 100;   // the default among them, and not those that are refused
  double seconds = 120;                // of search, of which the cost model takes a quarter at most; a candidate that
                                       // has been begun is measured in three rounds of all batches, with the default in
                                       // turn. Then come the final rounds, of half of it if that is enough for nine
  double seconds_a_candidate = 0.2;    // of measuring, at least
  std::size_t patience = 20;           // candidates in a row that are no better end a guided search; on a GPU at least
                                       // as many as a schedule has neighbours
  int final_rounds = 31;               // in which the best ones are measured again, six at least, with fewer of which
                                       // nothing is 95% certain; 0: none is, and the default stays
  double least_gain = 0.01;            // of the default's time, below which the default stays
  std::int32_t checked_nodes = 2000;   // at which results that round otherwise are held against the equations, at least
                                       // those of the first batch, or none for 0; see `tuning::mismatch` for the costs
  double seconds_a_check = 2;          // that this may take a candidate; nodes that are left out then are random ones
  std::string log;                     // a file from which a search goes on; empty: none
  /// A folder of results; empty: none. A result is taken if the search that found it had the same options but for these
  /// two, and was allowed as many candidates and as many seconds as this one is, or ended before both. So 0 seconds
  /// take whatever there is.
  std::string cache;
  std::stop_token stop;  // cancels
  std::function<void(const tuning::Progress&)> progress;
  tuning::Timer* timer = nullptr;  // null: the system's clock
};

/// What `tune` has found.
struct Tuned {
  Schedule schedule;    // the fastest one, or the default
  Schedule start;       // the default
  bool faster = false;  // whether `schedule` is another one than the default
  double ratio = 1;     // of the winner's time to the default's, measured again, side by side
  double noise = 0;     // by how much that may be more, with 95% certainty
  tuning::Ended ended = tuning::Ended::all_tried;
  std::size_t space_size = 0;         // how many schedules there were to try
  Vector<tuning::Record> candidates;  // in the order in which they were tried; the first one is the default. Empty if
                                      // the result is from the cache, or the search was cancelled before
  tuning::Key key;
  std::string not_kept;  // why the cache does not have this result, as when the disk is full, or no candidate was tried
                         // in time, or why the log does not have all candidates; empty: they have, or none was asked
                         // for, or, of the cache, the search was cancelled
  std::string not_read;  // which lines of the log were damaged, and skipped; empty: none
};

}  // namespace cortex
