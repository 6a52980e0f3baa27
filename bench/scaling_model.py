#!/usr/bin/env python3
"""A cluster as queues, with the service times that bench/scaling.py has measured.

  bench/scaling.py low --json low.json && bench/scaling.py throttled --json throttled.json
  bench/scaling_model.py low.json throttled.json

A closed system: every connection sends a request as soon as it has the answer to the one before. A
request arrives at a node and belongs to a partition, both at random. The node that has the partition
works on it, another one passes it on; each has one queue for its processor. Then the request waits
for the log of its partition: one append at a time, which takes all requests that have come
meanwhile, on one of the processors of the database, and a moment for the disk. What nodes cost when
nobody asks (looking for news of the pool, leases) comes off their processors. All times are drawn
from exponential distributions around their means.

First it plays the clusters that were measured, and prints what it predicts beside what was seen;
then larger ones, whose nodes have whole cores, and says what is busiest.
"""
import argparse
import heapq
import itertools
import json
import pathlib
import random

LARGEST = 256  # partitions of a loop


class Model:
    def __init__(self, times, nodes, partitions, connections, cores, database_cores, databases, seed):
        self.times = times
        self.nodes = nodes
        self.partitions = partitions
        self.cores = cores
        self.random = random.Random(seed)
        self.free = [0.0] * nodes  # when a node's processor has done what it was given
        self.used = [0.0] * nodes
        self.databases = databases
        self.database_free = [[0.0] * database_cores for _ in range(databases)]
        self.database_used = [0.0] * databases
        self.waiting = [[] for _ in range(partitions)]
        self.appending = [False] * partitions
        self.events = []
        self.order = itertools.count()
        self.answered = 0
        self.latency = 0.0
        self.appends = 0
        self.clients = [node for node in range(nodes) for _ in range(connections)]

    def owner(self, partition):
        return partition * self.nodes // self.partitions if self.nodes <= self.partitions else partition

    def draw(self, mean):
        return self.random.expovariate(1 / mean) if mean > 0 else 0.0

    def at(self, time, what, *arguments):
        heapq.heappush(self.events, (time, next(self.order), what, arguments))

    def work(self, now, node, seconds):
        """When the node has done this, with a processor of `cores`."""
        seconds = self.draw(seconds) / self.cores
        self.free[node] = max(now, self.free[node]) + seconds
        self.used[node] += seconds
        return self.free[node]

    def send(self, now, client):
        partition = self.random.randrange(self.partitions)
        owner = self.owner(partition)
        entry = self.clients[client]
        if entry == owner:
            done = self.work(now, owner, self.times["request"])
            self.at(done, self.arrive, client, partition, now)
        else:
            passed = self.work(now, entry, self.times["forward"] / 2)
            self.at(passed, self.serve, client, partition, owner, now)

    def serve(self, now, client, partition, owner, since):
        done = self.work(now, owner, self.times["request"] + self.times["forward"] / 2)
        self.at(done, self.arrive, client, partition, since)

    def arrive(self, now, client, partition, since):
        self.waiting[partition].append((client, since))
        if not self.appending[partition]:
            self.append(now, partition)

    def append(self, now, partition):
        group, self.waiting[partition] = self.waiting[partition], []
        self.appending[partition] = True
        self.appends += 1
        home = partition % self.databases
        core = min(range(len(self.database_free[home])), key=self.database_free[home].__getitem__)
        seconds = self.draw(self.times["append"])
        start = max(now, self.database_free[home][core])
        self.database_free[home][core] = start + seconds
        self.database_used[home] += seconds
        self.at(start + seconds + self.draw(self.times["disk"]), self.appended, partition, group)

    def appended(self, now, partition, group):
        self.appending[partition] = False
        for client, since in group:
            self.answered += 1
            self.latency += now - since
            self.send(now, client)
        if self.waiting[partition]:
            self.append(now, partition)

    def run(self, requests):
        """Plays until so many were answered, after a tenth to warm up; what was seen since."""
        for client in range(len(self.clients)):
            self.send(self.random.random() * 1e-3, client)
        now = 0.0
        start = None
        while self.answered < requests:
            now, _, what, arguments = heapq.heappop(self.events)
            what(now, *arguments)
            if start is None and self.answered >= requests // 10:
                start = now
                self.first, self.latency, self.appends = self.answered, 0.0, 0
                self.used = [0.0] * self.nodes
                self.database_used = [0.0] * self.databases
        span = now - start
        count = self.answered - self.first
        cores = len(self.database_free[0])
        return {"requests_per_second": count / span,
                "latency_ms": 1000 * self.latency / count,
                "busiest_node": max(self.used) / span,
                "mean_node": sum(self.used) / span / self.nodes,
                "database": max(self.database_used) / span / cores,
                "group": count / max(1, self.appends)}


