#!/usr/bin/python3
"""Writes the replies in docs/http_api.md: those of a real server after a short story.

scripts/http_examples.py PROGRAM            replaces every ```json block that follows a block with curl
scripts/http_examples.py PROGRAM --check    changes nothing; fails where a reply has other fields than its block

The commands are run in the order of the document, on a server that ada, bob and cleo have visited before.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

DOCUMENT = pathlib.Path(__file__).resolve().parents[1] / "docs/http_api.md"
EXAMPLE = re.compile(r"(```\n(?:(?!```).)*\bcurl\b(?:(?!```).)*```\n```json\n)(.*?)(\n```)", re.DOTALL)
ADDRESS = "127.0.0.1:8080"
# Of these lists one entry is enough: the last one, or the one with the largest number.
ONE_OF = {"lastRewards", "points", "groups", "rewardsBy", "bottomItems"}
LARGEST_OF = {"columns": "importance"}
SONGS = {"song-1": {"features": {"genre": "rock", "year": 0.7}, "tags": ["rock"]},
         "song-2": {"features": {"genre": "pop", "year": 0.2}, "tags": ["pop"]}}


class Server:
    def __init__(self, program, directory):
        self._process = subprocess.Popen(
            [program, "serve", "--data", directory, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        printed = self._process.stdout.readline()
        self.address = re.search(r"http://(\S+)", printed).group(1)

    def ask(self, method, path, body):
        request = urllib.request.Request(f"http://{self.address}{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as reply:
            text = reply.read()
            return json.loads(text) if text else None

    def end(self):
        self._process.terminate()
        self._process.wait()


def play(server):
    """Cleo likes pop, bob rock; ada rock at first and pop later."""
    for name, song in SONGS.items():
        server.ask("PUT", f"/v1/items/{name}", song)

    def visit(user, number, liked):
        event = f"{user}-{number}"
        reply = server.ask("POST", "/v1/rank", {"userId": user, "eventId": event,
                                                "contextFeatures": {"device": "phone" if number % 3 else "desktop"}})
        server.ask("POST", f"/v1/events/{event}/reward", {"value": int(reply["rewardActionId"] == liked)})

    for number in range(100):
        visit("cleo", number, "song-2")
        visit("bob", number, "song-1")
        visit("ada", number, "song-1" if number < 60 else "song-2")


def shortened(value, name=""):
    if isinstance(value, list):
        if name in LARGEST_OF:
            value = sorted(value, key=lambda entry: entry[LARGEST_OF[name]])[-1:]
        return [shortened(each) for each in (value[-1:] if name in ONE_OF else value)]
    if isinstance(value, dict):
        return {key: shortened(each, key) for key, each in value.items()}
    return value


def fields(value, path=""):
    """Where something stands in a reply, without lists' lengths and what is optional by its value."""
    if isinstance(value, dict):
        return {path} | {found for key, each in value.items() for found in fields(each, f"{path}.{key}")}
    if isinstance(value, list):
        return {path} | {found for each in value for found in fields(each, path + "[]")}
    return {path}


def main():
    program, check = sys.argv[1], "--check" in sys.argv[2:]
    document = DOCUMENT.read_text()
    wrong = []

    def replaced(found):
        command = found.group(1).split("```\n")[1].replace(ADDRESS, server.address)
        printed = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, check=True).stdout
        reply = shortened(json.loads(printed.strip().splitlines()[-1]))
        if fields(reply) != fields(json.loads(found.group(2))):
            wrong.append(f"{command}has {sorted(fields(reply) ^ fields(json.loads(found.group(2))))}")
        text = json.dumps(reply, ensure_ascii=False, separators=(",", ":"))
        return found.group(1) + text + found.group(3)

    with tempfile.TemporaryDirectory() as directory:
        server = Server(os.path.abspath(program), os.path.join(directory, "data"))
        try:
            play(server)
            written, count = EXAMPLE.subn(replaced, document)
        finally:
            server.end()
    if not check:
        DOCUMENT.write_text(written)
    elif wrong:
        sys.exit("\n".join(["docs/http_api.md is out of date; run scripts/http_examples.py:", *wrong]))
    if count < 10:
        sys.exit(f"found only {count} examples in {DOCUMENT}")
    print(f"{count} examples")


if __name__ == "__main__":
    main()
