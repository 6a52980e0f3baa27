"""The examples of the docstrings run as they stand there."""

import doctest
import importlib
import pathlib
import re
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["aio", "client", "engine", "facade", "ope", "policy", "research", "wire"])
def test_examples(name):
    module = importlib.import_module(f"codband.{name}")
    result = doctest.testmod(module, extraglobs={"np": importlib.import_module("numpy")})
    assert result.failed == 0


def test_everything_public_is_documented():
    codband = importlib.import_module("codband")
    for name in codband.__all__:
        if not name.startswith("_"):
            assert getattr(codband, name).__doc__, name


@pytest.mark.parametrize("document, least", [("README.md", 1), ("docs/python.md", 2), ("docs/start_research.md", 1)])
def test_blocks_of_documents_run(document, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^ *```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    blocks = [textwrap.dedent(block) for block in blocks]
    # Those that talk to a server are what test_clients.py does.
    blocks = [block for block in blocks if "Client(" not in block]
    assert len(blocks) >= least
    names = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)  # pylint: disable=exec-used
