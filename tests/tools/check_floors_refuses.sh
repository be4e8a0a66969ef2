#!/usr/bin/env bash
# check_floors finds what it is there to find. Usage: check_floors_refuses.sh <check_floors>
set -u
check=$1
failed=0

# refuses <words that it must say> <file> <contents> [<file> <contents> ...]
refuses() {
  local words=$1 tree
  tree=$(mktemp -d)
  shift
  while [ $# -gt 0 ]; do
    mkdir -p "$tree/$(dirname "$1")"
    printf '#pragma once\n%s\n' "$2" >"$tree/$1"
    shift 2
  done
  if "$check" "$tree" >"$tree/said" || ! grep -qF -- "$words" "$tree/said"; then
    echo "expected: $words"
    cat "$tree/said"
    failed=1
  fi
  rm -rf "$tree"
}

refuses 'cortex/ir/a.hpp stands on a floor above' cortex/base/b.hpp '#include "cortex/ir/a.hpp"' cortex/ir/a.hpp ''
refuses 'cortex/structure/a.hpp stands on a floor above' \
  cortex/ra/b.hpp '#include "cortex/structure/a.hpp"' cortex/structure/a.hpp ''
refuses 'cortex/cortex.hpp stands on a floor above' cortex/models/b.hpp '#include "cortex/cortex.hpp"' cortex/cortex.hpp ''
refuses 'cycle: cortex/ir/a.hpp -> cortex/ir/b.hpp -> cortex/ir/a.hpp' \
  cortex/ir/a.hpp '#include "cortex/ir/b.hpp"' cortex/ir/b.hpp '#include "cortex/ir/a.hpp"'
refuses 'spell it "cortex/..."' cortex/ir/a.hpp '#include "b.hpp"' cortex/ir/b.hpp ''
refuses 'LLVM and CUDA headers are for jit/ only' cortex/codegen/a.hpp '#include <llvm-c/Core.h>'
refuses 'does not exist' cortex/ir/a.hpp '#include "cortex/ir/none.hpp"'
refuses 'not in the list of floors' cortex/utils/a.hpp ''
refuses 'macros are for base/config.hpp only' cortex/ir/a.hpp '#define X 1'
refuses 'ir::detail is for ir/ only' cortex/pass/a.hpp 'inline int a() { return ir::detail::b(); }'
refuses 'cortex::detail is for base/ only' cortex/jit/a.hpp 'inline int a() { return cortex::detail::b(); }'
refuses 'depends on NDEBUG' cortex/ir/a.hpp '#ifdef NDEBUG
#endif'
exit $failed
