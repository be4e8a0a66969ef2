// The search of a tuner, apart from node types: which schedule to try next, whether it is right, how fast it is, and
// whether the best one is really faster.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ra/print.hpp"
#include "cortex/schedule/piece_nodes.hpp"
#include "cortex/tune/log.hpp"
#include "cortex/tune/options.hpp"
#include "cortex/tune/predict.hpp"
#include "cortex/tune/results.hpp"
#include "cortex/tune/space.hpp"
#include "cortex/tune/subject.hpp"

namespace cortex::tuning {

/// The middle of some numbers, and between which of them it lies with 95% certainty, by the sign test: whatever the
/// numbers' distribution. It takes six or more.
struct Median {
  static constexpr int least_numbers = 6;  // between the least and the greatest of five it is with 94%
  double value = 0, lower = 0, upper = 0;

  static Median of(Vector<double> numbers) {
    std::sort(numbers.begin(), numbers.end());
    const std::size_t n = numbers.size(), half = n / 2;
    const double value = n % 2 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
    const double reach = 0.5 * double(n) - 0.98 * std::sqrt(double(n));
    const std::size_t first = std::size_t(std::max(0.0, std::floor(reach) - 1));
    return {value, numbers[first], numbers[n - 1 - first]};
  }
};

/// One search.
class Search {
 public:
  Search(const Subject& subject, const TuneOptions& options)
      : subject_(subject), options_(options), timer_(options.timer ? options.timer : &own_timer_), loader_(subject) {
    if (subject.target.backend != Backend::cuda) predictor_.emplace(subject.graph, subject.target);
    if (subject.num_batches == 0)
      throw Error(Code::invalid_argument, "tune: there are no batches to measure with; give some of your own inputs");
    const auto check = [](bool right, const char* option, double given, const char* least) {
      if (right) return;
      char text[160];
      std::snprintf(text, sizeof text, "tune: TuneOptions::%s is %g; give %s", option, given, least);
      throw Error(Code::invalid_argument, text);
    };
    check(options.seconds >= 0, "seconds", options.seconds, "0 or more");
    check(options.seconds_a_candidate >= 0, "seconds_a_candidate", options.seconds_a_candidate, "0 or more");
    check(options.least_gain >= 0, "least_gain", options.least_gain, "0 or more, a share of the default's time");
    check(options.final_rounds >= 0, "final_rounds", options.final_rounds, "0 or more");
    check(options.checked_nodes >= 0, "checked_nodes", options.checked_nodes, "0 or more");
    check(options.seconds_a_check >= 0, "seconds_a_check", options.seconds_a_check, "0 or more");
    check(options.most_candidates > 0, "most_candidates", 0, "1 or more: the default is one of them");
    result_.start =
        options.start ? *options.start : Schedule::standard().workers(subject.workers).workers_where_they_pay();
    result_.schedule = result_.start;
    space_ =
        options.space ? *options.space : default_space(subject.graph, subject.target, subject.workers, result_.start);
    begin_ = timer_->now();
    points_ = space_.points(result_.start);
    result_.space_size = points_.size();
  }

  Tuned run() {
    look_at_inputs();
    const std::string start = to_string(result_.start);
    const Cache cache(options_.cache, result_.key, space_.text() + "\n" + start + "\n" + manner());
    if (take_from(cache)) return std::move(result_);
    cache.open();
    log_ = Log(options_.log, result_.key, start);
    result_.not_read = log_.skipped();
    make_default();
    try_all();
    result_.not_kept = log_.failure();
    if (result_.ended == Ended::cancelled) return std::move(result_);
    if (options_.final_rounds == 0) {
      if (!options_.cache.empty()) not_kept("without final rounds there is no result");
      return std::move(result_);
    }
    decide();
    if (result_.ended == Ended::cancelled) return std::move(result_);
    if (!any_tried_ && points_.size() > 1) {  // which says nothing of the default
      if (!options_.cache.empty())
        not_kept(result_.ended == Ended::seconds ? "the time was over before a candidate was tried"
                                                 : "no candidate was tried");
      return std::move(result_);
    }
    try {
      cache.keep({to_string(result_.schedule), result_.ratio, result_.noise, searched()});
    } catch (const Error& error) {  // what took so long to find is not lost for it
      not_kept(error.message);
    }
    return std::move(result_);
  }

