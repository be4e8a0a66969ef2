# What the checks of programs' answers share: `program`, a folder `work` that goes away, and `expect`.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect <status> <words that the output must hold> <arguments> ...
expect() {
  local status=$1 words=$2
  shift 2
  "$program" "$@" >"$work/out" 2>&1
  local got=$?
  if [ $got -ne "$status" ] || ! grep -qF -e "$words" "$work/out"; then
    echo "$(basename "$program") $*: status $got, expected $status and '$words' in:"
    head -n 20 "$work/out"
    failed=1
  fi
}
