"""The package itself: stubs, version, any order of calls, an installed wheel."""

import ast
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

import codband
from codband import _core


def test_stubs_name_what_the_module_has():
    stub = ast.parse((pathlib.Path(codband.__file__).parent / "_core.pyi").read_text())
    told = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    has = {name for name in dir(_core) if not name.startswith("__")}
    assert has == set(told)
    for name, node in told.items():
        if isinstance(node, ast.ClassDef):
            members = {entry.name for entry in node.body}
            own = {m for m in vars(getattr(_core, name)) if not m.startswith("_") or m in ("_encode",)}
            assert own == {m for m in members if not m.startswith("__")}, name


def test_version_is_that_of_the_project():
    root = pathlib.Path(__file__).parents[2]
    assert f"project(codband VERSION {codband.__version__} " in (root / "CMakeLists.txt").read_text()


def random_calls(seed, steps):
    """Calls in any order with arguments good and bad: every one returns or raises what is documented."""
    rng = random.Random(seed)
    dim = rng.choice([1, 3, 8])
    policy = codband.Policy(rng.choice(["codband", "linucb", "club", "lints", "sclub", "codband:paper"]), dim=dim)
    decisions, batches = [], []
    values = np.random.default_rng(seed)

    def arms():
        shape = rng.choice([(rng.randint(0, 4), dim), (2, dim + 1), (dim,), (2, 2, dim), (1, dim), (3, dim)])
        array = values.normal(size=shape) * rng.choice([1, 1, 30, 1e8, 1e14, 1e20])
        if rng.random() < 0.1 and array.size:
            array.flat[0] = rng.choice([np.nan, np.inf])
        return array.astype(rng.choice([float, np.float32, object, complex, int]), copy=False)

    def user():
        return rng.choice([0, 1, 2, "ann", -1, 2**64, None, 1.5, np.int64(3)])

    calls = [
        lambda: decisions.append(policy.choose(user(), arms())),
        lambda: decisions.append(policy.rank(user(), arms(), floor=rng.choice([0, 0.1, 2])).decision),
        lambda: policy.learn(rng.choice(decisions), rng.choice([0, 1, -30, 1e8, -1e14, np.nan, 1e16])),
        lambda: batches.append(policy.choose_batch([0, 1], arms())),
        lambda: policy.learn_batch(rng.choice(batches), rng.choice([[0, 1], [1], [np.nan, 0]])),
        lambda: policy.forget(user()), policy.describe, lambda: policy.user(user()),
        lambda: policy.learn(codband.Decision.from_dict({**rng.choice(decisions).to_dict(), "period": 2**31}), 1),
        lambda: policy.learn(codband.Decision.from_dict({**rng.choice(decisions).to_dict(), "model": 10**6}), 1),
        lambda: codband.Policy.from_bytes(policy.to_bytes()[:rng.randint(0, 400)]),
        lambda: codband.Policy.from_bytes(policy.to_bytes()),
    ]
    done = 0
    for _ in range(steps):
        try:
            rng.choice(calls)()
            done += 1
        except (ValueError, IndexError, codband.Error):
            pass
    again = codband.Policy.from_bytes(policy.to_bytes())
    assert again.to_bytes() == policy.to_bytes()
    return done


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_calls(seed):
    assert random_calls(seed, 300) > 30


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100, 160))
def test_any_order_of_many_calls(seed):
    assert random_calls(seed, 1000) > 100


@pytest.mark.slow
def test_wheel_installs_and_runs(tmp_path):
    root = pathlib.Path(__file__).parents[2]
    # The module that is tested is not built a second time.
    environment = {**os.environ, "CODBAND_BUILT_MODULE": _core.__file__}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(tmp_path), str(root)],
                   check=True, env=environment, cwd=tmp_path)
    (wheel,) = tmp_path.glob(f"codband-{codband.__version__}-cp*-linux_*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(tmp_path / "site"), str(wheel)], check=True)
    told = subprocess.run(
        [sys.executable, "-c", "import codband, os; print(os.path.dirname(codband.__file__)); "
         "print(codband.Policy('codband', dim=2).choose('ann', [[1, 0], [0, 1]]).arm)"],
        check=True, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")})
    assert told.stdout.startswith(str(tmp_path / "site" / "codband"))
