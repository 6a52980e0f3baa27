# For tests in shell that talk to a server; to be sourced. $work is a directory of the test. It goes away at the end,
# with everything that was started in the background.
work=$(mktemp -d)
finish() {
  local started
  started=$(jobs -p)
  # shellcheck disable=SC2086
  [ -z "$started" ] || kill $started 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# Starts `PROGRAM serve FLAGS` on $work/data and a free port; $url is its address.
start_server() { # PROGRAM FLAGS...
  : >"$work/server.log" # there before the server has begun
  "$1" serve --data "$work/data" --listen 127.0.0.1:0 "${@:2}" >"$work/server.log" 2>&1 &
  local server=$!
  for _ in $(seq 600); do
    url=$(sed -n 's/.* listens on \(http[^ ]*\)$/\1/p' "$work/server.log")
    [ -z "$url" ] || return 0
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$work/server.log")"
    sleep 0.1
  done
  fail "the server does not listen: $(cat "$work/server.log")"
}
