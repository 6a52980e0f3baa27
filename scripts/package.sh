#!/usr/bin/env bash
# Makes the Debian packages in build/packages and checks them with lintian.
#   scripts/package.sh               from a build of their own, build/package, with hardening
#   scripts/package.sh BUILD         from a build that is there, such as build/dev
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
needed=(debhelper dh-python fakeroot lintian)
missing=()
for package in "${needed[@]}"; do
  dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "Install these Debian packages first: ${missing[*]}" >&2
  exit 1
fi
export BUILD_DIR=${1:+$(realpath "$1")}
[ -n "$BUILD_DIR" ] || unset BUILD_DIR
export PACKAGE_DIR=$PWD/build/packages
rm -rf build/packages
clean() { fakeroot debian/rules clean >/dev/null; rm -rf debian/documents debian/tmp; }
trap clean EXIT
log=$(mktemp)
fakeroot debian/rules binary >"$log" 2>&1 || { tail -n 60 "$log"; exit 1; }
rm -f "$log"
lintian --fail-on error --tag-display-limit 0 build/packages/*.deb
ls -l build/packages
