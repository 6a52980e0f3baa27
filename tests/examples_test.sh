#!/usr/bin/env bash
# Runs the examples as their README says and looks at what they print.
# Usage: examples_test.sh PROGRAM SOURCE BUILD python|node|cpp
set -euo pipefail
program=$1 source=$2 build=$3 kind=$4
python=/usr/bin/python3
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
# shellcheck source=tests/serving.sh
source "$(dirname "${BASH_SOURCE[0]}")/serving.sh"
cd "$work"

# More right records in the second half than chance: the shop has learned.
check_shop() { # OUTPUT
  local last
  last=$(grep -oE '[0-9]+ of the last 100' <<<"$1" | cut -d' ' -f1)
  [ "${last:-0}" -ge 75 ] || fail "the shop has learned too little: $1"
}

case $kind in
  python)
    start_server "$program"
    output=$("$python" "$source/examples/shop_python/shop.py" "$url" --visits 200)
    check_shop "$output"
    "$python" "$source/examples/personalizer/move.py" "$url" >output
    [ "$(cut -d' ' -f1 output | tr '\n' ' ')" = "201 204 " ] || fail "personalizer: $(cat output)"
    cp "$source"/examples/newsletter/{subscribers.txt,articles.ndjson,opens.csv} .
    for _ in 1 2; do
      "$python" "$source/examples/newsletter/newsletter.py" send "$url" subscribers.txt articles.ndjson 2026-11-16 >mails
      [ "$(wc -l <mails)" -eq 3 ] || fail "newsletter: $(cat mails)"
    done
    "$python" "$source/examples/newsletter/newsletter.py" learn "$url" opens.csv
    "$python" "$source/examples/newsletter/newsletter.py" learn "$url" opens.csv # again: nothing is doubled
    "$python" - "$url" <<'END'
import sys, codband
client = codband.Client(sys.argv[1])
assert client.user("bob")["observations"] == 1, client.user("bob")
END
    "$python" "$source/examples/own_policy/own_policy.py" "$work" >output
    grep -q '^EpsilonGreedy ' output || fail "own_policy: $(cat output)"
    [ "$(wc -l <regret.csv)" -eq 2201 ] || fail "own_policy: regret.csv has $(wc -l <regret.csv) lines"
    "$python" "$source/examples/paper_figures/figures.py" "$work" 40 >output
    [ "$(wc -l <output)" -eq 3 ] && [ "$(wc -l <setting-2.csv)" -gt 100 ] || fail "paper_figures: $(cat output)"
    # A log of two actions, the second of which is better.
    "$python" - >decisions.json <<'END'
import json, random
draw = random.Random(1)
for i in range(400):
    action = draw.choice([1, 2])
    cost = -float(draw.random() < (0.2 if action == 1 else 0.7))
    print(json.dumps({"_label_cost": cost, "_label_probability": 0.5, "_label_Action": action, "_labelIndex": action - 1,
                      "Timestamp": f"2026-11-16T10:{i // 60:02}:{i % 60:02}Z", "EventId": str(i),
                      "a": [action, 3 - action], "p": [0.5, 0.5],
                      "c": {"User": {"id": "u"}, "_multi": [{"i": {"id": "a"}}, {"i": {"id": "b"}}]}}))
END
    "$python" "$source/examples/vw_logs/compare.py" decisions.json >output
    awk '$1 == "first" {first = $3} $1 == "codband" {learned = $3} END {exit !(learned > first + 0.2)}' output ||
      fail "vw_logs: $(cat output)"
    ;;
  node)
    start_server "$program"
    check_shop "$(node "$source/examples/shop_node/shop.mjs" "$url" 0 200)"
    ;;
  cpp)
    cmake --install "$build" --prefix "$work/prefix" >/dev/null
    cmake -G Ninja -S "$source/examples/embedded" -B "$work/embedded" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
    cmake --build "$work/embedded" >/dev/null
    first=$("$work/embedded/embedded" "$work/state" | grep -oE '[0-9]+' | head -n 1)
    second=$("$work/embedded/embedded" "$work/state" | grep -oE '[0-9]+' | head -n 1)
    [ "$second" -ge 90 ] && [ "$second" -ge "$first" ] || fail "embedded: liked $first, then $second of 100"
    ;;
  *) fail "no such kind: $kind" ;;
esac
