// Random loop schedules: steps drawn from all primitives and the names that the program has, most of them legal.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/verify.hpp"
#include "cortex/loops.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// Draws a step for a program.
class StepMaker {
 public:
  explicit StepMaker(Random& random) : random_(random) {}

  LoopStep step(const ir::Stmt& body, const std::string& primitive) {
    collect(body);
    LoopStep result{primitive, {}, {}};
    for (const char c : pass::detail::primitive_named(primitive)->arguments) switch (c) {
        case 'l': result.names.push_back(loop(result.names.empty() ? "" : result.names.back())); break;
        case 'L': result.names = path(); break;
        case 't': result.names.push_back(pick(tensors_)); break;
        case 'b':
          result.names.push_back(random_.chance(0.5) ? "thread" : random_.chance(0.5) ? "block" : "worker");
          break;
        case 'n': result.numbers.push_back(number(primitive, result.numbers.size())); break;
        case 'N': result.numbers = order(); break;
        default: break;
      }
    return result;
  }

 private:
  struct LoopAt {
    std::string name;
    std::vector<std::string> inside;  // directly in it, one in the other
  };

  const std::string& pick(const std::vector<std::string>& names) {
    static const std::string none = "none";
    return names.empty() ? none : names[std::size_t(random_.below(int(names.size())))];
  }
  /// Any loop; the second of two often directly inside the first, or beside it.
  std::string loop(const std::string& first) {
    if (loops_.empty()) return "none";
    for (std::size_t i = 0; i < loops_.size() && !first.empty(); ++i) {
      if (loops_[i].name != first) continue;
      if (!loops_[i].inside.empty() && random_.chance(0.4)) return loops_[i].inside.front();
      if (random_.chance(0.7)) return loops_[std::min(loops_.size() - 1, i + 1 + std::size_t(random_.below(3)))].name;
    }
    return loops_[std::size_t(random_.below(int(loops_.size())))].name;
  }
  /// Loops of a nest in any order.
  std::vector<std::string> path() {
    std::vector<std::string> result;
    for (int attempt = 0; attempt < 8 && result.size() < 2; ++attempt) {
      result.clear();
      if (loops_.empty()) break;
      const LoopAt& outer = loops_[std::size_t(random_.below(int(loops_.size())))];
      result.push_back(outer.name);
      for (const std::string& inner : outer.inside)
        if (random_.chance(0.8)) result.push_back(inner);
    }
    for (std::size_t i = result.size(); i > 1; --i)
      std::swap(result[i - 1], result[std::size_t(random_.below(int(i)))]);
    return result;
  }
  std::int64_t number(const std::string& primitive, std::size_t which) {
    if (primitive.rfind("layout_", 0) == 0 && which == 0) return random_.below(3);
    constexpr int factors[] = {1, 2, 3, 4, 5, 8};
    return factors[random_.below(6)];
  }
  std::vector<std::int64_t> order() {
    std::vector<std::int64_t> result;
    for (int n = 1 + random_.below(4), i = 0; i < n; ++i)
      result.insert(result.begin() + random_.below(int(result.size()) + 1), i);
    return result;
  }

  void collect(const ir::Stmt& body) {
    loops_.clear(), tensors_.clear();
    ir::visit_with(
        body,
        [&](const ir::For& loop) {
          loops_.push_back({schedule::name_of(loop), {}});
          ir::Stmt at = loop.body;
          for (;;) {
            if (const auto* let = at.as<ir::LetStmt>()) {
              at = let->body;
            } else if (const auto* inner = at.as<ir::For>()) {
              loops_.back().inside.push_back(schedule::name_of(*inner));
              at = inner->body;
            } else {
              break;
            }
          }
        },
        [&](const ir::Load& load) { tensors_.push_back(load.buffer->name); },
        [&](const ir::Store& store) { tensors_.push_back(store.buffer->name); });
  }

  Random& random_;
  std::vector<LoopAt> loops_;
  std::vector<std::string> tensors_;
};

/// How many cases there were, and how many steps.
struct Tally {
  int cases = 0, applied = 0, refused = 0;
  std::map<std::string, int> by_primitive;

  std::string text() const {
    std::string all = std::to_string(cases) + " cases, " + std::to_string(applied) + " steps, " +
                      std::to_string(refused) + " refused;";
    for (const auto& [name, count] : by_primitive) all += " " + name + " " + std::to_string(count);
    return all;
  }
};

/// Steps drawn one after the other; those that are refused are left out.
class RandomLoops {
 public:
  RandomLoops(Random& random, const ir::Stmt& lowered, const Target& target, Tally& tally)
      : random_(random), target_(target), tally_(tally), maker_(random), body_(loops.named(lowered)) {
    ir::visit_with(lowered, [&](const ir::Select& select) {
      ir::visit_with(select.condition,
                     [&](const ir::Binary& comparison) { compares_ |= is_float(comparison.a.dtype()); });
    });
  }

  Loops loops;
  /// The program after them.
  const ir::Stmt& body() const { return body_; }

  /// Some steps; sometimes barriers, and some more steps behind them. Whether several workers may run the program.
  bool draw() {
    draw(random_.below(5), true);
    const bool several = random_.chance(0.3) && take({"insert_barriers", {}, {}});
    draw(1 + random_.below(4), several);
    return several;
  }

  /// Up to `wanted` steps; those for several workers only if there are any.
  void draw(int wanted, bool several) {
    for (int attempt = 0; wanted > 0 && attempt < 60; ++attempt) {
      const auto& all = pass::detail::loop_primitives;
      const std::string primitive(all[std::size_t(random_.below(int(all.size())))].name);
      if (primitive == "insert_barriers" || (!several && primitive == "share_work")) continue;
      if (primitive == "rfactor" && compares_) continue;  // equal sums that are rounded otherwise compare otherwise
      wanted -= take(maker_.step(body_, primitive));
    }
  }

  /// A step of `primitive` on some of the program's loops and tensors. Whether one of `attempts` was possible.
  bool take_any(const std::string& primitive, int attempts) {
    const bool whole = pass::detail::primitive_named(primitive)->arguments.empty();
    for (int attempt = 0; attempt < (whole ? 1 : attempts); ++attempt)
      if (take(maker_.step(body_, primitive))) return true;
    return false;
  }

  /// Whether the step is possible and changes something.
  bool take(const LoopStep& step) {
    try {
      std::vector<LoopStep> steps = loops.steps();
      steps.push_back(step);
      const Loops longer(steps);
      const ir::Stmt after = longer.apply(loops.size(), body_, target_);
      if (after.same_as(body_)) return false;
      ir::verify(after, ir::Level::scheduled);
      body_ = after;
      loops = longer;
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule)
        FAIL(to_string(loops) << to_string(step) << ": " << error.message << "\n" << ir::print(body_));
      ++tally_.refused;
      return false;
    }
    ++tally_.by_primitive[step.primitive], ++tally_.applied;
    return true;
  }

 private:
  Random& random_;
  const Target& target_;
  Tally& tally_;
  StepMaker maker_;
  ir::Stmt body_;
  bool compares_ = false;  // whether the model chooses by what it computes
};

}  // namespace cortex::test
