"""A policy of your own beside the registered ones.

python3 own_policy.py [OUT-DIRECTORY]

Prints the regret of each and writes regret.csv and, with matplotlib, regret.png.
"""

import csv
import pathlib
import sys

import numpy as np

import codband


class EpsilonGreedy(codband.CustomPolicy):
    """One ridge regression for each user; a tenth of the choices is random."""

    def __init__(self, dim, epsilon=0.1):
        self.dim, self.epsilon, self.users = dim, epsilon, {}

    def choose(self, user, arms, rng):
        if user not in self.users or rng.random() < self.epsilon:
            return rng.integers(len(arms))
        a, b = self.users[user]
        return int(np.argmax(arms @ np.linalg.solve(a, b)))

    def learn(self, user, features, reward):
        a, b = self.users.setdefault(user, (np.eye(self.dim), np.zeros(self.dim)))
        a += np.outer(features, features)
        b += reward * features


BASELINES = ["codband", "codband:paper", "linucb", "lints", "adts", "dlinucb", "club", "sclub", "uniform-linucb", "random"]


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    result = codband.simulate([EpsilonGreedy, *BASELINES], users=20, models=4, rounds=200, period=(60, 120), dim=10,
                              seeds=2)
    for row in result.summary():
        print(f"{row['policy']:14} regret {row['mean_regret']:8.1f} ± {row['sd_regret']:.1f}, "
              f"{row['detected']} of {row['true_changes']} changes detected")
    with open(out / "regret.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["policy", "seed", "round", "regret"])
        writer.writeheader()
        writer.writerows(result.records())
    try:
        result.plot().figure.savefig(out / "regret.png")
    except ImportError:
        print("no picture: matplotlib is not installed")


if __name__ == "__main__":
    main()
