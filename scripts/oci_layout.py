"""Makes an OCI image layout of one layer: python3 oci_layout.py ROOT OUT.tar

ROOT is a directory with a file system. The bytes are a function of the files: names are sorted,
times are those of SOURCE_DATE_EPOCH (default 0). Load it with `podman load -i OUT.tar`, or
`skopeo copy oci-archive:OUT.tar docker://…`.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile

CONFIG = {
    "User": "codband",
    "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "CODBAND_SERVER_LISTEN=0.0.0.0:8080"],
    "Entrypoint": ["/usr/bin/codband", "serve", "--config", "/etc/codband.toml"],
    "ExposedPorts": {"8080/tcp": {}},
    "Volumes": {"/var/lib/codband": {}},
    "StopSignal": "SIGTERM",
}
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def layer_of(root):
    """The files as a tar: sorted, with numeric owners and one time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        def clean(info):
            info.mtime, info.uname, info.gname = EPOCH, "", ""
            return info if info.isfile() or info.isdir() or info.issym() or info.islnk() else None

        for name in sorted(os.listdir(root)):
            tar.add(os.path.join(root, name), name, filter=clean)  # sorts below
    return raw.getvalue()


def main():
    root, out = sys.argv[1:]
    layer = layer_of(root)
    packed = gzip.compress(layer, mtime=EPOCH)
    blobs = {}

    def add(media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = {"created": created, "architecture": architecture, "os": "linux", "config": CONFIG,
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": add("application/vnd.oci.image.config.v1+json", json.dumps(config).encode()),
                "layers": [add("application/vnd.oci.image.layer.v1.tar+gzip", packed)]}
    entry = add("application/vnd.oci.image.manifest.v1+json", json.dumps(manifest).encode())
    entry["annotations"] = {"org.opencontainers.image.ref.name": "codband:latest"}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
             "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode(),
             **{f"blobs/sha256/{digest}": data for digest, data in blobs.items()}}
    with tarfile.open(out, "w") as tar:
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), EPOCH
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