 private:
  void not_kept(const std::string& why) { result_.not_kept += (result_.not_kept.empty() ? "" : "; ") + why; }

  // ---- what it is of ----

  /// What is wrong with the nodes of a batch is told with its number: roots and nodes are counted in each anew.
  static void in_batch(std::size_t b, FunctionRef<void()> call) {
    try {
      call();
    } catch (Error& error) {
      if (error.code == Code::invalid_structure || error.code == Code::out_of_range)
        error.message = "tune: batch " + std::to_string(b) + ": " + error.message;
      throw;
    }
  }

  /// The shapes of the user's inputs, with and without equal subtrees, as the space's schedules ask for it, by models
  /// that are never run: that costs no machine code. Levels are the nodes' heights, however a schedule fills them.
  void look_at_inputs() {
    std::string shapes;
    double most_nodes = 0;  // of a call
    for (const bool shared : {false, true}) {
      const auto needs = [&](const Point& point) {
        return shares_subtrees(subject_.graph, point.schedule, subject_.target) == shared;
      };
      if (!any_of(points_, needs)) continue;
      const Schedule schedule = Schedule::standard().fill_levels(1).whole_calls();
      const auto plain =
          subject_.make(shared ? schedule.share_subtrees() : schedule.share_no_subtrees(), interpreted());
      CallSample sample;
      const auto look = [&](std::size_t b) {
        plain->number(b, [&](const runtime::Workspace& call) {
          const schedule::CallShape shape = shape_of(call);
          if (shape.roots == 0)
            throw Error(Code::invalid_argument,
                        "tune: batch " + std::to_string(b) + " has no roots; calls of it take no time");
          sample.add(shape);
          most_nodes = std::max(most_nodes, shape.nodes());
          for (const schedule::CallShape::Level& level : shape.levels)
            shapes += std::to_string(std::int64_t(level.nodes)) + "/" + std::to_string(std::int64_t(level.edges)) + " ";
          shapes += "of " + std::to_string(std::int64_t(shape.roots)) + ";";
          for (std::size_t w = 0; b == 0 && w < call.weights().shapes.size(); ++w)
            shapes += runtime::shape_text(call.weights().shapes[w]);
        });
      };
      for (std::size_t b = 0; b < subject_.num_batches; ++b) in_batch(b, [&] { look(b); });
      if (predictor_) predictor_->take(sample, shared);
    }
    leave_whole(most_nodes);
    result_.key = {subject_.graph.name + " " + hash_of(ra::print(subject_.graph)), subject_.machine,
                   std::to_string(subject_.num_batches) + " batches " + hash_of(shapes), threads()};
  }

  /// Leaves out the points that would divide calls as the start does: none, since all have fewer nodes.
  void leave_whole(double most_nodes) {
    const auto pieces = [&](const Schedule& s) {
      const int least =
          s.piece_nodes == Schedule::by_the_caches ? schedule::least_piece(subject_.graph.structure) : s.piece_nodes;
      return most_nodes < 2.0 * least ? 0 : s.piece_nodes;
    };
    const auto is_the_same = [&](const Point& point) {
      return point.schedule.piece_nodes != result_.start.piece_nodes && pieces(point.schedule) == pieces(result_.start);
    };
    points_.erase(std::remove_if(points_.begin(), points_.end(), is_the_same), points_.end());
    result_.space_size = points_.size();
  }

  /// With how many a call is measured: what a schedule leaves to the compiler follows from them, too.
  std::string threads() const {
    const std::string count = std::to_string(subject_.workers) + (subject_.workers == 1 ? " thread" : " threads");
    return subject_.placement == Placement::pinned ? count + ", pinned" : count;
  }

  bool take_from(const Cache& cache) {
    const auto found = cache.find(limits());
    const std::optional<Schedule> schedule = found ? schedule_of(found->schedule) : std::nullopt;
    if (!schedule) return false;
    result_.schedule = *schedule;
    result_.faster = !(result_.schedule == result_.start);
    result_.ratio = found->ratio, result_.noise = found->noise;
    result_.ended = Ended::from_cache;
    return true;
  }

  /// What of the options beside its limits decides what it finds.
  std::string manner() const {
    char text[200];
    std::snprintf(text, sizeof text,
                  "%s, %g seconds a candidate, %d rounds, gains of %g, %d nodes checked in %g seconds",
                  options_.search == TuneOptions::Search::grid
                      ? "all"
                      : ("guided, patience " + std::to_string(options_.patience)).c_str(),
                  options_.seconds_a_candidate, options_.final_rounds, options_.least_gain, int(options_.checked_nodes),
                  options_.seconds_a_check);
    return text;
  }

