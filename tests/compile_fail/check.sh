#!/bin/sh
# check.sh COMPILER INCLUDE-FLAGS... FILE: passes if FILE does not compile, the compiler's first error holds the words of
# the file's first line, `// expect: words`, and the answer names the file, which is where the mistake is.
set -u
compiler=$1
shift
for file in "$@"; do :; done

expected=$(sed -n '1s|^// expect: ||p' "$file")
if [ -z "$expected" ]; then
  echo "$file: the first line is not '// expect: words'"
  exit 1
fi
if answer=$("$compiler" -std=c++20 -fsyntax-only -fdiagnostics-color=never "$@" 2>&1); then
  echo "$file: compiles, but must be refused with: $expected"
  exit 1
fi
if ! printf '%s\n' "$answer" | grep -F -e 'error:' | head -n 1 | grep -q -F -e "$expected"; then
  printf '%s: is refused, but not with: %s\n%s\n' "$file" "$expected" "$answer"
  exit 1
fi
if ! printf '%s\n' "$answer" | grep -q -F -e "$(basename "$file"):"; then
  printf '%s: the answer does not point at this file\n%s\n' "$file" "$answer"
  exit 1
fi
