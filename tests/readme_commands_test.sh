#!/usr/bin/env bash
# Runs the commands of README.md as they are written there: every line "./run ARGS" or "codband ARGS"
# of an sh block, except servers and commands whose comment says that they take minutes.
# Usage: readme_commands_test.sh PROGRAM README
set -euo pipefail
program=$(realpath "$1")
readme=$(realpath "$2")
cd "$(mktemp -d)"
# A small recorded stream for its examples.
mkdir my-stream
printf '1\t1\t0\n2\t0\t1\n' >my-stream/features.tsv
printf '7\t0\t1,2\n8\t1\t2,1\n' >my-stream/events.tsv
count=0
while IFS= read -r line; do
  command=${line%%#*}
  echo "+ $command"
  eval "\"$program\" ${command#* }" >output.txt || { cat output.txt; exit 1; }
  [ -s output.txt ] || { echo "no output"; exit 1; }
  count=$((count + 1))
done < <(awk '/^```sh/{inside=1; next} /^```/{inside=0} inside && /^(\.\/run|codband) [a-z]/ && !/^[^ ]+ serve/ && !/minute/' "$readme")
[ "$count" -ge 3 ] || { echo "found only $count commands in $readme"; exit 1; }
echo "$count commands of the README ran"
