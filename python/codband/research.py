"""Experiments: policies side by side, in simulations and on recorded events.

Results are plain: NumPy arrays, dictionaries, lists of records that go straight into pandas.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

import numpy as np

from . import _core
from .ope import Log, read_log

# The colours and dash patterns of the reports (codband/report/svg_parts.cc), by number.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#33373d")
_DASHES = ("-", "-.", ":")


class CustomPolicy:
    """A policy of your own, for :func:`simulate`, :func:`replay` and :func:`evaluate`.

    Pass the class, or any callable that takes the number of features and makes one: each run gets
    its own object. ``choose`` may return a tuple (arm, propensity); ``learn`` may return True for
    "this user has changed". Randomness comes from ``rng`` alone, so that runs are reproducible.

    >>> class Greedy(CustomPolicy):
    ...     def __init__(self, dim):
    ...         self.a, self.b = np.eye(dim), np.zeros(dim)
    ...     def choose(self, user, arms, rng):
    ...         if rng.random() < 0.1:
    ...             return rng.integers(len(arms))
    ...         return int(np.argmax(arms @ np.linalg.solve(self.a, self.b)))
    ...     def learn(self, user, features, reward):
    ...         self.a += np.outer(features, features)
    ...         self.b += reward * features
    >>> result = simulate(["random", Greedy], users=5, models=1, rounds=50, setting=3, arms=5)
    >>> result["Greedy"].mean_regret < result["random"].mean_regret
    True
    """

    def choose(self, user: int, arms: np.ndarray, rng: "_core.Random") -> Any:
        """The row of an arm of `arms`, an (arms, dim) array of your own."""
        raise NotImplementedError

    def learn(self, user: int, features: np.ndarray, reward: float) -> Any:
        """Learns that the arm with these features brought this reward to this user."""
        raise NotImplementedError


class Environment:
    """A population of your own, for :func:`simulate`.

    Has the attributes ``users``, ``rounds`` and ``dim`` (and ``noise``, if known). Pass the class, or
    any callable that takes a seed: everything must be a function of it. A round has one slot for
    each user.
    """

    users: int
    rounds: int
    dim: int
    noise: float = 0.1

    def start_round(self, round: int) -> Sequence[int] | None:
        """Begins a round; the users who change now, if any."""
        return None

    def visit(self, slot: int) -> tuple[int, Any, Any, Any]:
        """(user, arms, means, rewards): arms is (arms, dim); the expected reward of each arm, and
        the reward that it brings if it is chosen."""
        raise NotImplementedError


@dataclass
class PolicyResult:
    """The runs of one policy, one for each seed."""

    name: str
    regret: np.ndarray = field(repr=False)  # (seeds, checkpoints), accumulated
    runs: list[dict[str, Any]] = field(repr=False)

    @property
    def total_regret(self) -> np.ndarray:
        """Of each seed, at the end."""
        return self.regret[:, -1]

    @property
    def mean_regret(self) -> float:
        return float(self.total_regret.mean())

    @property
    def sd_regret(self) -> float:
        return float(self.total_regret.std(ddof=1)) if len(self.runs) > 1 else 0.0


@dataclass
class Comparison:
    """What :func:`simulate` returns. ``result["codband"]`` is one policy's part."""

    rounds: np.ndarray  # played at each checkpoint
    seeds: list[int]
    environment: dict[str, Any]
    policies: list[PolicyResult]

    def __getitem__(self, name: str) -> PolicyResult:
        for policy in self.policies:
            if policy.name == name:
                return policy
        raise KeyError(f"'{name}'; there are {', '.join(p.name for p in self.policies)}")

    def __repr__(self) -> str:
        width = max(len(policy.name) for policy in self.policies)
        lines = [f"Comparison: {self.rounds[-1]} rounds, {len(self.seeds)} seed{'s' * (len(self.seeds) != 1)}",
                 f"{'policy':{width}}      regret      ±  changes detected"]
        for row in self.summary():
            lines.append(f"{row['policy']:{width}}  {row['mean_regret']:10.1f}  {row['sd_regret']:5.1f}  "
                         f"{row['detected']} of {row['true_changes']}, {row['false_alarms']} false alarms")
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """One dictionary for each policy, seed and checkpoint: ``pandas.DataFrame(result.records())``."""
        return [{"policy": policy.name, "seed": seed, "round": int(round_), "regret": float(regret)}
                for policy in self.policies
                for seed, curve in zip(self.seeds, policy.regret)
                for round_, regret in zip(self.rounds, curve)]

    def summary(self) -> list[dict[str, Any]]:
        """One dictionary for each policy: regret, changes, time."""
        rows = []
        for policy in self.policies:
            changes = [run["changes"] for run in policy.runs]
            rows.append({
                "policy": policy.name, "mean_regret": policy.mean_regret, "sd_regret": policy.sd_regret,
                "true_changes": sum(c["true"] for c in changes),
                "detected": sum(c["detected"] for c in changes),
                "false_alarms": sum(c["false_alarms"] for c in changes),
                "models": float(np.mean([run["models"] for run in policy.runs])),
                "us_per_step": float(np.mean([run["us_per_step"] for run in policy.runs])),
            })
        return rows

    def plot(self, axes: Any = None) -> Any:
        """Regret curves with bands of one standard deviation; needs matplotlib."""
        if axes is None:
            import matplotlib.pyplot as plt
            axes = plt.figure().gca()
        numbers = _colour_numbers([policy.name for policy in self.policies])
        for policy, number in zip(self.policies, numbers):
            mean, sd = policy.regret.mean(axis=0), policy.regret.std(axis=0, ddof=min(1, len(policy.runs) - 1))
            colour = _COLOURS[number % len(_COLOURS)] if number >= 0 else "#8a929d"
            axes.plot(self.rounds, mean, label=policy.name, color=colour, linewidth=3 if policy.name == "codband" else 1.5,
                      linestyle=_DASHES[max(0, number) // len(_COLOURS) % len(_DASHES)])
            axes.fill_between(self.rounds, mean - sd, mean + sd, color=colour, alpha=0.16, linewidth=0)
        axes.set_xlabel("rounds")
        axes.set_ylabel("accumulated regret")
        axes.legend()
        return axes


def _colour_numbers(names: Sequence[str]) -> list[int]:
    """Registered policies have the colours of the reports; others those that are left, while there are any."""
    numbers = [_core.policy_colour(name) for name in names]
    known = {info["name"] for info in _core.policy_infos()}
    own = [i for i, name in enumerate(names) if name.split(":")[0] not in known]
    taken = {number % len(_COLOURS) for i, number in enumerate(numbers) if i not in own and number >= 0}
    free = [number for number in range(len(_COLOURS)) if number not in taken]
    for i, number in zip(own, free):
        numbers[i] = number
    return numbers


def simulate(policies: str | Sequence[Any] = ("codband", "linucb", "random"),
             environment: Callable[[int], Environment] | None = None, *, seed: int = 1,
             seeds: int = 1, threads: int | None = None, checkpoints: int = 100,
             **settings: Any) -> Comparison:
    """Plays policies side by side on a simulated population: the paper's, or one of your own.

    ``policies`` are specs, classes derived from :class:`CustomPolicy`, or callables that make such.
    ``settings`` are those of ``codband simulate`` without dashes: users, models, rounds, period (a
    pair), noise, arms, pool, dim, setting, rewards, order, drift, separation.

    A policy's result depends on the environment, the seed and its own parameters only, never on the
    other policies or on ``threads``.

    >>> result = simulate("codband,linucb", users=10, models=2, rounds=100, period=(30, 60), seeds=2)
    >>> result["codband"].regret.shape
    (2, 100)
    """
    names, factories = _named(policies)
    common = (names, factories, _whole("seed", seed, 0), _whole("seeds", seeds, 1),
              _threads(threads), _whole("checkpoints", checkpoints, 1))
    if environment is None:
        played = _core.simulate({key.replace("_", "-"): _text(value) for key, value in settings.items()
                                 if value is not None and value is not False}, *common)
        about = json.loads(played["environment"])
    else:
        if settings:
            raise ValueError(f"{', '.join(settings)}: is of the built-in population, not of your own")
        for name in names:
            if name not in factories and name.startswith("oracle-"):
                raise ValueError(f"policies: '{name}' needs true parameters, which a population of "
                                 "your own does not tell")
        played = _core.simulate_scripted(environment, *common)
        about = {"name": getattr(environment, "__name__", repr(environment))}
    return Comparison(
        rounds=np.array(played["rounds"]), seeds=[seed + i for i in range(seeds)], environment=about,
        policies=[PolicyResult(p["name"], np.array([run["regret"] for run in p["runs"]]), p["runs"])
                  for p in played["policies"]])


def replay(directory: str | os.PathLike, policies: str | Sequence[Any] = ("codband", "linucb", "random"),
           *, order: str = "recorded", seed: int = 1, seeds: int = 1, threads: int | None = None,
           checkpoints: int = 100) -> dict[str, Any]:
    """Plays policies through recorded events: ``features.tsv`` with ``events.tsv`` or ``log.tsv``.

    Returns what ``codband replay --format json`` prints: rewards, curves and changes of each policy.
    """
    if order not in ("recorded", "interleaved"):
        raise ValueError(f"order: is '{order}', expected recorded or interleaved")
    names, factories = _named(policies)
    logged = os.path.exists(os.path.join(directory, "log.tsv"))
    if logged and order != "recorded":
        raise ValueError(f"order: is '{order}', expected recorded: the candidates of a log depend on the time")
    return json.loads(_core.replay(os.fspath(directory), logged, order == "interleaved", names, factories,
                                   _whole("seed", seed, 0), _whole("seeds", seeds, 1), _threads(threads),
                                   _whole("checkpoints", checkpoints, 1)))


def prepare(name: str, source: str | os.PathLike, out: str | os.PathLike, *, overwrite: bool = False,
            strict: bool = False, **settings: Any) -> dict[str, Any]:
    """Turns a public data set (lastfm, delicious, movielens, yahoo) into recorded events for :func:`replay`.

    ``settings`` are those of ``codband prepare`` without dashes. Writes all files or none; returns what
    ``meta.json`` says: every setting, what was read and left out, what came of it.
    """
    texts = {key.replace("_", "-"): _text(value) for key, value in settings.items() if value is not None}
    return json.loads(_core.prepare(name, os.fspath(source), os.fspath(out), overwrite, strict, texts))


def stress(policies: str | Sequence[str] = (
               "codband", "codband:paper", "codband:explore=thompson", "linucb", "lints", "dlinucb",
               "club", "sclub", "uniform-linucb"),
           *, cells: Sequence[str] = (), quick: bool = False, seed: int = 1, seeds: int | None = None,
           threads: int | None = None) -> dict[str, Any]:
    """Plays the first policy against the others on populations of many kinds; where it loses.

    Returns what ``codband stress --format json`` prints.
    """
    names, factories = _named(policies)
    if factories:
        raise ValueError(f"policies: {', '.join(factories)} is your own; stress plays registered ones")
    seeds = (1 if quick else 3) if seeds is None else seeds
    return json.loads(_core.stress(names, list(cells), quick, _whole("seed", seed, 0),
                                   _whole("seeds", seeds, 1), _threads(threads)))


def evaluate(log: Log | str | os.PathLike | Sequence[str],
             policies: str | Sequence[Any] = ("logged", "first", "uniform", "linucb", "codband"), *,
             floor: float = 0.0, confidence: float = 0.95, resamples: int = 1000, seed: int = 1,
             threads: int | None = None) -> dict[str, Any]:
    """Estimates from logged decisions what other policies would have earned (off-policy evaluation).

    ``log`` is a :class:`Log`, or files for :func:`read_log`. Returns what
    ``codband evaluate --format json`` prints: every estimator with its intervals, for each policy,
    and warnings where the log says little.
    """
    if not isinstance(log, Log):
        log = read_log(log)
    names, factories = _named(policies)
    return json.loads(_core.evaluate(log._core, names, factories, float(floor), float(confidence),
                                     _whole("resamples", resamples, 10), _whole("seed", seed, 0),
                                     _threads(threads)))


def _named(policies: Any) -> tuple[list[str], dict[str, Any]]:
    """Names in order, and the factories of those that are not registered."""
    if isinstance(policies, str):
        policies = _core.split_policy_list(policies)
    elif callable(policies):
        policies = [policies]
    names: list[str] = []
    factories: dict[str, Any] = {}
    for policy in policies:
        if isinstance(policy, str):
            names.append(policy)
            continue
        if not callable(policy):
            raise ValueError(f"policies: {policy!r} is neither a spec nor a class or function that makes one")
        name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or repr(policy)
        if name in factories or name in _core.policy_specs():
            raise ValueError(f"policies: the name '{name}' is taken; give your class another attribute `name`")
        names.append(name)
        factories[name] = policy
    if not names:
        raise ValueError("policies: none given, expected at least 1")
    return names, factories


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= int(value) < 2**63:
        raise ValueError(f"{name}: is {value!r}, expected a whole number from {least}")
    return int(value)


def _threads(threads: int | None) -> int:
    return (os.cpu_count() or 1) if threads is None else _whole("threads", threads, 1)


def _text(value: Any) -> str:
    if value is True:
        return "true"
    if isinstance(value, (tuple, list)):
        return ":".join(str(part) for part in value)
    return str(value)
