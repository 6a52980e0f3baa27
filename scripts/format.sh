#!/usr/bin/env bash
# Formats all C++ files with clang-format 14; --check lists those that are not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
git ls-files -z --cached --others --exclude-standard '*.cc' '*.h' |
  xargs -0 clang-format "${mode[@]}"
