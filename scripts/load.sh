#!/usr/bin/env bash
# Load on an optimised server that is started for it: requests a second next to one that does
# nothing. Arguments go to serve_load; see build/dev/bench/serve_load --help.
#   scripts/load.sh                  about half a minute
#   scripts/load.sh --soak 10        ten minutes: how the server's memory goes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/build.sh release codband
scripts/build.sh dev serve_load
exec build/dev/bench/serve_load --serve build/release/codband/codband "$@"
