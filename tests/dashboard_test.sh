#!/usr/bin/env bash
# The dashboard in a real browser (headless Chromium, driven by playwright-core): web/tests. Its types
# are checked as well. Skipped where there is no Chromium, node or npm.
# Usage: dashboard_test.sh PROGRAM ROOT BUILD
set -euo pipefail
program=$(realpath "$1")
root=$(realpath "$2")
packages=$(realpath "$3")/web-tests
for tool in chromium node npm; do
  command -v "$tool" >/dev/null || {
    echo "SKIPPED: $tool is not installed"
    exit 77
  }
done
mkdir -p "$packages"
cp "$root/web/package.json" "$root/web/package-lock.json" "$packages"
npm ci --prefix "$packages" --no-audit --no-fund --loglevel=error
rm -rf "$packages/types" && mkdir "$packages/types"
cp -r "$root/web/src" "$root/web/tsconfig.json" "$packages/types"
"$packages/node_modules/.bin/tsc" -p "$packages/types"
TESTED_CODBAND=$program WEB_TEST_PACKAGES=$packages WEB_TEST_CHROMIUM=$(command -v chromium) \
  node --test "$root/web/tests/dashboard.test.mjs"
