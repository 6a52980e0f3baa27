"""What a step costs from Python and in C++, in the same run on the same visits.

PYTHONPATH=build/dev/python python3 python/bench/overhead.py [policy ...]

The runner plays a recorded population in C++ and times the policy alone; then Python plays the same
visits, one by one and in batches. Decisions are the same, which is checked.
"""

import sys
import time

import numpy as np

import codband

USERS, ROUNDS, ARMS, DIM = 50, 200, 10, 25


class Recorded(codband.Environment):
    """The same visits for everybody."""

    users, rounds, dim = USERS, ROUNDS, DIM

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.arms = rng.normal(size=(ROUNDS, USERS, ARMS, DIM))
        self.arms /= np.linalg.norm(self.arms, axis=-1, keepdims=True)
        theta = rng.normal(size=DIM) / 5
        self.means = self.arms @ theta
        self.rewards = self.means + 0.1 * rng.normal(size=self.means.shape)

    def start_round(self, round):
        self.round = round

    def visit(self, slot):
        return slot, self.arms[self.round, slot], self.means[self.round, slot], self.rewards[self.round, slot]


def one_by_one(spec, world):
    policy = codband.Policy(spec, dim=DIM)
    visits = [(user, arms, rewards) for round_arms, round_rewards in zip(world.arms, world.rewards)
              for user, (arms, rewards) in enumerate(zip(round_arms, round_rewards.tolist()))]
    regret, chosen = 0.0, []
    start = time.process_time()
    for user, arms, rewards in visits:
        decision = policy.choose(user, arms)
        policy.learn(decision, rewards[decision.arm])
        chosen.append(decision.arm)
    seconds = time.process_time() - start
    means = world.means.reshape(-1, ARMS)
    regret = float((means.max(axis=1) - means[np.arange(len(chosen)), chosen]).sum())
    return 1e6 * seconds / len(visits), regret


def in_batches(spec, world):
    """Choosing for a whole round, then learning it: another order, so another C++ time."""
    policy = codband.Policy(spec, dim=DIM)
    users = np.arange(USERS)
    start = time.process_time()
    for arms, rewards in zip(world.arms, world.rewards):
        batch = policy.choose_batch(users, arms)
        policy.learn_batch(batch, rewards[users, batch.arm])
    return 1e6 * (time.process_time() - start) / (USERS * ROUNDS)


def main():
    world = Recorded(1)
    print("policy      C++   Python  overhead  batches   (microseconds of processor time per step)")
    for spec in sys.argv[1:] or ["random", "linucb", "codband"]:
        played = codband.simulate([spec], Recorded, threads=1)[spec]
        native = played.runs[0]["us_per_step"]
        python, regret = one_by_one(spec, world)
        assert abs(regret - played.mean_regret) < 1e-6 * max(1, regret), (regret, played.mean_regret)
        batches = in_batches(spec, world)
        print(f"{spec:10} {native:6.2f} {python:7.2f} {python - native:8.2f} {batches:9.2f}")


if __name__ == "__main__":
    main()
