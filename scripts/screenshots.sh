#!/usr/bin/env bash
# Makes the pictures of the dashboard in docs/images, light and dark, from a demo of some minutes.
#   scripts/screenshots.sh [URL]      of a demo that runs at URL already, instead
# Needs Chromium (apt-get install chromium), and optipng or pngquant to make them smaller if there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v chromium >/dev/null || { echo "chromium is not installed" >&2; exit 1; }
program=${TESTED_CODBAND:-build/release/codband/codband}
packages=$PWD/build/web-tests
mkdir -p "$packages"
cp web/package.json web/package-lock.json "$packages"
[ -d "$packages/node_modules/playwright-core" ] || npm ci --prefix "$packages" --no-audit --no-fund --loglevel=error
TESTED_CODBAND=$(realpath "$program") WEB_TEST_PACKAGES=$packages WEB_TEST_CHROMIUM=$(command -v chromium) \
  node web/tests/screenshots.mjs docs/images "$@"
if command -v pngquant >/dev/null; then
  pngquant --force --skip-if-larger --ext .png docs/images/dashboard-*.png || true
fi
