#!/usr/bin/env bash
# Instructions of a server for a rank and for a rank with its reward: unlike times they can be compared between
# builds on a busy machine. User code alone, by callgrind; needs valgrind. A minute or two for each program.
#   scripts/instructions.sh build/release/codband/codband [ANOTHER...]
# Profiles stay in out/instructions: callgrind_annotate out/instructions/1.rank
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
: "${1:?usage: scripts/instructions.sh PROGRAM...}"
scripts/build.sh dev serve_load
load=build/dev/bench/serve_load
requests=3000
users=200
out=out/instructions
mkdir -p "$out"
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
  server=
}
trap 'stop; rm -rf "$work"' EXIT

number=0
for program in "$@"; do
  number=$((number + 1))
  valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/profile" "$program" serve \
    --data "$work/data$number" --listen 127.0.0.1:0 --set features.dimension=25 >"$work/log" 2>&1 &
  server=$!
  until port=$(grep -o 'http://127.0.0.1:[0-9]*' "$work/log" | grep -o '[0-9]*$' | head -n 1) && [ -n "$port" ]; do
    kill -0 "$server" 2>/dev/null || { cat "$work/log" && exit 1; }
    sleep 0.2
  done
  "$load" --port "$port" --users $users --pairs --requests 100 >/dev/null # after 30 rewards of each user
  callgrind_control -i on "$server" >/dev/null
  dump=0
  for kind in rank pair; do
    dump=$((dump + 1))
    "$load" --port "$port" --users $users --items-are-there --warm 0 --"${kind}s" --requests $requests >/dev/null
    callgrind_control -d "$server" >/dev/null
    mv "$work/profile.$dump" "$out/$number.$kind"
    awk -v each=$requests -v kind=$kind -v program="$program" \
      '/^(summary|totals):/ { printf "%s: %.0f instructions a %s\n", program, $2 / each, kind; exit }' "$out/$number.$kind"
  done
  callgrind_control -i off "$server" >/dev/null
  stop
done
