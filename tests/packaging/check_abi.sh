#!/usr/bin/env bash
# Headers of another version than the library cortex::compiled do not link, and the linker's complaint says so; nor do
# those of a program whose standard library checks itself, since its containers are others, nor those that another
# compiler has read, whose closures are others.
# Usage: check_abi.sh <flags.sh> <library> <working directory>
set -u
. "$1"
library=$2
work=$3
mkdir -p "$work"
echo 'int other() { return 0; }' >"$work/other.cpp"

# refuse <what is linked> <what the linker's complaint has> <compiler> <flag> ...
refuse() {
  local what=$1 complaint=$2 compiler=$3
  shift 3
  "$compiler" "${compiled[@]}" "$@" "$SOURCE_DIR/tests/packaging/consumer/main.cpp" "$work/other.cpp" "$library" \
    -o "$work/program" >"$work/said" 2>&1 && {
    echo "$what was linked with the library"
    exit 1
  }
  grep -q "$complaint" "$work/said" && return
  head -n 20 "$work/said"
  echo "the linker does not name compile_graph and its Abi"
  exit 1
}

refuse "what has headers of another version" 'compile_graph(.*Abi<999' "$PROJECT_CXX" -DCORTEX_ABI=999
refuse "a program with checked containers" 'compile_graph(.*Abi<' "$PROJECT_CXX" -D_GLIBCXX_DEBUG

is_clang() { "$1" --version | grep -q clang; }
for other in g++ clang++-{19..22}; do
  command -v "$other" >/dev/null || continue
  if is_clang "$other" && is_clang "$PROJECT_CXX" || ! is_clang "$other" && ! is_clang "$PROJECT_CXX"; then continue; fi
  refuse "what $other has compiled" 'compile_graph(.*Abi<' "$other"
  echo "seen with $other, too"
  break
done
