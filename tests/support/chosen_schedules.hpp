// What the compiler says of a schedule, and for which machine, wherever the test runs.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "cortex/cortex.hpp"

namespace cortex::test {

/// Why a program is refused under a schedule; nothing if it is not.
template <class Program>
std::string refusal(const Program& program, const Schedule& schedule) {
  try {
    (void)runtime::compile_graph(program.graph(), schedule, Target::interpreter());
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return {};
}

/// A machine of known caches, whose arithmetic is fast beside its memory.
inline Target wide_machine() {
  Target target = Target::interpreter();
  target.vector_bytes = 64, target.vector_registers = 32;
  return target;
}

}  // namespace cortex::test
