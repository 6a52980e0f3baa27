"""What happened before, learned by the real server: POST /v1/history and codband import."""

import os
import subprocess
import time

import pytest

import codband
from conftest import Server, program_environment

PROGRAM = os.environ.get("TESTED_CODBAND", "codband")
ITEMS = [{"id": "jazz", "features": {"genre": "jazz"}}, {"id": "rock", "features": {"genre": "rock"}}]


def events(count):
    return [{"userId": f"user-{i % 4}", "itemId": "jazz" if i % 3 else "rock", "value": float(i % 3 > 0), "time": str(i)}
            for i in range(count)]


def observations(client):
    return [client.user(f"user-{u}")["observations"] for u in range(4)]


def test_history_warm_starts_and_again_changes_nothing(server):
    with codband.Client(server.url) as client:
        client.put_items(ITEMS)
        report = client.import_history(events(1200))
        assert report == {"accepted": 1200, "duplicates": 0, "skipped": []}
        assert observations(client) == [300] * 4
        ranking = client.rank("user-1", ["rock", "jazz"]).ranking
        assert {entry["id"]: round(entry["mean"]) for entry in ranking} == {"jazz": 1, "rock": 0}
        assert client.import_history(events(1200)) == {"accepted": 0, "duplicates": 1200, "skipped": []}
        assert observations(client) == [300] * 4


def test_unusable_events_are_named_and_wrong_requests_change_nothing(server):
    with codband.Client(server.url) as client:
        client.put_items(ITEMS)
        mixed = events(3) + [{"userId": "u", "itemId": "nosuch", "value": 1.0}]
        report = client.import_history(mixed)
        assert report["accepted"] == 3 and [s["index"] for s in report["skipped"]] == [3]
        with pytest.raises(ValueError, match=r"events\[1\].value"):
            client.import_history([mixed[0], {"userId": "new", "itemId": "jazz"}])
        with pytest.raises(KeyError):
            client.user("new")
        own = client.import_history([{"userId": "own", "itemId": "x", "features": {"genre": "pop"}, "value": 1}])
        assert own["accepted"] == 1 and client.user("own")["observations"] == 1


def test_history_survives_a_kill(server):
    with codband.Client(server.url) as client:
        client.put_items(ITEMS)
        client.import_history(events(100))
        server.kill()
        server.start()
        assert observations(client) == [25] * 4
        assert client.import_history(events(100))["duplicates"] == 100


def wait_until_over(client):
    """Until an event that is made now has waited for its reward to the end, and the one before it."""
    for _ in range(2):
        event = client.rank("somebody", ["jazz"]).event_id
        for _ in range(1200):
            try:
                client.activate(event)
            except codband.LateError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the wait does not end")


def test_history_is_learned_once_for_good(tmp_path):
    server = Server(tmp_path / "data", "--set", "rewards.wait_seconds=1")
    file = tmp_path / "history.csv"
    file.write_text("user,item,reward\n" + "user-0,jazz,1\n" * 3 + "user-1,rock,0\n")
    try:
        with codband.Client(server.url) as client:
            client.put_items(ITEMS)
            assert client.import_history(events(400))["accepted"] == 400
            assert "4 records: 4 learned" in run_import(file, "--url", server.url).stdout
            wait_until_over(client)
            for start in (lambda: None, server.start):
                start()
                assert client.import_history(events(400)) == {"accepted": 0, "duplicates": 400, "skipped": []}
                (tmp_path / "history.csv.imported").unlink()
                assert "4 records: 0 learned, 4 known before" in run_import(file, "--url", server.url).stdout
                assert observations(client) == [103, 101, 100, 100]
                server.kill()
    finally:
        server.stop()


def run_import(*arguments):
    return subprocess.run([PROGRAM, "import", *map(str, arguments)], capture_output=True, text=True, check=False,
                          env=program_environment())


def test_import_command_sends_a_file_once(server, tmp_path):
    with codband.Client(server.url) as client:
        client.put_items(ITEMS)
        file = tmp_path / "history.csv"
        rows = [f"{e['userId']},{e['itemId']},{e['value']},{e['time']}" for e in events(700)]
        file.write_text("who,sku,reward,time\n" + "\n".join(rows) + "\nuser-0,nosuch,1,x\nuser-0,jazz,many,x\n")
        flags = ["--url", server.url, "--user-column", "who", "--item-column", "sku"]
        told = run_import(file, *flags)
        assert told.returncode == 0 and told.stdout.startswith("702 records: 700 learned, 0 known before, 2 left out"), told
        assert ":703: reward = 'many', expected a number" in told.stdout
        assert observations(client) == [175] * 4
        again = run_import(file, *flags)
        assert again.stdout.startswith("702 records: 0 learned") and "702 sent by an earlier run" in again.stdout
        (tmp_path / "history.csv.imported").unlink()
        third = run_import(file, *flags)
        assert "0 learned, 700 known before" in third.stdout
        assert observations(client) == [175] * 4
        by_data = run_import(file, "--data", tmp_path / "data", *flags[2:])
        assert by_data.returncode == 0


def test_import_command_tells_what_is_wrong(server, tmp_path):
    file = tmp_path / "history.csv"
    file.write_text("user,item,reward\nann,jazz,1\n")
    for flags, reason in [([], "--data and --url"), (["--url", server.url, "--data", "x"], "--data and --url"),
                          (["--url", server.url, "--input", "xml"], "--input"), (["--data", tmp_path / "none"], "no server"),
                          (["--url", server.url, "--item-column", "sku"], "sku"),
                          (["--url", server.url], "no record of")]:  # jazz is in no catalogue
        told = run_import(file, *flags)
        assert told.returncode != 0 and reason in told.stderr, told
