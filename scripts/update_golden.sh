#!/usr/bin/env bash
# Regenerates the golden traces in tests/golden. Read the difference before you commit it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/build.sh dev golden_test
CODBAND_UPDATE_GOLDEN=1 build/dev/tests/golden_test
git --no-pager diff --stat -- tests/golden
