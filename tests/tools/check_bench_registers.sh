#!/usr/bin/env bash
# The table of registers: where the compiler refuses a place for the weights the table says so and goes on, and why is told below.
# Usage: check_bench_registers.sh <the program registers>
. "$(dirname "$0")/../examples/expect.sh"

expect 0 "" --models treernn --hidden 512 --architectures 75
if grep -q '^no kernel is compiled' "$work/out"; then
  echo "SKIPPED: bench-registers: $(cat "$work/out")"
  exit 77
fi
for line in '^| treernn 512 | peeled | [0-9]' '^| treernn 512 | unrolled | [0-9].* | refused | refused |$' '^refused: .*registers'; do
  grep -q "$line" "$work/out" || { echo "'$line' is not in:"; cat "$work/out"; failed=1; }
done
[ "$(grep -c '^refused: ' "$work/out")" = 1 ] || { echo "a reason is not told once:"; cat "$work/out"; failed=1; }
exit $failed
