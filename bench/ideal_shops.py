#!/usr/bin/env python3
"""What can be noticed in the shops of bench/shops.py: filters that know every chance.

  python3 bench/ideal_shops.py --shops plain,ids,tastes-12 --seeds 5

The filter of a user knows how likely each taste makes each reward, and that users change to another
taste with a fixed hazard; it shows what is most probably worth most. A change counts as told when
another taste than the last one told has more than a given chance. `noticed`, `delay` and `false`
are those of bench/shops.py.
"""

import argparse
import heapq
import math
import random
import statistics
from typing import Any

from shops import SHOPS, WATCHED, Item, Shop, Visit, World, mean, show

FIRST = 0.99  # the chance with which a first taste is told


class Filter:
    """The beliefs in what each user likes."""

    def __init__(self, world: World, hazard: float, sure: float):
        self.world, self.hazard, self.sure = world, hazard, sure
        self.tastes = world.shop.tastes
        self.beliefs: dict[int, list[float]] = {}
        self.told: dict[int, int] = {}
        self.changes: dict[int, int] = {}

    def worths(self, user: int, item: Item, context: dict[str, Any]) -> list[float]:
        """What the item is worth to a user of each taste."""
        real = self.world.tastes[user]
        worths = []
        for taste in range(self.tastes):
            self.world.tastes[user] = taste
            worths.append(self.world.worth(user, item, context))
        self.world.tastes[user] = real
        return worths

    def belief(self, user: int) -> list[float]:
        return self.beliefs.get(user, [1 / self.tastes] * self.tastes)

    def choose(self, visit: Visit) -> Item:
        belief = [1 / self.tastes] * self.tastes if visit.anonymous else self.belief(visit.user)

        def expected(item: Item) -> float:
            worths = self.worths(visit.user, item, visit.context)
            return sum(chance * worth for chance, worth in zip(belief, worths))

        return max(visit.offer, key=expected)

    def density(self, reward: float, worth: float, item: Item) -> float:
        kind = self.world.shop.reward
        if kind == "rating":
            return math.exp(-(((reward - worth) / 0.85) ** 2) / 2) + 1e-9
        chance = worth / item.price if kind == "revenue" else worth
        return chance if reward else 1 - chance

    def learn(self, visit: Visit, item: Item, reward: float) -> None:
        user, others = visit.user, self.tastes - 1
        belief = []
        worths = self.worths(user, item, visit.context)
        for chance, worth in zip(self.belief(user), worths):
            stays_or_comes = (1 - self.hazard) * chance + self.hazard * (1 - chance) / others
            belief.append(stays_or_comes * self.density(reward, worth, item))
        total = sum(belief)
        self.beliefs[user] = belief = [each / total for each in belief]
        likeliest = max(range(self.tastes), key=belief.__getitem__)
        if user not in self.told:
            if belief[likeliest] >= FIRST:
                self.told[user] = likeliest
        elif likeliest != self.told[user] and belief[likeliest] > self.sure:
            self.told[user] = likeliest
            self.changes[user] = self.changes.get(user, 0) + 1


def play(shop: Shop, seed: int, hazard: float, sure: float) -> dict[str, float | None]:
    world = World(shop, seed)
    users = Filter(world, hazard, sure)
    known: set[int] = set()
    open_changes: dict[int, list[int]] = {}  # told before, visits since
    delays: list[int] = []
    missed = 0
    waiting: list[tuple[int, int, Visit, Item, float]] = []
    for turn in range(shop.visits):
        if shop.turnover and turn % shop.turnover == shop.turnover - 1:
            world.items.pop(0)
            world.items.append(world.new_item())
        visit = world.next_visit(turn)
        for user in world.changers(turn, visit.user):
            if user in known:
                missed += user in open_changes
                open_changes[user] = [users.changes.get(user, 0), 0]
        item = users.choose(visit)
        luck = random.Random(f"{seed} {turn}")
        value = world.reward(world.worth(visit.user, item, visit.context), item, luck)
        due = turn + (luck.randint(0, 2 * shop.delay) if shop.delay else 0)
        heapq.heappush(waiting, (due, turn, visit, item, value))
        while waiting and waiting[0][0] <= turn:
            _, _, of, shown, late = heapq.heappop(waiting)
            if not of.anonymous:
                users.learn(of, shown, late)
        if visit.anonymous or turn < 2 * shop.delay + shop.users * (shop.delay > 0):
            continue
        known.add(visit.user)
        if visit.user in open_changes:
            change = open_changes[visit.user]
            change[1] += 1
            if users.changes.get(visit.user, 0) > change[0]:
                delays.append(open_changes.pop(visit.user)[1])
    unnoticed = missed + sum(since >= WATCHED for _, since in open_changes.values())
    waits = delays + [shop.visits] * unnoticed
    return {
        "noticed": len(delays) / len(waits) if waits else None,
        "delay": statistics.median(waits) if waits else None,
        "false": 1000 * (sum(users.changes.values()) - len(delays)) / shop.visits,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [name for name, shop in SHOPS.items() if not shop.individual]
    parser.add_argument("--shops", default=",".join(known))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hazard", type=float, default=1 / 600)
    parser.add_argument("--sure", default="0.65,0.9", help="chances with which a change is told")
    options = parser.parse_args()
    for name in options.shops.split(","):
        if name not in known:
            parser.error(f"--shops: '{name}' is none, expected some of {', '.join(known)}")
    print("| shop | told at | noticed | delay | false |\n|---|---|---|---|---|", flush=True)
    for name in options.shops.split(","):
        for sure in map(float, options.sure.split(",")):
            runs = [
                play(SHOPS[name], seed, options.hazard, sure)
                for seed in range(1, options.seeds + 1)
            ]
            cells = [name, f"{sure:g}"]
            for key, digits in [("noticed", 2), ("delay", 1), ("false", 2)]:
                cells.append(show(mean([run[key] for run in runs]), digits))
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
