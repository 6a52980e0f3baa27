"""Both clients against the real server: answers, errors, fall-backs, restarts under load."""

import asyncio
import inspect
import socket
import threading
import time

import pytest

import codband
from conftest import Server

ITEMS = [{"id": "jazz", "features": {"genre": "jazz"}, "tags": ["jazz"]}, {"id": "rock", "features": {"genre": "rock"}}]


class Synchronous:
    """AsyncClient with the face of Client, so that both take the same tests."""

    def __init__(self, *arguments, **options):
        self._loop = asyncio.new_event_loop()
        self._client = codband.AsyncClient(*arguments, **options)

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if not callable(method):
            return method

        async def call(*a, **k):
            result = method(*a, **k)
            return await result if inspect.isawaitable(result) else result

        return lambda *a, **k: self._loop.run_until_complete(call(*a, **k))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._loop.close()


CLIENTS = pytest.mark.parametrize("make", [codband.Client, Synchronous], ids=["sync", "async"])


@CLIENTS
def test_a_shop(make, server):
    with make(server.url) as client:
        assert client.is_ready()
        assert client.put_items(ITEMS) == 2
        client.put_item("a/b ü", {"genre": "pop"})
        assert client.get_item("a/b ü")["id"] == "a/b ü"
        client.delete_item("a/b ü")
        reply = client.rank("ann", ["jazz", "rock"], explain=True, context={"device": "phone"})
        assert sorted(reply.ids) == ["jazz", "rock"] and reply.chosen == reply.ids[0]
        assert not reply.is_default and reply.explanation
        assert client.reward(reply.event_id, 1)["status"] == "accepted"
        assert client.reward(reply.event_id, 1)["status"] == "duplicate"
        assert client.choose_rank("e-7", "ann", None, ["jazz"]).event_id == "e-7"
        assert client.report_outcome("e-7", 0.5)["status"] == "accepted"
        deferred = client.rank("ann", defer_activation=True, top_k=1)
        client.activate(deferred.event_id)
        client.report(deferred.event_id, 1.0)
        client.flush()
        assert client.user("ann")["observations"] == 3
        assert [model["users"] for model in client.models()] == [1] and client.changes() == []
        young = {"event_id": "e-8", "user_features": {"age": "young"}}
        assert client.rank("ann", ["jazz"], **young).chosen == client.rank("ann", ["jazz"], **young).chosen
        with pytest.raises(codband.ConflictError):
            client.rank("ann", ["jazz"], event_id="e-8", user_features={"age": "old"})
        anonymous = client.rank(None, ["jazz", "rock"])
        assert not anonymous.is_default and client.reward(anonymous.event_id, 1)["status"] == "accepted"
        client.forget_user("ann")
        with pytest.raises(KeyError):
            client.user("ann")


@CLIENTS
def test_errors_are_told_at_once_by_their_kind(make, server):
    with make(server.url, retry_for=60) as client:
        client.put_items(ITEMS)
        client.rank("ann", ["jazz"], event_id="e")
        for kind, call in [
                (ValueError, lambda: client.rank("ann", [{"id": "x", "features": [1, True]}])),
                (ValueError, lambda: client.rank("ann", [float("nan")])),
                (ValueError, lambda: client.report("e", float("nan"))),
                (ValueError, lambda: client.put_items([5])), (ValueError, lambda: client.import_history("text")),
                (ValueError, lambda: client.reward("e", 1e9)), (KeyError, lambda: client.reward("nosuch", 1)),
                (KeyError, lambda: client.delete_item("nosuch")),
                (codband.ConflictError, lambda: client.rank("bob", ["jazz"], event_id="e"))]:
            with pytest.raises(kind):
                call()
    with pytest.raises(ValueError, match="url"):
        make("ftp://x")
    with pytest.raises(ValueError, match="key"):
        make(server.url, "a\r\nHost: evil")


@CLIENTS
def test_keys(make, tmp_path, monkeypatch):
    monkeypatch.setenv("CODBAND_API_KEY", "cb_test_0123456789abcdef0123456789abcdef")
    server = Server(tmp_path / "data")
    try:
        with make(server.url, "cb_test_0123456789abcdef0123456789abcdef") as client:
            client.put_items(ITEMS)
        with make(server.url) as client, pytest.raises(codband.AuthError):
            client.put_items(ITEMS)
    finally:
        server.stop()


@CLIENTS
def test_rank_falls_back_when_nobody_answers(make):
    with socket.socket() as silent:  # accepts connections and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with make(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2) as client:
            reply = client.rank("ann", ["a", {"id": "b", "features": [1]}, "c"], excluded=["a"], top_k=1)
            assert reply.is_default and reply.chosen == "b" and reply.ids == ["b"]
            assert client.reward(reply.event_id, 1)["status"] == "default"
            with pytest.raises(codband.UnavailableError):
                client.rank("ann")
            assert not client.is_ready()
        with make(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2, fallback=False) as client:
            with pytest.raises(codband.UnavailableError):
                client.rank("ann", ["a"])


def test_report_that_fails_is_told(server):
    told = []
    with codband.Client(server.url, on_error=lambda *failure: told.append(failure)) as client:
        client.report("nosuch", 1.0)
        client.flush()
        assert client.failed == 1 and told[0][:2] == ("nosuch", 1.0) and isinstance(told[0][2], KeyError)
    with pytest.raises(ValueError, match="closed"):
        client.report("e", 1.0)


def wait_for_some(counter, least):
    while counter() < least:
        time.sleep(0.005)


@CLIENTS
def test_kills_under_load_neither_lose_nor_double_a_reward(make, server):
    events = 300
    with codband.Client(server.url) as client:
        client.put_items(ITEMS)
    done = []

    def load(part):
        with make(server.url, timeout=60, retry_for=60, fallback=False) as client:
            for i in range(part, events, 3):
                reply = client.rank(f"user-{i % 5}", ["jazz", "rock"], event_id=f"e-{i}")
                client.report(reply.event_id, 1.0)
                done.append(i)
            client.flush()
            assert client.failed == 0

    threads = [threading.Thread(target=load, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for kill in range(2):
        wait_for_some(lambda: len(done), 80 * (kill + 1))
        server.kill()
        server.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(events))
    with codband.Client(server.url) as client:
        assert sum(client.user(f"user-{u}")["observations"] for u in range(5)) == events
        assert client.reward("e-0", 1.0)["status"] == "duplicate"
