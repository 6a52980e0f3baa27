#!/usr/bin/env python3
"""Shops that nothing was tuned on, over HTTP: policies in shops that differ in one thing each.

  python3 bench/shops.py --serve build/release/codband/codband                     # all shops
  python3 bench/shops.py --serve … --shops zipf,ratings --policies codband,linucb --seeds 2
  python3 bench/shops.py --list

The first shop, `plain`, has 40 items with a category, a price, a brand and tags, 30 users who visit
in turn, 120 times each, and of whom a third change to another taste half-way; a taste is a
category. What is shown is clicked with chance 0.6 if it is of that category, else 0.05. Each of the
other shops differs as its description says. Users, items, offers and luck of a seed are the same
for all policies.

A policy has the mean expected reward of what it showed; `best` and `chance` are what showing the
best and a random item of the offer would have earned. `ahead` is how far the first policy of
--policies is ahead of the best of the others, paired by seed, with the standard error; `*` marks
where it is behind by more than two of them. `noticed`, `delay` and `false` are of the first policy:
the share of the changes of taste that GET /v1/users/{id} told before the next one, the median
number of the user's visits until then (those never noticed count as all visits), and what else it
told, for 1000 visits. `ms` is processor time of its server a visit.
"""

import argparse
import heapq
import json
import math
import os
import random
import signal
import statistics
import sys
from dataclasses import dataclass, field
from typing import Any

from shop import BRANDS, TAGS, Server, policy, seconds_of_servers

PLACES = 8  # of an embedding
WATCHED = 40  # visits of a user after a change


@dataclass
class Shop:
    what: str
    users: int = 30
    visits: int = 3600
    items: int = 40
    offered: int = 0  # items in a request; 0: the whole catalogue
    clicks: tuple[float, float] = (0.6, 0.05)
    tastes: int = 3
    individual: bool = False  # everybody has a taste of their own
    visitors: str = "turns"  # or zipf, passing
    appeal: float = 0  # deviation of the logarithm of what an item is worth beyond its features
    turnover: int = 0  # visits until an item is replaced
    reward: str = "click"  # or rating, revenue
    features: str = "named"  # or embedding, none, useless
    context: str = ""  # or taste, level
    delay: int = 0  # visits until a reward arrives, on average
    anonymous: float = 0  # the share of visits without an id
    changes: str = "together"  # or apart, never


SHOPS = {
    "plain": Shop("as described above"),
    "items-8": Shop("8 items", items=8),
    "items-15": Shop("15 items", items=15),
    "items-100": Shop("100 items", items=100),
    "items-400": Shop("400 items", items=400),
    "offer-5": Shop("5 items on offer", offered=5),
    "offer-10": Shop("100 items, 10 on offer", items=100, offered=10),
    "clicks-30": Shop("clicks 0.3 and 0.02", clicks=(0.3, 0.02)),
    "clicks-10": Shop("clicks 0.1 and 0.01", clicks=(0.1, 0.01)),
    "tastes-2": Shop("two tastes", tastes=2),
    "tastes-6": Shop("six tastes", tastes=6),
    "tastes-12": Shop("twelve tastes", tastes=12),
    "individual": Shop("everybody has a taste of their own", individual=True, changes="never"),
    "passing": Shop("5 to 20 visits each, new users all the time", visitors="passing"),
    "zipf": Shop("100 users, the n-th comes 1/n as often", users=100, visitors="zipf"),
    "turnover": Shop("an item is replaced every 60 visits", turnover=60),
    "appeal": Shop("items are more or less popular", appeal=0.5),
    "ratings": Shop("ratings 1 … 5", reward="rating"),
    "revenue": Shop("the price, if bought", reward="revenue"),
    "embedding": Shop("an embedding of eight places", features="embedding"),
    "context": Shop("the device turns the taste", context="taste", changes="never"),
    "level": Shop("three times the clicks in the evening", context="level"),
    "late": Shop("rewards 30 visits late, in any order", delay=30),
    "anonymous": Shop("half of the visits without an id", anonymous=0.5),
    "apart": Shop("users change one by one, every 60 visits each", changes="apart"),
    "ids": Shop("no features", features="none"),
    "useless": Shop("features that tell nothing", features="useless"),
    "few-ids": Shop("15 items without features", items=15, features="none"),
    "passing-ids": Shop(
        "passing users, 15 items without features", items=15, features="none", visitors="passing"
    ),
    "rare-late": Shop("clicks 0.3 and 0.02, late", clicks=(0.3, 0.02), delay=30),
    "large-zipf": Shop(
        "400 items, 20 on offer, Zipf", items=400, offered=20, users=100, visitors="zipf"
    ),
    "individual-zipf": Shop(
        "own tastes, Zipf, popular items",
        individual=True,
        appeal=0.5,
        users=100,
        visitors="zipf",
        changes="never",
    ),
}

