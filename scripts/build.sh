#!/usr/bin/env bash
# Installs what is missing, then builds a preset: scripts/build.sh PRESET [TARGET...]
# Says what it does and how long it took; silent and immediate when nothing changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift
start=$SECONDS

# The stamp holds the set-up that was done; a changed package list does it again.
stamp=build/.setup-done
if ! cmp -s scripts/setup.sh "$stamp" 2>/dev/null; then
  scripts/setup.sh
  mkdir -p build
  cp scripts/setup.sh "$stamp"
fi
case $preset in fuzz | tidy) scripts/setup.sh --clang ;; esac

directory=build/$preset
if [ ! -f "$directory/build.ninja" ]; then
  echo "Configuring codband ($preset) ..."
  if ! log=$(cmake --preset "$preset" 2>&1); then
    echo "$log"
    exit 1
  fi
fi
targets=("${@:-all}")
steps=$(ninja -C "$directory" -n "${targets[@]}" 2>/dev/null | grep -c '^\[' || true)
[ "$steps" -gt 0 ] || exit 0
echo "Building codband ($preset), $steps steps ..."
if [ -t 1 ]; then
  ninja -C "$directory" "${targets[@]}"
else
  ninja -C "$directory" --quiet "${targets[@]}"
fi
echo "Built codband ($preset) in $((SECONDS - start)) s."
