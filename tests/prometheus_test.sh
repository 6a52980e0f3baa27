#!/usr/bin/env bash
# The Grafana dashboard and the alerts of deploy/ against a running Prometheus that scrapes the demo:
# the rules are valid, each fires for its cause (alerts_test.yml), every metric they name exists, and every query of the
# dashboard returns data.
# Usage: prometheus_test.sh PROGRAM ROOT
set -euo pipefail
program=$(realpath "$1")
root=$(realpath "$2")
prometheus=$(command -v prometheus || true)
promtool=$(command -v promtool || true)
if [ -z "$prometheus" ] || [ -z "$promtool" ]; then
  echo "SKIPPED: prometheus is not installed (apt-get install prometheus)"
  exit 77
fi
# shellcheck source=tests/serving.sh
source "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

"$promtool" check rules "$root/deploy/prometheus/alerts.yml" || fail "the rules are not valid"
"$promtool" test rules "$root/tests/alerts_test.yml" || fail "an alert does not fire, or fires without its cause"

start_server "$program" --demo --set decision_log.directory="$work/log"

port=$((20000 + RANDOM % 20000))
cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$root/deploy/prometheus/alerts.yml"]
scrape_configs:
  - job_name: codband
    static_configs: [{targets: ["${url#http://}"]}]
END
"$prometheus" --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" \
  --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &

python3 - "$root" "http://127.0.0.1:$port" <<'END' || fail "see above"
import json, re, sys, time, urllib.parse, urllib.request

root, prometheus = sys.argv[1:]

def ask(query):
    url = prometheus + '/api/v1/query?' + urllib.parse.urlencode({'query': query})
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return json.load(reply)['data']['result']
    except OSError:
        return []

queries = []
with open(root + '/deploy/grafana/codband.json') as file:
    for panel in json.load(file)['panels']:
        for target in panel['targets']:
            queries.append(target['expr'].replace('$job', 'codband').replace('$__rate_interval', '10s'))
with open(root + '/deploy/prometheus/alerts.yml') as file:
    rules = ' '.join(line for line in file.read().split('\n') if not re.match(r' +(summary|description|- alert)', line))
queries += sorted(set(re.findall(r'\bcodband_\w+', rules)))
assert len(queries) > 30, queries

missing = queries
deadline = time.time() + 120
while missing and time.time() < deadline:
    time.sleep(1)
    missing = [query for query in missing if not any(float(row['value'][1]) == float(row['value'][1]) for row in ask(query))]
for query in missing:
    print('no data:', query)
firing = [row['metric']['alertname'] for row in ask('ALERTS{alertstate="firing"}')]
if firing:
    print('firing on a healthy demo:', firing)
print(f'{len(queries)} queries, {len(missing)} without data')
sys.exit(1 if missing or firing else 0)
END
echo PASSED
