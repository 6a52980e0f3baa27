"""Decision logs of Vowpal Wabbit's services (DSJSON) in, a comparison of policies out.

python3 compare.py LOG...
"""

import sys

import codband


def main():
    log = codband.read_log(sys.argv[1:])
    print(f"{len(log)} decisions with {log.dim} features, {log.skipped} lines left out")
    result = codband.evaluate(log, "logged,first,uniform,linucb,codband", resamples=200)
    for policy in result["policies"]:
        for estimate in policy["estimates"]:
            if estimate["estimator"] in ("mean", "snips") and estimate["value"] is not None:
                print(f"{policy['name']:10} {estimate['estimator']:6} {estimate['value']:.3f}")
        for warning in policy.get("warnings", []):
            print(f"{policy['name']:10} {warning}")


if __name__ == "__main__":
    main()
