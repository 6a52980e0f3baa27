"""What a step costs from Python and in C++, in the same run on the same visits.

PYTHONPATH=build/dev/python python3 python/bench/overhead.py [--turns N] [policy ...]

Recorded visits are played in C++ (bench/native_steps of the same build) and in Python in turn, each in a
process of its own: one by one, and in batches (choosing for many visits, then learning them). Making and
reading the visits is not timed; medians of several turns. Both sides gain the same rewards, which is checked.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import codband

USERS, VISITS, ARMS, DIM = 500, 10_000, 10, 25
BATCHES = (50, 500)
NATIVE = os.path.join(os.path.dirname(codband.__file__), "..", "..", "bench", "native_steps")


def write_visits(file):
    rng = np.random.default_rng(1)
    arms = rng.normal(size=(VISITS, ARMS, DIM))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    means = arms @ (rng.normal(size=DIM) / 5)
    for part in (arms, means + 0.1 * rng.normal(size=means.shape)):
        part.tofile(file)
    file.flush()


def read_visits(file):
    values = np.fromfile(file)
    arms = VISITS * ARMS * DIM
    return values[:arms].reshape(VISITS, ARMS, DIM), values[arms:].reshape(VISITS, ARMS)


def played(command):
    """Microseconds for a step and the sum of the rewards, as the command prints them."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return tuple(map(float, printed.split()))


def native(spec, file, size):
    return played([NATIVE, spec, file, *map(str, (USERS, VISITS, ARMS, DIM, size))])


def play(spec, file, size):
    """What --play does."""
    visits = read_visits(file)
    print(*(one_by_one(spec, *visits) if size == 1 else in_batches(spec, size, *visits)))


def one_by_one(spec, arms, rewards):
    policy = codband.Policy(spec, dim=DIM)
    visits = [(i % USERS, offer, values) for i, (offer, values) in enumerate(zip(arms, rewards.tolist()))]
    total = 0.0
    start = time.process_time()
    for user, offer, values in visits:
        decision = policy.choose(user, offer)
        reward = values[decision.arm]
        policy.learn(decision, reward)
        total += reward
    return 1e6 * (time.process_time() - start) / VISITS, total


def in_batches(spec, size, arms, rewards):
    policy = codband.Policy(spec, dim=DIM)
    users = np.arange(VISITS) % USERS
    row = np.arange(size)
    gains = []
    start = time.process_time()
    for first in range(0, VISITS, size):
        visits = slice(first, first + size)
        batch = policy.choose_batch(users[visits], arms[visits])
        gains.append(rewards[visits][row, batch.arm])
        policy.learn_batch(batch, gains[-1])
    return 1e6 * (time.process_time() - start) / VISITS, float(np.sum(gains))


def measure(spec, file, turns):
    """Medians in C++ and Python: one by one, then for each size of batches."""
    sizes = (1, *BATCHES)
    times = {(size, side): [] for size in sizes for side in ("C++", "Python")}
    for _ in range(turns):
        for size in sizes:
            fast, expected = native(spec, file, size)
            ours, reward = played([sys.executable, __file__, "--play", spec, file, str(size)])
            assert abs(reward - expected) < 1e-6 * max(1, abs(expected)), (spec, size, reward, expected)
            times[size, "C++"].append(fast)
            times[size, "Python"].append(ours)
    return {key: statistics.median(values) for key, values in times.items()}


def main():
    if sys.argv[1:2] == ["--play"]:
        play(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    turns, specs = 9, sys.argv[1:]
    if specs[:1] == ["--turns"]:
        turns, specs = int(specs[1]), specs[2:]
    print("microseconds of processor time per step")
    print("policy     " + "   one by one: C++, Python, more".ljust(34) +
          "".join(f"   batches of {size}: C++, Python, times".ljust(42) for size in BATCHES))
    with tempfile.NamedTemporaryFile() as file:
        write_visits(file)
        for spec in specs or ["random", "linucb", "codband"]:
            took = measure(spec, file.name, turns)
            one, python = took[1, "C++"], took[1, "Python"]
            line = f"{spec:10} {one:9.2f} {python:9.2f} {python - one:9.2f}     "
            for size in BATCHES:
                one, python = took[size, "C++"], took[size, "Python"]
                line += f" {one:11.2f} {python:11.2f} {python / one:11.2f}      "
            print(line.rstrip(), flush=True)


if __name__ == "__main__":
    main()
