"""The durable engine in this process: what ``codband serve`` does, without a socket."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping, Sequence

from . import _core
from .arguments import count, json_text, listed, number, records, text


class Engine:
    """Ranks, learns and remembers in one directory. What a call has returned survives kill -9.

    Requests and replies are those of the HTTP API (docs/http_api.md), as dictionaries.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory, Engine(directory, dim=4) as engine:
    ...     engine.put_item("miles-davis", {"genre": "jazz"}, tags=["jazz"])
    ...     engine.put_item("nirvana", {"genre": "rock"})
    ...     reply = engine.rank("ann", event_id="e1")
    ...     engine.reward("e1", 1.0)["status"]
    'accepted'

    One process at a time may have the directory open. ``settings`` are those of the server's
    configuration file, by their names there: ``{"rewards.wait_seconds": 60}``.

    Threads: any number of them may use one engine.
    """

    def __init__(self, directory: str | os.PathLike, *, policy: str | None = None,
                 dim: int | None = None, settings: Mapping[str, Any] | None = None):
        given = {"policy.spec": policy, "features.dimension": dim, **(settings or {})}
        texts = [(key, _setting(value)) for key, value in given.items() if value is not None]
        self._core = _core.Engine(os.fspath(directory), texts)

    def rank(self, user: str | None, actions: Sequence[Any] | None = None, *, event_id: str | None = None,
             context: Any = None, user_features: Any = None, excluded: Iterable[str] = (), top_k: int | None = None,
             defer_activation: bool = False, explain: bool = False) -> dict[str, Any]:
        """Ranks actions for a user and chooses one: ``rewardActionId``, ``ranking``, ``eventId``, …

        ``actions`` are ids of items or dictionaries ``{"id", "features"}``; without them the whole
        catalogue is ranked. ``context`` and ``user_features`` are features by name of the visit and of the
        user; without a user (None) the visitor is anonymous. The same request with the same event id gets the
        same decision.
        """
        body = rank_body(user, actions, event_id=event_id, context=context, user_features=user_features,
                         excluded=excluded, top_k=top_k, defer_activation=defer_activation)
        return json.loads(self._core.rank(json_text(body), explain))

    def reward(self, event_id: str, value: float) -> dict[str, Any]:
        """Learns what an event brought, once: a second reward is answered with ``duplicate``."""
        return json.loads(self._core.reward(text("event_id", event_id), number("value", value)))

    def activate(self, event_id: str) -> None:
        """Tells that a deferred choice was shown; its wait for a reward begins."""
        self._core.activate(text("event_id", event_id))

    def put_item(self, item_id: str, features: Any, tags: Sequence[str] = ()) -> None:
        """Adds or replaces an item of the catalogue."""
        self.put_items([{"id": item_id, "features": features, "tags": listed("tags", tags)}])

    def put_items(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Adds or replaces many items ``{"id", "features", "tags"?}``: all of them or none."""
        self._core.put_items([json_text(item) for item in records("items", items)])

    def get_item(self, item_id: str) -> dict[str, Any]:
        return json.loads(self._core.get_item(text("item_id", item_id)))

    def delete_item(self, item_id: str) -> None:
        self._core.delete_item(text("item_id", item_id))

    def user(self, user: str) -> dict[str, Any]:
        """The user's taste group, how sure that is, and their changes."""
        return json.loads(self._core.user(text("user", user)))

    def forget_user(self, user: str) -> None:
        """Removes everything stored about the user and everything learned from their rewards."""
        self._core.forget(text("user", user))

    def models(self, top: int = 10) -> list[dict[str, Any]]:
        """The taste groups, most popular first, with their best items and tags."""
        return json.loads(self._core.models(count("top", top)))["models"]

    def changes(self, limit: int = 100) -> list[dict[str, Any]]:
        """The latest detected changes, newest first."""
        return json.loads(self._core.changes(count("limit", limit)))["changes"]

    def stats(self) -> dict[str, Any]:
        """Counters since the start, and sizes of now."""
        return self._core.stats()

    def checkpoint(self) -> None:
        """Writes a checkpoint now, so that the next start is faster."""
        self._core.checkpoint()

    def backup(self, directory: str | os.PathLike) -> None:
        """Copies the data into a directory that does not exist yet, while it is in use."""
        self._core.backup(os.fspath(directory))

    def check(self) -> None:
        """Reads everything and raises if the data is not consistent. Slow."""
        self._core.check()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def close(self) -> None:
        """Writes a checkpoint and lets go of the directory. Later calls raise UnavailableError."""
        self._core.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def rank_body(user: str | None, actions: Sequence[Any] | None, *, event_id: str | None, context: Any,
              user_features: Any, excluded: Iterable[str], top_k: int | None,
              defer_activation: bool) -> dict[str, Any]:
    """The JSON of POST /v1/rank."""
    body: dict[str, Any] = {} if user is None else {"userId": user}
    if event_id is not None:
        body["eventId"] = event_id
    if actions is not None:
        body["actions"] = [dict(a) if isinstance(a, Mapping) else a for a in listed("actions", actions)]
    if context is not None:
        body["contextFeatures"] = context
    if user_features is not None:
        body["userFeatures"] = user_features
    excluded = listed("excluded", excluded)
    if excluded:
        body["excludedActions"] = excluded
    if top_k is not None:
        body["topK"] = top_k
    if defer_activation:
        body["deferActivation"] = True
    return body


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
