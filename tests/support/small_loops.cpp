#include "support/small_loops.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "cortex/ir/interpret.hpp"
#include "cortex/ir/verify.hpp"
#include "cortex/pass/loops.hpp"

namespace cortex::test::small {

ir::Stmt after(const ir::Stmt& body, const std::string& steps, const Target& target) {
  const Loops loops = Loops::parse(steps);
  ir::Stmt result = loops.named(body);
  for (std::size_t step = 0; step < loops.size(); ++step) result = loops.apply(step, result, target);
  return result;
}

std::string refusal(const ir::Stmt& body, const std::string& steps, const Target& target) {
  try {
    after(body, steps, target);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return {};
}

ir::Program program_of(const ir::Stmt& body, ir::Program like) {
  like.body = body;
  like.level = ir::Level::scheduled;
  like.buffers.clear();
  for (const bool states : {true, false}) {
    const auto add = [&](const ir::Buffer& b) {
      const bool state = b->role == ir::Role::state;
      if (state == states && b->scope != ir::Scope::local && ir::index_of(like, b) < 0) like.buffers.push_back(b);
    };
    ir::visit_with(
        body, [&](const ir::Load& l) { add(l.buffer); }, [&](const ir::Store& s) { add(s.buffer); });
  }
  return like;
}

std::string text_of(const ir::Program& program) {
  std::string text = ir::print(program), places;
  for (const ir::Buffer& b : program.buffers) {
    if (b->layout.empty()) continue;
    places += "  # element of " + b->name + " at ";
    std::string sum;
    for (std::size_t a = b->layout.axes.size(); a-- > 0;) {
      const ir::Axis& axis = b->layout.axes[a];
      sum += (sum.empty() ? "" : " + ") + b->dims[std::size_t(axis.source)].name();
      if (axis.divisor > 1) sum += " / " + std::to_string(axis.divisor);
      if (axis.modulus) sum += " % " + std::to_string(axis.modulus);
      if (axis.stride != 1) sum += " * " + std::to_string(axis.stride);
    }
    places += sum + (b->layout.fixed_size ? ", of " + std::to_string(b->layout.fixed_size) : "") + "\n";
  }
  return text.insert(text.find('\n') + 1, places);
}

std::string difference(const ir::Program& before, const ir::Program& after, int workers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ir::Storage weights;
  for (const ir::Buffer& b : before.buffers) {
    if (b->role != ir::Role::weight || b->is_scales) continue;
    std::int64_t size = 1;
    for (const Dim& dim : b->dims) size *= dim.kind() == DimKind::open ? 7 : dim.extent();
    for (std::int64_t i = 0; i < size; ++i) weights[b].push_back(uniform(random));
  }
  for (const int count : {1, 12, 30}) {
    const NodeTable table = random_table(count, 2, 7, random, true);
    const Linear linear(table, 2);
    ir::Storage expected = weights;
    ir::interpret(before, linear.arrays, expected);
    for (const bool last_first : {false, true}) {
      ir::Storage got = weights;
      ir::interpret(after, linear.arrays, got, {workers, last_first});
      for (const ir::Buffer& b : before.buffers) {
        if (b->role != ir::Role::state) continue;
        for (std::size_t i = 0; i < expected.at(b).size(); ++i) {
          const double want = expected.at(b)[i], have = got.at(b->name)[i];
          if (!(std::abs(want - have) <= 1e-9 * (1 + std::abs(want))))
            return b->name + ", element " + std::to_string(i) + ", is " + std::to_string(have) + " and not " +
                   std::to_string(want);
        }
      }
    }
  }
  return {};
}

}  // namespace cortex::test::small
