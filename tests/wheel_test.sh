#!/usr/bin/env bash
# A wheel as the README says, from the committed sources alone: built from nothing, installed into a virtual
# environment and used there. Minutes of compiling. Skipped (77) without venv or git.
# Usage: wheel_test.sh SOURCE
set -euo pipefail
source=$1 python=/usr/bin/python3
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || { echo "skipped: $source is no clone"; exit 77; }
"$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "skipped: needs python3-venv"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/sources"
git -C "$source" archive HEAD | tar -x -C "$work/sources"
cd "$work/sources"
"$python" -m venv --system-site-packages "$work/env"
# Debian's interpreter with its own pip: nothing is fetched.
"$work/env/bin/pip" --disable-pip-version-check wheel -q . --no-build-isolation --no-deps --no-index
"$work/env/bin/pip" --disable-pip-version-check install -q --no-deps --no-index codband-*.whl
cd "$work"
env -u PYTHONPATH "$work/env/bin/python" - <<'END'
import sys, tempfile
import codband, numpy as np
assert codband.__file__.startswith(sys.prefix), codband.__file__
policy = codband.Policy("codband", dim=25)
decision = policy.choose("ann", np.random.default_rng(1).normal(size=(10, 25)))
policy.learn(decision, reward=1.0)
assert policy.user("ann")["observations"] == 1
with tempfile.TemporaryDirectory() as directory, codband.Engine(directory) as engine:
    engine.put_item("miles-davis", {"genre": "jazz"})
    assert engine.rank("ann")["rewardActionId"] == "miles-davis"
result = codband.simulate(["codband", "linucb"], users=5, rounds=20, seeds=1)
assert len(result.records()) > 0
print("the wheel of codband", codband.__version__, "works")
END
