#!/usr/bin/env bash
# What examples/run answers, before it installs or builds anything, to lessons that are not there.
# Usage: check_run.sh <examples/run>
. "$(dirname "$0")/expect.sh"

expect 2 "there is no lesson '12'" --lesson 12
expect 2 "  03_tree_lstm" --lesson 0
expect 2 "  sentences" --lesson tree_lstm
expect 2 "there is no lesson ''" --lesson ""
expect 2 "there is no lesson '*'" --lesson '*'
expect 2 "takes the number" --lesson
# With CDPATH, cd prints where it went to a relative path.
cd "$(dirname "$program")/.." || exit 1
program=examples/run
export CDPATH=.
expect 2 "  03_tree_lstm" --lesson 0
exit $failed
