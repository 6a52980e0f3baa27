#!/usr/bin/env bash
# The container image: made from the package, read by skopeo if it is there, and its file system runs
# the server as the image says, in a chroot. No container engine is needed, and none is tested.
# Needs root, mmdebstrap, a mirror and build/packages; skipped (77) without.
# Usage: image_test.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
[ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null && command -v lintian >/dev/null || { echo "skipped: needs root, mmdebstrap, lintian"; exit 77; }
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
ls "$source"/build/packages/codband_*.deb >/dev/null 2>&1 || "$source/scripts/package.sh" "$build" >"$work/log" 2>&1 || fail "no packages"
"$source/scripts/image.sh"
image=$source/build/codband-image.tar
if command -v skopeo >/dev/null; then
  skopeo inspect "oci-archive:$image" >/dev/null || fail "skopeo cannot read it"
fi

# What an engine does: find the manifest, check digests, unpack the layer, run the entry point.
mkdir "$work/layout" "$work/root"
tar -xf "$image" -C "$work/layout"
/usr/bin/python3 - "$work" >"$work/run" <<'END'
import hashlib, json, pathlib, shlex, sys
work = pathlib.Path(sys.argv[1])
def blob(entry):
    data = (work / "layout/blobs/sha256" / entry["digest"].split(":")[1]).read_bytes()
    assert "sha256:" + hashlib.sha256(data).hexdigest() == entry["digest"] and len(data) == entry["size"]
    return data
manifest = json.loads(blob(json.loads((work / "layout/index.json").read_text())["manifests"][0]))
config = json.loads(blob(manifest["config"]))["config"]
(work / "layer").write_bytes(blob(manifest["layers"][0]))
assert config["User"] == "codband" and "/var/lib/codband" in config["Volumes"]
print(shlex.join(config["Entrypoint"]))
END
tar -xzf "$work/layer" -C "$work/root"
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
key=0123456789abcdef0123456789abcdef
# shellcheck disable=SC2046
chroot "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin CODBAND_SERVER_LISTEN="0.0.0.0:$port" CODBAND_API_KEY=$key \
  setpriv --reuid codband --regid codband --init-groups $(cat "$work/run") >"$work/server" 2>&1 &
server=$!
for _ in $(seq 100); do
  if curl -sf "http://127.0.0.1:$port/v1/health/ready" >/dev/null; then break; fi
  kill -0 "$server" 2>/dev/null || { cat "$work/server"; fail "the server ended"; }
  sleep 0.1
done
curl -sf "http://127.0.0.1:$port/v1/rank" -H "X-API-Key: $key" -H 'Content-Type: application/json' \
  -d '{"userId":"ann","actions":[{"id":"a","features":{"x":1}},{"id":"b","features":{"y":1}}]}' | grep -q rewardActionId || fail "rank"
kill "$server"
wait "$server" || fail "the server did not stop cleanly"
server=
[ -d "$work/root/var/lib/codband/rocksdb" ] || fail "the data is not in the volume"
echo "made, read, unpacked and run"
