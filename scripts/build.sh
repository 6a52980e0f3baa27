#!/usr/bin/env bash
# Installs missing packages, then builds a preset: scripts/build.sh PRESET [TARGET...]
# Prints what it builds and how long it took; prints nothing if everything is up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift
start=$SECONDS

case $preset in
  release) packages= ;;
  fuzz | tidy) packages=--clang ;;
  *) packages=--test ;;
esac
# The stamp is a copy of the script that ran: a changed package list runs it again.
stamp=build/.setup-done$packages
if ! cmp -s scripts/setup.sh "$stamp" 2>/dev/null; then
  scripts/setup.sh $packages
  mkdir -p build
  cp scripts/setup.sh "$stamp"
fi

name=$preset
targets=("${@:-all}")
if [ "$preset" = odr ]; then # a check of that preset's objects
  preset=asan-ubsan
  targets=(odr)
fi

directory=build/$preset
if [ ! -f "$directory/build.ninja" ]; then
  echo "Configuring codband ($preset) ..."
  if ! log=$(cmake --preset "$preset" 2>&1); then
    echo "$log"
    exit 1
  fi
fi

# Hides ninja's steps, shows what fails.
summarise() {
  awk -v name="$name" '
    /^ninja: (Entering|no work)/ || /^\[[0-9]+\/[0-9]+\] Re-(checking|running)/ { next }
    /^\[[0-9]+\/[0-9]+\] / {
      if (!begun++) {
        split(substr($1, 2), step, "[/\\]]")
        print "Building codband (" name "), " step[2] " steps ..."
        fflush()
      }
      next
    }
    !/^-- / { print; fflush() }'
}

steps=$(ninja -C "$directory" -n "${targets[@]}" 2>/dev/null | grep -c '^\[' || true)
[ "$steps" -gt 0 ] || exit 0
if [ -t 1 ]; then
  ninja -C "$directory" "${targets[@]}"
  printed=1
else
  exec 3>&1
  printed=$(ninja -C "$directory" "${targets[@]}" | summarise |
    while IFS= read -r line; do echo "$line" >&3 && echo "$line"; done | wc -c)
fi
[ "$printed" -eq 0 ] || echo "Built codband ($name) in $((SECONDS - start)) s."
