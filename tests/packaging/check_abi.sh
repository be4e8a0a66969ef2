#!/usr/bin/env bash
# Headers of another version than the library cortex::compiled do not link, and the linker's complaint says so; nor do
# those of a program whose standard library checks itself, since its containers are others.
# Usage: check_abi.sh <flags.sh> <library> <working directory>
set -u
. "$1"
library=$2
work=$3
mkdir -p "$work"
echo 'int other() { return 0; }' >"$work/other.cpp"
"$CXX" "${compiled[@]}" -DCORTEX_ABI=999 "$SOURCE_DIR/tests/packaging/consumer/main.cpp" \
  "$work/other.cpp" "$library" -o "$work/program" >"$work/said" 2>&1 && {
  echo "headers of another version were linked with the library"
  exit 1
}
grep -q 'compile_graph(.*Abi<999' "$work/said" || {
  head -n 20 "$work/said"
  echo "the linker does not name compile_graph and its Abi"
  exit 1
}

"$CXX" "${compiled[@]}" -D_GLIBCXX_DEBUG "$SOURCE_DIR/tests/packaging/consumer/main.cpp" \
  "$work/other.cpp" "$library" -o "$work/program" >"$work/said" 2>&1 && {
  echo "a program with checked containers was linked with the library, which has others"
  exit 1
}
grep -q 'compile_graph(.*Abi<' "$work/said" || {
  head -n 20 "$work/said"
  echo "the linker does not name compile_graph and its Abi"
  exit 1
}
