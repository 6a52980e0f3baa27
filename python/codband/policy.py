"""Policies in this process: no server, no files unless you save."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from typing import Any

import numpy as np

from . import _core
from .facade import ArmsFacade

_MAGIC = b"codband-python-1\n"


class Policy(ArmsFacade, _core.Policy):
    """A bandit policy: chooses one of the arms for a user, and learns from the reward.

    ``spec`` is a name of :func:`policies`, with parameters after a colon: ``"codband"``,
    ``"linucb:alpha=0.3"``. ``dim`` is the number of features of an arm. Users are numbers or texts.

    >>> import numpy as np
    >>> policy = Policy("codband", dim=2)
    >>> arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> for visit in range(200):
    ...     decision = policy.choose("ann", arms)
    ...     outcome = policy.learn(decision, reward=1.0 if decision.arm == 1 else 0.0)
    >>> policy.rank("ann", arms).order.tolist()
    [1, 0]

    A second user who is new profits from the first, and nothing is shared with the policy ``linucb``.

    Decisions are plain data: keep them until their rewards come, in any order, after days.
    The same seed and the same calls give the same results, on every machine.

    Threads: any number of them may use one policy. Choosing runs in parallel, without the GIL;
    learning waits for it and it for learning. Do not change an array while a call reads it.
    """

    def __init__(self, spec: str = "codband", *, dim: int, seed: int = 1):
        _core.Policy.__init__(self, spec, dim=dim, seed=seed)
        self._arms = {}

    # State -----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything: what was learned, the number of the next event, the arms of add_arm().

        >>> policy = Policy("linucb", dim=1)
        >>> _ = policy.learn(policy.choose(7, [[1.0]]), 1.0)
        >>> again = Policy.from_bytes(policy.to_bytes())
        >>> again.choose(7, [[1.0]]).mean == policy.choose(7, [[1.0]]).mean
        True
        """
        header = json.dumps({
            "seed": self.seed,
            "next_event": self.next_event,
            "arms": [[name, features.tolist()] for name, features in self._arms.items()],
        }).encode()
        return _MAGIC + struct.pack("<Q", len(header)) + header + self._encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Policy":
        """The policy that to_bytes() gave; it continues as if it had never stopped.

        Also reads a state that C++ wrote (``codband/policy/state_file.h``).
        """
        header: dict[str, Any] = {"seed": 1, "next_event": 0, "arms": []}
        state = bytes(data)
        if state.startswith(_MAGIC):
            start = len(_MAGIC) + 8
            if len(state) < start:
                raise ValueError(f"data: ends after {len(state)} bytes, inside of the header")
            (length,) = struct.unpack("<Q", state[len(_MAGIC):start])
            try:
                header = json.loads(state[start:start + length])
            except ValueError as error:
                raise ValueError(f"data: the header is damaged: {error}") from None
            state = state[start + length:]
        policy = cls.__new__(cls)
        _core.Policy.__init__(policy, state, header["seed"], header["next_event"])
        policy._arms = {_hashable(name): np.array(features, dtype=float)
                        for name, features in header["arms"]}
        return policy

    def save(self, path: str | os.PathLike) -> None:
        """Writes to_bytes() to a file. After a crash the file holds the old state or the new one."""
        directory = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=".codband-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.to_bytes())
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Policy":
        """The policy that save() wrote."""
        with open(path, "rb") as file:
            return cls.from_bytes(file.read())

    def __reduce__(self):
        return _restore, (type(self), self.to_bytes())

    # For display -----------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """What it is and what it has learned, for people and for logs.

        >>> description = Policy("codband", dim=3).describe()
        >>> description["name"], description["dim"], description["model_count"]
        ('codband', 3, 0)
        """
        name = self.spec.split(":")[0]
        info = next(info for info in _core.policy_infos() if info["name"] == name)
        return {"name": name, "summary": info["summary"], "paper": info["paper"], "spec": self.spec,
                "dim": self.dim, "seed": self.seed, "next_event": self.next_event,
                "model_count": self.model_count, "models": self.models()}

    def __repr__(self) -> str:
        return f"<codband.Policy {self.spec.split(':')[0]}, dim={self.dim}, models={self.model_count}>"


def _hashable(name: Any) -> Any:
    return tuple(_hashable(part) for part in name) if isinstance(name, list) else name


def _restore(cls, data: bytes) -> Policy:
    return cls.from_bytes(data)


def policies(name: str | None = None) -> list[dict[str, Any]] | dict[str, Any]:
    """Every policy there is, or the one of this name: idea, paper, parameters with ranges, presets.

    >>> [info["name"] for info in policies()][:3]
    ['codband', 'linucb', 'lints']
    >>> policies("linucb")["parameters"][0]["name"]
    'alpha'
    """
    infos = _core.policy_infos()
    if name is None:
        return infos
    for info in infos:
        if info["name"] == name:
            return info
    known = ", ".join(info["name"] for info in infos)
    raise ValueError(f"name: policy '{name}' is unknown; there are {known}")
