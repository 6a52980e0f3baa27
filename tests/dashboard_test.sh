#!/usr/bin/env bash
# The dashboard in a real browser (headless Chromium, driven by playwright-core): web/tests. Its types
# are checked as well. Skipped where there is no Chromium, node or npm.
# Usage: dashboard_test.sh PROGRAM ROOT BUILD
set -euo pipefail
program=$1 root=$2 build=$3
if [ -d "$build/python/codband" ]; then export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH; PYTHONPATH=$(realpath "$build/python"); fi
"$root/web/tests/run.sh" "$program" "$build" --test "$root/web/tests/dashboard.test.mjs"
types=$build/web-tests/types # below the packages, where the compiler finds them
rm -rf "$types"
mkdir -p "$types/web" "$types/clients/js"
cp -r "$root/web/src" "$root/web/tsconfig.json" "$types/web"
cp "$root/clients/js/api.d.ts" "$types/clients/js"
"$build/web-tests/node_modules/.bin/tsc" -p "$types/web"
