#!/usr/bin/env bash
# What other projects link: installs a build into a new prefix and uses it from there.
# Usage: install_test.sh package|sources|built-sources SOURCE BUILD
#   package        find_package and pkg-config against the installed libraries; the README's snippet runs
#   sources        configures a project that has the sources by add_subdirectory, and by FetchContent
#   built-sources  builds and runs it too: minutes
set -euo pipefail
how=$1 source=$2 build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

# What the policies do without.
without=()
for package in RocksDB prometheus-cpp OpenSSL simdjson nlohmann_json CLI11 tomlplusplus; do
  without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
configure() { # BY ARGS...
  cmake -G Ninja -S "$source/tests/consumer" -B "$work/$1" -DCODBAND_BY="$1" \
    -DCODBAND_README="$source/README.md" -DCODBAND_SOURCE="$source" "${without[@]}" "${@:2}" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "configuring by $1 failed"; }
}
build_and_run() { # BY
  cmake --build "$work/$1" --target consumer >"$work/log" 2>&1 || { cat "$work/log"; fail "building by $1 failed"; }
  "$work/$1/consumer"
}

if [ "$how" = package ]; then
  prefix=$work/prefix
  cmake --install "$build" --prefix "$prefix" >/dev/null
  [ "$("$prefix/bin/codband" --version)" = "codband $(sed -n 's/^project(codband VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")" ] ||
    fail "the installed program tells another version than CMakeLists.txt"
  # Every header that an installed header includes is installed.
  while IFS= read -r header; do
    [ -f "$prefix/include/$header" ] || fail "$header is included by an installed header, but not installed"
  done < <(grep -rhoE '#include "codband/[^"]*' "$prefix/include" | sed 's/#include "//' | sort -u)
  # The prefix may be moved.
  mv "$prefix" "$prefix.moved"
  prefix=$prefix.moved
  configure package -DCMAKE_PREFIX_PATH="$prefix"
  build_and_run package
  pc=$(find "$prefix" -name codband-policy.pc)
  export PKG_CONFIG_PATH=${pc%/*}
  # shellcheck disable=SC2046
  c++ "$work/package/readme.cc" -o "$work/by-pkg-config" $(pkg-config --cflags --libs codband-policy)
  "$work/by-pkg-config"
  for pc in "$PKG_CONFIG_PATH"/*.pc; do
    pkg-config --exists --print-errors "$(basename "$pc" .pc)"
  done
  # An unknown component is told as such.
  sed 's/COMPONENTS policy/COMPONENTS polcy/' "$source/tests/consumer/CMakeLists.txt" >"$work/CMakeLists.txt"
  cmake -S "$work" -B "$work/unknown" -DCODBAND_BY=package -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    fail "an unknown component was found"
  tr '\n' ' ' <"$work/log" | tr -s ' ' | grep -q "has no component 'polcy'" || { cat "$work/log"; fail "the error does not name it"; }
else
  for by in subdirectory fetch; do
    configure "$by" -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
    if [ "$how" = built-sources ]; then build_and_run "$by"; fi
  done
fi