  /// How far the options let it go.
  Reach limits() const { return {std::min(options_.seconds, Reach::unlimited), double(options_.most_candidates)}; }

  /// How far it went.
  Reach searched() const {
    const bool limited = result_.ended == Ended::seconds || result_.ended == Ended::candidates || !predicts_all_;
    return limited ? limits() : Reach{};
  }

  /// The point of the space with that text.
  std::optional<Schedule> schedule_of(const std::string& text) const {
    for (const Point& point : points_)
      if (to_string(point.schedule) == text) return point.schedule;
    return {};
  }

  Target interpreted() const {
    Target target = subject_.target;
    target.backend = Backend::interpreter;
    return target;
  }

  // ---- trying ----

  /// The schedule that all others are held against. Its errors are the user's: weights that are not bound, a structure
  /// that is not the model's.
  void make_default() {
    if (stopped()) return;
    loader_.load({result_.start});
    default_ = loader_.take(result_.start);
    for (std::size_t b = 0; b < subject_.num_batches && !stopped(); ++b)
      in_batch(b, [&] {
        default_->inspect(b, [&](const CallResults& call) {
          expected_.push_back(fingerprint(call));
          decided_ = call.plan.executable->schedule;
        });
      });
    Record record;
    record.schedule = to_string(result_.start);
    record.ratio = 1, record.rounds = 5;
    Least least;
    double spent = 0;
    for (int round = 0; round < record.rounds && !stopped(); ++round) {
      spent += round_of(*default_, result_.start, least);
      if (spent >= options_.seconds) record.rounds = round + 1;
    }
    if (stopped()) return;
    record.seconds = least.sum();
    if (predictor_) record.predicted_seconds = predictor_->seconds(predictor_->program(result_.start), result_.start);
    result_.candidates.push_back(record);
  }

  struct Candidate {
    Point point;
    double predicted = 0;    // seconds; 0: it is not
    std::size_t number = 0;  // in the space

    /// On how many axes it is not the default.
    std::size_t decisions() const {
      return point.choices.size() - std::size_t(std::count(point.choices.begin(), point.choices.end(), 0));
    }
  };

  void try_all() {
    Vector<Candidate> waiting = candidates();
    if (stopped()) return end(Ended::cancelled);
    const bool guided = options_.search == TuneOptions::Search::guided;
    std::size_t patience = predictor_ ? options_.patience : std::max(options_.patience, most_neighbours(space_));
    if (!guided) patience = waiting.size();
    std::size_t since_best = 0, left = options_.most_candidates - 1;  // but for those that are refused
    for (std::size_t at = 0; at < waiting.size(); ++at) {
      if (stopped()) return end(Ended::cancelled);
      if (left == 0) return end(Ended::candidates);
      if (since_best >= patience) return end(Ended::no_gain);
      if (timer_->now() - begin_ >= options_.seconds) return end(Ended::seconds);
      const Candidate& candidate = waiting[at];
      const std::string text = to_string(candidate.point.schedule);
      any_tried_ = true;
      const Record* const logged = log_.find(text);
      if (!logged && !loader_.has(candidate.point.schedule))
        loader_.load(next_to_load(waiting, at, std::min(left, patience - since_best)));
      const std::optional<Record> record = logged ? *logged : attempt_one(candidate, text);
      if (!record) return end(Ended::cancelled);
      if (!logged) log_.add(*record);
      result_.candidates.push_back(*record);
      const bool refused = record->outcome == Outcome::refused;
      if (!refused) --left, ++since_best;
      if (record->outcome == Outcome::measured && record->ratio < best_) {
        // What is within the noise is no new best one, whose neighbours would come first.
        const bool better = record->ratio < followed_ * (1 - options_.least_gain);
        best_ = record->ratio;
        if (better) followed_ = best_, since_best = 0;
        if (better && guided)
          neighbours_first(candidate.point, waiting.begin() + std::ptrdiff_t(at) + 1, waiting.end());
      }
      tell(at + 1, at + 1 + std::min(left, waiting.size() - at - 1), result_.candidates.back());
    }
    end(Ended::all_tried);
  }

