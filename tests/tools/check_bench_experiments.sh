#!/usr/bin/env bash
# The benchmark's experiments, linearization, invented cells, callers and tuner, on sizes so small that nothing is measured:
# the rows of each, all in one file; that a run replaces its own there and leaves others; and that a file of something else
# is left alone.
# Usage: check_bench_experiments.sh <folder of the programs> <folder that the rows are left in, for other checks>
bench=$1 rows=$2
. "$(dirname "$0")/../examples/expect.sh"
mkdir -p "$rows"
json=$rows/rows.experiments.json
rm -f "$rows"/*

# run <program> <arguments> ...: which must succeed
run() {
  "$bench/$1" "${@:2}" >"$work/out" 2>"$work/err" || { echo "$*:"; tail -n 20 "$work/out" "$work/err"; failed=1; }
}
# entries <file>: a line for each row, behind the name of its experiment; and for what "about" holds
entries() {
  awk '/^\{"|^[]}], "/ { split($0, quoted, "\""); name = quoted[2] }
       /^  / { sub(/,$/, ""); print name $0 }' "$1"
}

# The treebank is not everywhere: the examples' sentences stand for it.
mkdir "$work/sst"
cp "$(dirname "$0")/../../examples/data/sentences.txt" "$work/sst/test.txt"
export CORTEX_SST=$work/sst
run latency --models treefc --hidden 16 --batch 1 --threads 1 --rounds 1 \
  --systems cortex,cortex_nodedup,recursion,onednn_level --json "$rows/rows.json" \
  --about "$rows/rows.about.json"
run experiments --smoke --threads 1 --seed 7 --json "$json"
grep -q 'random cells of --seed 7' "$work/out" || { echo "the seed is not told"; failed=1; }
run experiments --smoke --threads 2 --only groups --json "$json"  # threads that are to be grouped
run linearize --rounds 1 --json "$json"
run invented --smoke --threads 1 --json "$json"
run callers --smoke --threads 2 --models treelstm --hidden 256 --callers 3 --json "$json"
run tune --models treegru,mvrnn --hidden 16 --batch 1 --seconds 0.1 --json "$json"

# What each experiment's rows look like, and how many there are at least.
number='-?[0-9.]+(e[-+][0-9]+)?'
times="\"median_us\": $number, \"min_us\": $number, \"runs\": [0-9]+, \"max_abs_err\": $number, \"floor_us\": $number"
times+=", \"tile_floor_us\": $number, \"linearize_us\": $number, \"nodes\": $number, \"shortcuts\": \"[a-z, ]*\""
case="\"model\": \"[a-z0-9_]+\", \"hidden\": [0-9]+, \"batch\": [0-9]+, \"threads\": [12]"
latency="$case, \"system\": \"[^\"]+\", $times"
entries "$json" >"$work/entries"
# rows_of <experiment> <at least so many> <what each is>
rows_of() {
  local found
  found=$(grep -cE "^$1  \{$3\}\$" "$work/entries")
  if [ "$found" -lt "$2" ] || [ "$found" -ne "$(grep -c "^$1  " "$work/entries")" ]; then
    echo "$1: $found rows as they should be, at least $2 and all of them expected:"
    grep "^$1  " "$work/entries" | head -n 5
    failed=1
  fi
}
grep '"system": "cortex_nodedup"' "$work/entries" | grep -v '"shortcuts": ""' && { echo "cortex_nodedup takes shortcuts"; failed=1; }
grep -q '^treebank .*"system": "cortex", .*"shortcuts": "tables' "$work/entries" || { echo "no shortcuts on the treebank"; failed=1; }
rows_of sequences 4 "$latency"
rows_of activity 1 "\"system\": \"[a-z_]+\", \"batch\": 1, \"whole_us\": $number, \"calls\": $number(, \"[a-z]+_us\": $number)*"
rows_of ablation 14 "$latency"
rows_of unroll 6 "$latency"
rows_of levels 6 "$latency"
rows_of stored 6 "$latency"
rows_of sweeps 4 "$latency"
rows_of groups 6 "$latency"
rows_of refactor 4 "$latency"
rows_of gated 7 "$latency(, \"cell\": \"(N-ary|child-sum)[-a-zA-Z ,]+\")?"
rows_of treebank 4 "$latency"
rows_of memory 4 "\"model\": \"[a-z]+\", \"system\": \"[^\"]+\", \"hidden\": [0-9]+, \"peak_bytes\": $number.*"
rows_of compile 6 "\"model\": \"[a-z]+\", \"schedule\": \"(default|workers\(4\))\", \"hidden\": [0-9]+, \"threads\": (1|4|16), .*\"total_ms\": $number"
rows_of pauses 4 "\"hidden\": $number, \"batch\": $number, \"threads\": 1, \"pause_us\": $number, \"median_us\": $number, \"p99_us\": $number"
rows_of overhead 1 "\"threads\": 1, \"call_ns\": $number"
rows_of hidden 4 "$latency"
rows_of batch 2 "$latency"
rows_of tree_size 2 "$latency"
rows_of linearize 4 "\"nodes_of\": \"[a-z:]+ (of )?children\", \"state\": \"(hot|cold)\", \"batch\": [0-9]+, \"nodes\": [0-9]+, \"ns\": $number, .*"
rows_of invented 16 "$latency, \"cell\": \"[a-z_]+\", \"gflops\": $number, \"of_treelstm\": $number"
rows_of callers 2 "\"model\": \"treelstm\", \"hidden\": 16, \"callers\": 3, \"system\": \"(alone|shared)\", \"requests_per_s\": $number, \"median_us\": $number, \"p99_us\": $number"
rows_of tuned 2 "$case, \"ratio\": $number, \"noise\": $number, \"faster\": [01], \"candidates\": [0-9]+, \"tried\": [0-9]+, \"schedule\": \".+\""
[ "$(cut -d ' ' -f 1 "$work/entries" | sort -u | wc -l)" = 24 ] || { echo "there are not 23 experiments and 'about'"; failed=1; }
[ "$(grep -cE '^about  "[a-z_]+": \{"date": "[0-9-]{10}", "machine": ".*\}$' "$work/entries")" = 23 ] ||
  { echo "not each experiment has its date and machine:"; grep '^about' "$work/entries"; failed=1; }
grep -qE '^ablation  .*"mvrnn"' "$work/entries" || { echo "MV-RNN is not in the ablation"; failed=1; }
grep -qE '^about  "treebank": .*"data": "sst"' "$work/entries" || { echo "the treebank's trees are called others"; failed=1; }

# A run replaces its experiments. What is there of others stays as it is, whoever wrote it.
sed -i 's/"peak_bytes": [^,}]*/"peak_bytes": 1.5e+06/; s/^  "memory": {"date": "[^"]*"/  "memory": {"date": "2001-01-01"/' "$json"
sed -i 's/"call_ns": [^,}]*/"call_ns": 777777/; s/^  "overhead": {"date": "[^"]*"/  "overhead": {"date": "2001-01-01"/' "$json"
entries "$json" >"$work/before"
run experiments --smoke --threads 1 --seed 7 --only overhead,gated --json "$json"
entries "$json" >"$work/after"
without='^(overhead|gated)|^about  "(overhead|gated)"'
diff <(grep -vE "$without" "$work/before") <(grep -vE "$without" "$work/after") || { echo "others have changed"; failed=1; }
grep -qE 'call_ns": 777777|"overhead": \{"date": "2001' "$work/after" && { echo "overhead has not changed"; failed=1; }
grep -qE '"memory": \{"date": "2001-01-01"' "$work/after" || { echo "memory has lost its date"; failed=1; }

