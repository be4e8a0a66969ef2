#!/usr/bin/env bash
# Runs the tests of an executable that need a GPU, each case in a process of its own and as many at a time as there are
# processors: most of their time is NVRTC's. Those with the tag [alone], which take all of a device, come after the others
# and one after the other. Each is named when it begins; what it prints comes when it has ended. Usage: run_on_devices.sh <executable>
set -u
export executable=$1
list=$(mktemp -d) || exit 1
trap 'rm -rf "$list"' EXIT
"$executable" --write-ctest "$list/cases" '' '' 0 || exit 1
# Each test's name, as a specification of Catch2's, and its tags.
awk -v together="$list/together" -v alone="$list/alone" '
  /^add_test\(/ { name = $0; sub(/.* \[==\[/, "", name); sub(/\]==\]\)$/, "", name) }
  /^set_tests_properties\(/ && /;device[;\]]/ { printf "%s%c", name, 0 > (/;alone[;\]]/ ? alone : together) }
' "$list/cases"
touch "$list/together" "$list/alone"
if ! [ -s "$list/together" ] && ! [ -s "$list/alone" ]; then
  echo "$executable has no tests that need a GPU"
  exit 1
fi

run_case() {
  local said got
  echo "begun: $1"
  said=$("$executable" "$1" 2>&1)
  got=$?
  printf '%s\n' "$said"
  [ $got = 0 ] || [ $got = 77 ]  # passed, or skipped
}
export -f run_case
failed=0
xargs -0 -r -a "$list/together" -n 1 -P "$(nproc)" bash -c 'run_case "$1"' bash || failed=1
xargs -0 -r -a "$list/alone" -n 1 bash -c 'run_case "$1"' bash || failed=1
exit $failed
