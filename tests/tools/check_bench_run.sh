#!/usr/bin/env bash
# What bench/run gives to the programs that it has built, which are others here that tell their arguments: which of them
# run, where their rows go, and what is refused before any of them does. Usage: check_bench_run.sh <bench/run>
. "$(dirname "$0")/../examples/expect.sh"

mkdir -p "$work/bench" "$work/cmake" "$work/bin" "$work/build/bench/bench"
cp "$program" "$work/bench/run"
program=$work/bench/run
printf '#!/bin/sh\n' >"$work/bin/cmake"
cp "$work/bin/cmake" "$work/cmake/install_packages.sh"
for name in latency linearize invented callers tune experiments; do
  # One that is told to fail does.
  printf '#!/bin/sh\necho "<$(basename "$0") $*>"\n[ "$(basename "$0")" != "$FAILS" ] || exit 2\n' >"$work/build/bench/bench/$name"
done
chmod +x "$work"/bin/* "$work"/cmake/* "$work"/build/bench/bench/*
export PATH=$work/bin:$PATH FAILS=

# ran <program with its arguments> ...: those of the last command, in their order, and no others
ran() {
  if ! diff <(grep '^<' "$work/out") <([ $# = 0 ] || printf '<%s>\n' "$@") >"$work/diff"; then
    echo "not these programs ran, or not so:"
    cat "$work/diff"
    failed=1
  fi
}

expect 0 "E8" --json r.json
ran "experiments --json r.experiments.json --check" "latency --json r.json --about r.about.json" \
  "linearize --json r.experiments.json" "invented --json r.experiments.json" "callers --json r.experiments.json" \
  "experiments --json r.experiments.json"
expect 0 "" --seed 3
ran "experiments --seed 3 --check" "latency " "linearize " "invented " "callers " "experiments --seed 3"
expect 0 "" --data sst
ran "experiments --check" "latency --data sst" "linearize " "invented " "callers " "experiments "
expect 0 "" --quick --json=r.json
ran "latency --quick --json r.json --about r.about.json"
expect 0 "" --json -
ran "latency --json -"
expect 0 "" --models treelstm --hidden 256 --data sst
ran "latency --models treelstm --hidden 256 --data sst"
expect 0 "" --only memory,linearize,compile --quick --threads 2 --json d/r.json
ran "experiments --json d/r.experiments.json --only memory,compile --quick --threads 2 --check" \
  "linearize --json d/r.experiments.json" "experiments --json d/r.experiments.json --only memory,compile --quick --threads 2"
expect 0 "== invented cells" --only invented --quick --threads 2 --hidden 64,256 --json r.json
ran "experiments --json r.experiments.json --check" \
  "invented --json r.experiments.json --quick --threads 2 --hidden 64,256"
expect 0 "== many threads" --only callers --models treegru --hidden 64 --json r.json
ran "experiments --json r.experiments.json --check" "callers --json r.experiments.json --models treegru --hidden 64"
expect 0 "" --only=gated --seed=9
ran "experiments --seed=9 --only gated --check" "experiments --seed=9 --only gated"
expect 0 "== the default schedules" --only tuned --quick --threads 2 --json r.json
ran "experiments --json r.experiments.json --check" \
  "tune --batch 1,10 --seconds 20 --lines 1 --json r.experiments.json --threads 2"
expect 0 "" --only tuned,linearize
ran "experiments --check" "linearize " "tune --batch 1,10 --seconds 40 --lines 1"

expect 0 "--only LIST" --help
expect 2 "name a file" --only memory --json -
ran
FAILS=experiments expect 2 "--check" --json r.json  # its file, or an experiment that there is none of
ran "experiments --json r.experiments.json --check"
FAILS=latency expect 2 "latency" --json r.json
ran "experiments --json r.experiments.json --check" "latency --json r.json --about r.about.json"
FAILS=linearize expect 2 "linearize" --only linearize,memory
ran "experiments --only memory --check" "linearize " "experiments --only memory"
exit $failed