  /// From `at` on as many as are loaded at once, and at most `most`, but for what is loaded or in the log.
  Vector<Schedule> next_to_load(const Vector<Candidate>& waiting, std::size_t at, std::size_t most) const {
    Vector<Schedule> next;
    for (; at < waiting.size() && next.size() < std::min(most, subject_.loads_at_once); ++at) {
      const Schedule& schedule = waiting[at].point.schedule;
      if (!loader_.has(schedule) && !log_.find(to_string(schedule))) next.push_back(schedule);
    }
    return next;
  }

  /// Moves the neighbours of `point` before the others, and leaves both in their order.
  static void neighbours_first(const Point& point, auto next, auto end) {
    for (auto it = next; it != end; ++it)
      if (are_neighbours(point, it->point)) std::rotate(next++, it, it + 1);
  }

  void end(Ended how) { result_.ended = how; }
  bool stopped() const { return options_.stop.stop_requested(); }

  /// All but the default, in the order in which they are tried. Those that the compiler refuses are noted and left out.
  /// What there was no time to predict comes last, and of that, as on a GPU of all, what is nearest to the default
  /// first.
  Vector<Candidate> candidates() {
    Vector<Candidate> result;
    const double begin = timer_->now();
    double told = begin;
    bool in_time = true;
    for (const Point& point : points_) {
      if (stopped()) return {};
      if (point.schedule == result_.start) continue;
      Candidate candidate{point, 0, result.size()};
      if (predictor_ && in_time) {
        Predictor::Program& program = predictor_->program(point.schedule);
        if (!program.refused.empty()) {
          refused(to_string(point.schedule), program.refused);
          continue;
        }
        candidate.predicted = predictor_->seconds(program, point.schedule);
        const double now = timer_->now();
        in_time = now - begin < options_.seconds / 4 && now - begin_ < options_.seconds;
        predicts_all_ = in_time || &point == &points_.back();
        if (now - told >= 1) {
          tell(0, std::min(points_.size(), options_.most_candidates) - 1, result_.candidates[0]);
          told = now;
        }
      }
      result.push_back(std::move(candidate));
    }
    if (options_.search == TuneOptions::Search::guided)
      std::sort(result.begin(), result.end(), [](const Candidate& a, const Candidate& b) {
        const double x = a.predicted, y = b.predicted;
        if ((x == 0) != (y == 0)) return y == 0;
        const std::size_t m = a.decisions(), n = b.decisions();
        return x != y ? x < y : m != n ? m < n : a.number < b.number;
      });
    return result;
  }

  void tell(std::size_t done, std::size_t total, const Record& last) const {
    if (options_.progress) options_.progress({done, total, last, best_, timer_->now() - begin_});
  }

  void refused(const std::string& schedule, const std::string& why) {
    Record record;
    record.schedule = schedule, record.outcome = Outcome::refused, record.why = why;
    if (!log_.find(schedule)) log_.add(record);
    result_.candidates.push_back(std::move(record));
  }

  /// What `work` on a candidate gives. What has cost the device is noted: a later search with the same log passes it
  /// by.
  template <class Work>
  auto noting_loss(Record& record, const Work& work) {
    try {
      return work();
    } catch (const Error& error) {
      if (error.code != Code::device_lost) throw;
      record.outcome = Outcome::wrong, record.why = error.message;
      log_.add(record);
      throw;
    }
  }

  /// Checks and measures a candidate that is loaded; nothing if that is cancelled.
  std::optional<Record> attempt_one(const Candidate& candidate, const std::string& text) {
    Record record;
    record.schedule = text;
    record.predicted_seconds = candidate.predicted;
    return noting_loss(record, [&]() -> std::optional<Record> {
      const auto trial = take(candidate.point.schedule, record);
      if (!trial) return record;
      const auto measured = measure(*trial, candidate.point.schedule, record);
      return measured ? std::optional(record) : std::nullopt;
    });
  }

