"""Regret curves of the paper's three settings, from Python: python3 figures.py [OUT-DIRECTORY] [ROUNDS]

Writes setting-1.csv … and, with matplotlib, setting-1.png …; 3000 rounds as in the paper take minutes.
"""

import csv
import pathlib
import sys

import codband

POLICIES = ["codband", "codband:paper", "linucb", "adts", "dlinucb", "club", "sclub"]
out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
for setting in (1, 2, 3):
    period = None if setting == 3 else (rounds // 6, rounds)
    result = codband.simulate(POLICIES, setting=setting, rounds=rounds, period=period, seeds=1 if rounds < 3000 else 5)
    with open(out / f"setting-{setting}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["policy", "seed", "round", "regret"])
        writer.writeheader()
        writer.writerows(result.records())
    best = min(result.policies, key=lambda policy: policy.mean_regret)
    print(f"setting {setting}: least regret {best.mean_regret:.0f} by {best.name}")
    try:
        result.plot().figure.savefig(out / f"setting-{setting}.png")
    except ImportError:
        pass
