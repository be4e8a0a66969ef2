#!/usr/bin/env bash
# The figures and the table of what the programs write, where there is matplotlib. Usage: check_bench_plot.sh <bench/plot>
# <folder with rows of the programs>
. "$(dirname "$0")/../examples/expect.sh"
rows=$2

# matplotlib may be of Debian's python3, and another one stand before it in PATH.
python=
for one in python3 /usr/bin/python3; do
  if [ -z "$python" ] && "$one" -c 'import matplotlib' 2>/dev/null; then python=$one; fi
done

# Rows of a GPU.
mkdir "$work/gpu"
cat >"$work/gpu/gpu.json" <<'END'
[{"model": "treefc", "hidden": 256, "batch": 10, "system": "cortex", "median_us": 100, "kernel_us": 60, "gflop": 0.66, "weight_bytes": 4e6},
 {"model": "treefc", "hidden": 256, "batch": 10, "system": "cortex_grid", "median_us": 110, "kernel_us": 70, "gflop": 0.66, "weight_bytes": 4e6},
 {"model": "lstm", "hidden": 256, "batch": 1, "system": "cortex", "median_us": 90, "kernel_us": 80, "gflop": 0.1, "weight_bytes": 1e8}]
END
echo '[{"model": "treefc", "hidden": 256, "batch": 10, "system": "torch_level", "median_us": 800}]' >"$work/gpu/torch.json"
echo '{"device": "Some GPU", "date": "2001-01-01", "peak_gflops": 60000, "peak_gigabytes": 3000}' >"$work/gpu/gpu.about.json"

# Tables need python3 alone.
printf 'before\n<!-- bench/plot: begin -->\nold\n<!-- bench/plot: end -->\nafter\n' >"$work/readme.md"
if command -v python3 >/dev/null; then
  python3 "$program" "$rows/rows.json" --readme "$work/readme.md" || failed=1
  if grep -q old "$work/readme.md" || ! grep -qE '^\| TreeFC 16 \| [0-9.]+' "$work/readme.md" ||
    [ "$(sed -n '1p;$p' "$work/readme.md" | paste -sd ' ')" != "before after" ]; then
    cat "$work/readme.md"
    failed=1
  fi
  expect 1 "needs one line" "$rows/rows.json" --readme "$rows/rows.json"

  printf '<!-- bench/plot --gpu: begin -->\nold\n<!-- bench/plot --gpu: end -->\n' >>"$work/readme.md"
  python3 "$program" --gpu "$work/gpu/gpu.json" "$work/gpu/torch.json" --readme "$work/readme.md" || failed=1
  for line in 'Measured on 2001-01-01, Some GPU.' '| | cortex | torch_level | kernel of cortex |' \
    '| TreeFC 256 | - / 100 | - / 800 | - / 60.0 |' '| LSTM 256 | 90.0 / - | - / - | 80.0 / - |'; do
    grep -qxF "$line" "$work/readme.md" || { cat "$work/readme.md"; failed=1; }
  done
  if grep -q old "$work/readme.md" || ! grep -q '^| TreeFC 16' "$work/readme.md"; then cat "$work/readme.md"; failed=1; fi
fi
if [ -z "$python" ]; then
  if [ $failed = 1 ]; then exit 1; fi
  echo "SKIPPED: bench-plot: there is no python3 with matplotlib, so no figures (Debian: python3-matplotlib)"
  exit 77
fi

# figures <folder> <their names>: each is there, and no other
figures() {
  "$python" "$program" "$1/rows.json" --out "$work/figures" >"$work/out" 2>&1 || { cat "$work/out"; failed=1; }
  [ "$(cd "$work/figures" && echo *)" = "$2" ] || { ls "$work/figures"; failed=1; }
  for figure in "$work"/figures/*; do
    head -n 5 "$figure" | grep -q '<svg\|DOCTYPE svg' || { echo "$figure is no SVG"; failed=1; }
  done
}
# One of the experiments is of another day and machine than the rows.
mkdir "$work/rows"
cp "$rows"/* "$work/rows"
sed -i 's/^  "batch": {"date": "[^"]*", "machine": "[^"]*"/  "batch": {"date": "2001-01-01", "machine": "Another"/' \
  "$work/rows/rows.experiments.json"
figures "$work/rows" "ablation.svg batch.svg hidden.svg latency.svg roofline.svg tree_size.svg"
grep -q 'MV-RNN' "$work/figures/ablation.svg" || { echo "MV-RNN is not in the ablation"; failed=1; }
grep -q '2001-01-01, Another' "$work/figures/batch.svg" || { echo "batch.svg is not of its day"; failed=1; }
grep -q '2001-01-01' "$work/figures/hidden.svg" && { echo "hidden.svg is of another's day"; failed=1; }
[ "$(ls "$rows")" = "$(ls "$work/rows")" ] || { echo "files were left beside the rows"; failed=1; }
# Without experiments there are no figures of them.
rm -r "$work/figures" "$work/rows/rows.experiments.json"
figures "$work/rows" "latency.svg roofline.svg"

# Of a GPU.
"$python" "$program" --gpu "$work/gpu/gpu.json" "$work/gpu/torch.json" >"$work/out" 2>&1 || { cat "$work/out"; failed=1; }
for words in gpu-latency:torch_level gpu-latency:LSTM gpu-roofline:cortex_grid gpu-roofline:2001-01-01,\ Some\ GPU; do
  grep -q "${words#*:}" "$work/gpu/${words%%:*}.svg" || { echo "${words#*:} is not in ${words%%:*}.svg"; failed=1; }
done
expect 2 "one file of rows, or --gpu" "$work/gpu/gpu.json" "$work/gpu/torch.json"
exit $failed