  /// A loaded candidate, if it is right; otherwise nothing, and `record` says why.
  std::unique_ptr<Trial> take(const Schedule& schedule, Record& record) {
    std::unique_ptr<Trial> trial;
    try {
      trial = loader_.take(schedule);
      const auto why = wrong(*trial);
      if (!why) return trial;
      record.outcome = Outcome::wrong, record.why = *why;
      if (may_differ_unless_finite(schedule, result_.start, subject_.target) && !default_is_finite()) {
        record.outcome = Outcome::refused;
        record.why =
            "results or weights are not all finite, and then versions of branches and leaves, unrolling and "
            "matrix units may change results, as here: " +
            *why;
      }
    } catch (const Error& error) {
      if (error.code == Code::device_lost) throw;  // nothing can be tried on it any more
      // What was compiled can be called, where the default can; all is a defect then but memory, weights that its
      // storage does not hold, and what `wrong` throws.
      constexpr Code may_happen[] = {Code::out_of_memory, Code::invalid_weights, Code::invalid_schedule};
      const bool defect = trial && !contains(may_happen, error.code);
      record.outcome = defect ? Outcome::wrong : Outcome::refused, record.why = error.message;
      no_room_ |= error.code == Code::out_of_memory;
    }
    return {};
  }

  /// Whether all results and weights of the default are finite.
  bool default_is_finite() {
    if (finite_) return *finite_;
    finite_ = true;
    for (std::size_t b = 0; b < subject_.num_batches && *finite_; ++b)
      default_->inspect(b, [&](const CallResults& call) { finite_ = all_finite(call); });
    return *finite_;
  }

  std::optional<std::string> wrong(Trial& trial) {
    std::optional<std::string> why;
    Effort effort{options_.checked_nodes, options_.seconds_a_check};
    for (std::size_t b = 0; b < subject_.num_batches && !why; ++b)
      trial.inspect(b, [&](const CallResults& call) {
        if (fingerprint(call) == expected_[b]) return;
        const Schedule& schedule = call.plan.executable->schedule;
        if (round_alike(schedule, decided_, subject_.target)) {
          why = "its results are not those of the default, bit by bit";
        } else if (schedule.gpu.tensor_cores != GpuSchedule::TensorCores::off ||
                   decided_.gpu.tensor_cores != GpuSchedule::TensorCores::off) {
          throw Error(
              Code::invalid_schedule,
              "it adds or rounds otherwise than the default, and what tensor cores round is compared bit by bit "
              "alone, not with the equations; leave GpuSchedule::parts and tensor_cores as the default has "
              "them, and refactor and unroll out");
        } else if (effort.nodes > 0 && !effort.is_spent()) {
          why = mismatch(call, effort);
        }
        if (why) *why = "batch " + std::to_string(b) + ": " + *why;
      });
    return why;
  }

  // ---- measuring ----

  /// The least time of each batch: others on the machine only take time away.
  struct Least {
    Vector<double> seconds;  // [batch]
    double sum() const {
      double sum = 0;
      for (const double s : seconds) sum += s;
      return sum;
    }
  };

  /// All batches once, after calls that are not timed: they bring weights into the caches, and wake threads. Their time
  /// in all, and in `least` that of each.
  double round_of(Trial& trial, const Schedule& schedule, Least& least) {
    const std::size_t before = long_round_ ? 1 : subject_.num_batches;
    for (std::size_t b = 0; b < before; ++b) trial.call(b);
    least.seconds.resize(subject_.num_batches, HUGE_VAL);
    double seconds = 0;
    for (std::size_t b = 0; b < subject_.num_batches; ++b) {
      const double one = timer_->time(schedule, b, [&] { trial.call(b); });
      least.seconds[b] = std::min(least.seconds[b], one);
      seconds += one;
    }
    long_round_ = seconds > 0.01;
    return seconds;
  }

  /// In turn with the default, so that a machine whose clock drifts does so for both.
  bool measure(Trial& trial, const Schedule& schedule, Record& record) {
    Least own, other;
    const double begin = timer_->now();
    for (int round = 0; round < 101; ++round) {
      if (stopped()) return false;
      if (round % 2) round_of(trial, schedule, own);
      round_of(*default_, result_.start, other);
      if (round % 2 == 0) round_of(trial, schedule, own);
      record.rounds = round + 1, record.seconds = own.sum(), record.ratio = own.sum() / other.sum();
      const double now = timer_->now(), spent = now - begin;  // short calls may all fall into another process's time
      const bool over = round >= 2 && now - begin_ >= options_.seconds;
      const bool hopeless = round >= 2 && spent >= options_.seconds_a_candidate / 4 && record.ratio > 1.1;
      if (hopeless || (round >= 4 && spent >= options_.seconds_a_candidate) || over) break;
    }
    if (!(own.sum() > 0 && other.sum() > 0)) {
      record.outcome = Outcome::refused, record.why = "calls take no measurable time; give larger batches";
      record.seconds = record.ratio = 0;
    }
    return true;
  }