def service_times(rows, disk_us):
    """Seconds, of the measurement at a low rate."""
    one = rows[0]
    largest = rows[-1]
    append = one["postgres_us_per_request"] - 1e6 * one["idle_postgres_cores"] * one["wall_seconds"] / one["requests"]
    return {"request": 1e-6 * one["busy_node_us_per_request"],
            "forward": 1e-6 * max(0.0, largest["forwarding_us"]),
            "append": 1e-6 * append,
            "disk": 1e-6 * disk_us,
            "idle": one["idle_nodes_cores"],
            "idle_node": max(0.0, (largest["idle_nodes_cores"] - one["idle_nodes_cores"]) /
                             max(1, largest["nodes"] - one["nodes"]))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("low", type=pathlib.Path)
    parser.add_argument("throttled", type=pathlib.Path)
    parser.add_argument("--partitions", type=int, default=16, help="of what was measured")
    parser.add_argument("--connections", type=int, default=16, help="for each node")
    parser.add_argument("--disk-us", type=float, default=300, help="of a commit, and to the database and back")
    parser.add_argument("--node-cores", type=float, default=2, help="of larger clusters")
    parser.add_argument("--database-cores", type=int, default=16, help="of each database of larger clusters")
    parser.add_argument("--requests", type=int, default=40_000)
    args = parser.parse_args()
    times = service_times(json.loads(args.low.read_text())["rows"], args.disk_us)
    print("service times, µs: " + ", ".join(f"{name} {1e6 * times[name]:.0f}" for name in
                                            ("request", "forward", "append", "disk")))
    print(f"idle: {1000 * times['idle']:.1f} thousandths of a core in all, "
          f"{1000 * times['idle_node']:.1f} more for each further node\n")
    measured = json.loads(args.throttled.read_text())["rows"]
    print("| nodes | measured, requests a second | model | model / measured |\n|---|---|---|---|")
    for row in measured:
        nodes = row["nodes"]
        idle = (times["idle"] + (nodes - 1) * times["idle_node"]) / nodes
        model = Model(times, nodes, args.partitions, args.connections, row["share"] - idle, 2, 1, 1)
        seen = model.run(args.requests)
        print(f"| {nodes} | {row['requests_per_second']:.0f} | {seen['requests_per_second']:.0f} | "
              f"{seen['requests_per_second'] / row['requests_per_second']:.2f} |")
    print(f"\nNodes of {args.node_cores:g} cores, databases of {args.database_cores} cores, {LARGEST} partitions:\n")
    print("| nodes | databases | requests a second | of linear | a request, ms | busiest node | database | "
          "requests an append |\n|---|---|---|---|---|---|---|---|")
    one = None
    for nodes, databases in ((1, 1), (16, 1), (64, 1), (64, 4), (256, 4), (256, 16), (1024, 16)):
        idle = times["idle"] * LARGEST / args.partitions / nodes
        model = Model(times, nodes, LARGEST, 64, args.node_cores - idle, args.database_cores, databases, 1)
        seen = model.run(max(args.requests, 64 * nodes * 6))
        one = one or seen["requests_per_second"]
        print(f"| {nodes} | {databases} | {seen['requests_per_second']:.0f} | "
              f"{seen['requests_per_second'] / nodes / one:.2f} | {seen['latency_ms']:.2f} | "
              f"{seen['busiest_node']:.2f} | {seen['database']:.2f} | {seen['group']:.1f} |")


if __name__ == "__main__":
    main()
