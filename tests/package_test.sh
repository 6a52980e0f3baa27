#!/usr/bin/env bash
# The Debian packages in a clean Debian 12: installed, used, upgraded over the data, removed, purged.
# Needs root, mmdebstrap and a mirror; skipped (77) without. Minutes.
# Usage: package_test.sh SOURCE BUILD [ROOT]     ROOT: a directory with a Debian 12 made before
set -euo pipefail
source=$1 build=$2 root=${3:-}
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root"; exit 77; }
command -v lintian >/dev/null && command -v dh_python3 >/dev/null || { echo "skipped: needs the packages of scripts/package.sh"; exit 77; }
work=$(mktemp -d)
made=
if [ -z "$root" ]; then
  command -v mmdebstrap >/dev/null || { echo "skipped: needs mmdebstrap"; exit 77; }
  root=$work/root made=1
  mmdebstrap --mode=root --variant=minbase --include=systemd bookworm "$root" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log"; echo "skipped: no mirror"; exit 77; }
fi
# Mounts and processes in namespaces of their own: both end with this script.
if [ -z "${IN_NAMESPACE:-}" ]; then
  status=0
  IN_NAMESPACE=1 unshare --mount --pid --fork --kill-child "$0" "$source" "$build" "$root" || status=$?
  [ -z "$made" ] || rm -rf --one-file-system "$root"
  rm -rf "$work"
  exit "$status"
fi
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
step() { echo "== $1"; }
# The port is not the default one, which a server of this machine may have.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
enter=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
       DEBIAN_FRONTEND=noninteractive CODBAND_SERVER_LISTEN="127.0.0.1:$port")
inside() { "${enter[@]}" "$@"; }

step "packages"
"$source/scripts/package.sh" "$build" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; fail "no packages"; }
mount -t proc proc "$root/proc"
mkdir -p "$root/packages"
rm -f "$root/packages"/*
cp "$source"/build/packages/*.deb "$root/packages"
cp /etc/resolv.conf "$root/etc/resolv.conf"

step "install"
inside apt-get update -q >/dev/null
inside sh -c 'apt-get install -q -y --no-install-recommends /packages/codband_*.deb /packages/python3-codband_*.deb' >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; fail "apt-get install"; }
inside id codband
[ "$(inside stat -c %U:%a /var/lib/codband)" = codband:700 ] || fail "/var/lib/codband is not codband's alone"
inside systemd-analyze verify --man=no codband.service || fail "the unit"
inside sh -c 'test -s /usr/share/man/man1/codband-serve.1.gz && test -L /etc/systemd/system/multi-user.target.wants/codband.service' ||
  fail "man pages, or the unit is not enabled"
inside bash -c 'source /usr/share/bash-completion/completions/codband; COMP_WORDS=(codband se); COMP_CWORD=1; _codband; [ "${COMPREPLY[*]}" = serve ]' ||
  fail "bash completion of commands"
inside bash -c 'source /usr/share/bash-completion/completions/codband; COMP_WORDS=(codband serve --dat); COMP_CWORD=2; _codband; [ "${COMPREPLY[*]}" = --data ]' ||
  fail "bash completion of flags"

# What the unit runs, as its user.
command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/codband.service" "$root/usr/lib/systemd/system/codband.service" 2>/dev/null | head -n 1)
start() {
  # shellcheck disable=SC2086
  "${enter[@]}" setpriv --reuid codband --regid codband --init-groups $command >"$work/server" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    if inside python3 -c 'import codband, sys; sys.exit(not codband.Client(sys.argv[1]).is_ready())' "$url"; then return 0; fi
    kill -0 "$server" 2>/dev/null || { cat "$work/server"; fail "the server ended"; }
    sleep 0.1
  done
  fail "the server is not ready"
}
stop() { kill "$server"; wait "$server" || fail "the server did not stop cleanly"; }
ask() { inside python3 -c "import codband; client = codband.Client('$url'); print($1)"; }

step "the shop example"
start
inside python3 /usr/share/doc/python3-codband/examples/shop_python/shop.py "$url" --visits 200
known=$(ask 'client.user("visitor-0")["observations"]')
stop

step "keys, as docs/start_operation.md says"
key=$(inside runuser -u codband -- codband keys add shop --role read --file /etc/codband/keys)
enter+=(CODBAND_KEYS_FILE=/etc/codband/keys)
start
[ "$(inside python3 -c "import codband; print(codband.Client('$url', key='$key').user('visitor-0')['observations'])")" = "$known" ] || fail "the key is not known"
! ask 'client.user("visitor-0")' 2>/dev/null || fail "it answers without a key"
stop
unset 'enter[-1]'

step "upgrade over the data"
for deb in "$root"/packages/*.deb; do
  rm -rf "$work/unpacked"
  dpkg-deb -R "$deb" "$work/unpacked"
  sed -i 's/^Version: .*/&+later/' "$work/unpacked/DEBIAN/control"
  dpkg-deb -b "$work/unpacked" "$root/packages/$(basename "${deb%_*}")+later_amd64.deb" >/dev/null
done
inside sh -c 'apt-get install -q -y --no-install-recommends /packages/codband_*+later*.deb /packages/python3-codband_*+later*.deb' >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; fail "upgrade"; }
inside dpkg-query -W -f '${Version}\n' codband | grep -q later || fail "the version did not change"
start
[ "$(ask 'client.user("visitor-0")["observations"]')" = "$known" ] || fail "the upgrade lost what was learned"
stop

step "remove and purge"
inside apt-get remove -q -y codband >"$work/log" 2>&1
[ ! -e "$root/usr/bin/codband" ] && [ -d "$root/var/lib/codband/rocksdb" ] && [ -f "$root/etc/codband.toml" ] || fail "remove"
inside apt-get purge -q -y codband python3-codband >"$work/log" 2>&1
[ ! -e "$root/var/lib/codband" ] && [ ! -e "$root/etc/codband" ] && [ ! -e "$root/etc/codband.toml" ] && [ ! -e "$root/usr/lib/python3/dist-packages/codband" ] || fail "purge"
echo "installed, used, upgraded, removed and purged"
