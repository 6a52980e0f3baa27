#!/usr/bin/env bash
# A page of another origin attacks a server without keys through a real browser (headless Chromium):
# it sends a reward and asks for a backup by fetch (no-cors) with every type of body that a page may
# send without being asked back, by sendBeacon and by a form; it deletes a user, activates an event,
# and tries to read. All must be refused and have no effect. The server's own page goes on working.
# Usage: browser_attack_test.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
chromium=$(command -v chromium || true)
if [ -z "$chromium" ]; then
  echo "SKIPPED: chromium is not installed (apt-get install chromium)"
  exit 77
fi
# shellcheck source=tests/serving.sh
source "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

start_server "$program" --set features.dimension=4
json=(-s -H 'Content-Type: application/json')
curl "${json[@]}" -X PUT "$url/v1/items/a" -d '{"features": [1, 0, 0, 0]}'
curl "${json[@]}" "$url/v1/rank" -d '{"userId": "ada", "eventId": "victim"}' >/dev/null
curl "${json[@]}" "$url/v1/rank" -d '{"userId": "ada", "eventId": "first"}' >/dev/null
curl "${json[@]}" "$url/v1/events/first/reward" -d '{"value": 1}' >/dev/null

# The attacker's page, on another loopback port. Its last act is to report to its own site.
mkdir "$work/site"
cat >"$work/site/index.html" <<PAGE
<!doctype html><body><script>
const url = "$url", backup = '{"name": "stolen"}', reward = '{"value": 1000000000000000}';
const tries = [];
const send = (path, options) => tries.push(fetch(url + path, options).then(
    reply => reply.type + reply.status, error => "error"));
for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
  for (const [path, body] of [["/v1/backup", backup], ["/v1/events/victim/reward", reward]]) {
    send(path, {method: "POST", mode: "no-cors", headers: {"Content-Type": type}, body: body});
    navigator.sendBeacon(url + path, new Blob([body], {type: type}));
  }
}
send("/v1/backup", {method: "POST", mode: "no-cors", body: new Blob([backup])});
send("/v1/events/victim/activate", {method: "POST", mode: "no-cors"});
send("/v1/backup", {method: "POST", headers: {"Content-Type": "application/json"}, body: backup});
send("/v1/users/ada", {method: "DELETE"});
send("/v1/users/ada", {});
for (const [path, name, rest] of [["/v1/backup", '{"name": "stolen", "x": "', '"}'],
                                  ["/v1/events/victim/reward", '{"value": 1e15, "x": "', '"}']]) {
  const frame = document.createElement("iframe");
  frame.name = "frame" + path;
  document.body.append(frame);
  const form = document.createElement("form");
  form.action = url + path;
  form.method = "POST";
  form.enctype = "text/plain";
  form.target = frame.name;
  const field = document.createElement("input");
  field.name = name;
  field.value = rest;
  form.append(field);
  document.body.append(form);
  form.submit();
}
Promise.all(tries).then(results => setTimeout(() => {
  document.title = "done";
  document.body.append("RES" + "ULTS " + results.join(" ") + " E" + "ND");
}, 1500));
</script></body>
PAGE
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/site" 0 >"$work/site.log" 2>&1 &
for _ in $(seq 100); do
  port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' "$work/site.log")
  [ -z "$port" ] || break
  sleep 0.1
done
[ -n "$port" ] || fail "the attacker's site did not start: $(cat "$work/site.log")"

browse() {
  timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
    --disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests \
    --virtual-time-budget="$2" --dump-dom "$1" 2>"$work/chromium.log"
}
dom=$(browse "http://127.0.0.1:$port/" 20000)
results=$(sed -n 's/.*RESULTS \(.*\) END.*/\1/p' <<<"$dom")
[ -n "$results" ] || fail "the attack did not run: $dom"
echo "what the attacker saw: $results"
# The requests themselves got through to the server, or this shows nothing.
refused=$(curl -s "$url/metrics" | sed -n 's/^codband_http_requests_total{.*status="4xx"} \([0-9]*\)$/\1/p' |
  awk '{sum += $1} END {print sum + 0}')
[ "$refused" -ge 10 ] || fail "only $refused requests of the browser reached the server"

[ -z "$(find "$work" -name 'stolen*')" ] || fail "a backup was made: $(find "$work" -name 'stolen*')"
case "$results" in *basic* | *cors[0-9]*) fail "the attacker could read a reply" ;; esac
curl -s "$url/metrics" | grep >/dev/null '^codband_rewards_total{outcome="accepted"} 1$' ||
  fail "a reward was accepted: $(curl -s "$url/metrics" | grep codband_rewards_total)"
curl -s "$url/v1/users/ada" | grep >/dev/null '"observations":1,' || fail "the user was changed"
curl "${json[@]}" "$url/v1/events/victim/reward" -d '{"value": 1}' | grep >/dev/null accepted ||
  fail "the victim's event was changed"
# That its script works is shown by dashboard_test.sh; a page that listens without end has no dump.
curl -s "$url/" | grep >/dev/null codband || fail "the server's own page does not work"
echo "refused $refused requests; nothing was changed"
