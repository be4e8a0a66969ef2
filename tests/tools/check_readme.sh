#!/usr/bin/env bash
# Every C++ snippet of README.md compiles. Usage: check_readme.sh <flags.sh> <working directory>
#
# A fence marked ```cpp that has a `main` is a whole translation unit. The others are the pieces of one program a section
# (from one `## ` heading to the next): after `#include <cortex/cortex.hpp>`, <span>, <string> and <vector> come their own
# `#include` lines, then what begins in the first column with struct, enum, template, inline, namespace, using or
# BOOST_HANA, then, in `main`, everything else in its order. Code that is not to be compiled is marked otherwise.
set -u
. "$1"
mkdir -p "$2" && cd "$2" && rm -f ./*.cpp || exit 1
if [ ! -e "$SOURCE_DIR/README.md" ]; then
  echo "SKIPPED: readme: there is no README.md"
  exit 77
fi

awk '
  function emit(  file) {
    if (top != "" || body != "") {
      file = sprintf("section_%02d.cpp", ++sections)
      printf "#include <cortex/cortex.hpp>\n#include <span>\n#include <string>\n#include <vector>\n%s%s\nint main() {\n%s}\n", includes, top, body > file
      close(file)
    }
    includes = top = body = ""
  }
  /^## / && !inside { emit() }
  /^```cpp[ \t]*$/ && !inside { inside = 1; code = ""; whole = 0; next }
  /^```/ && inside {
    inside = 0
    if (whole) {
      file = sprintf("whole_%02d.cpp", ++wholes)
      printf "%s", code > file
      close(file)
      next
    }
    n = split(code, line, "\n")
    outside = depth = 0
    for (i = 1; i < n; ++i) {
      text = line[i]
      if (text ~ /^#include/) { includes = includes text "\n"; continue }
      if (text ~ /^(struct|enum|template|inline|namespace|using|BOOST_HANA)/) outside = 1
      if (outside) top = top text "\n"; else body = body text "\n"
      sub(/\/\/.*/, "", text)
      depth += gsub(/[{(]/, "&", text) - gsub(/[})]/, "&", text)
      if (depth == 0 && text ~ /[;})][ \t]*$/) outside = 0  # the end of a declaration
    }
    next
  }
  inside { code = code $0 "\n"; if ($0 ~ /^int main\(/) whole = 1 }
  END { emit() }
' "$SOURCE_DIR/README.md"

shopt -s nullglob
failed=0
for file in *.cpp; do
  # Snippets show results without using them.
  if ! "$CXX" "${compiled[@]}" -fsyntax-only -Wall -Wno-unused "$file"; then
    echo "--- $file"
    cat -n "$file"
    failed=1
  fi
done
echo "$(ls -- *.cpp 2>/dev/null | wc -l) translation units from README.md"
exit $failed
