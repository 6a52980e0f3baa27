#pragma once

#include "codband/base/bytes.h"
#include "codband/policy/codband/change_rate.h"
#include "codband/policy/codband/departure.h"
#include "codband/policy/codband/model_prior.h"
#include "codband/policy/codband/reward_noise.h"

namespace codband {

// What hyper-parameters are learned from beside the models: sums, which add up over partitions
// (shared_pool.h).
struct HyperEvidence {
  RewardNoise::Counts rewards = {};
  ChangeRate::Evidence changes = {};
  DepartureEvidence departures = {};
  ModelPrior::Credits credits = {};

  void Add(const HyperEvidence& other) {
    rewards.ones += other.rewards.ones;
    rewards.others += other.rewards.others;
    changes.Add(other.changes);
    departures.Add(other.departures);
    for (std::size_t i = 0; i < credits.size(); ++i) credits[i] += other.credits[i];
  }
  void Save(ByteWriter& out) const {
    out.U64(rewards.ones);
    out.U64(rewards.others);
    changes.Save(out);
    departures.Save(out);
    out.Doubles(credits);
  }
  void Load(ByteReader& in) {
    rewards.ones = in.U64("rewards of 1");
    rewards.others = in.U64("rewards other than 0 and 1");
    changes.Load(in);
    departures.Load(in);
    in.Doubles("credits of the model prior", credits);
  }
};

}  // namespace codband
