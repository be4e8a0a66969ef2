#!/usr/bin/env bash
# A program without LLVM runs a model whose code another one has written and it is linked with, and says what is missing
# where it has none. Usage: check_linked_code.sh <flags.sh> <library cortex::compiled> <working directory>
set -eu
. "$1"
library=$2
work=$3
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: a program without LLVM: no x86-64"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
source=$SOURCE_DIR/tests/packaging/compiled_ahead/main.cpp

"$PROJECT_CXX" "${compiled[@]}" "$source" "$library" "-L$LLVM_PREFIX/lib" -Wl,-rpath,"$LLVM_PREFIX/lib" -lLLVM-"${LLVM_PREFIX##*-}" \
  $([ "$WITH_Z3" = 0 ] || echo -lz3) -ldl -pthread -o writes
./writes write code.o >expected
[ "$(wc -l <expected)" = 48 ]

# Another compiler, no LLVM, no Z3, headers alone.
"$CXX" "${header_only[@]}" -UCORTEX_LLVM -DCORTEX_LLVM=0 -UCORTEX_Z3 -DCORTEX_Z3=0 -c "$source" -o alone.o
"$CXX" alone.o -ldl -pthread -o without
! ./without >said || { echo "a program without LLVM and without code has a model"; exit 1; }
grep -q "no code of model 'tree_lstm' for x86-64-v2" said || { cat said; exit 1; }
"$CXX" alone.o code.o -rdynamic -ldl -pthread -o linked
./linked >said || { cat said; exit 1; }
cmp said expected || { echo "the linked program's states are others"; exit 1; }
