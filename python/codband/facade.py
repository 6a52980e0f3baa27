"""The verbs that users of MABWiser and mab2rec know, on top of choose() and learn()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Hashable, Iterable, Mapping, Sequence

import numpy as np

from .arguments import hashable, listed, reals, row


if TYPE_CHECKING:  # codband.Policy is both
    from ._core import Policy as _Policy
else:
    _Policy = object


class ArmsFacade(_Policy):
    """Named arms. A part of :class:`codband.Policy`.

    An arm has features, by which a new one is scored from the first moment. With a context of c
    numbers the policy sees the outer product of the arm's f features and (1, context), so that every
    feature may matter differently in different contexts: dim = f · (1 + c), or f without contexts.

    >>> from codband import Policy
    >>> policy = Policy("linucb", dim=2)
    >>> policy.add_arm("jazz", [1, 0])
    >>> policy.add_arm("rock", [0, 1])
    >>> policy.partial_fit(["jazz", "rock", "rock"], [0, 1, 1], users=["ann"] * 3)
    >>> policy.predict(user="ann")
    'rock'
    >>> [arm for arm, score in policy.recommend(2, user="ann")]
    ['rock', 'jazz']
    >>> policy.remove_arm("rock")
    >>> policy.predict(user="ann")
    'jazz'
    """

    _arms: dict[Hashable, np.ndarray]

    @property
    def arms(self) -> list[Hashable]:
        """Names of the arms, in the order in which they were added."""
        return list(self._arms)

    def add_arm(self, arm: Hashable, features: Sequence[float]) -> None:
        """Adds an arm, which can be chosen from now on."""
        if hashable("arm", arm) in self._arms:
            raise ValueError(f"arm: {arm!r} is there already")
        self._arms[arm] = self._arm_features(arm, features)

    def remove_arm(self, arm: Hashable) -> None:
        """Removes an arm. What was learned from it stays, for the arms that are like it."""
        if hashable("arm", arm) not in self._arms:
            raise ValueError(f"arm: {arm!r} is unknown")
        del self._arms[arm]

    def warm_start(self, arm_to_features: Mapping[Hashable, Sequence[float]]) -> None:
        """Gives features to arms, new ones or old: cold arms are scored by what is known of those
        that are like them. All of them or, if one is wrong, none."""
        features = {arm: self._arm_features(arm, values) for arm, values in arm_to_features.items()}
        self._arms.update(features)

    def partial_fit(self, decisions: Sequence[Hashable], rewards: Sequence[float],
                    contexts: Any = None, *, users: Iterable[Any] | None = None) -> None:
        """Learns from history: arms, what they brought and, if known, for whom and in which context.

        All of it or, if something is wrong, nothing.
        """
        decisions = listed("decisions", decisions)
        users = [0] * len(decisions) if users is None else listed("users", users)
        rows = self._context_rows(contexts, len(decisions))
        values = row("rewards", rewards)
        for name, count in (("rewards", len(values)), ("users", len(users))):
            if count != len(decisions):
                raise ValueError(f"{name}: has {count} entries, expected {len(decisions)}")
        for i, reward in enumerate(values):
            if not abs(reward) <= 1e15:
                raise ValueError(f"rewards[{i}]: is {reward}, expected a number within ±1e15")
        for arm in decisions:
            if hashable("decisions", arm) not in self._arms:
                raise ValueError(f"decisions: arm {arm!r} is unknown; add_arm() it first")
        if not decisions:
            return
        offers = np.array([self._offer(row, [arm]) for arm, row in zip(decisions, rows)])
        self.learn_batch(self.choose_batch(users, offers), values)

    def predict(self, contexts: Any = None, *, user: Any = 0) -> Any:
        """The arm to show, or one for each row of `contexts`."""
        return self._for_rows(contexts, user, lambda names, ranking: names[ranking.arm])

    def predict_expectations(self, contexts: Any = None, *, user: Any = 0) -> Any:
        """The expected reward of every arm, or a dictionary for each row of `contexts`."""
        return self._for_rows(contexts, user,
                              lambda names, ranking: dict(zip(names, ranking.mean.tolist())))

    def recommend(self, k: int, contexts: Any = None, *, user: Any = 0,
                  excluded: Iterable[Hashable] = ()) -> Any:
        """The best k arms with their scores, best first, or a list for each row of `contexts`."""
        if not isinstance(k, (int, np.integer)) or k < 1:
            raise ValueError(f"k: is {k!r:.100}, expected a whole number from 1")

        def best(names, ranking):
            score = ranking.score
            return [(names[i], float(score[i])) for i in ranking.order[:k]]

        return self._for_rows(contexts, user, best, set(listed("excluded", excluded)))

    # Helpers ---------------------------------------------------------------------------------

    def _arm_features(self, arm: Hashable, features: Any) -> np.ndarray:
        values = reals(f"features of {arm!r}", features)
        if values.ndim != 1 or values.size == 0 or self.dim % values.size != 0:
            raise ValueError(f"features of {arm!r}: have the shape {values.shape}, expected a row of "
                             f"numbers whose count divides {self.dim}")
        if not np.isfinite(values).all():
            raise ValueError(f"features of {arm!r}: have a number that is not finite")
        known = next(iter(self._arms.values()), values)
        if known.size != values.size:
            raise ValueError(f"features of {arm!r}: are {values.size} numbers, expected {known.size}")
        return values

    def _context_rows(self, contexts: Any, count: int | None = None) -> list[np.ndarray]:
        """One row (1, context) for each visit."""
        if contexts is None:
            return [np.ones(1)] * (1 if count is None else count)
        rows = reals("contexts", contexts)
        if rows.ndim != 2 or (count is not None and len(rows) != count):
            expected = "visits" if count is None else count
            raise ValueError(f"contexts: have the shape {rows.shape}, expected ({expected}, features)")
        return list(np.hstack([np.ones((len(rows), 1)), rows]))

    def _offer(self, row: np.ndarray, names: Sequence[Hashable]) -> np.ndarray:
        features = np.array([self._arms[name] for name in names])
        if features.shape[1] * row.size != self.dim:
            raise ValueError(f"contexts: {features.shape[1]} features of an arm and {row.size - 1} of the "
                             f"context need dim = {features.shape[1] * row.size}, it is {self.dim}")
        return np.einsum("af,c->afc", features, row).reshape(len(names), self.dim)

    def _for_rows(self, contexts: Any, user: Any, make: Any, excluded: Iterable[Hashable] = ()) -> Any:
        names = [name for name in self._arms if name not in excluded]
        if not names:
            raise ValueError("arms: none to choose from; add_arm() them first")
        results = [make(names, self.rank(user, self._offer(row, names)))
                   for row in self._context_rows(contexts)]
        return results[0] if contexts is None else results
