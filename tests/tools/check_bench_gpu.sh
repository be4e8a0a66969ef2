#!/usr/bin/env bash
# What bench/gpu gives to the programs that it has built, which are others here that tell their arguments: `--quick`
# stands back behind what the user says, and parts are run by themselves.
# Usage: check_bench_gpu.sh <bench/gpu>
. "$(dirname "$0")/../examples/expect.sh"

mkdir -p "$work/bench" "$work/build/gpu" "$work/bin" "$work/tests/tools"
cp "$(dirname "$program")/../tests/tools/run_on_devices.sh" "$work/tests/tools"
cp "$program" "$work/bench/gpu"
program=$work/bench/gpu
printf '#!/bin/sh\necho "$(basename "$0") $* with NVRTC of $CORTEX_NVRTC ."\n' >"$work/build/gpu/gpu"
# of tests, of which two need a device and one has it to itself
tests() {
  printf '#!/bin/sh\nif [ "$1" = --write-ctest ]; then cat >"$2" <<"END"\n' >"$work/build/gpu/models_test"
  local tags
  for tags in 'one, two;device' 'three;cuda;device;alone' 'four;cuda'; do
    printf 'add_test([==[%s]==] [==[program]==] [==[%s]==])\n' "${tags%%;*}" "$(sed 's/,/\\,/' <<<"${tags%%;*}")"
    printf 'set_tests_properties([==[%s]==] PROPERTIES TIMEOUT 0 LABELS [==[;%s]==])\n' "${tags%%;*}" "${tags#*;}"
  done >>"$work/build/gpu/models_test"
  printf 'END\nexit; fi\n%s\n' "$1" >>"$work/build/gpu/models_test"
}
tests 'echo "models_test $* with NVRTC of $CORTEX_NVRTC ."'
# of python3's, whose PyTorch sees a GPU where SEES is set, and which writes rows then
printf '#!/bin/sh\ncase $1 in -c) exit ${SEES-1};; */gpu_torch.py) touch build/gpu/torch.json;; esac\necho "python3 $*"\n' \
  >"$work/bin/python3"
