#!/usr/bin/env bash
# The benchmark's answers, on sizes so small that nothing is measured: rows as JSON, and refusals of wrong arguments.
# Usage: check_bench.sh <the program latency>
. "$(dirname "$0")/../examples/expect.sh"

expect 2 "no system 'cortexx'" --systems cortexx
expect 2 "--models" --models tree_lstm
expect 2 "--hidden" --hidden 0
expect 2 "--data" --data treebank
expect 2 "cannot be written" --models treelstm --hidden 8 --batch 1 --threads 1 --systems recursion --rounds 1 \
  --json "$work/none/rows.json"

# With "-" the standard output is the rows and nothing else. There is one for each system and case, of these fields.
"$program" --models treelstm,dagrnn --hidden 32 --batch 1,2 --threads 1 --systems cortex,recursion --rounds 2 --json - \
  >"$work/rows.json" 2>"$work/out" || { cat "$work/out"; exit 1; }
number='[0-9.]+(e[-+][0-9]+)?'
row='\{"model": "(treelstm|dagrnn)", "hidden": 32, "batch": [12], "threads": 1, "system": "(cortex|recursion)"'
row+=", \"median_us\": $number, \"min_us\": $number, \"runs\": 20, \"max_abs_err\": $number, \"floor_us\": $number, \"tile_floor_us\": $number"
row+=", \"linearize_us\": $number, \"nodes\": $number, \"shortcuts\": \"[a-z, ]*\"\}"
grep -vxE -e "\[|\]|  $row,?" "$work/rows.json" && { echo "these lines are no rows"; failed=1; }
# What rows say: 0 < min <= median; errors of rounding, but some; linearization where there is one; sizes of the structures.
tr -d '",{}' <"$work/rows.json" | awk '
  NF > 1 {
    for (i = 1; i < NF; i += 2) v[$i] = $(i + 1)
    ++rows; seen[v["model:"] v["batch:"] v["system:"]] = 1
    if (!(v["min_us:"] > 0 && v["min_us:"] <= v["median_us:"] + 0) || !(v["floor_us:"] > 0) ||
        !(v["tile_floor_us:"] > 0.9 * v["floor_us:"]) ||
        !(v["max_abs_err:"] > 0 && v["max_abs_err:"] < 1e-5) || (v["linearize_us:"] > 0) != (v["system:"] == "cortex") ||
        (v["model:"] == "dagrnn" && v["nodes:"] != 100 * v["batch:"])) { print "wrong: " $0; wrong = 1 }
  }
  END { for (s in seen) ++different; if (rows != 8 || different != 8) { print rows " rows, of 8"; wrong = 1 }; exit wrong }
' || failed=1

# Peers written by hand, those that are built in, compute the models; also on CPUs where oneDNN leaves weights as they lie,
# so that a square matrix is to be told from its transpose.
for most in AVX2 DEFAULT; do
  ONEDNN_MAX_CPU_ISA=$most "$program" --models treefc,dagrnn,treegru,treelstm,mvrnn --hidden 32 --batch 2 --threads 1 \
    --systems recursion,openblas_level,onednn_level --rounds 1 >"$work/out" 2>&1 || { cat "$work/out"; failed=1; }
done
exit $failed
