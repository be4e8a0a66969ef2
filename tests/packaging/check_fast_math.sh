#!/usr/bin/env bash
# The compiler is never compiled without infinities and NaNs: as part of a project that is, the library cortex::compiled takes
# that back, and the headers alone refuse to be compiled so. Usage: check_fast_math.sh <flags.sh> <working directory>
set -eu
. "$1"
work=$2
rm -rf "$work"
mkdir -p "$work/project"
cd "$work"

printf '#include <cortex/cortex.hpp>\n' >user.cpp
"$CXX" "${header_only[@]}" -ffast-math -fsyntax-only user.cpp >said 2>&1 && {
  echo "the headers alone are compiled with -ffast-math"
  exit 1
}
grep -q 'add -fno-finite-math-only' said || { head -n 20 said; exit 1; }
"$CXX" "${header_only[@]}" -ffast-math -fno-finite-math-only -fsyntax-only user.cpp
"$CXX" "${compiled[@]}" -ffast-math -fsyntax-only user.cpp

cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(fast LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-ffast-math -ffinite-math-only)
add_subdirectory("$SOURCE_DIR" cortex)
END
"$CMAKE" -S project -B build "-DCMAKE_CXX_COMPILER=$CXX" -DCMAKE_BUILD_TYPE=None "-DCORTEX_LLVM=$WITH_LLVM" \
  "-DCORTEX_Z3=$WITH_Z3" ${LLVM_DIR:+"-DLLVM_DIR=$LLVM_DIR"} >/dev/null
# The macros of that one command in place of its object.
command=$(sed -n 's/^ *"command": "\(.*\) -o [^ ]* -c .*cmake\/compiled\.cpp",$/\1/p' build/compile_commands.json)
[ -n "$command" ] || { echo "no command compiles compiled.cpp"; exit 1; }
cd build
macros=$(eval "${command//\\\"/\"} -dM -E -x c++ /dev/null")
grep -qx '#define __FINITE_MATH_ONLY__ 0' <<<"$macros" || { echo "not with infinities and NaNs: $command"; exit 1; }