  // ---- the decision ----

  struct Finalist {
    Schedule schedule;
    Record record;
    std::unique_ptr<Trial> trial;
    Vector<double> ratios;  // [round] to the default's time
    Least least;
  };

  /// The best three are compiled, checked and measured again, side by side with the default, by which the luck of the
  /// first measurement goes. One wins if it is faster by more than the noise, in its median and in its least times;
  /// ties keep the default.
  void decide() {
    Vector<Finalist> finalists = best_ones();
    if (finalists.empty()) return;
    Least least;  // of the default
    const double begin = timer_->now();
    const int rounds = std::max(options_.final_rounds, Median::least_numbers);
    for (int round = 0; round < rounds; ++round) {
      if (round >= 9 && timer_->now() - begin > options_.seconds / 2) break;
      if (stopped()) return end(Ended::cancelled);
      Vector<double> times(finalists.size() + 1);
      for (std::size_t i = 0; i < times.size(); ++i) {
        const std::size_t turn = (i + std::size_t(round)) % times.size();  // nobody is always the first
        Finalist* const own = turn == 0 ? nullptr : &finalists[turn - 1];
        times[turn] = own ? noting_loss(own->record, [&] { return round_of(*own->trial, own->schedule, own->least); })
                          : round_of(*default_, result_.start, least);
      }
      if (any_of(times, [](double seconds) { return !(seconds > 0); })) return;  // of no time there are no ratios
      for (std::size_t f = 0; f < finalists.size(); ++f) finalists[f].ratios.push_back(times[f + 1] / times[0]);
    }
    const auto ratio_of = [&](const Finalist& f) {
      return std::max(Median::of(f.ratios).value, f.least.sum() / least.sum());
    };
    const auto less = [&](const Finalist& a, const Finalist& b) { return ratio_of(a) < ratio_of(b); };
    const Finalist& winner = *std::min_element(finalists.begin(), finalists.end(), less);
    const Median median = Median::of(winner.ratios);
    result_.ratio = ratio_of(winner), result_.noise = median.upper - median.value;
    result_.faster = std::max(median.upper, result_.ratio) < 1 - options_.least_gain;
    if (result_.faster) result_.schedule = winner.schedule;
  }

  Vector<Finalist> best_ones() {
    Vector<const Record*> order;
    for (std::size_t c = 1; c < result_.candidates.size(); ++c)
      if (result_.candidates[c].outcome == Outcome::measured && result_.candidates[c].ratio < 1)
        order.push_back(&result_.candidates[c]);
    std::sort(order.begin(), order.end(), is_faster);
    constexpr std::size_t most = 3;
    Vector<Finalist> result;
    no_room_ = false;
    for (std::size_t next = 0; next < order.size() && result.size() < most && !stopped();) {
      if (no_room_ && !result.empty()) break;  // memory holds no more of them at the same time
      Vector<Schedule> best;                   // as many as are missing
      for (; next < order.size() && result.size() + best.size() < most; ++next)
        best.push_back(schedule_of(order[next]->schedule).value());
      loader_.load(best);
      for (const Schedule& schedule : best) {
        Record again;
        again.schedule = to_string(schedule);
        auto trial = noting_loss(again, [&] { return take(schedule, again); });
        if (trial) result.push_back({schedule, std::move(again), std::move(trial), {}, {}});
      }
    }
    return result;
  }

  const Subject& subject_;
  const TuneOptions& options_;
  Timer own_timer_;
  Timer* const timer_;
  Space space_;
  Vector<Point> points_;
  Tuned result_;
  Log log_;
  Vector<Vector<std::uint64_t>> expected_;  // [batch] fingerprints of the default's results
  Schedule decided_;                        // the default, as it was compiled
  std::optional<Predictor> predictor_;      // for CPUs, which the cost model is of
  Loader loader_;
  std::unique_ptr<Trial> default_;
  double begin_ = 0, best_ = 1, followed_ = 1;  // ratios: the least, and of the one whose neighbours came first
  bool long_round_ = false, any_tried_ = false;
  bool predicts_all_ = true;    // there was time to
  bool no_room_ = false;        // memory did not suffice for a candidate
  std::optional<bool> finite_;  // of the default's results and weights, once it is known
};

}  // namespace cortex::tuning
