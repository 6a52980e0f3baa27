#!/usr/bin/env bash
# Load-tests an optimised server that it starts: requests per second, next to those of a server that
# does nothing. Arguments go to serve_load; see build/dev/bench/serve_load --help.
#   scripts/load.sh                  about half a minute
#   scripts/load.sh --soak 10        ten minutes, and the server's memory over time
#   scripts/load.sh --dashboards 10 --seconds 2 --rounds 30   with ten open dashboards, and without
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/build.sh release codband
scripts/build.sh dev serve_load
exec build/dev/bench/serve_load --serve build/release/codband/codband "$@"
