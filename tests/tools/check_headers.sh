#!/usr/bin/env bash
# Every public header compiles alone and without a warning, of those too that users have for their own code and that
# reach headers which are not marked as the system's. Usage: check_headers.sh <flags.sh> <working directory>
#
# A header that includes another brings all of that itself. So a file may include the one before the other and both are
# seen to stand alone, the first by itself, the second with nothing that it would lack: a chain of headers, each of which
# includes the one before it, is compiled in the time of its last. And one that most chains include comes before those,
# precompiled.
set -u
. "$1"
mkdir -p "$2" || exit 1
export CXX
export FLAGS="${header_only[*]} -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion -Werror"
export COMMON=cortex/ir/mutate.hpp
export PRECOMPILED=$2/common.hpp
printf '#include "%s"\n' "$COMMON" >"$PRECOMPILED"
$CXX $FLAGS -x c++-header "$PRECOMPILED" -o "$PRECOMPILED.gch" || exit 1

compile() {  # a file that includes them, as users do: given directly, `#pragma once` is worth a warning
  printf '#include "%s"\n' "$@" | $CXX $FLAGS $PRECEDING -fsyntax-only -x c++ - 2>&1
}
compile_chain() {  # yes|no, whether the first of them includes the common one; the headers
  PRECEDING=
  if [ "$1" = yes ]; then PRECEDING="-include $PRECOMPILED"; fi
  shift
  if compile "$@" >/dev/null; then return; fi
  PRECEDING=
  for header in "$@"; do
    if ! said=$(compile "$header"); then
      printf '%s does not compile alone:\n%s\n' "$header" "$(head -n 6 <<<"$said")"
      return 1
    fi
  done
  printf 'these compile alone, but not one after the other: %s\n' "$*"
  return 1
}
export -f compile compile_chain

cd "$SOURCE_DIR/include" || exit 1
find cortex -name '*.hpp' | sort | while read -r file; do
  # Without LLVM or Z3 the files that wrap it are not there to be read.
  if [ "$WITH_LLVM" != 1 ] && grep -qE '^#include <llvm' "$file"; then continue; fi
  if [ "$WITH_Z3" != 1 ] && grep -qE '^#include <z3' "$file"; then continue; fi
  # Without LLVM most are what they are with it: not those that ask for it, nor what users include.
  if [ "$WITH_LLVM" != 1 ] && [ "${file%/*}" != cortex ] && ! grep -q CORTEX_LLVM "$file"; then continue; fi
  echo "$file"
done | awk '
  { headers[++count] = $0; wanted[$0] = 1 }
  # How many headers stand below one in its longest chain.
  function depth(file,  line, next_one, deep) {
    if (file in known) return known[file]
    known[file] = 0
    while ((getline line < file) > 0)
      if (match(line, /^#include "cortex\/[^"]*"/)) includes[file] = includes[file] " " substr(line, 11, RLENGTH - 11)
    close(file)
    number[file] = split(includes[file], list, " ")
    for (next_one = 1; next_one <= number[file]; ++next_one) {
      split(includes[file], list, " ")  # anew: the call below has lists of its own
      deep = depth(list[next_one]) + 1
      if (deep > known[file]) known[file] = deep
    }
    return known[file]
  }
  function has_common(file,  k, n, list) {
    if (file == ENVIRON["COMMON"]) return 1
    if (file in common) return common[file]
    common[file] = 0
    n = split(includes[file], list, " ")
    for (k = 1; k <= n; ++k) if (has_common(list[k])) common[file] = 1
    return common[file]
  }
  END {
    for (i = 1; i <= count; ++i) depth(headers[i])
    for (;;) {  # the longest chains first, each of headers that stand in no other
      best = ""
      for (i = 1; i <= count; ++i)
        if (!(headers[i] in done) && (best == "" || known[headers[i]] > known[best])) best = headers[i]
      if (best == "") break
      chain = best
      done[best] = 1
      for (file = best; file != "";) {
        found = ""
        n = split(includes[file], list, " ")
        for (k = 1; k <= n; ++k)
          if (list[k] in wanted && !(list[k] in done) && (found == "" || known[list[k]] > known[found])) found = list[k]
        if (found != "") { chain = found " " chain; done[found] = 1 }
        file = found
      }
      print (has_common(substr(chain, 1, index(chain " ", " ") - 1)) ? "yes" : "no"), chain
    }
  }' | xargs -P 2 -I{} bash -c 'compile_chain {}'
