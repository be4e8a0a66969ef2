#!/usr/bin/env bash
# What `sentences` answers to right and wrong arguments. Usage: check_sentences.sh <the program>
. "$(dirname "$0")/expect.sh"

printf '(2 (2 a)\n(2 b)' >"$work/open.txt"
printf '' >"$work/empty.txt"
printf '(2 (2 so) (2 it) (2 is))\n(3 yes)\n' >"$work/good.txt"
printf '%s' "$(printf '(2 (2 a) %.0s' {1..6000})" '(2 b)' "$(printf ')%.0s' {1..6000})" >"$work/deep.txt"

expect 0 "of 2" --runs 2 --hidden 32 --trees "$work/good.txt"
expect 0 "batch of 1" --runs 2 --hidden 7 "It is a dog."
expect 0 "2 threads" --runs 2 --hidden 100 --threads 2 "It is a dog." "So is this."
expect 0 "recursion_op" --print ra
expect 0 "for " --print ilir --hidden 32
expect 0 "define" --print llvm --hidden 32
expect 0 "--trees" --help
expect 2 "no such file" --trees "$work/no such file"
expect 2 "directory" --trees "$work"
expect 2 "open.txt:1:1: this '(' is never closed" --trees "$work/open.txt"
expect 2 "holds no tree" --trees "$work/empty.txt"
expect 2 "6001 levels" --trees "$work/deep.txt"
expect 2 "at least one word" ""
expect 2 "--hidden" --hidden 0
expect 2 "--hidden" --hidden x
expect 2 "--threads" --threads 0
expect 2 "--print" --print asm
expect 2 "excludes" --trees "$work/good.txt" "It is a dog."
exit $failed
