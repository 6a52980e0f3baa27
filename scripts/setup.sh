#!/usr/bin/env bash
# Installs the Debian packages that codband is built with; returns at once if all are there.
#   scripts/setup.sh          to build and run the program
#   scripts/setup.sh --test   to build everything and test it
#   scripts/setup.sh --slow   for the slow tests too
#   scripts/setup.sh --clang  clang 19 as well, for the presets fuzz and tidy
set -euo pipefail
packages=(
  g++ cmake ninja-build ccache mold git pkg-config
  libfmt-dev libboost-dev librandom123-dev libcli11-dev nlohmann-json3-dev
  zlib1g-dev libspectra-dev libeigen3-dev libutf8proc-dev libstemmer-dev
  librocksdb-dev libxxhash-dev libsimdjson-dev libtomlplusplus-dev prometheus-cpp-dev libssl-dev
  libpq-dev
  librsvg2-bin
)
case "${1:-}" in
  "") ;;
  --test | --slow | --clang)
    packages+=(
      clang-format libgtest-dev librapidcheck-dev libbenchmark-dev
      python3-dev pybind11-dev python3-numpy python3-pytest python3-setuptools python3-wheel
      python3-pip curl postgresql
    )
    ;;
  *) echo "usage: scripts/setup.sh [--test | --slow | --clang]" >&2; exit 2 ;;
esac
if [ "${1:-}" = --slow ]; then
  packages+=(patroni etcd-server)
fi
# For the dashboard. Not Debian's if there are others: theirs conflict.
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  packages+=(nodejs npm)
fi
if [ "${1:-}" = --clang ]; then
  packages+=(clang-19 clang-tidy-19 libclang-rt-19-dev)
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "codband needs these Debian packages: ${missing[*]}" >&2
    echo "Install them as root, or install sudo, and try again." >&2
    exit 1
  }
  as_root=(sudo)
fi
# The tests start a PostgreSQL and an etcd of their own: installing them should not start others
# (without systemd RUNLEVEL keeps services from starting).
common=/etc/postgresql-common
if [[ " ${missing[*]} " == *" postgresql "* ]] && [ ! -e $common/createcluster.conf ]; then
  "${as_root[@]}" mkdir -p $common
  echo "create_main_cluster = false" | "${as_root[@]}" tee $common/createcluster.conf >/dev/null
fi
echo "Installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
{
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
} >&2
