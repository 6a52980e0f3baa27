#!/usr/bin/env python3
"""How long nobody answers after kill -9 of the node that serves, by how much it has learned.

Two nodes, one partition. Clients fill it; then the owner is killed, and requests go to the other node
until it answers. With a standby, and without one and without a local copy (--no-standby), where the
other node begins with the checkpoint and the log.

  bench/takeover.py                  both, once each, with 2,000 users and 40,000 rewards

It starts PostgreSQL and the nodes itself, as bench/scaling.py does, which has the classes, and needs
the same programs and rights.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import scaling  # noqa: E402


def ask(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body,
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read().decode()


def first_answer(port):
    """Seconds until a ranking is answered."""
    body = json.dumps({"userId": "someone"}).encode()
    start = time.monotonic()
    while True:
        try:
            ask(port, "/v1/rank", body)
            return time.monotonic() - start
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)


def fill(cluster, args):
    cluster.put_items()
    per_user = max(1, args.rewards // args.users)
    cluster.load("--warm", str(per_user), "--seconds", "0.1")


def kill_owner(cluster, standby):
    here = [node.metrics().get("codband_cluster_partitions_here", 0) for node in cluster.nodes]
    owner = cluster.nodes[here.index(1)]
    other = cluster.nodes[here.index(0)]
    while standby and (other.metrics().get("codband_cluster_partitions_followed") != 1 or
                       other.metrics().get("codband_cluster_standby_lag_frames") != 0):
        time.sleep(0.2)
    owner.process.kill()
    gap = first_answer(other.port)
    owner.process.wait()
    return gap


def run(args, standby):
    args.flags = [] if standby else ["--no-standby"]
    cluster = scaling.Cluster(2, args)
    try:
        fill(cluster, args)
        learned = sum(node.metrics().get("codband_learned_total", 0) for node in cluster.nodes)
        return kill_owner(cluster, standby), learned
    finally:
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--rewards", type=int, default=40_000)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--dim", type=int, default=25)
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--program", default=scaling.ROOT / "build/release/codband/codband")
    parser.add_argument("--load", default=scaling.ROOT / "build/dev/bench/serve_load")
    args = parser.parse_args()
    args.partitions = 1
    args.weight = 1
    print("| | no answer for, s: median | at most | rewards learned |\n|---|---|---|---|")
    for name, standby in (("with a standby", True), ("without, and without a copy", False)):
        gaps = [run(args, standby) for _ in range(args.times)]
        seconds = [gap for gap, _ in gaps]
        print(f"| {name} | {statistics.median(seconds):.1f} | {max(seconds):.1f} | {gaps[-1][1]:.0f} |",
              flush=True)


if __name__ == "__main__":
    main()
