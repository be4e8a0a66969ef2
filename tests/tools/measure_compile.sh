#!/usr/bin/env bash
# What a user's translation unit costs. Usage: measure_compile.sh <flags.sh> include|example
#   include: cortex.hpp alone, header-only: 2 s and 340 MB
#   example: the running example with cortex::compiled: 3 s and 340 MB
# The seconds are those of a machine that takes 0.7 s for a yardstick, headers of the standard library, compiled just before.
# Memory is the same everywhere, and more headers cost both, so it is what fails for a little. Time does where the best of
# eight, each by its own yardstick, takes half as long again: on shared machines one and the same commit comes out from 0.7
# to 1.2 times the seconds above. The first that takes less ends the search.
# A step of a quarter of a second at once is GCC collecting garbage once more, here at some 327 MB of what -ftime-report calls
# TOTAL: then find what has grown (a std::optional of another type is 1 MB, std::unique_ptr 2, std::span or std::map 2).
set -u
. "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $2 in
  include) flags=("${header_only[@]}") limit_s=2.0; echo '#include <cortex/cortex.hpp>' >"$work/unit.cpp" ;;
  example) flags=("${compiled[@]}") limit_s=3.0; cp "$SOURCE_DIR/tests/packaging/consumer/main.cpp" "$work/unit.cpp" ;;
  *) exit 2 ;;
esac

printf '#include <%s>\n' algorithm functional iostream map random regex thread unordered_map >"$work/yardstick.cpp"

limit_kb=340000
for _ in 1 2 3 4 5 6 7 8; do
  /usr/bin/time -f '%U' -o "$work/time" "$CXX" -std=c++20 -c "$work/yardstick.cpp" -o "$work/unit.o" || exit 1
  yardstick=$(<"$work/time")
  /usr/bin/time -f '%U %M' -o "$work/time" "$CXX" "${flags[@]}" -c "$work/unit.cpp" -o "$work/unit.o" || exit 1
  read -r seconds kilobytes <"$work/time"
  scaled=$(awk -v s="$seconds" -v y="$yardstick" 'BEGIN { print s / (y > 0.7 ? y / 0.7 : 1) }')
  echo "$2: $seconds s, $scaled s where the yardstick's $yardstick s are 0.7 s, $((kilobytes / 1000)) MB"
  if [ "$kilobytes" -gt "$limit_kb" ]; then
    echo "more than $((limit_kb / 1000)) MB"
    exit 1
  fi
  awk -v s="$scaled" -v limit="$limit_s" 'BEGIN { exit !(s < 1.5 * limit) }' && exit 0
done
echo "more than 1.5 times $limit_s s on a machine that compiles the yardstick in 0.7 s"
exit 1
