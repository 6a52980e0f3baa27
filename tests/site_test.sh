#!/usr/bin/env bash
# The documentation site builds, all of its links lead somewhere, and the check would notice.
# Usage: site_test.sh SOURCE BUILD; skipped (77) without mkdocs
set -euo pipefail
source=$1 build=$2
command -v mkdocs >/dev/null && dpkg-query -W mkdocs-material >/dev/null 2>&1 || { echo "skipped: needs mkdocs and mkdocs-material"; exit 77; }
"$source/scripts/site.py" "$build"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/site"
cp "$source/build/site/index.html" "$source/build/site/python.html" "$copy/site"
printf '<a href="python.html#no-such-part">x</a><a href="nothing.html">y</a>' >"$copy/site/index.html"
/usr/bin/python3 - "$source/scripts" "$copy/site" <<'END'
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("codband_site", sys.argv[1] + "/site.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
found = [fault for fault in module.broken_links(pathlib.Path(sys.argv[2])) if fault.startswith("index.html")]
assert len(found) == 2, found
END
