"""What both clients have in common."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Callable, Iterable, Mapping, Sequence

from . import wire
from .errors import UnavailableError
from .wire import RankReply


class RememberedDefaults:
    """The latest events that were answered without the server: their rewards are not sent."""

    def __init__(self, most: int = 100_000):
        self._most = most
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, event_id: str) -> None:
        with self._lock:
            self._ids[event_id] = None
            while len(self._ids) > self._most:
                self._ids.popitem(last=False)

    def __contains__(self, event_id: str) -> bool:
        with self._lock:
            return event_id in self._ids


class Calls:
    """Calls that are one request each. They return what ``_call`` returns: Client's waits for the reply,
    AsyncClient's is to be awaited."""

    def __init__(self, url: str, key: str | None, *, timeout: float, retry_for: float, fallback: bool,
                 on_error: Callable[[str, float, Exception], None] | None, **positive: float):
        for name, value in {"timeout": timeout, "retry_for": retry_for, **positive}.items():
            if not value > 0:
                raise ValueError(f"{name}: is {value}, expected more than 0")
        self._address = wire.Address.parse(url)
        self._key = wire.check_key(key)
        self._timeout = timeout
        self._retry_for = retry_for
        self._fallback = fallback
        self._on_error = on_error
        self._backoff = wire.Backoff()
        self._defaults = RememberedDefaults()
        self.failed = 0  #: rewards of report() that could not be delivered

    def _call(self, request: wire.Request, seconds: float | None = None, *, once: bool = False,
              then: Callable[[Any], Any] | None = None) -> Any:
        """Sends the request until it is answered, for so many seconds, or once; then(reply) if given."""
        raise NotImplementedError

    def choose_rank(self, event_id: str, user: str | None, context: Any = None,
                    actions: Sequence[Any] | None = None) -> RankReply:
        """rank() in the words of Microsoft's reinforcement_learning client."""
        return self.rank(user, actions, event_id=event_id, context=context)  # type: ignore[attr-defined]

    def report_outcome(self, event_id: str, value: float) -> dict[str, Any]:
        """reward() in the words of Microsoft's reinforcement_learning client."""
        return self.reward(event_id, value)  # type: ignore[attr-defined]

    def put_item(self, item_id: str, features: Any, tags: Sequence[str] = ()) -> None:
        """Adds or replaces an item of the catalogue."""
        return self._call(wire.item_request("PUT", item_id, features, tags))

    def put_items(self, items: Iterable[Mapping[str, Any]]) -> int:
        """Adds or replaces many items ``{"id", "features", "tags"?}``; how many there were."""
        return self._call(wire.import_request(items), then=lambda reply: reply["accepted"])

    def get_item(self, item_id: str) -> dict[str, Any]:
        """An item of the catalogue, and what was learned of it."""
        return self._call(wire.item_request("GET", item_id))

    def delete_item(self, item_id: str) -> None:
        """Removes an item from the catalogue."""
        return self._call(wire.item_request("DELETE", item_id))

    def user(self, user: str) -> dict[str, Any]:
        """The user's taste group and changes."""
        return self._call(wire.user_request("GET", user))

    def forget_user(self, user: str) -> None:
        """Removes everything about the user, and everything learned from them."""
        return self._call(wire.user_request("DELETE", user))

    def models(self, top: int = 10) -> list[dict[str, Any]]:
        """The taste groups, most popular first."""
        return self._call(wire.Request("GET", f"/v1/models?top={int(top)}"), then=lambda reply: reply["models"])

    def changes(self, limit: int = 100) -> list[dict[str, Any]]:
        """The latest detected changes, newest first."""
        return self._call(wire.Request("GET", f"/v1/changes?limit={int(limit)}"),
                          then=lambda reply: reply["changes"])

    # For both transports -----------------------------------------------------------------------

    def _default(self, failure: UnavailableError, event_id: str, actions: Sequence[Any] | None,
                 excluded: list[str], top_k: int | None) -> RankReply:
        """The answer without the server; where there is none the failure is raised."""
        if not self._fallback or not actions:
            raise failure
        self._defaults.add(event_id)
        return wire.default_reply(event_id, actions, excluded, top_k)

    def _unsent(self, event_id: str) -> dict[str, Any] | None:
        """The answer to the reward of an event that the server does not know; None if it does."""
        return {"eventId": event_id, "status": "default", "sequence": 0} if event_id in self._defaults else None

    @staticmethod
    def _answer(request: wire.Request, attempt: int, status: int, body: bytes,
                then: Callable[[Any], Any] | None) -> Any:
        """What a reply says; UnavailableError where another attempt may help."""
        if status == 404 and request.gone_is_done and attempt > 0:
            return None
        result = wire.result_of(status, body)
        return result if then is None else then(result)

    def _unavailable(self, failure: Exception) -> UnavailableError:
        if isinstance(failure, UnavailableError):
            return failure
        unavailable = UnavailableError(f"{self._address.host}:{self._address.port}: {failure!r}")
        unavailable.__cause__ = failure
        return unavailable
