#!/usr/bin/env bash
# What needs no GPU of the benchmark of GPUs: every model compiles for each way to share it, and for each part of the
# ablation, or the model refuses it for a reason; cases are exported; and rows are held against what is asked.
# Usage: check_bench_gpu_systems.sh <the program gpu>
. "$(dirname "$0")/../examples/expect.sh"
bars=$(dirname "$0")/../../bench/bars

expect 2 "--compile" --compile 60
expect 0 "treelstm, hidden 24, cortex_bf16: " --compile 90 --ablation --hidden 24
# tensor cores take no matrices of nodes, DAGs are not unrolled, and one model has what the cut is at
sort <<'END' >"$work/expected"
dagrnn cortex_refactored
dagrnn cortex_unrolled
gru cortex_refactored
lstm cortex_refactored
mvrnn cortex_bf16
mvrnn cortex_f16
mvrnn cortex_refactored
mvrnn cortex_tf32
treefc cortex_refactored
treelstm cortex_refactored
END
sed -n 's/^\([a-z]*\), hidden [0-9]*, \([a-z0-9_]*\): left out: .*/\1 \2/p' "$work/out" | sort | diff "$work/expected" - || failed=1
[ "$(wc -l <"$work/out")" = $((7 * 21)) ] || { echo "there are not 7 x 21 lines"; failed=1; }

# The models that bench/gpu ablates beside these; what only adds has no cut.
expect 0 "simpletreegru, hidden 24, cortex_refactored: block" --compile 90 --ablation --hidden 24 --models treernn,simpletreegru
[ "$(grep 'left out' "$work/out" | cut -d : -f 1)" = "treernn, hidden 24, cortex_refactored" ] || { cat "$work/out"; failed=1; }

CUDA_VISIBLE_DEVICES='' expect 0 "no GPU is timed" --models treegru --hidden 8 --batch 2 --export "$work/cases"
[ -s "$work/cases/treegru-8-2.safetensors" ] || { echo "no case was exported"; failed=1; }

if ! command -v python3 >/dev/null; then exit $failed; fi  # what follows is of bench/bars
cat >"$work/gpu.json" <<'END'
[{"model": "treelstm", "hidden": 256, "batch": 10, "system": "cortex", "median_us": 100, "kernel_us": 61, "launches": 1},
 {"model": "lstm", "hidden": 256, "batch": 1, "system": "cortex", "median_us": 100, "kernel_us": 90, "launches": 1}]
END
cat >"$work/torch.json" <<'END'
[{"model": "treelstm", "hidden": 256, "batch": 10, "system": "torch_level", "median_us": 800},
 {"model": "treelstm", "hidden": 256, "batch": 10, "system": "torch_graph", "median_us": 121},
 {"model": "lstm", "hidden": 256, "batch": 1, "system": "torch_rnn", "median_us": 101}]
END
python3 "$bars" --gpu "$work/gpu.json" "$work/torch.json" >"$work/out" || failed=1
grep -q '^4 of 6 bars are met; 78 are not measured\.$' "$work/out" && [ "$(grep -c 'MISSED' "$work/out")" = 2 ] &&
  grep -q 'torch_level / median_us *8.00 *at least 8 *met' "$work/out" || { cat "$work/out"; failed=1; }
exit $failed
