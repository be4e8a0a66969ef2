#!/usr/bin/env bash
# Every public header compiles alone and without a warning. Usage: check_headers.sh <flags.sh>
set -u
. "$1"
export CXX
export FLAGS="${header_only[*]} -fsyntax-only -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror"

compile_alone() {
  # Through a file that includes it, as users do: given directly, `#pragma once` is worth a warning.
  if ! said=$(echo "#include \"$1\"" | $CXX $FLAGS -x c++ - 2>&1); then
    printf '%s does not compile alone:\n%s\n' "$1" "$(head -n 6 <<<"$said")"
    return 1
  fi
}
export -f compile_alone

cd "$SOURCE_DIR/include" || exit 1
find cortex -name '*.hpp' | sort | while read -r file; do
  # Without LLVM or Z3 the files that wrap it are not there to be read.
  if [ "$WITH_LLVM" != 1 ] && grep -qE '^#include <llvm' "$file"; then continue; fi
  if [ "$WITH_Z3" != 1 ] && grep -qE '^#include <z3' "$file"; then continue; fi
  # Without LLVM most are what they are with it: not those that ask for it, nor what users include.
  if [ "$WITH_LLVM" != 1 ] && [ "${file%/*}" != cortex ] && ! grep -q CORTEX_LLVM "$file"; then continue; fi
  echo "$file"
done | xargs -P 2 -I{} bash -c 'compile_alone {}'
