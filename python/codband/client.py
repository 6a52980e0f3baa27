"""A client for the server, on Python's standard library alone."""

from __future__ import annotations

import http.client
import queue
import ssl
import threading
import time
from typing import Any, Callable, Iterable, Mapping, Sequence

from . import wire
from .calls import Calls
from .errors import UnavailableError
from .wire import RankReply

_CONNECTION_ERRORS = (OSError, http.client.HTTPException)


class Client(Calls):
    """Asks a server what to show, and tells it what came of it.

    >>> client = Client("http://127.0.0.1:8080", key="cb_shop_...")   # doctest: +SKIP
    >>> reply = client.rank("ann", ["miles-davis", "nirvana"])        # doctest: +SKIP
    >>> show(reply.chosen)                                            # doctest: +SKIP
    >>> client.reward(reply.event_id, 1.0)                            # doctest: +SKIP

    Requests that fail for a moment (a restart, a full queue, a broken connection) are repeated. That
    is safe: every request carries an id, so that the server does nothing twice.

    ``rank`` has ``timeout`` seconds in all. After that it returns the actions in the order in which they
    were given, if there are any (``fallback``), marked ``is_default``; rewards of such events are not
    sent. Everything else is repeated for ``retry_for`` seconds.

    ``report`` queues a reward and returns at once; ``workers`` threads send what is queued. ``flush``
    waits until all are sent; ``close`` flushes. When ``queue_size`` rewards wait, ``report`` waits too
    or, with ``when_full="drop"``, drops and counts them.

    Threads: any number of them may use one client.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", key: str | None = None, *,
                 timeout: float = 2.0, retry_for: float = 30.0, fallback: bool = True,
                 workers: int = 4, queue_size: int = 10_000, when_full: str = "block",
                 tls: ssl.SSLContext | None = None,
                 on_error: Callable[[str, float, Exception], None] | None = None):
        if when_full not in ("block", "drop"):
            raise ValueError(f"when_full: is '{when_full}', expected block or drop")
        super().__init__(url, key, timeout=timeout, retry_for=retry_for, fallback=fallback, on_error=on_error,
                         workers=workers, queue_size=queue_size)
        self._tls = tls
        self._idle: queue.LifoQueue = queue.LifoQueue()
        self._workers_wanted = int(workers)
        self._workers: list[threading.Thread] = []
        self._queue: queue.Queue = queue.Queue(int(queue_size))
        self._when_full = when_full
        self._lock = threading.Lock()
        self._closed = False
        self.dropped = 0  #: rewards that report() dropped because the queue was full

    # Rank and reward ---------------------------------------------------------------------------

    def rank(self, user: str | None, actions: Sequence[Any] | None = None, *, event_id: str | None = None,
             context: Any = None, user_features: Any = None, excluded: Iterable[str] = (),
             top_k: int | None = None, defer_activation: bool = False, explain: bool = False,
             timeout: float | None = None) -> RankReply:
        """Ranks actions for a user and chooses one.

        ``actions`` are ids of items or dictionaries ``{"id", "features"}``; without them the whole
        catalogue is ranked. ``context`` and ``user_features`` are features by name of the visit and of the
        user; without a user (None) the visitor is anonymous.
        """
        excluded = wire.listed("excluded", excluded)
        event_id = event_id or wire.new_event_id()
        request = wire.rank_request(user, actions, explain, event_id=event_id, context=context,
                                    user_features=user_features, excluded=excluded, top_k=top_k,
                                    defer_activation=defer_activation)
        try:
            return wire.rank_reply(self._call(request, timeout or self._timeout))
        except UnavailableError as failure:
            return self._default(failure, event_id, actions, excluded, top_k)

    def reward(self, event_id: str, value: float) -> dict[str, Any]:
        """Tells what an event brought and waits until the server has it on disk."""
        return self._unsent(event_id) or self._call(wire.reward_request(event_id, value))

    def report(self, event_id: str, value: float) -> None:
        """Queues a reward and returns at once; see flush()."""
        wire.reward_request(event_id, value)  # wrong arguments are told here, not later
        self._start_workers()
        try:
            self._queue.put((event_id, value), block=self._when_full == "block")
        except queue.Full:
            with self._lock:
                self.dropped += 1

    def flush(self) -> None:
        """Waits until every reward of report() was delivered or given up."""
        self._queue.join()

    def activate(self, event_id: str) -> None:
        """Tells that a deferred choice was shown."""
        if event_id not in self._defaults:
            self._call(wire.activate_request(event_id))

    def import_history(self, events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Lets the server learn what happened before: ``{"userId", "itemId", "value", "features"?, "time"?}``.

        Returns how many were ``accepted``, how many ``duplicates`` there were, and those ``skipped``.
        """
        report: dict[str, Any] = {"accepted": 0, "duplicates": 0, "skipped": []}
        for first, request in wire.history_requests(events):
            wire.add_history_reply(report, first, self._call(request))
        return report

    def is_ready(self) -> bool:
        """Whether the server can be used now; asks once."""
        try:
            self._call(wire.Request("GET", "/v1/health/ready"), self._timeout, once=True)
        except UnavailableError:
            return False
        return True

    def close(self) -> None:
        """Sends what is queued, ends the threads and closes the connections."""
        with self._lock:
            workers, self._workers = self._workers, []
            self._closed = True
        for _ in workers:
            self._queue.put(None)
        for worker in workers:
            worker.join()
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # Transport ---------------------------------------------------------------------------------

    def _call(self, request: wire.Request, seconds: float | None = None, *, once: bool = False,
              then: Callable[[Any], Any] | None = None) -> Any:
        end = time.monotonic() + (self._retry_for if seconds is None else seconds)
        attempt = 0
        while True:
            after = None
            try:
                status, after, body = self._send(request, max(end - time.monotonic(), 0.001))
                return self._answer(request, attempt, status, body, then)
            except _CONNECTION_ERRORS as error:  # UnavailableError is one
                failure = error
            delay = self._backoff.delay(attempt, after)
            if once or time.monotonic() + delay >= end:
                raise self._unavailable(failure)
            time.sleep(delay)
            attempt += 1

    def _send(self, request: wire.Request, seconds: float) -> tuple[int, float | None, bytes]:
        # An idle connection may have been closed by the server meanwhile: then a new one is tried at
        # once, which does not count as an attempt.
        seconds = min(seconds, max(self._timeout, 1.0))
        while True:
            connection, reused = self._connection(seconds)
            try:
                connection.request(request.method, self._address.prefix + request.path, request.body,
                                   request.headers(self._key))
                reply = connection.getresponse()
                body = reply.read()
            except _CONNECTION_ERRORS as error:
                connection.close()
                if reused and isinstance(error, (ConnectionError, http.client.BadStatusLine)):
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            if reply.will_close:
                connection.close()
            else:
                self._idle.put(connection)
            return reply.status, wire.retry_after(reply.getheader("Retry-After")), body

    def _connection(self, seconds: float) -> tuple[http.client.HTTPConnection, bool]:
        try:
            connection = self._idle.get_nowait()
            if connection.sock is not None:
                connection.sock.settimeout(seconds)
                return connection, True
        except queue.Empty:
            pass
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(self._address.host, self._address.port, timeout=seconds,
                                               context=self._tls), False
        return http.client.HTTPConnection(self._address.host, self._address.port, timeout=seconds), False

    # The queue of rewards ------------------------------------------------------------------------

    def _start_workers(self) -> None:
        with self._lock:
            if self._closed:
                raise ValueError("client: is closed")
            while len(self._workers) < self._workers_wanted:
                self._workers.append(threading.Thread(target=self._work, daemon=True))
                self._workers[-1].start()

    def _work(self) -> None:
        while True:
            entry = self._queue.get()
            try:
                if entry is None:
                    return
                event_id, value = entry
                self.reward(event_id, value)
            except Exception as error:  # pylint: disable=broad-except
                with self._lock:
                    self.failed += 1
                if self._on_error is not None:
                    self._on_error(event_id, value, error)
            finally:
                self._queue.task_done()
