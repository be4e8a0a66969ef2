// By which means a compiled model saves arithmetic.
#pragma once

#include <algorithm>
#include <cortex/runtime/executable.hpp>
#include <string>

namespace bench {

/// What follows from weights alone is computed when they are bound in any case, and is no shortcut. `has_room`: whether
/// tables are made.
inline std::string shortcuts_of(const cortex::runtime::Executable& executable, bool has_room = true) {
  const auto& all = executable.program.tabulations;
  const auto of_words = [](const auto& table) { return table.rows != cortex::ir::Tabulation::Rows::once; };
  const bool tables = has_room && std::any_of(all.begin(), all.end(), of_words), once = executable.shares_subtrees;
  return std::string(tables ? "tables" : "") + (tables && once ? ", " : "") + (once ? "equal subtrees once" : "");
}

}  // namespace bench
