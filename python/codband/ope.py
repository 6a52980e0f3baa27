"""Off-policy evaluation on arrays, and logs of decisions.

What would another policy have earned? The estimators need, of each logged event, the reward, the
probability with which the log chose its action (``pscore``), and the probability that the other
policy gives to the same action (``target``).

>>> import numpy as np
>>> reward, pscore = np.array([1.0, 0.0, 1.0, 0.0]), np.full(4, 0.5)
>>> target = np.array([1.0, 0.0, 1.0, 0.0])  # always the action that was rewarded
>>> ips(reward, pscore, target).value
1.0
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

from . import _core
from .arguments import reals, row


@dataclass(frozen=True)
class Estimate:
    """A value with a bootstrap interval; None where no event supports it."""

    estimator: str
    value: float | None
    low: float | None
    high: float | None
    standard_error: float | None
    effective_sample_size: float


def ips(reward: Any, pscore: Any, target: Any, **options: Any) -> Estimate:
    """Inverse propensity scoring: unbiased; its variance grows with the weights target / pscore."""
    return _estimate("ips", reward, pscore, target, **options)


def snips(reward: Any, pscore: Any, target: Any, **options: Any) -> Estimate:
    """Self-normalised: never leaves the range of the rewards; its bias vanishes like 1/n."""
    return _estimate("snips", reward, pscore, target, **options)


def dr(reward: Any, pscore: Any, target: Any, predicted: Any, value: Any, **options: Any) -> Estimate:
    """Doubly robust: a reward model, corrected by inverse propensity scoring.

    ``predicted`` is what the model expects of the logged action, ``value`` the mean of its
    predictions under the target policy. Fit the model on other events.
    """
    return _estimate("dr", reward, pscore, target, predicted, value, **options)


def dm(value: Any, **options: Any) -> Estimate:
    """The direct method, for reference: as biased as the model behind ``value``."""
    ones = np.ones(np.shape(value))
    return _estimate("dm", ones, ones, ones, ones, value, **options)


def replay_match(reward: Any, pscore: Any, target: Any, **options: Any) -> Estimate:
    """The mean reward where log and target agree: for logs chosen uniformly at random and targets
    that are certain (0 or 1)."""
    pscore, target = _column("pscore", pscore), _column("target", target)
    if pscore.size and not np.allclose(pscore, pscore.flat[0]):
        raise ValueError("pscore: differs between events, expected a log chosen uniformly at random")
    if not np.isin(target, (0.0, 1.0)).all():
        raise ValueError("target: has a probability between 0 and 1, expected a certain policy")
    return _estimate("replay", reward, pscore, target, **options)


def _estimate(name: str, reward: Any, pscore: Any, target: Any, predicted: Any = None, value: Any = None,
              *, confidence: float = 0.95, resamples: int = 1000, seed: int = 1) -> Estimate:
    reward, pscore, target = (_column(field, values) for field, values in
                              (("reward", reward), ("pscore", pscore), ("target", target)))
    if not ((pscore > 0) & (pscore <= 1)).all():
        raise ValueError("pscore: has a number outside of (0, 1]")
    if not ((target >= 0) & (target <= 1)).all():
        raise ValueError("target: has a number outside of [0, 1]")
    if not 0.5 <= confidence <= 0.9999:
        raise ValueError(f"confidence: is {confidence}, expected a number from 0.5 to 0.9999")
    if not 10 <= resamples <= 1_000_000:
        raise ValueError(f"resamples: is {resamples}, expected a whole number from 10 to 1000000")
    if not reward.shape == pscore.shape == target.shape:
        raise ValueError(f"reward, pscore, target: have the lengths {reward.size}, {pscore.size}, {target.size}")
    zeros = np.zeros(reward.shape)
    return Estimate(**_core.estimate(
        name, target / pscore, reward, zeros if predicted is None else _column("predicted", predicted),
        zeros if value is None else _column("value", value), confidence, resamples, seed))


def _column(field: str, values: Any) -> np.ndarray:
    return row(field, values).astype(float)


class Log:
    """Logged decisions, for :func:`codband.evaluate`.

    Made by :func:`read_log` from files, by :meth:`from_arrays`, or by :meth:`from_obp`.
    """

    def __init__(self, core: Any):
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self._core.dim

    @property
    def skipped(self) -> int:
        """Lines that were left out."""
        return self._core.skipped

    def arrays(self) -> dict[str, Any]:
        """Users, actions, rewards, propensities, candidates and features, event after event."""
        return self._core.arrays()

    @classmethod
    def from_arrays(cls, action: Any, reward: Any, pscore: Any, features: Any, *,
                    users: Sequence[Any] | None = None, actions: Sequence[Any] | None = None) -> "Log":
        """``features`` are (actions, dim) for all events, or (events, actions, dim).

        >>> log = Log.from_arrays([0, 1], reward=[1, 0], pscore=[0.5, 0.5], features=np.eye(2))
        >>> len(log), log.dim
        (2, 2)
        """
        chosen = row("action", action, "iu")
        features = reals("features", features)
        if features.ndim not in (2, 3):
            raise ValueError(f"features: have the shape {features.shape}, expected (actions, dim) or "
                             "(events, actions, dim)")
        count = features.shape[-2]
        if chosen.size and not (0 <= chosen.min() and chosen.max() < count):
            raise ValueError(f"action: goes from {chosen.min()} to {chosen.max()}, expected 0 to {count - 1}")
        users = ["all"] * len(chosen) if users is None else [str(user) for user in users]
        if len(users) != len(chosen):
            raise ValueError(f"users: has {len(users)} entries, expected {len(chosen)}")
        actions = [str(a) for a in (range(count) if actions is None else actions)]
        if len(set(actions)) != count:
            raise ValueError(f"actions: has {len(set(actions))} different names, expected {count}")
        return cls(_core.LoggedData.from_arrays(users, chosen.tolist(), reward, pscore, features, actions))

    def to_obp(self) -> dict[str, Any]:
        """A dictionary of Open Bandit Pipeline (``bandit_feedback``).

        ``context`` is the one-hot user. OBP knows one list of actions: every event must offer the same
        ones with the same features.
        """
        data = self.arrays()
        n_actions = len(data["actions"])
        if not data["features"]:
            raise ValueError("log: is empty")
        first = data["features"][0]
        for candidates, features in zip(data["candidates"], data["features"]):
            if not np.array_equal(candidates, np.arange(n_actions)) or not np.array_equal(features, first):
                raise ValueError("log: events differ in their candidates or features; OBP has one list for all")
        names = sorted(set(data["users"]))
        context = np.eye(len(names))[[names.index(user) for user in data["users"]]]
        return {"n_rounds": len(self), "n_actions": n_actions, "context": context, "action_context": first,
                "action": data["action"], "position": None, "reward": data["reward"], "pscore": data["pscore"]}

    @classmethod
    def from_obp(cls, feedback: Mapping[str, Any], *, users: Sequence[Any] | None = None) -> "Log":
        """From a dictionary of Open Bandit Pipeline.

        The features of an action in an event are the outer product of its ``action_context`` (one-hot
        if there is none) and (1, context).
        """
        for field in ("action", "reward", "pscore", "n_actions"):
            if feedback.get(field) is None:
                raise ValueError(f"feedback: has no '{field}'")
        position = feedback.get("position")
        if position is not None and len(np.unique(position)) > 1:
            raise ValueError("feedback: has several positions; split it by position first")
        arms = feedback.get("action_context")
        arms = np.eye(int(feedback["n_actions"])) if arms is None else reals("action_context", arms)
        context = feedback.get("context")
        if context is None:
            features = arms
        else:
            context = reals("context", context)
            rows = np.hstack([np.ones((len(context), 1)), context])
            dim = arms.shape[1] * rows.shape[1]
            if dim > 1023:
                raise ValueError(f"feedback: {arms.shape[1]} features of an action times {rows.shape[1]} of the "
                                 f"context are {dim}, expected at most 1023")
            features = np.einsum("af,ec->eafc", arms, rows).reshape(len(context), len(arms), dim)
        return cls.from_arrays(feedback["action"], feedback["reward"], feedback["pscore"], features, users=users)


def read_log(files: str | os.PathLike | Sequence[str], *, format: str | None = None,
             bad_lines: str = "foreign", **columns: str) -> Log:
    """Reads a decision log: DSJSON as the server and Vowpal Wabbit's services write it, or CSV.

    ``bad_lines``: "fail", "foreign" (leave out lines that are no decision) or "skip" (leave out
    decisions with impossible values too). ``columns`` name those of a CSV: action, reward,
    propensity, user, time, group, context, action_prefix, items_file, items_column.
    """
    names = [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(f) for f in files]
    if not names:
        raise ValueError("files: none given")
    kind = format or ("csv" if names[0].endswith(".csv") else "dsjson")
    if kind not in ("csv", "dsjson"):
        raise ValueError(f"format: is '{kind}', expected csv or dsjson")
    return Log(_core.LoggedData.read(names, kind == "csv", bad_lines, dict(columns)))
