#!/usr/bin/env python3
"""What more nodes give, measured on one machine.

Two cores cannot show the throughput of eight nodes. So each node gets a small, fixed share of a core
(a cgroup's quota), and what is shown is whether N of them do N times as much; and the processor time
that a request takes, the messages and the bytes, which do not depend on how many cores there are.

  bench/scaling.py throttled          rank and reward, N nodes of 10% of a core each
  bench/scaling.py low                at a fixed low rate, nodes not throttled: processor time
  bench/scaling.py idle               processor time while nobody asks, ten seconds after the last request
  bench/scaling.py pool               bytes of pool exchange for each learned reward, as they fall
                                      with what was learned

It starts PostgreSQL and the nodes itself, below a temporary directory in memory, on sockets and
loopback ports; build/release/codband/codband and build/dev/bench/serve_load must be there
(scripts/build.sh release codband && scripts/build.sh dev serve_load). It needs root, for the cpu
controller of cgroups (version 1 or 2). On a machine that others use --weight gives all of it the
processor time that so many busy threads would get. Prints a table, and with --json FILE writes the numbers that
bench/scaling_model.py reads.
"""
import argparse
import contextlib
import glob
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")


class Group:
    """A cgroup: of everything that this program starts, with a weight against all else on the
    machine; or of one node, with a share of a core."""

    def __init__(self, name, parent=None):
        root = pathlib.Path("/sys/fs/cgroup/cpu")
        self.v1 = root.exists()
        self.path = (parent.path if parent else root if self.v1 else root.parent) / f"codband-{os.getpid()}-{name}"
        self.path.mkdir()
        if parent is None and not self.v1:
            (self.path / "cgroup.subtree_control").write_text("+cpu")

    def weigh(self, weight):
        """1: as much as one busy thread of the others."""
        if self.v1:
            (self.path / "cpu.shares").write_text(str(int(1024 * weight)))
        else:
            (self.path / "cpu.weight").write_text(str(min(10_000, int(100 * weight))))

    def limit(self, share):
        """None: no limit."""
        period = 20_000  # microseconds: short, so that nodes do not wait for each other for long
        if self.v1:
            (self.path / "cpu.cfs_quota_us").write_text("-1")
            (self.path / "cpu.cfs_period_us").write_text(str(period))
            if share:
                (self.path / "cpu.cfs_quota_us").write_text(str(int(share * period)))
        else:
            (self.path / "cpu.max").write_text(f"{int(share * period) if share else 'max'} {period}")

    def add(self, pid=0):
        """0: the process that calls it."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self):
        with contextlib.suppress(OSError):
            self.path.rmdir()


def cpu_seconds(pid):
    """User and system time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Postgres:
    def __init__(self, directory, group):
        self.directory = directory / "postgres"
        self.directory.mkdir()
        self.binaries = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]).parent
        self.user = {}
        if os.geteuid() == 0:
            postgres = pwd.getpwnam("postgres")
            os.chown(self.directory, postgres.pw_uid, postgres.pw_gid)
            self.user = {"user": postgres.pw_uid, "group": postgres.pw_gid, "extra_groups": []}
        self.run("initdb", "-D", f"{self.directory}/data", "-U", "codband", "-A", "trust", "-E", "UTF8",
                 "--locale=C")
        self.process = subprocess.Popen(
            [self.binaries / "postgres", "-D", f"{self.directory}/data", "-k", self.directory, "-c",
             "listen_addresses=", "-c", "max_connections=400", "-c", "log_min_messages=fatal"],
            cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.user)
        group.add(self.process.pid)
        while subprocess.run([self.binaries / "pg_isready", "-h", self.directory, "-q"], check=False).returncode:
            time.sleep(0.1)
        self.run("createdb", "-h", self.directory, "-U", "codband", "loop")
        self.dsn = f"host={self.directory} user=codband dbname=loop"

    def run(self, program, *arguments):
        subprocess.run([self.binaries / program, *arguments], check=True, cwd="/",
                       stdout=subprocess.DEVNULL, **self.user)

    def cpu(self):
        """Of all its processes that live: connections stay."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        total = cpu_seconds(self.process.pid)
        for pid in children.split():
            with contextlib.suppress(OSError):
                total += cpu_seconds(pid)
        return total

    def stop(self):
        self.process.send_signal(3)
        self.process.wait()


class Node:
    def __init__(self, directory, number, dsn, group, args):
        self.group = Group(number, group)
        command = [args.program, "serve", "--data", directory / f"n{number}", "--listen", "127.0.0.1:0",
                   "--cluster", dsn, "--name", f"n{number}", "--partitions", str(args.partitions),
                   "--set", f"features.dimension={args.dim}", "--set", "log.level=error", *args.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.group.add(self.process.pid)
        self.port = None
        for line in self.process.stdout:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        if self.port is None:
            sys.exit("a node did not start")

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as reply:
            text = reply.read().decode()
        values = {}
        for line in text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.group.remove()


class Cluster:
    def __init__(self, count, args):
        self.args = args
        self.nodes = []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="codband-scaling-", dir="/dev/shm"))
        self.directory.chmod(0o755)
        self.group = Group("all")
        self.group.weigh(args.weight)
        self.postgres = Postgres(self.directory, self.group)
        # The load and what is asked below run with the same weight.
        self.clients = Group("clients", self.group)
        for number in range(count):
            self.nodes.append(Node(self.directory, number, self.postgres.dsn, self.group, args))
        least = args.partitions // count
        while True:
            here = [node.metrics().get("codband_cluster_partitions_here", 0) for node in self.nodes]
            if sum(here) == args.partitions and min(here) >= least:
                break
            time.sleep(0.5)

    def put_items(self):
        """All partitions have the catalogue when it returns."""
        self.load("--warm", "0", "--rate", "1", "--seconds", "0.01", items=True)
        while any(node.metrics().get("codband_catalogue_lag_frames", 0) > 0 for node in self.nodes):
            time.sleep(0.2)
        time.sleep(2)

    def sums(self):
        total = {"nodes": sum(node.cpu() for node in self.nodes), "postgres": self.postgres.cpu()}
        for node in self.nodes:
            for name, value in node.metrics().items():
                total[name] = total.get(name, 0) + value
        return total

    def load(self, *flags, items=False):
        command = [self.args.load, *([] if items else ["--items-are-there"]), "--pairs", "--json", "--users", str(self.args.users), "--dim",
                   str(self.args.dim), "--candidates", str(self.args.candidates)]
        for node in self.nodes:
            command += ["--port", str(node.port)]
        out = subprocess.run([*command, *flags], check=True, stdout=subprocess.PIPE, text=True,
                             preexec_fn=self.clients.add).stdout
        return json.loads(out)

    def limit(self, share):
        for node in self.nodes:
            node.group.limit(share)

    def stop(self):
        self.limit(None)
        for node in self.nodes:
            node.stop()
        self.postgres.stop()
        self.clients.remove()
        self.group.remove()
        shutil.rmtree(self.directory, ignore_errors=True)


def measure(cluster, *flags):
    """A run, with what everybody used during it."""
    before = cluster.sums()
    start = time.monotonic()
    result = cluster.load("--warm", "0", *flags)
    wall = time.monotonic() - start
    after = cluster.sums()
    delta = {name: after[name] - before.get(name, 0) for name in after}
    requests = 2 * result["pairs"]
    learned = delta.get("codband_rewards_total{outcome=\"accepted\"}", result["pairs"])
    return {
        "nodes": len(cluster.nodes),
        "wall_seconds": wall,
        "requests": requests,
        "requests_per_second": 2 * result["per_second"],
        "p50_us": result["p50_us"],
        "p99_us": result["p99_us"],
        "node_us_per_request": 1e6 * delta["nodes"] / requests,
        "postgres_us_per_request": 1e6 * delta["postgres"] / requests,
        "messages_per_request": 2 * delta.get("codband_cluster_forwarded_total", 0) / requests,
        "pool_bytes_per_reward": delta.get("codband_pool_bytes_total", 0) / max(1, learned),
        "load_average": os.getloadavg()[0],
    }


def idle(cluster, seconds):
    """Processor time of nodes and database, in cores, while nobody asks anything."""
    before = cluster.sums()
    time.sleep(seconds)
    after = cluster.sums()
    return {name: (after[name] - before[name]) / seconds for name in ("nodes", "postgres")}


def show(rows, columns):
    print("| " + " | ".join(title for title, _, _ in columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(text.format(row[key]) for _, key, text in columns) + " |")


def throttled(args):
    rows = []
    for count in args.nodes:
        cluster = Cluster(count, args)
        try:
            cluster.put_items()
            cluster.load("--warm", str(args.warm), "--seconds", "0.1")
            cluster.limit(args.share)
            connections = ["--connections", str(args.connections * count)]
            cluster.load("--warm", "0", "--seconds", "2", *connections)
            rows.append(measure(cluster, "--seconds", str(args.seconds), *connections))
            rows[-1]["share"] = args.share
        finally:
            cluster.stop()
        rows[-1]["of_linear"] = (rows[-1]["requests_per_second"] / count /
                                 (rows[0]["requests_per_second"] / rows[0]["nodes"]))
    show(rows, [("nodes", "nodes", "{}"), ("requests a second", "requests_per_second", "{:.0f}"),
                ("of linear", "of_linear", "{:.2f}"), ("p50 µs", "p50_us", "{:.0f}"),
                ("node µs a request", "node_us_per_request", "{:.0f}"),
                ("PostgreSQL µs a request", "postgres_us_per_request", "{:.0f}"),
                ("messages a request", "messages_per_request", "{:.2f}"),
                ("load average", "load_average", "{:.1f}")])
    return rows


def low(args):
    rows = []
    for count in args.nodes:
        cluster = Cluster(count, args)
        try:
            cluster.put_items()
            cluster.load("--warm", str(args.warm), "--seconds", "0.1")
            rest = idle(cluster, 5)
            rows.append(measure(cluster, "--seconds", str(args.seconds), "--rate", str(args.rate),
                                "--connections", "16"))
        finally:
            cluster.stop()
        row = rows[-1]
        row["idle_nodes_cores"] = rest["nodes"]
        row["idle_postgres_cores"] = rest["postgres"]
        # Without what it costs to be there at all.
        row["busy_node_us_per_request"] = (row["node_us_per_request"] -
                                           1e6 * rest["nodes"] * row["wall_seconds"] / row["requests"])
        row["of_one"] = row["node_us_per_request"] / rows[0]["node_us_per_request"]
        forwards = row["messages_per_request"] / 2
        row["forwarding_us"] = ((row["busy_node_us_per_request"] - rows[0]["busy_node_us_per_request"]) /
                                forwards if forwards > 0 else 0)
    show(rows, [("nodes", "nodes", "{}"), ("node µs a request", "node_us_per_request", "{:.0f}"),
                ("of one node", "of_one", "{:.2f}"),
                ("without idling", "busy_node_us_per_request", "{:.0f}"),
                ("a forward more, µs", "forwarding_us", "{:.0f}"),
                ("PostgreSQL µs", "postgres_us_per_request", "{:.0f}"),
                ("idle: nodes, cores", "idle_nodes_cores", "{:.3f}"),
                ("idle: PostgreSQL, cores", "idle_postgres_cores", "{:.3f}"),
                ("messages a request", "messages_per_request", "{:.2f}"),
                ("load average", "load_average", "{:.1f}")])
    return rows


def at_rest(args):
    rows = []
    for count in args.nodes:
        cluster = Cluster(count, args)
        try:
            cluster.put_items()
            cluster.load("--warm", str(args.warm), "--seconds", "0.1")
            time.sleep(10)
            rows.append({"nodes": count} | {f"{name}_cores": cores
                                            for name, cores in idle(cluster, args.seconds).items()})
        finally:
            cluster.stop()
    show(rows, [("nodes", "nodes", "{}"), ("nodes, cores", "nodes_cores", "{:.4f}"),
                ("PostgreSQL, cores", "postgres_cores", "{:.4f}")])
    return rows


def pool(args):
    rows = []
    cluster = Cluster(args.nodes[0], args)
    try:
        cluster.put_items()
        learned = 0
        while learned < args.rewards:
            rows.append(measure(cluster, "--seconds", str(args.seconds), "--connections", "32"))
            learned += rows[-1]["requests"] // 2
            rows[-1]["learned"] = learned
    finally:
        cluster.stop()
    show(rows, [("learned", "learned", "{}"), ("pool bytes a reward", "pool_bytes_per_reward", "{:.0f}"),
                ("pairs' requests a second", "requests_per_second", "{:.0f}")])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("throttled", "low", "idle", "pool"))
    parser.add_argument("--nodes", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--share", type=float, default=0.1, help="of a core, for each node")
    parser.add_argument("--weight", type=float, default=1,
                        help="of everything that is started, in busy threads of others on this machine")
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=100, help="pairs a second, of low")
    parser.add_argument("--connections", type=int, default=16, help="for each node, of throttled")
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--warm", type=int, default=10, help="rewards of each user before")
    parser.add_argument("--rewards", type=int, default=150_000, help="of pool")
    parser.add_argument("--dim", type=int, default=25)
    parser.add_argument("--candidates", type=int, default=50)
    parser.add_argument("--program", default=ROOT / "build/release/codband/codband")
    parser.add_argument("--load", default=ROOT / "build/dev/bench/serve_load")
    parser.add_argument("--no-standby", dest="flags", action="store_const", const=["--no-standby"], default=[],
                        help="no node follows what others serve")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if args.nodes is None:
        args.nodes = [2] if args.what == "pool" else [1, 2, 4, 8]
    rows = {"throttled": throttled, "low": low, "idle": at_rest, "pool": pool}[args.what](args)
    if args.json:
        args.json.write_text(json.dumps({"what": args.what, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
