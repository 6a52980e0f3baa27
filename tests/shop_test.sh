#!/usr/bin/env bash
# bench/shop.py and bench/shops.py run, and the same seed gives the same numbers.
# Usage: shop_test.sh PROGRAM SOURCE
set -euo pipefail
program=$1 source=$2
export PYTHONDONTWRITEBYTECODE=1
play() { # without times
  /usr/bin/python3 "$source/bench/shop.py" --serve "$program" --users 6 --rounds 12 --seeds 2 \
    --variants named,dense,turns,later,linucb --format json | sed -E 's/"ms": [0-9.e-]+//g'
}
first=$(play)
second=$(play)
[ "$first" = "$second" ] || { printf 'differ:\n%s\n%s\n' "$first" "$second" >&2; exit 1; }
[ "$(grep -o '"variant"' <<<"$first" | wc -l)" = 5 ] || { echo "$first" >&2; exit 1; }

# So does bench/shops.py, in shops that take every way through it.
compare() {
  /usr/bin/python3 "$source/bench/shops.py" --serve "$program" --visits 90 --seeds 1 \
    --shops offer-5,individual,passing,zipf,turnover,ratings,revenue,embedding,context,late,anonymous,apart,ids \
    --policies codband,uniform --format json | sed -E 's/"ms": [0-9.e-]+//g'
}
first=$(compare)
second=$(compare)
[ "$first" = "$second" ] || { printf 'differ:\n%s\n%s\n' "$first" "$second" >&2; exit 1; }
[ "$(grep -o '"earned"' <<<"$first" | wc -l)" = 26 ] || { echo "$first" >&2; exit 1; }
