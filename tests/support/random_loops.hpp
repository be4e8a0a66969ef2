// Random loop schedules: steps drawn from all primitives and the names that the program has, most of them legal.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace cortex::test
