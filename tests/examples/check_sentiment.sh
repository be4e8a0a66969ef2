#!/usr/bin/env bash
# What `sentiment` answers to right and wrong arguments. Usage: check_sentiment.sh <the program>
. "$(dirname "$0")/expect.sh"

printf '(2 (2 a)\n(2 b)' >"$work/open.txt"
printf '(4 (2 so) (4 brilliant))\n(0 awful)\n' >"$work/good.txt"

expect 0 "batch of 2" --runs 2 --trees "$work/good.txt"
expect 0 "Dull stuff" --runs 2 "(2 (2 Dull) (2 stuff))"
expect 0 "brilliant ." --runs 2 "It is brilliant."
expect 0 "binary 100.00% (2 of 2)" --test "$work/good.txt"
expect 0 "$(printf '\033[1;32m')" --runs 2 --color always "It is brilliant."
expect 0 "2 threads" --runs 2 --threads 2 "It is a dog."
expect 0 "recursion_op" --print ra
expect 0 "define" --print llvm
expect 2 "no such file" --trees "$work/no such file"
expect 2 "open.txt:1:1: this '(' is never closed" --trees "$work/open.txt"
expect 2 "the argument:1:1: this '(' is never closed" "(2 (2 a)"
expect 2 "at least one word" ""
expect 2 "--color" --color green
expect 2 "excludes" --trees "$work/good.txt" "It is a dog."
# NO_COLOR and a pipe: no colours.
"$program" --runs 2 "It is brilliant." | grep -q "$(printf '\033')" && { echo "colours in a pipe"; failed=1; }
exit $failed
