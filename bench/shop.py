#!/usr/bin/env python3
"""A shop over HTTP: plays visitors to the real `codband serve` on loopback and prints click rates.

  python3 bench/shop.py --serve build/dev/codband/codband                        # all variants
  python3 bench/shop.py --serve … --users 30 --variants named,dense --seeds 2    # some
  python3 bench/shop.py --list

Forty fixed items with a category of five, a price, a brand of twenty and a list of tags. Every user
has one of three tastes, which is a category: what they are shown is clicked with chance 0.6 if it
is of that category, else 0.05. They visit once a round, in turn, and the whole catalogue is ranked;
half-way a third of them change to another taste. A variant differs from `named`, which is what a
newcomer writes, in its features, its policy or its population. Variants of one seed have the same
items, users and luck.

`rate` is the mean chance of a click of what was shown, `late` the same over the last quarter. A
change counts as noticed when GET /v1/users/{id} has one more than before it; `delay` is the median
number of visits until then over all who changed, those never noticed included; `false` counts
changes of users who did not change, and any further ones of those who did, for 1000 visits; `ms` is
processor time of the server a visit, rank and reward. One connection, one request at a time, own
event ids: the same seed gives the same numbers, times excepted.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable

CATEGORIES = ["news", "music", "shoes", "garden", "toys"]
BRANDS = [f"brand-{i}" for i in range(20)]
TAGS = "new sale red blue green summer winter kids gift eco xl top".split()
ITEMS, TASTES, CLICK, NO_CLICK = 40, 3, 0.6, 0.05


# ---------------------------------------------------------------------------------------- server


class Server:
    """A `codband serve` on a directory of its own, and one connection to it."""

    def __init__(self, program: str, settings: list[str]):
        self.directory = tempfile.mkdtemp(prefix="codband-shop-")
        arguments = [program, "serve", "--data", self.directory, "--listen", "127.0.0.1:0"]
        for setting in ["durability.sync=false", "rewards.wait_seconds=86400", *settings]:
            arguments += ["--set", setting]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        port = None
        for line in self.process.stdout:
            if b"127.0.0.1:" in line:
                port = int(line.split(b"127.0.0.1:")[1].split()[0].strip(b"/"))
                break
        if port is None:
            sys.exit(f"the server did not start: {self.process.stderr.read().decode()}")
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n"
        if data:
            head += "Content-Type: application/json\r\n"
        self.socket.sendall(head.encode() + b"\r\n" + data)
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        header, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = header.split(b"\r\n")
        status = int(lines[0].split()[1])
        length = 0
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(self.buffer) < length:
            self._receive()
        reply, self.buffer = self.buffer[:length], self.buffer[length:]
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {reply.decode()}")
        return json.loads(reply) if reply else None

    def _receive(self) -> None:
        part = self.socket.recv(1 << 16)
        if not part:
            sys.exit("the server closed the connection")
        self.buffer += part

    def close(self) -> None:
        self.socket.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()
        shutil.rmtree(self.directory, ignore_errors=True)


# -------------------------------------------------------------------------------------- features


@dataclass
class Item:
    id: str
    category: str
    brand: str
    price: float
    year: int
    tags: list[str]


def make_items(seed: int) -> list[Item]:
    draw = random.Random(f"items {seed}")
    return [
        Item(
            id=f"item-{i:02}",
            category=CATEGORIES[i % len(CATEGORIES)],
            brand=draw.choice(BRANDS),
            price=round(draw.uniform(5, 100), 2),
            year=draw.randint(1960, 2025),
            tags=sorted(draw.sample(TAGS, draw.randint(1, 3))),
        )
        for i in range(ITEMS)
    ]


def named(item: Item) -> Any:
    return {
        "category": item.category,
        "price": item.price,
        "brand": item.brand,
        "tags": item.tags,
    }


def dense(item: Item) -> Any:
    """What somebody makes of it by hand: words as 0 or 1, the price brought to 0 … 1."""
    return (
        [float(item.category == each) for each in CATEGORIES]
        + [item.price / 100]
        + [float(item.brand == each) for each in BRANDS]
        + [float(each in item.tags) for each in TAGS]
    )


def with_columns(change: Callable[[Item, dict[str, Any]], None]) -> Callable[[Item], Any]:
    def features(item: Item) -> Any:
        out = named(item)
        change(item, out)
        return out

    return features


def tidy(item: Item, out: dict[str, Any]) -> None:
    out["price"] = item.price / 100
    out["year"] = (item.year - 1990) / 30


def scaled(item: Item, out: dict[str, Any]) -> None:
    out["price"] = item.price / 100


def cents(item: Item, out: dict[str, Any]) -> None:
    tidy(item, out)
    out["price"] = item.price * 1000


def years(item: Item, out: dict[str, Any]) -> None:
    tidy(item, out)
    out["year"] = item.year


def constant(item: Item, out: dict[str, Any]) -> None:
    tidy(item, out)
    out["version"] = 1000


# -------------------------------------------------------------------------------------- variants


@dataclass
class Variant:
    what: str
    features: Callable[[Item], Any] = named
    settings: list[str] = field(default_factory=list)
    turns: bool = False  # the time of day turns the taste, and nobody changes
    context: bool = False  # the request tells the time of day, the device and the hour
    wide: bool = False  # the request has six fields that say nothing
    user_feature: bool = False  # and who the user is, as a feature
    later: Callable[[Item], Any] | None = None  # features from a quarter of the rounds on
    fills: bool = False  # an item with more names than there are columns has come and gone


def policy(name: str) -> list[str]:
    return [f"policy.spec={name}"]


VARIANTS = {
    "named": Variant("as a newcomer writes them"),
    "dense": Variant("the same as a hand-made array", features=dense),
    "scaled": Variant("named, the price brought to 0 … 1", features=with_columns(scaled)),
    "fixed": Variant(
        "that array, features.dimension = 38", features=dense, settings=["features.dimension=38"]
    ),
    "context": Variant("with a context that says nothing", context=True),
    "wide": Variant("with six fields of context that say nothing", wide=True),
    "full": Variant("named, after an item of 2000 names", fills=True),
    "linucb": Variant("named, one LinUCB a user", settings=policy("linucb")),
    "lints": Variant("named, one LinTS a user", settings=policy("lints")),
    "uniform": Variant(
        "one model, user × item crossed",
        settings=policy("uniform-linucb") + ["features.crossings=id:category"],
        user_feature=True,
    ),
    "tidy": Variant("named, price and year within ±1", features=with_columns(tidy)),
    "cents": Variant("tidy, price × 100 000", features=with_columns(cents)),
    "years": Variant("tidy, raw years", features=with_columns(years)),
    "constant": Variant("tidy, and a column that is 1000", features=with_columns(constant)),
    "later": Variant("year only after a quarter", features=named, later=with_columns(years)),
    "turns": Variant("the time of day turns the taste", turns=True, context=True),
    "oracle": Variant(
        "told the right crossing",
        turns=True,
        context=True,
        settings=["features.crossings=time:category"],
    ),
    "blind": Variant("without the context", turns=True),
    "turns-linucb": Variant(
        "one LinUCB a user, all crossings", turns=True, context=True, settings=policy("linucb")
    ),
    "turns-uniform": Variant(
        "one model, all crossings",
        turns=True,
        context=True,
        user_feature=True,
        settings=policy("uniform-linucb"),
    ),
}


# ------------------------------------------------------------------------------------------ play


@dataclass
class Result:
    rate: float
    late: float
    noticed: float | None
    delay: float | None
    false: float | None
    columns: int
    sharing: int
    ms: float = 0


def liked(variant: Variant, taste: int, morning: bool) -> str:
    shift = 0 if morning or not variant.turns else 1
    return CATEGORIES[(taste + shift) % TASTES]


def context_of(luck: random.Random) -> tuple[bool, dict[str, Any]]:
    morning = luck.random() < 0.5
    return morning, {
        "time": "morning" if morning else "evening",
        "device": luck.choice(["phone", "phone", "desktop"]),
        "hour": luck.randint(6, 11) if morning else luck.randint(17, 22),
    }


def wide_context_of(luck: random.Random) -> dict[str, Any]:
    return {
        "device": luck.choice(["phone", "desktop", "tablet"]),
        "time": luck.choice(["morning", "noon", "evening"]),
        "country": luck.choice(["de", "fr", "it", "es"]),
        "returning": luck.random() < 0.5,
        "hour": luck.randint(0, 23),
        "temperature": round(luck.gauss(15, 8), 1),
    }


def changes_of(server: Server, user: str) -> int:
    return len(server.ask("GET", f"/v1/users/{user}")["changes"])


def play(
    program: str, variant: Variant, users: int, rounds: int, seed: int, more: list[str]
) -> Result:
    before = seconds_of_servers()
    server = Server(program, [f"policy.seed={seed}", *variant.settings, *more])
    try:
        result = play_on(server, variant, users, rounds, seed)
    finally:
        server.close()
    result.ms = 1000 * (seconds_of_servers() - before) / (users * rounds)
    return result


def seconds_of_servers() -> float:
    """Processor time of those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def play_on(server: Server, variant: Variant, users: int, rounds: int, seed: int) -> Result:
    items = make_items(seed)
    categories = {item.id: item.category for item in items}
    for item in items:
        server.ask("PUT", f"/v1/items/{item.id}", {"features": variant.features(item)})
    if variant.fills:
        names = {f"name-{i}": 1 for i in range(2000)}
        server.ask("PUT", "/v1/items/fills", {"features": names})
        server.ask("DELETE", "/v1/items/fills")
    tastes = [user % TASTES for user in range(users)]
    draw = random.Random(f"changes {seed}")
    changers = [] if variant.turns else sorted(draw.sample(range(users), users // 3))
    before: dict[int, int] = {}
    delays: dict[int, int] = {}
    chances: list[float] = []
    for turn in range(rounds):
        if turn == rounds // 2:
            for user in changers:
                tastes[user] = (tastes[user] + draw.randint(1, TASTES - 1)) % TASTES
                before[user] = changes_of(server, f"user-{user}")
        if variant.later and turn == rounds // 4:
            for item in items:
                server.ask("PUT", f"/v1/items/{item.id}", {"features": variant.later(item)})
        for user in range(users):
            luck = random.Random(f"{seed} {turn} {user}")
            event = f"e-{turn}-{user}"
            request: dict[str, Any] = {"userId": f"user-{user}", "eventId": event, "topK": 1}
            morning, context = context_of(luck)
            if variant.context:
                request["contextFeatures"] = context
            if variant.wide:
                request["contextFeatures"] = wide_context_of(luck)
            if variant.user_feature:
                request["userFeatures"] = {"id": f"user-{user}"}
            shown = server.ask("POST", "/v1/rank", request)["rewardActionId"]
            likes = categories[shown] == liked(variant, tastes[user], morning)
            chances.append(CLICK if likes else NO_CLICK)
            value = int(luck.random() < chances[-1])
            server.ask("POST", f"/v1/events/{event}/reward", {"value": value})
            if user in before and user not in delays:
                if changes_of(server, f"user-{user}") > before[user]:
                    delays[user] = turn - rounds // 2 + 1
    told = sum(changes_of(server, f"user-{user}") for user in range(users))
    report = server.ask("GET", "/v1/features")
    waits = [delays.get(user, rounds) for user in changers]
    return Result(
        rate=statistics.fmean(chances),
        late=statistics.fmean(chances[-len(chances) // 4 :]),
        noticed=len(delays) / len(changers) if changers else None,
        delay=statistics.median(waits) if changers else None,
        false=1000 * (told - len(delays)) / (users * rounds),
        columns=len(report["columns"]),
        sharing=len(report["sharing"]),
    )


# ---------------------------------------------------------------------------------------- report


def mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def show(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", metavar="PROGRAM", help="the program codband")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--users", default="30,200", help="numbers of users")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--list", action="store_true", help="list the variants")
    options = parser.parse_args()
    if options.list:
        for name, variant in VARIANTS.items():
            print(f"{name:14} {variant.what}")
        return
    names = options.variants.split(",")
    for name in names:
        if name not in VARIANTS:
            parser.error(f"--variants: '{name}' is none, expected some of {', '.join(VARIANTS)}")
    if not options.serve or not os.access(options.serve, os.X_OK):
        parser.error(f"--serve: '{options.serve}' cannot be run, expected the program codband")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends with us
    out = []
    for users in map(int, options.users.split(",")):
        if options.format == "table":
            print(f"\n{users} users, {options.rounds} rounds, {options.seeds} seeds\n")
            heads = "variant what rate late by_seed noticed delay false columns ms".split()
            print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
        for name in names:
            runs = [
                play(options.serve, VARIANTS[name], users, options.rounds, seed, options.set)
                for seed in range(1, options.seeds + 1)
            ]
            entry = {"variant": name, "users": users, "rounds": options.rounds}
            for key in Result.__annotations__:
                entry[key] = mean([getattr(run, key) for run in runs])
            entry["runs"] = [vars(run) for run in runs]
            out.append(entry)
            if options.format == "table":
                rates = " ".join(f"{run.rate:.3f}" for run in runs)
                print(
                    f"| {name} | {VARIANTS[name].what} | {entry['rate']:.3f} | {entry['late']:.3f} "
                    f"| {rates} | {show(entry['noticed'], 2)} | {show(entry['delay'], 1)} "
                    f"| {show(entry['false'], 2)} | {entry['columns']:.0f} | {entry['ms']:.2f} |",
                    flush=True,
                )
    if options.format == "json":
        print(json.dumps({"shop": out}))


if __name__ == "__main__":
    main()