# The same seed gives the same cells.
cells() { grep -o '"cell": "[^"]*"' "$1"; }
diff <(cells "$work/before") <(cells "$work/after") || { echo "seed 7 gave other cells"; failed=1; }

# With "-" the standard output is JSON and nothing else.
run tune --models treegru --hidden 16 --batch 1 --seconds 0.1 --json -
[ "$(head -c 11 "$work/out")" = '{"tuned": [' ] || { echo "the standard output is no JSON"; failed=1; }

# What is no such file is refused before anything is measured, and stays.
refused() {
  cp "$work/foreign.json" "$work/kept.json"
  for program in experiments linearize invented callers tune; do
    program=$bench/$program expect 2 "$1" --json "$work/foreign.json"
    grep -qE '^==|GFLOP' "$work/out" && { echo "$program measured before it refused"; failed=1; }
    cmp "$work/foreign.json" "$work/kept.json" || failed=1
  done
  [ "$(ls "$work" | grep -c foreign)" = 1 ] || { echo "files were left beside it"; failed=1; }
}
printf '{"overhead": [{"threads": 1,' >"$work/foreign.json"
refused "foreign.json is no JSON"
echo '[{"model": "treefc"}]' >"$work/foreign.json"
refused "foreign.json holds no experiments of bench/run"
echo '{"name": "package", "version": 1}' >"$work/foreign.json"
refused "'name' is no list"
program=$bench/invented expect 2 "no multiple of 4" --hidden 30
program=$bench/experiments
expect 2 "cannot be written" --only overhead --json "$work/none/rows.json"
expect 2 "--only" --only ablations
expect 2 "--threads" --threads 0
run experiments --check --only overhead --json "$work/unwritten.json"
[ ! -e "$work/unwritten.json" ] || { echo "--check wrote a file"; failed=1; }
exit $failed
