#!/usr/bin/env bash
# Runs a script of web/tests with node: the packages of web/package-lock.json below BUILD, Debian's Chromium, and the
# program to look at.
#   web/tests/run.sh PROGRAM BUILD [--test] SCRIPT ARGS...      exit code 77 where a tool is missing
set -euo pipefail
for tool in chromium node npm; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
web=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
TESTED_CODBAND=$(realpath "${1:?usage: web/tests/run.sh PROGRAM BUILD [--test] SCRIPT ARGS...}")
mkdir -p "$2/web-tests"
WEB_TEST_PACKAGES=$(realpath "$2/web-tests")
WEB_TEST_CHROMIUM=$(command -v chromium)
shift 2
if ! cmp -s "$web/package-lock.json" "$WEB_TEST_PACKAGES/installed"; then
  cp "$web/package.json" "$web/package-lock.json" "$WEB_TEST_PACKAGES"
  npm ci --prefix "$WEB_TEST_PACKAGES" --no-audit --no-fund --loglevel=error
  cp "$web/package-lock.json" "$WEB_TEST_PACKAGES/installed"
fi
export TESTED_CODBAND WEB_TEST_PACKAGES WEB_TEST_CHROMIUM
exec node "$@"
