#!/usr/bin/env bash
# A user's project finds, builds with and runs on the library.
# Usage: check.sh <flags.sh> <working directory> installed|subdirectory
set -eu
. "$1"
work=$2
mode=$3
rm -rf "$work"
mkdir -p "$work"
if [ "$mode" = installed ]; then CXX=$PROJECT_CXX; fi
arguments=(-G Ninja "-DCMAKE_CXX_COMPILER=$CXX" -DCMAKE_BUILD_TYPE=None)
consumer=$SOURCE_DIR/tests/packaging/consumer

case $mode in
  installed)
    "$CMAKE" --install "$BINARY_DIR" --prefix "$work/prefix" >/dev/null
    # The package may be moved: a path of the build or of LLVM in an exported file would hold here and nowhere else.
    if grep -rnF -e "$work" -e "$SOURCE_DIR" -e "$BINARY_DIR" ${LLVM_PREFIX:+-e "$LLVM_PREFIX"} \
      "$work/prefix" --include='*.cmake'; then
      echo "these lines keep the package from being moved"
      exit 1
    fi
    mkdir "$work/elsewhere"
    mv "$work/prefix" "$work/elsewhere/cortex"
    arguments+=("-DCMAKE_PREFIX_PATH=$work/elsewhere/cortex")
    # It takes the LLVM that the user points to; below, the one that it looks for.
    "$CMAKE" -S "$consumer" -B "$work/pointed" "${arguments[@]}" ${LLVM_DIR:+"-DLLVM_DIR=$LLVM_DIR"}
    ;;
  subdirectory) arguments+=("-DCORTEX_SOURCE_DIR=$SOURCE_DIR" "-DCORTEX_LLVM=$WITH_LLVM" "-DCORTEX_Z3=$WITH_Z3") ;;
  *) exit 2 ;;
esac

"$CMAKE" -S "$consumer" -B "$work/build" "${arguments[@]}"
"$CMAKE" --build "$work/build" --parallel 2
"$work/build/header_only"
"$work/build/compiled"

# With the compiled library a user's translation unit reads no header of LLVM, nor one of the library's that has some.
# (Clang's own headers stand below a folder llvm-19.)
if "$CXX" "${compiled[@]}" -M "$consumer/main.cpp" | grep -E '/llvm(-c)?/|/llvm_'; then
  echo "cortex::compiled lets LLVM headers through"
  exit 1
fi
