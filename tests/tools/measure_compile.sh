#!/usr/bin/env bash
# What a user's translation unit costs. Usage: measure_compile.sh <flags.sh> include|example
#   include: cortex.hpp alone, header-only: 2 s and 400 MB
#   example: the running example with cortex::compiled: 3 s and 400 MB
# Processor time is the best of five, because machines are noisy; memory is not, and every run has to keep to it.
set -u
. "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $2 in
  include) flags=("${header_only[@]}") limit_s=2.0; echo '#include <cortex/cortex.hpp>' >"$work/unit.cpp" ;;
  example) flags=("${compiled[@]}") limit_s=3.0; cp "$SOURCE_DIR/tests/packaging/consumer/main.cpp" "$work/unit.cpp" ;;
  *) exit 2 ;;
esac

best=999 limit_kb=400000
for _ in 1 2 3 4 5; do
  /usr/bin/time -f '%U %M' -o "$work/time" "$CXX" "${flags[@]}" -c "$work/unit.cpp" -o "$work/unit.o" || exit 1
  read -r seconds kilobytes <"$work/time"
  echo "$2: $seconds s, $((kilobytes / 1000)) MB"
  if [ "$kilobytes" -gt "$limit_kb" ]; then
    echo "more than $((limit_kb / 1000)) MB"
    exit 1
  fi
  best=$(awk -v a="$best" -v b="$seconds" 'BEGIN { print a < b ? a : b }')
  awk -v best="$best" -v limit="$limit_s" 'BEGIN { exit !(best < limit) }' && exit 0
done
echo "more than $limit_s s"
exit 1
