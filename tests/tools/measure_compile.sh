#!/usr/bin/env bash
# What a user's translation unit costs. Usage: measure_compile.sh <flags.sh> include|example
#   include: cortex.hpp alone, header-only: 2 s and 400 MB
#   example: the running example with cortex::compiled: 3 s and 400 MB
# Processor time is the best of five, because machines are noisy; memory is not, and every run has to keep to it. What slows
# the machine down slows a yardstick too, headers of the standard library, compiled beside: the limits are for a machine
# that takes 0.7 s for them, and slower ones have as much more time.
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

best=999 yardstick=999 limit_kb=400000
for _ in 1 2 3 4 5; do
  /usr/bin/time -f '%U' -o "$work/time" "$CXX" -std=c++20 -c "$work/yardstick.cpp" -o "$work/unit.o" || exit 1
  yardstick=$(awk -v a="$yardstick" -v b="$(cat "$work/time")" 'BEGIN { print a < b ? a : b }')
  /usr/bin/time -f '%U %M' -o "$work/time" "$CXX" "${flags[@]}" -c "$work/unit.cpp" -o "$work/unit.o" || exit 1
  read -r seconds kilobytes <"$work/time"
  echo "$2: $seconds s, $((kilobytes / 1000)) MB"
  if [ "$kilobytes" -gt "$limit_kb" ]; then
    echo "more than $((limit_kb / 1000)) MB"
    exit 1
  fi
  best=$(awk -v a="$best" -v b="$seconds" 'BEGIN { print a < b ? a : b }')
  allowed=$(awk -v limit="$limit_s" -v y="$yardstick" 'BEGIN { print limit * (y > 0.7 ? y / 0.7 : 1) }')
  awk -v best="$best" -v limit="$allowed" 'BEGIN { exit !(best < limit) }' && exit 0
done
echo "more than $limit_s s on a machine that compiles the yardstick in 0.7 s, which this one does in $yardstick s"
exit 1
