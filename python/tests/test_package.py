"""The package itself: stubs, version, an installed wheel."""

import ast
import os
import pathlib
import subprocess
import sys

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


USE = '''
import numpy as np
import codband

policy = codband.Policy("codband", dim=3)
policy.add_arm("a", [1, 0, 0])
decision: codband.Decision = policy.choose("ann", np.ones((2, 3)))
outcome: codband.Outcome = policy.learn(decision, 1.0)
with codband.Client("http://127.0.0.1:8080") as client:
    client.put_items([{"id": "a"}])
    chosen: str = client.choose_rank("e", "ann", None, ["a"]).chosen
regret: float = codband.simulate("codband", users=3)["codband"].mean_regret

async def shop() -> None:
    async with codband.AsyncClient("http://127.0.0.1:8080") as client:
        await client.put_item("a", {"genre": "jazz"})
        reply: codband.RankReply = await client.rank("ann", ["a"])
        known: dict[str, object] = await client.user("ann")
        client.report(reply.event_id, 1.0)
'''


@pytest.mark.slow
def test_types_are_those_of_use(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE)
    package = pathlib.Path(codband.__file__).parent
    for checked in (["--strict", "--follow-imports=silent", "use.py"], ["--ignore-missing-imports", str(package)]):
        told = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), *checked], cwd=tmp_path,
                              env={**os.environ, "MYPYPATH": str(package.parent)}, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout


def test_version_is_that_of_the_project():
    root = pathlib.Path(__file__).parents[2]
    assert f"project(codband VERSION {codband.__version__} " in (root / "CMakeLists.txt").read_text()


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
