#!/usr/bin/env bash
# A cluster to break, on this machine alone: PostgreSQL with a synchronous standby, three nodes and
# some traffic. Everything is below out/cluster-demo (PostgreSQL's own files elsewhere if this is
# root, as whom it does not run); no system service is touched. Ctrl-C ends all of it.
#   scripts/cluster_demo.sh [SECONDS]    for so long; until Ctrl-C if not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-0}
program=${TESTED_CODBAND:-build/release/codband/codband}
out=out/cluster-demo
[ -n "$(compgen -G '/usr/lib/postgresql/*/bin/initdb')" ] || scripts/setup.sh --test
binaries=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -1)")

rm -rf "$out"
mkdir -p "$out"
as_pg=()
pg=$PWD/$out/postgresql
if [ "$(id -u)" = 0 ]; then
  pg=$(mktemp -d /tmp/codband-demo.XXXXXX)
  chown postgres "$pg"
  as_pg=(runuser -u postgres --)
fi
mkdir -p "$pg"
pids=()
stop() {
  trap - EXIT INT TERM
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  for each in primary standby; do
    (cd / && "${as_pg[@]}" "$binaries/pg_ctl" -D "$pg/$each" -m immediate stop) >/dev/null 2>&1 || true
  done
  [ "$(id -u)" != 0 ] || rm -rf "$pg"
}
trap stop EXIT
trap 'exit 0' INT TERM

# They listen on sockets in their own directory, on no network.
run_pg() { (cd / && "${as_pg[@]}" "$binaries/$@") >>"$out/postgresql.log" 2>&1; }
start_pg() { run_pg pg_ctl -D "$pg/$1" -w -l "$pg/$1.log" -o "-p $2 -k $pg -c listen_addresses=" start; }
echo "Starting PostgreSQL and its synchronous standby ..."
run_pg initdb -D "$pg/primary" -U codband -A trust -E UTF8 --locale=C --no-instructions
start_pg primary 5541
run_pg pg_basebackup -D "$pg/standby" -R -d "host=$pg port=5541 user=codband application_name=standby"
start_pg standby 5542
run_pg psql -h "$pg" -p 5541 -U codband -d postgres -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'" \
  -c "SELECT pg_reload_conf()" -c "CREATE DATABASE codband"
dsn="host=$pg,$pg port=5541,5542 user=codband dbname=codband"

echo "Starting three nodes ..."
for i in 1 2 3; do
  "$program" serve --data "$out/n$i" --listen "127.0.0.1:808$i" --cluster "$dsn" --name "n$i" \
    >"$out/n$i.log" 2>&1 &
  pids+=($!)
  disown
done
cat <<TEXT

Nodes: http://127.0.0.1:8081, 8082 and 8083; their lines are in $out/n1.log, n2.log, n3.log.
Kill what you like; what was acknowledged is never lost, and the traffic below goes on:
  kill -9 ${pids[0]}   (or ${pids[1]}, ${pids[2]})      a node; if it served, another one does after 3 seconds
  kill -STOP ${pids[0]}; sleep 10; kill -CONT ${pids[0]}    a node sleeps, and finds that it was replaced
  ${as_pg[*]} $binaries/pg_ctl -D $pg/primary -m immediate stop && ${as_pg[*]} $binaries/pg_ctl -D $pg/standby promote
                                  PostgreSQL fails over
  $program cluster status --cluster '$dsn'

TEXT

# One visit after the other, of whichever node answers.
answered=0 refused=0 shown=-1
send() { # PATH BODY
  curl -s -m 5 -o "$out/reply" -w '%{http_code}' -H 'Content-Type: application/json' \
    "http://127.0.0.1:808$((RANDOM % 3 + 1))$1" -d "$2" || true
}
any_node() {
  local pid
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null && return 0; done
  return 1
}
until_answered() {
  while [ $seconds -eq 0 ] || [ $SECONDS -lt $seconds ]; do
    if ! any_node; then
      echo "No node runs any more; see $out/n1.log" >&2
      exit 1
    fi
    case $(send "$@") in
      2*) answered=$((answered + 1)); return ;;
      *) refused=$((refused + 1)); sleep 0.1 ;;
    esac
    tell
  done
}
tell() {
  local now=$((SECONDS / 5))
  [ $now -ne $shown ] || return 0
  shown=$now
  printf '%s  answered %d, refused and tried again %d\n' "$(date +%T)" $answered $refused
}
actions='[{"id":"jazz","features":[1,0]},{"id":"rock","features":[0,1]}]'
SECONDS=0
for ((i = 1; seconds == 0 || SECONDS < seconds; i++)); do
  until_answered /v1/rank "{\"eventId\":\"e$i\",\"userId\":\"u$((i % 20))\",\"actions\":$actions}"
  until_answered "/v1/events/e$i/reward" '{"value":1}'
  tell
done
"$program" cluster status --cluster "$dsn"
