"""What both clients share: requests and replies of the HTTP API, and when to try again."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass, field
from typing import Any, Iterable, Sequence
from urllib.parse import quote, urlsplit

from .arguments import json_text, listed, records
from .engine import rank_body
from .errors import AuthError, ConflictError, DataError, Error, LateError, NotLearnedError, UnavailableError

_RETRIED = {408, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class RankReply:
    """What to show, and all actions in order. ``is_default``: the server was not asked in time, and
    the actions are in the order in which they were given."""

    event_id: str
    chosen: str
    ranking: list[dict[str, Any]]
    model_id: int | None = None
    is_default: bool = False
    explanation: dict[str, Any] | None = None

    @property
    def ids(self) -> list[str]:
        """Ids of the actions, best first."""
        return [entry["id"] for entry in self.ranking]


@dataclass(frozen=True)
class Request:
    """One request. All of them may be repeated: ids make them idempotent."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str | None = None
    gone_is_done: bool = False  # 404 after a first attempt means that the first one worked

    def headers(self, key: str | None) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.content_type is not None:
            headers["Content-Type"] = self.content_type
        if key is not None:
            headers["X-API-Key"] = key
        return headers


@dataclass(frozen=True)
class Address:
    """Where a server is: scheme, host, port and what stands before its paths."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, url: str) -> "Address":
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            raise ValueError(f"url: '{url}' has no valid port") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url: is '{url}', expected such as http://127.0.0.1:8080")
        return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80),
                   parts.path.rstrip("/"))


def check_key(key: str | None) -> str | None:
    """The key, if it can stand in a header field."""
    if key is not None and (not key or not key.isascii() or not key.isprintable() or key != key.strip()):
        raise ValueError("key: has characters that a header field cannot hold")
    return key


@dataclass
class Backoff:
    """Waits between attempts: doubling, with jitter so that clients do not come back together."""

    first: float = 0.02
    most: float = 1.0
    draw: random.Random = field(default_factory=random.Random)

    def delay(self, attempt: int, retry_after: float | None = None) -> float:
        wait = min(self.most, self.first * 2 ** min(attempt, 30)) * (0.5 + self.draw.random() / 2)
        return wait if retry_after is None else max(wait, retry_after)


def rank_request(user: str | None, actions: Sequence[Any] | None, explain: bool, **fields: Any) -> Request:
    """POST /v1/rank, with the fields of rank_body."""
    body = rank_body(user, actions, **fields)
    return _with_json("POST", "/v1/rank?explain=true" if explain else "/v1/rank", body)


def rank_reply(reply: dict[str, Any]) -> RankReply:
    return RankReply(reply["eventId"], reply["rewardActionId"], reply["ranking"], reply.get("modelId"),
                     explanation=reply.get("explanation"))


def default_reply(event_id: str, actions: Sequence[Any], excluded: Iterable[str],
                  top_k: int | None) -> RankReply:
    """The actions as they were given: what the product would show without a recommender."""
    left_out = set(excluded)
    ids = [a if isinstance(a, str) else a["id"] for a in actions]
    ids = [i for i in ids if i not in left_out]
    if not ids:
        raise ValueError("actions: all are excluded")
    ranking = [{"id": i, "probability": 1.0 if place == 0 else 0.0} for place, i in enumerate(ids)]
    return RankReply(event_id, ids[0], ranking[:top_k], is_default=True)


def reward_request(event_id: str, value: float) -> Request:
    return _with_json("POST", f"/v1/events/{quote(event_id, safe='')}/reward", {"value": value})


def activate_request(event_id: str) -> Request:
    return Request("POST", f"/v1/events/{quote(event_id, safe='')}/activate")


def item_request(method: str, item_id: str, features: Any = None, tags: Sequence[str] = ()) -> Request:
    path = f"/v1/items/{quote(item_id, safe='')}"
    if method != "PUT":
        return Request(method, path, gone_is_done=method == "DELETE")
    return _with_json("PUT", path, {"features": features, "tags": listed("tags", tags)})


def import_request(items: Iterable[Any]) -> Request:
    lines = [json_text(item) for item in records("items", items)]
    return Request("POST", "/v1/items", "".join(line + "\n" for line in lines).encode(), "application/x-ndjson")


def history_requests(events: Iterable[Any], batch: int = 500) -> Iterable[tuple[int, Request]]:
    """Requests for so many events each, with the index of their first one."""
    rows = records("events", events)
    for first in range(0, len(rows), batch):
        yield first, _with_json("POST", "/v1/history", {"events": rows[first:first + batch]})


def add_history_reply(report: dict[str, Any], first: int, reply: dict[str, Any]) -> None:
    """Adds the reply of a request to the report of all of them."""
    report["accepted"] += reply["accepted"]
    report["duplicates"] += reply["duplicates"]
    report["skipped"] += [{"index": first + s["index"], "reason": s["reason"]} for s in reply["skipped"]]


def user_request(method: str, user: str) -> Request:
    return Request(method, f"/v1/users/{quote(user, safe='')}", gone_is_done=method == "DELETE")


def new_event_id() -> str:
    return uuid.uuid4().hex


def retry_after(value: str | None) -> float | None:
    """Seconds of a header field Retry-After; None if there are none."""
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None


def result_of(status: int, body: bytes) -> Any:
    """The JSON of a reply, or its error."""
    if 200 <= status < 300:
        return json.loads(body) if body else None
    raise error_of(status, body)


def error_of(status: int, body: bytes) -> Exception:
    try:
        error = json.loads(body)["error"]
        message = f"{error['field']}: {error['message']}" if error.get("field") else error["message"]
        code = error["code"]
    except (ValueError, KeyError, TypeError):
        message, code = body[:200].decode(errors="replace") or f"HTTP status {status}", str(status)
    if status in (400, 413, 415):
        return ValueError(message)
    if status == 404:
        return KeyError(message)
    kinds = {401: AuthError, 403: AuthError, 409: ConflictError, 410: LateError, 422: NotLearnedError}
    if status in kinds:
        return kinds[status](message)
    if status in _RETRIED:
        return UnavailableError(f"{code}: {message}")
    return DataError(f"{code}: {message}") if status == 507 else Error(f"{code}: {message}")


def _with_json(method: str, path: str, body: Any) -> Request:
    return Request(method, path, json_text(body).encode(), "application/json")