printf '#!/bin/sh\necho "sanitizer $*"\n' >"$work/bin/compute-sanitizer"
chmod +x "$work"/build/gpu/* "$work"/bin/*
export PATH=$work/bin:$PATH CORTEX_NVRTC=/some/where

# refute <words>: which the last output must not hold
refute() {
  if grep -qF -e "$1" "$work/out"; then
    echo "'$1' is in:"
    head -n 20 "$work/out"
    failed=1
  fi
}

expect 0 "gpu --systems cortex --hidden 256 --models treefc,dagrnn,treegru,treelstm,lstm,gru --rounds 5 --levels" \
  --parts time --quick --rounds 5
refute "models_test"
refute "== memcheck"
expect 0 "gpu --systems cortex --rounds 10 --hidden 256 --models mvrnn --levels" --parts time --quick --models mvrnn
expect 0 "gpu --rounds 10 --models=gru --hidden 8 --systems=cortex_grid" \
  --parts time --quick --models=gru --hidden 8 --systems=cortex_grid
expect 0 "gpu --rounds 7 --levels" --parts time --rounds 7
expect 0 "models_test one\, two with NVRTC of /some/where ." --parts check
grep -qF "models_test three with" "$work/out" || { echo "a case that is alone was not run"; failed=1; }
refute "four"
refute "gpu --"
tests 'exit 77'
expect 0 "== models on the device" --parts check
tests 'case $1 in three) exit 42;; esac'
expect 1 "== models on the device" --parts check
expect 0 "sanitizer --tool racecheck --error-exitcode 9 build/gpu/gpu --hidden 32 --batch 3 --rounds 1 --models gru" \
  --parts sanitize --tools racecheck --models gru
refute "== memcheck"
expect 2 "there is no part 'times'" --parts build,times
expect 2 "there is no tool 'leaks'" --tools leaks
# What fails, and what hangs: it is stopped and named, and what comes after it runs.
tests 'exit 42'
expect 1 "gpu --rounds 7 --levels" --parts check,time --rounds 7
tests 'exec sleep 60'
printf '#!/bin/sh\necho begun\nexec sleep 60\n' >"$work/bin/compute-sanitizer"
chmod +x "$work/bin/compute-sanitizer"
expect 12 "gpu --rounds 7 --levels" --parts check,sanitize,time --limit 1 --rounds 7
for words in begun "begun: one\, two" "== racecheck" \
  "== check ran over its limit of 1 seconds, and is not all there. Stopped: tests/tools/run_on_devices.sh build/gpu/models_test" \
  "== sanitize ran over its limit of 1 seconds, and is not all there. Stopped: compute-sanitizer --tool memcheck"; do
  grep -qF -e "$words" "$work/out" || { echo "'$words' is not in:"; cat "$work/out"; failed=1; }
done
mv "$work/build/gpu/gpu" "$work/ends"
cp "$work/bin/compute-sanitizer" "$work/build/gpu/gpu"
touch "$work/build/gpu/torch.json"
expect 16 "== time ran over its limit of 1 seconds, and is not all there. Stopped: build/gpu/gpu" --parts time --limit 1
refute "bench/bars"
[ ! -e "$work/build/gpu/torch.json" ] || { echo "rows of an earlier run were left"; failed=1; }
for program_file in build/gpu/gpu bin/compute-sanitizer; do cp "$work/ends" "$work/$program_file"; done
tests 'exit 0'
expect 2 "--limit takes seconds, and not 'soon'" --limit soon

# What was measured is held against what is asked, with PyTorch and without.
printf '#!/bin/sh\ntouch build/gpu/gpu.json\n' >"$work/build/gpu/gpu"
SEES=0 expect 0 "python3 bench/bars --gpu $work/build/gpu/gpu.json $work/build/gpu/torch.json" --parts time
expect 0 "python3 bench/bars --gpu $work/build/gpu/gpu.json" --parts time
refute "torch.json"
cp "$work/ends" "$work/build/gpu/gpu"

# The ablation is of its own models and systems, in files of its own, and stands back behind what the user says.
ablation="--systems cortex,cortex_unfused,cortex_unspecialized,cortex_unbatched,cortex_unrolled,cortex_refactored"
expect 0 "gpu --models treelstm,treernn,treegru,simpletreegru --hidden 256 --batch 10 $ablation --rounds 5 --json $work/build/gpu/gpu.ablation.json" \
  --parts ablation --rounds 5
refute "== latency"
expect 0 "gpu --hidden 256 --batch 10 $ablation --models=treegru --json" --parts ablation --models=treegru
expect 0 "gpu --levels" --parts time,ablation --no-ablation
refute "== ablation"
# The tuner runs where it is asked for.
expect 0 "gpu --tune 30 --models treelstm --hidden 256 --batch 64 --json $work/build/gpu/gpu.tuned.json" \
  --parts tune --batch 64
refute "== latency"
expect 0 "gpu --tune 5 --hidden 256 --models=gru --json" --parts tune --tune 5 --models=gru
expect 2 "--tune takes seconds, and not 'long'" --parts tune --tune long
# All parts, of a compiler that makes what stands there already.
printf '#!/bin/sh\n:\n' >"$work/bin/compiles"
chmod +x "$work/bin/compiles"
CXX=compiles expect 0 "== ablation" --headers "$work"
refute "== tuned"
CXX=compiles expect 0 "== latency" --headers "$work" --no-ablation
refute "== ablation"
for option in --quick --ablation --systems=cortex; do
  CXX=compiles expect 0 "== latency" --headers "$work" $option
  refute "== ablation"
done

rm "$work/build/gpu/models_test"
expect 1 "build/gpu/models_test is not there: --parts build makes it" --parts check
exit $failed
