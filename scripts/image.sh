#!/usr/bin/env bash
# Makes a container image from the Debian package, without a registry and without a container engine:
# a minimal Debian 12 by mmdebstrap with the package inside, as an OCI archive build/codband-image.tar.
#   scripts/image.sh                 after scripts/package.sh; needs root and mmdebstrap
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=(build/packages/codband_*.deb)
[ -f "${packages[0]}" ] || { echo "there is no build/packages/codband_*.deb; run scripts/package.sh first" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
SOURCE_DATE_EPOCH=$(date -u -d "$(sed -n 's/^ -- .*>  //p' debian/changelog | head -n 1)" +%s)
export SOURCE_DATE_EPOCH
log=$(mktemp)
# Documentation, indexes of apt and what only an installation needs stay out.
mmdebstrap --mode=root --variant=essential --include="$(realpath "${packages[0]}")" \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --setup-hook="mkdir -p \"\$1$(realpath build/packages)\"; cp $(realpath "${packages[0]}") \"\$1$(realpath build/packages)/\"" \
  --customize-hook="rm -rf \"\$1$(realpath build/packages)\" \"\$1\"/var/cache/* \"\$1\"/var/log/*" \
  bookworm "$root/image" >"$log" 2>&1 || { tail -n 20 "$log"; rm -f "$log"; exit 1; }
rm -f "$log"
/usr/bin/python3 scripts/oci_layout.py "$root/image" build/codband-image.tar
ls -l build/codband-image.tar
