#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "codband/base/bytes.h"

namespace codband {

// The noise model by which models are told apart. Rewards that have been nothing but 0 and 1 so
// far, or hardly anything else, are clicks, that is Bernoulli: the expected reward is then the
// chance of a 1, and an unlikely click is as surprising as its chance says, where a Gaussian would
// call it impossible. All other rewards are Gaussian.
class RewardNoise {
 public:
  bool clicks() const { return clicks_; }

  // A reward of one of `users`, of whom `of_user` rewards count as neither 0 nor 1. Returns whether
  // this one does, too.
  bool Watch(double r, std::uint64_t of_user = 0, std::uint64_t users = 0) {
    const bool other = r != 0 && r != 1 && MayTell(of_user, users);
    ones_ += r == 1 ? 1 : 0;
    others_ += other ? 1 : 0;
    Judge();
    return other;
  }
  // Rewards that are no longer there.
  void Forget(std::uint64_t others) {
    others_ -= std::min(others, others_);
    Judge();
  }
  // How many rewards were 1, and neither 0 nor 1: here, and in other partitions (shared_pool.h),
  // which is not saved here.
  struct Counts {
    std::uint64_t ones = 0;
    std::uint64_t others = 0;
  };
  Counts own() const { return {ones_, others_}; }
  void SetOwn(const Counts& counts) {
    ones_ = counts.ones;
    others_ = counts.others;
    Judge();
  }
  const Counts& elsewhere() const { return elsewhere_; }
  void SetElsewhere(const Counts& counts) {
    elsewhere_ = counts;
    Judge();
  }

  // Every reward counts, so that a single one ends it: outliers=kept.
  void BeStrict() { strict_ = true; }

  // ln p(r) where r is expected to be `mean`, with that variance (noise included). `offset` was
  // taken from both: a click is still a click.
  double LogDensity(double r, double mean, double variance, double offset = 0) const {
    if (clicks_) {
      // Clamped: a linear prediction can leave [0, 1].
      const double chance = std::clamp(mean + offset, kLeastChance, 1 - kLeastChance);
      return std::log(r + offset > 0.5 ? chance : 1 - chance);
    }
    const double residual = r - mean;
    return -0.5 * (residual * residual / variance + std::log(2 * std::numbers::pi * variance));
  }

  // The exponent of a tempered Gaussian likelihood of clicks, where a click has this chance on
  // average. A rare one is far more surprising to a Gaussian with the variance of clicks,
  // (1 - p)² / 2p(1 - p) nats, than its chance says, -ln p: users would be told apart by luck. The
  // exponent makes it as surprising as its chance says, and never more.
  static double TrustInGaussian(double chance) {
    const double p = std::clamp(chance, kRarest, 1 - kRarest);
    return std::min(1.0, -2 * p * std::log(p) / (1 - p));
  }

  // Older states store the verdict, not the counts.
  void SaveVerdict(ByteWriter& out) const { out.U8(clicks_ ? 1 : 0); }
  void LoadVerdict(ByteReader& in) {
    clicks_ = in.U8("clicks") != 0;
    ones_ = 0;
    others_ = clicks_ ? 0 : kForGood;
  }
  void SaveCounts(ByteWriter& out) const {
    out.U64(ones_);
    out.U64(others_);
  }
  void LoadCounts(ByteReader& in) {
    ones_ = in.U64("rewards of 1");
    others_ = in.U64("rewards other than 0 and 1");
    Judge();
  }

 private:
  static constexpr double kLeastChance = 0.02;
  static constexpr double kRarest = 1e-3;
  static constexpr std::uint64_t kHardlyAny = 50;  // ones for each other reward
  static constexpr std::uint64_t kForGood = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kFewUsers = 10;  // of fewer everybody is a large part

  // No single user decides what the rewards of all are: of theirs no more count than of the others
  // together, and one.
  bool MayTell(std::uint64_t of_user, std::uint64_t users) const {
    return strict_ || users < kFewUsers || 2 * of_user <= others_ + elsewhere_.others;
  }

  void Judge() {
    const std::uint64_t others = others_ + elsewhere_.others;
    const std::uint64_t ones = ones_ + elsewhere_.ones;
    clicks_ = others == 0 || (!strict_ && others <= ones / kHardlyAny);
  }

  bool clicks_ = true;
  bool strict_ = false;
  std::uint64_t ones_ = 0;
  std::uint64_t others_ = 0;
  Counts elsewhere_;
};

}  // namespace codband