POLICIES = {
    "codband": policy("codband"),
    "linucb": policy("linucb"),
    "lints": policy("lints"),
    "uniform": policy("uniform-linucb"),
    "thompson": policy("codband:explore=thompson"),
}


@dataclass
class Item:
    id: str
    category: int
    brand: int
    price: float
    tags: list[int]
    place: list[float]  # in the space of embeddings
    hidden: int  # what decides where features tell nothing
    appeal: float

    def features(self, kind: str) -> Any:
        if kind == "none":
            return {}
        if kind == "embedding":
            return {"embedding": self.place}
        return {
            "category": f"category-{self.category}",
            "price": self.price,
            "brand": BRANDS[self.brand],
            "tags": [TAGS[tag] for tag in self.tags],
        }


def unit(draw: random.Random) -> list[float]:
    values = [draw.gauss(0, 1) for _ in range(PLACES)]
    length = math.sqrt(sum(value * value for value in values))
    return [round(value / length, 4) for value in values]


@dataclass
class Visit:
    user: int
    anonymous: bool
    offer: list[Item]
    context: dict[str, Any]


@dataclass
class World:
    """The truth: who comes, what is on offer, and what it is worth to them."""

    shop: Shop
    seed: int
    items: list[Item] = field(default_factory=list)
    made: int = 0
    tastes: dict[int, int] = field(default_factory=dict)
    weights: dict[int, list[float]] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)  # visits, of those who pass by
    newest: int = 0

    def __post_init__(self) -> None:
        draw = random.Random(f"world {self.seed}")
        self.draw = draw
        self.categories = max(5, self.shop.tastes)
        self.liked_places = [unit(draw) for _ in range(self.shop.tastes)]
        for _ in range(self.shop.items):
            self.items.append(self.new_item())
        for user in range(self.shop.users):
            self.tastes[user] = user % self.shop.tastes

    def new_item(self) -> Item:
        draw = self.draw
        item = Item(
            id=f"item-{self.made:03}",
            category=self.made % self.categories,
            brand=draw.randrange(len(BRANDS)),
            price=round(draw.uniform(5, 100), 2),
            tags=sorted(draw.sample(range(len(TAGS)), draw.randint(1, 3))),
            place=unit(draw),
            hidden=draw.randrange(self.categories),
            appeal=math.exp(draw.gauss(0, self.shop.appeal)),
        )
        self.made += 1
        return item

    def next_user(self, turn: int) -> int:
        if self.shop.visitors == "zipf":
            ranks = range(1, self.shop.users + 1)
            return self.draw.choices(range(self.shop.users), [1 / rank for rank in ranks])[0]
        if self.shop.visitors == "passing":
            place = self.draw.randrange(10)
            while self.left.get(place, (0, 0))[1] == 0:
                self.newest += 1
                self.tastes[self.newest] = self.draw.randrange(self.shop.tastes)
                self.left[place] = (self.newest, self.draw.randint(5, 20))
            user, left = self.left[place]
            self.left[place] = (user, left - 1)
            return user
        return turn % self.shop.users

    def next_visit(self, turn: int) -> Visit:
        shop, draw = self.shop, self.draw
        offer = draw.sample(self.items, shop.offered) if shop.offered else list(self.items)
        context = {}
        if shop.context:
            context = {
                "device": draw.choice(["phone", "desktop"]),
                "time": draw.choice(["morning", "evening"]),
            }
        return Visit(self.next_user(turn), draw.random() < shop.anonymous, offer, context)

    def changers(self, turn: int, user: int) -> list[int]:
        """Changes the tastes of some users, and returns them."""
        shop, draw = self.shop, self.draw
        out: list[int] = []
        if shop.visitors == "passing":
            return out
        if shop.changes == "together" and turn == shop.visits // 2:
            out = sorted(draw.sample(range(shop.users), shop.users // 3))
        if shop.changes == "apart" and turn > shop.visits // 8 and draw.random() < 1 / 60:
            out = [user]
        for each in out:
            self.tastes[each] = (self.tastes[each] + draw.randint(1, shop.tastes - 1)) % shop.tastes
        return out

    def liking(self, user: int, item: Item, context: dict[str, Any]) -> float:
        """How much the user likes it, 0 to 1."""
        shop = self.shop
        if shop.individual:
            if user not in self.weights:
                draw = random.Random(f"weights {self.seed} {user}")
                self.weights[user] = [draw.gauss(0, 1) for _ in range(64)]
            own = self.weights[user]
            score = 1.5 * own[item.category] + own[12 + item.brand]
            score += sum(own[32 + tag] for tag in item.tags)
            return 1 / (1 + math.exp(2 * (2 - score)))
        taste = self.tastes[user]
        if shop.features == "embedding":
            match = sum(a * b for a, b in zip(self.liked_places[taste], item.place))
            return 1 / (1 + math.exp(8 * (0.5 - match)))
        if shop.context == "taste" and context["device"] == "phone":
            taste = (taste + 1) % shop.tastes
        kind = item.category if shop.features == "named" else item.hidden
        return float(kind == taste)

    def chance(self, user: int, item: Item, context: dict[str, Any]) -> float:
        high, low = self.shop.clicks
        chance = low + (high - low) * self.liking(user, item, context)
        if self.shop.context == "level":
            chance *= 1.5 if context["time"] == "evening" else 0.5
        return min(0.95, chance * item.appeal)

    def worth(self, user: int, item: Item, context: dict[str, Any]) -> float:
        chance = self.chance(user, item, context)
        if self.shop.reward == "rating":
            return 2 + 4 * chance
        return chance * (item.price if self.shop.reward == "revenue" else 1)

    def reward(self, worth: float, item: Item, luck: random.Random) -> float:
        if self.shop.reward == "rating":
            return min(5, max(1, round(luck.gauss(worth, 0.8))))
        if self.shop.reward == "revenue":
            return item.price if luck.random() < worth / item.price else 0
        return int(luck.random() < worth)


@dataclass
class Changes:
    """Which changes of taste were told."""

    server: Server
    watched: bool
    open: dict[str, list[int]] = field(default_factory=dict)  # told before, visits since
    delays: list[int] = field(default_factory=list)
    missed: int = 0

    def told(self, user: str) -> int:
        return len(self.server.ask("GET", f"/v1/users/{user}")["changes"])

    def happened(self, users: list[str], known: set[str]) -> None:
        for user in users:
            if not self.watched or user not in known:
                continue
            self.missed += user in self.open
            self.open[user] = [self.told(user), 0]

    def visited(self, user: str) -> None:
        if user not in self.open:
            return
        self.open[user][1] += 1
        if self.told(user) > self.open[user][0]:
            self.delays.append(self.open.pop(user)[1])

    def report(self, users: set[str], visits: int) -> dict[str, float | None]:
        unnoticed = self.missed + sum(since >= WATCHED for _, since in self.open.values())
        all_changes = len(self.delays) + unnoticed
        told = sum(self.told(user) for user in users) if self.watched else 0
        waits = self.delays + [visits] * unnoticed
        return {
            "noticed": len(self.delays) / all_changes if all_changes else None,
            "delay": statistics.median(waits) if waits else None,
            "false": 1000 * (told - len(self.delays)) / visits if self.watched else None,
        }


def settings_of(name: str, shop: Shop) -> list[str]:
    out = list(POLICIES[name])
    if name == "uniform":
        kind = "category" if shop.features in ("named", "useless") else "*"
        context = ",device:category" if shop.context else ""
        out.append(f"features.crossings=id:{kind}{context}")
    return out


def play(
    program: str, name: str, shop: Shop, seed: int, more: list[str], watched: bool
) -> dict[str, Any]:
    before = seconds_of_servers()
    server = Server(program, [f"policy.seed={seed}", *settings_of(name, shop), *more])
    try:
        result = play_on(server, name, World(shop, seed), watched)
    finally:
        server.close()
    result["ms"] = 1000 * (seconds_of_servers() - before) / shop.visits
    return result


def request_of(name: str, world: World, visit: Visit, event: str) -> dict[str, Any]:
    request: dict[str, Any] = {"eventId": event, "topK": 1}
    if not visit.anonymous:
        request["userId"] = f"user-{visit.user}"
        if name == "uniform":
            request["userFeatures"] = {"id": f"user-{visit.user}"}
    if world.shop.offered:
        request["actions"] = [item.id for item in visit.offer]
    if visit.context:
        request["contextFeatures"] = visit.context
    return request


def replace_item(server: Server, world: World) -> None:
    gone = world.items.pop(0)
    server.ask("DELETE", f"/v1/items/{gone.id}")
    world.items.append(world.new_item())
    put(server, world, world.items[-1])


def put(server: Server, world: World, item: Item) -> None:
    features = item.features(world.shop.features)
    server.ask("PUT", f"/v1/items/{item.id}", {"features": features})


def play_on(server: Server, name: str, world: World, watched: bool) -> dict[str, Any]:
    shop = world.shop
    for item in world.items:
        put(server, world, item)
    changes = Changes(server, watched)
    known: set[str] = set()  # users of whom the server knows
    earned, best, chance = [], [], []
    waiting: list[tuple[int, int, str, float]] = []  # rewards that are late
    for turn in range(shop.visits):
        if shop.turnover and turn % shop.turnover == shop.turnover - 1:
            replace_item(server, world)
        visit = world.next_visit(turn)
        changes.happened([f"user-{user}" for user in world.changers(turn, visit.user)], known)
        event = f"e-{turn}"
        shown = server.ask("POST", "/v1/rank", request_of(name, world, visit, event))
        worths = {each.id: world.worth(visit.user, each, visit.context) for each in visit.offer}
        item = next(each for each in visit.offer if each.id == shown["rewardActionId"])
        earned.append(worths[item.id])
        best.append(max(worths.values()))
        chance.append(statistics.fmean(worths.values()))
        luck = random.Random(f"{world.seed} {turn}")
        value = world.reward(earned[-1], item, luck)
        due = turn + (luck.randint(0, 2 * shop.delay) if shop.delay else 0)
        heapq.heappush(waiting, (due, turn, event, value))
        while waiting and waiting[0][0] <= turn:
            _, _, of, late = heapq.heappop(waiting)
            server.ask("POST", f"/v1/events/{of}/reward", {"value": late})
        if not visit.anonymous and turn >= 2 * shop.delay + shop.users * (shop.delay > 0):
            known.add(f"user-{visit.user}")
            changes.visited(f"user-{visit.user}")
    return {
        "earned": statistics.fmean(earned),
        "late": statistics.fmean(earned[-len(earned) // 4 :]),
        "best": statistics.fmean(best),
        "chance": statistics.fmean(chance),
        **changes.report(known, shop.visits),
    }


def mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def show(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def lead(runs: dict[str, list[dict[str, Any]]]) -> tuple[str, float, float]:
    """The best of the other policies, how far the first is ahead of it, and the standard error."""
    first, *others = runs
    other = max(others, key=lambda name: mean([run["earned"] for run in runs[name]]))
    apart = [a["earned"] - b["earned"] for a, b in zip(runs[first], runs[other])]
    error = statistics.stdev(apart) / math.sqrt(len(apart)) if len(apart) > 1 else 0
    return other, statistics.fmean(apart), error


def row(name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    first = runs[next(iter(runs))]
    cells = [name, SHOPS[name].what, show(mean([run["chance"] for run in first]), 3)]
    cells.append(show(mean([run["best"] for run in first]), 3))
    cells += [show(mean([run["earned"] for run in each]), 3) for each in runs.values()]
    if len(runs) > 1:
        other, apart, error = lead(runs)
        cells.append(f"{apart:+.3f} ± {error:.3f} ({other}){' *' if apart < -2 * error else ''}")
    for key, digits in [("noticed", 2), ("delay", 1), ("false", 2), ("ms", 2)]:
        cells.append(show(mean([run[key] for run in first]), digits))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", metavar="PROGRAM", help="the program codband")
    parser.add_argument("--shops", default=",".join(SHOPS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--visits", type=int, help="instead of those of the shop")
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    parser.add_argument("--list", action="store_true", help="list the shops")
    options = parser.parse_args()
    if options.list:
        for name, shop in SHOPS.items():
            print(f"{name:16} {shop.what}")
        return
    names, policies = options.shops.split(","), options.policies.split(",")
    for flag, given, known in [("shops", names, SHOPS), ("policies", policies, POLICIES)]:
        for name in given:
            if name not in known:
                parser.error(f"--{flag}: '{name}' is none, expected some of {', '.join(known)}")
    if not options.serve or not os.access(options.serve, os.X_OK):
        parser.error(f"--serve: '{options.serve}' cannot be run, expected the program codband")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server ends with us
    if options.format == "table":
        ahead = ["ahead"] if len(policies) > 1 else []
        heads = ["shop", "what", "chance", "best", *policies, *ahead]
        heads += ["noticed", "delay", "false", "ms"]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name in names:
        shop = SHOPS[name]
        if options.visits:
            shop.visits = options.visits
        runs = {
            each: [
                play(options.serve, each, shop, seed, options.set, each == policies[0])
                for seed in range(1, options.seeds + 1)
            ]
            for each in policies
        }
        line = row(name, runs) if options.format == "table" else json.dumps({name: runs})
        print(line, flush=True)


if __name__ == "__main__":
    main()
