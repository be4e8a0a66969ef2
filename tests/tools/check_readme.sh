#!/usr/bin/env bash
# Every C++ snippet of README.md and of the guides in docs/ compiles, and their links lead to files.
# Usage: check_readme.sh <flags.sh> <working directory> [PAGE ...]; without pages, all of them
#
# A fence marked ```cpp that has a `main` is a whole translation unit. The others are the pieces of one program: in
# README.md of a section (from one `## ` heading to the next), in a guide of all of it. After `#include
# <cortex/cortex.hpp>`, <span>, <string> and <vector> come their own `#include` lines, then what begins in the first
# column with struct, enum, template, inline, namespace, using or BOOST_HANA, then, in `main`, everything else in its
# order. Code that is not to be compiled is marked otherwise: sh, cmake or text.
set -u
. "$1"
mkdir -p "$2" && cd "$2" && rm -f ./*.cpp || exit 1
shift 2
shopt -s nullglob
pages=("$@")
if [ ${#pages[@]} -eq 0 ]; then pages=("$SOURCE_DIR"/README.md "$SOURCE_DIR"/docs/*.md); fi
if [ ! -e "${pages[0]}" ]; then
  echo "SKIPPED: readme: there is no README.md"
  exit 77
fi

failed=0
for page in "${pages[@]}"; do
  # What a line of a program comes from is said where the lines before it are from elsewhere: not for each line, since
  # some stand in a string.
  awk -v page="$page" -v name="$(basename "$page" .md)" '
    function emit(  file) {
      if (top != "" || body != "") {
        file = sprintf("%s_%02d.cpp", name, ++programs)
        printf "#include <cortex/cortex.hpp>\n#include <span>\n#include <string>\n#include <vector>\n%s%s\nint main() {\n%s}\n", includes, top, body > file
        close(file)
      }
      includes = top = body = ""
    }
    function from(i) { return sprintf("#line %d \"%s\"\n", first + i, page) }
    /^## / && !inside && name == "README" { emit() }
    /^```/ && !inside {
      inside = 1; code = ""; whole = 0; first = NR
      language = substr($0, 4); sub(/[ \t]*$/, "", language)
      if (language !~ /^(cpp|sh|cmake|text)$/) {
        printf "%s:%d: a fence is marked cpp, or sh, cmake or text where it is not to be compiled; this one: \"%s\"\n", page, NR, language
        failed = 1
      }
      next
    }
    /^```/ {
      inside = 0
      if (language != "cpp") next
      if (whole) {
        file = sprintf("%s_whole_%02d.cpp", name, ++wholes)
        printf "%s%s", from(1), code > file
        close(file)
        next
      }
      n = split(code, line, "\n")
      outside = depth = 0
      place = ""
      for (i = 1; i < n; ++i) {
        text = line[i]
        if (text ~ /^#include/) { includes = includes from(i) text "\n"; place = ""; continue }
        if (text ~ /^(struct|enum|template|inline|namespace|using|BOOST_HANA)/) outside = 1
        if (place != (outside ? "top" : "body")) {
          place = outside ? "top" : "body"
          if (outside) top = top from(i); else body = body from(i)
        }
        if (outside) top = top text "\n"; else body = body text "\n"
        sub(/\/\/.*/, "", text)
        depth += gsub(/[{(]/, "&", text) - gsub(/[})]/, "&", text)
        if (depth == 0 && text ~ /[;})][ \t]*$/) outside = 0  # the end of a declaration
      }
      next
    }
    inside { code = code $0 "\n"; if ($0 ~ /^int main\(/) whole = 1 }
    END {
      if (inside) { printf "%s:%d: this fence is never closed\n", page, first; failed = 1 }
      emit()
      exit failed
    }
  ' "$page" || failed=1

  while read -r link; do
    if [ ! -e "$(dirname "$page")/$link" ]; then
      echo "$page: a link leads to $link, which is not there"
      failed=1
    fi
  done < <(awk '/^```/ { code = !code } !code' "$page" | sed 's/`[^`]*`//g' | grep -oE '\]\([^)]+\)' |
    sed 's/^](//; s/[)#].*//' | grep -vE '^$|^https?:')
done

for file in *.cpp; do
  # Snippets show results without using them.
  "$CXX" "${compiled[@]}" -fsyntax-only -Wall -Wno-unused "$file" || { echo "--- in $file"; failed=1; }
done
echo "$(ls -- *.cpp 2>/dev/null | wc -l) translation units from ${#pages[@]} pages"
exit $failed
