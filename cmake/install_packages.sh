#!/usr/bin/env bash
# Installs the Debian packages named, those that are missing. Usage: install_packages.sh <package> ...
# As root, or through sudo where it asks no password; else prints the command to run and exits with 1. Where there are
# no such packages, says which they would be, and leaves it to the build to find what is missing.
set -u
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "there is no apt-get here, so nothing is installed; the build needs what Debian calls $*" >&2
  exit 0
fi
missing=()
for package in "$@"; do
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then missing+=("$package"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

if [ "$(id -u)" = 0 ]; then
  root=()
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  root=(sudo -n)
else
  echo "some packages are missing; install them with" >&2
  echo "  sudo apt-get update && sudo apt-get install --yes --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}" >&2
install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends
         "${missing[@]}")
# The lists of packages may be absent (a fresh container) or old.
"${root[@]}" apt-get update --quiet --quiet && "${install[@]}" >/dev/null
