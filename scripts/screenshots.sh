#!/usr/bin/env bash
# Makes the pictures of the dashboard in docs/images, light and dark, from a demo of some minutes.
#   scripts/screenshots.sh [URL]      of a demo that runs at URL already, instead
# Needs Chromium (apt-get install chromium), and pngquant to make them smaller if it is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
web/tests/run.sh "${TESTED_CODBAND:-build/release/codband/codband}" build web/tests/screenshots.mjs docs/images "$@"
if command -v pngquant >/dev/null; then
  pngquant --force --skip-if-larger --ext .png docs/images/dashboard-*.png || true
fi
