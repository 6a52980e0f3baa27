#!/usr/bin/env bash
# Fuzzes every target with libFuzzer (clang 19), starting from its seed corpus.
#   scripts/fuzz.sh [SECONDS [TARGET...]]    60 seconds each by default
#   scripts/fuzz.sh --seeds                  regenerates the seed corpora, after a format has changed
# Inputs that crash a target are left in build/fuzz/found/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ "${1:-}" = --seeds ]; then
  scripts/build.sh dev make_corpus
  build/dev/fuzz/make_corpus fuzz/corpus
  exit
fi
seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in fuzz/*_fuzz.cc; do targets+=("$(basename "$source" .cc)"); done
fi
scripts/build.sh fuzz "${targets[@]}"
mkdir -p build/fuzz/found
for target in "${targets[@]}"; do
  echo "Fuzzing: $target, $seconds s"
  mkdir -p "build/fuzz/corpus/$target"
  "build/fuzz/fuzz/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -artifact_prefix="build/fuzz/found/$target-" -verbosity=0 -print_final_stats=1 \
    "build/fuzz/corpus/$target" "fuzz/corpus/$target"
done
