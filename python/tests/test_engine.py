"""codband.Engine: durable, the same as over HTTP, safe to misuse."""

import math
import threading

import numpy as np
import pytest

import codband


def fill(engine):
    engine.put_items([{"id": "jazz", "features": {"genre": "jazz"}, "tags": ["jazz"]},
                      {"id": "rock", "features": {"genre": "rock"}, "tags": ["rock"]}])


def test_everything_survives_closing(tmp_path):
    with codband.Engine(tmp_path / "data", dim=8) as engine:
        fill(engine)
        for i in range(40):
            reply = engine.rank("ann", event_id=f"e{i}")
            assert reply["eventId"] == f"e{i}" and len(reply["ranking"]) == 2
            assert engine.reward(f"e{i}", float(reply["rewardActionId"] == "rock"))["status"] == "accepted"
        engine.rank("ann", event_id="waits")
        before = engine.user("ann")
        assert engine.stats()["learned"] == 40
    assert engine.closed
    with pytest.raises(codband.UnavailableError, match="closed"):
        engine.rank("ann")
    with codband.Engine(tmp_path / "data") as engine:
        assert engine.user("ann") == before
        assert engine.reward("e3", 1.0)["status"] == "duplicate"
        assert engine.reward("waits", 1.0)["status"] == "accepted"
        assert engine.rank("ann", explain=True)["explanation"]["contributions"]
        assert engine.models()[0]["observations"] == 41
        assert engine.get_item("jazz")["tags"] == ["jazz"]
        engine.check()
        engine.backup(tmp_path / "copy")
        engine.forget_user("ann")
        with pytest.raises(KeyError):
            engine.user("ann")
    with codband.Engine(tmp_path / "copy") as engine:
        assert engine.user("ann")["observations"] == 41


def test_numbers_of_numpy_are_numbers_of_a_request(tmp_path):
    with codband.Engine(tmp_path) as engine:
        engine.put_item("a", {"price": np.float32(2.5), "year": np.int64(1959), "vinyl": np.bool_(True),
                              "embedding": np.array([0.5, 1.0], dtype=np.float32)})
        assert {f["name"]: f["value"] for f in engine.get_item("a")["named"]} == {
            "price": 2.5, "year": 1959, "vinyl=true": 1, "embedding[0]": 0.5, "embedding[1]": 1}
        reply = engine.rank("ann", context={"hour": np.int8(8)}, top_k=np.int64(1))
        assert engine.reward(reply["eventId"], np.float32(1))["status"] == "accepted"
        assert len(engine.models(top=np.int64(1))) == 1
        for bad in (np.float64("nan"), np.array([1 + 1j]), np.datetime64("2026-11-19"), object()):
            with pytest.raises(ValueError, match="request"):
                engine.put_item("a", {"price": bad})


def test_items_that_are_no_dictionaries_are_refused(tmp_path):
    with codband.Engine(tmp_path) as engine:
        for items in ({"id": "a", "features": {}}, ["a"], [5], 5, "a"):
            with pytest.raises(ValueError, match="items"):
                engine.put_items(items)


def test_same_request_same_decision_and_other_request_conflict(tmp_path):
    with codband.Engine(tmp_path, dim=4) as engine:
        actions = [{"id": "a", "features": np.array([1.0, 0, 0, 0])}, {"id": "b", "features": [0, 1, 0, 0]}]
        first = engine.rank("ann", actions, event_id="e")
        assert engine.rank("ann", actions, event_id="e")["rewardActionId"] == first["rewardActionId"]
        with pytest.raises(codband.ConflictError):
            engine.rank("bob", actions, event_id="e")
        deferred = engine.rank("ann", actions, event_id="f", defer_activation=True, excluded=["a"], top_k=1)
        assert deferred["rewardActionId"] == "b"
        engine.activate("f")


def test_features_of_the_visit_and_of_the_user_are_part_of_the_request(tmp_path):
    with codband.Engine(tmp_path) as engine:
        engine.put_item("a", {"genre": "jazz"})
        about = {"context": {"device": "phone"}, "user_features": {"age": "young"}}
        engine.rank("ann", event_id="e", **about)
        engine.rank("ann", event_id="e", **about)
        for part in about:
            with pytest.raises(codband.ConflictError):
                engine.rank("ann", event_id="e", **{**about, part: {"other": "x"}})
        with pytest.raises(ValueError, match="userFeatures"):
            engine.rank("ann", user_features={"age": None})
        anonymous = engine.rank(None)
        assert engine.reward(anonymous["eventId"], 1)["status"] == "accepted"
        assert engine.stats()["users"] == 0


def test_misuse_names_the_field_and_changes_nothing(tmp_path):
    with codband.Engine(tmp_path, dim=4, settings={"rewards.max": 1, "durability.sync": False}) as engine:
        fill(engine)
        before = engine.stats()
        for call, reason in [
                (lambda: engine.rank("ann", [{"id": "a", "features": [1, 2]}]), r"actions\[0\].features"),
                (lambda: engine.rank("ann", [{"id": "a", "features": [1, 2, 3, math.nan]}]), "JSON"),
                (lambda: engine.rank(""), "userId"), (lambda: engine.rank("ann", top_k=0), "topK"),
                (lambda: engine.rank("ann", [object()]), "JSON"),
                (lambda: engine.put_item("c", [1]), "features"),
                (lambda: engine.put_items([{"id": "c", "features": [1, 1, 1, 1]}, {"id": "", "features": []}]), "id")]:
            with pytest.raises(ValueError, match=reason):
                call()
        for call in (lambda: engine.reward("nosuch", 1.0), lambda: engine.activate("nosuch"),
                     lambda: engine.get_item("c"), lambda: engine.delete_item("c"), lambda: engine.user("nobody")):
            with pytest.raises(KeyError):
                call()
        assert engine.stats()["items"] == before["items"] and engine.stats()["ranks"] == before["ranks"]
        engine.rank("ann", event_id="e")
        for value in (2.0, math.nan, math.inf):
            with pytest.raises(ValueError):
                engine.reward("e", value)


@pytest.mark.parametrize("options, reason", [
    ({"policy": "nosuch"}, "nosuch"), ({"settings": {"rewards.wait": 3}}, "rewards.wait"),
    ({"dim": -1}, "dimension"), ({"settings": {"rewards.wait_seconds": -1}}, "wait_seconds"),
])
def test_wrong_settings_are_told(options, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        codband.Engine(tmp_path, **options)


def test_a_directory_is_open_once(tmp_path):
    with codband.Engine(tmp_path, dim=4):
        with pytest.raises(codband.Error):
            codband.Engine(tmp_path)


def test_threads_share_an_engine(tmp_path):
    with codband.Engine(tmp_path, dim=4, settings={"durability.sync": False}) as engine:
        fill(engine)
        failures = []

        def work(user):
            try:
                for i in range(50):
                    engine.rank(user, event_id=f"{user}-{i}")
                    engine.reward(f"{user}-{i}", 1.0)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)

        threads = [threading.Thread(target=work, args=(f"user-{t}",)) for t in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert engine.stats()["learned"] == 300
