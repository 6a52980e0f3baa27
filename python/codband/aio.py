"""The client for asyncio, on Python's standard library alone."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from . import wire
from .calls import Calls
from .errors import UnavailableError
from .wire import RankReply

_CONNECTION_ERRORS = (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError)
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncClient(Calls):
    """:class:`codband.Client` for asyncio: the same methods, to be awaited.

    >>> async def shop():                                             # doctest: +SKIP
    ...     async with AsyncClient("http://127.0.0.1:8080") as client:
    ...         reply = await client.rank("ann", ["miles-davis", "nirvana"])
    ...         client.report(reply.event_id, 1.0)

    At most ``connections`` requests are on their way at a time. Use it in one event loop.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", key: str | None = None, *,
                 timeout: float = 2.0, retry_for: float = 30.0, fallback: bool = True,
                 connections: int = 50, tls: ssl.SSLContext | None = None,
                 on_error: Callable[[str, float, Exception], None] | None = None):
        super().__init__(url, key, timeout=timeout, retry_for=retry_for, fallback=fallback, on_error=on_error,
                         connections=connections)
        self._tls = (tls or ssl.create_default_context()) if self._address.scheme == "https" else None
        self._slots = asyncio.Semaphore(connections)
        self._idle: list[_Connection] = []
        self._reports: set[asyncio.Task] = set()

    async def rank(self, user: str | None, actions: Sequence[Any] | None = None, *, event_id: str | None = None,
                   context: Any = None, user_features: Any = None, excluded: Iterable[str] = (),
                   top_k: int | None = None, defer_activation: bool = False, explain: bool = False,
                   timeout: float | None = None) -> RankReply:
        """Ranks actions for a user and chooses one; see Client.rank."""
        excluded = wire.listed("excluded", excluded)
        event_id = event_id or wire.new_event_id()
        request = wire.rank_request(user, actions, explain, event_id=event_id, context=context,
                                    user_features=user_features, excluded=excluded, top_k=top_k,
                                    defer_activation=defer_activation)
        try:
            return wire.rank_reply(await self._call(request, timeout or self._timeout))
        except UnavailableError as failure:
            return self._default(failure, event_id, actions, excluded, top_k)

    async def reward(self, event_id: str, value: float) -> dict[str, Any]:
        """Tells what an event brought and waits until the server has it on disk."""
        return self._unsent(event_id) or await self._call(wire.reward_request(event_id, value))

    def report(self, event_id: str, value: float) -> None:
        """Sends a reward in the background; see flush()."""
        wire.reward_request(event_id, value)  # wrong arguments are told here, not later
        task = asyncio.ensure_future(self._report(event_id, value))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def flush(self) -> None:
        """Waits until every reward of report() was delivered or given up."""
        while self._reports:
            await asyncio.wait(set(self._reports))

    async def activate(self, event_id: str) -> None:
        """Tells that a deferred choice was shown."""
        if event_id not in self._defaults:
            await self._call(wire.activate_request(event_id))

    async def import_history(self, events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Lets the server learn what happened before; see Client.import_history."""
        report: dict[str, Any] = {"accepted": 0, "duplicates": 0, "skipped": []}
        for first, request in wire.history_requests(events):
            wire.add_history_reply(report, first, await self._call(request))
        return report

    async def is_ready(self) -> bool:
        """Whether the server can be used now; asks once."""
        try:
            await self._call(wire.Request("GET", "/v1/health/ready"), self._timeout, once=True)
        except UnavailableError:
            return False
        return True

    async def close(self) -> None:
        """Waits for reports and closes the connections."""
        await self.flush()
        while self._idle:
            self._idle.pop()[1].close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    if TYPE_CHECKING:  # those of Calls, which return what is to be awaited
        async def choose_rank(self, event_id: str, user: str | None, context: Any = None,  # type: ignore[override]
                              actions: Sequence[Any] | None = None) -> RankReply: ...
        async def report_outcome(self, event_id: str, value: float) -> dict[str, Any]: ...  # type: ignore[override]
        async def put_item(self, item_id: str, features: Any, tags: Sequence[str] = ()) -> None: ...  # type: ignore
        async def put_items(self, items: Iterable[Mapping[str, Any]]) -> int: ...  # type: ignore[override]
        async def get_item(self, item_id: str) -> dict[str, Any]: ...  # type: ignore[override]
        async def delete_item(self, item_id: str) -> None: ...  # type: ignore[override]
        async def user(self, user: str) -> dict[str, Any]: ...  # type: ignore[override]
        async def forget_user(self, user: str) -> None: ...  # type: ignore[override]
        async def models(self, top: int = 10) -> list[dict[str, Any]]: ...  # type: ignore[override]
        async def changes(self, limit: int = 100) -> list[dict[str, Any]]: ...  # type: ignore[override]

    # Transport ---------------------------------------------------------------------------------

    async def _report(self, event_id: str, value: float) -> None:
        try:
            await self.reward(event_id, value)
        except Exception as error:  # pylint: disable=broad-except
            self.failed += 1
            if self._on_error is not None:
                self._on_error(event_id, value, error)

    async def _call(self, request: wire.Request, seconds: float | None = None, *, once: bool = False,
                    then: Callable[[Any], Any] | None = None) -> Any:
        clock = asyncio.get_running_loop().time
        end = clock() + (self._retry_for if seconds is None else seconds)
        attempt = 0
        while True:
            after = None
            try:
                async with self._slots:
                    limit = min(max(end - clock(), 0.001), max(self._timeout, 1.0))
                    status, after, body = await asyncio.wait_for(self._send(request), limit)
                return self._answer(request, attempt, status, body, then)
            except _CONNECTION_ERRORS as error:  # UnavailableError is one
                failure = error
            delay = self._backoff.delay(attempt, after)
            if once or clock() + delay >= end:
                raise self._unavailable(failure)
            await asyncio.sleep(delay)
            attempt += 1

    async def _send(self, request: wire.Request) -> tuple[int, float | None, bytes]:
        # As in Client._send.
        while True:
            reused = bool(self._idle)
            connection = self._idle.pop() if reused else await asyncio.open_connection(
                self._address.host, self._address.port, ssl=self._tls)
            keep = False
            try:
                status, headers, body = await self._exchange(connection, request)
                keep = headers.get("connection", "").lower() != "close"
            except (ConnectionError, EOFError):
                if reused:
                    continue
                raise
            finally:
                if keep:
                    self._idle.append(connection)
                else:
                    connection[1].close()
            return status, wire.retry_after(headers.get("retry-after")), body

    async def _exchange(self, connection: _Connection, request: wire.Request) -> tuple[int, dict[str, str], bytes]:
        reader, writer = connection
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        body = request.body or b""
        fields = {"Host": f"{host}:{self._address.port}", **request.headers(self._key),
                  "Content-Length": str(len(body))}
        head = f"{request.method} {self._address.prefix}{request.path} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(head.encode("latin-1") + b"\r\n" + body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ", 2)[1])
        headers = {name.strip().lower(): value.strip()
                   for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return status, headers, await _read_chunks(reader)
        return status, headers, await reader.readexactly(int(headers.get("content-length", "0")))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        body += (await reader.readexactly(size + 2))[:-2]
        if size == 0:
            return body
