#!/usr/bin/env bash
# Ablation of the default policy's parts, and its sensitivity to the starting values:
#   scripts/ablation.sh [SEEDS]     tables of regret, five seeds by default; some minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-5}
parts=codband,codband:detector=window,codband:detector=none,codband:hyper=fixed
parts+=,codband:explore=thompson,codband:intercept=no,codband:resample=0,codband:resample=8
parts+=,codband:departure=none,codband:outliers=kept,codband:prior=hawkes,codband:history=0,codband:window=16
starts=codband,codband:sigma0=0.001,codband:sigma0=1,codband:sigma0=10,codband:lambda0=0.01
starts+=,codband:lambda0=10000,codband:hazard=0.00001,codband:hazard=0.05
population=(--users 50 --rounds 1500 --period 300:1000)

show() {
  echo
  echo "$1"
  shift
  ./run simulate "$@" --seeds "$seeds"
}
show "Parts, ten tastes" "${population[@]}" --policies "$parts"
show "Parts, fast changes" --users 50 --rounds 1500 --period 60:150 --policies "$parts"
show "Parts, the same ten arms at every visit" "${population[@]}" --pool 10 --policies "$parts"
show "Parts, ratings around 3" "${population[@]}" --rewards ratings --policies "$parts"
show "Parts, nobody changes" --setting 3 --rounds 100 --policies "$parts"
show "Starting values, ten tastes" "${population[@]}" --policies "$starts"
