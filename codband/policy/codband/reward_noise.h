#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>

#include "codband/base/bytes.h"

namespace codband {

// The noise model by which models are told apart. Rewards that have been nothing but 0 and 1 so
// far, or hardly anything else, are clicks, that is Bernoulli: the expected reward is then the
// chance of a 1, and an unlikely click is as surprising as its chance says, where a Gaussian would
// call it impossible. All other rewards are Gaussian, but for purchases: a quarter or more are 0
// and the rest positive, as the price if something was bought. Whether it was bought is a click;
// the price says what the item costs, and nothing of the user. The expected reward is then the
// chance of a click times what one is worth, for which Σr²/Σr stands: the mean price, each weighted
// by what it brings. Where prices differ it is rather too large: what is not bought then says
// rather too little.
class RewardNoise {
 public:
  // Clicks, or purchases.
  bool clicks() const { return clicks_ || purchases_; }
  // What a click is worth.
  double click() const { return clicks_ || !purchases_ ? 1 : sizes_.squares / sizes_.sum; }
  // With more than this chance that a user has changed it is told. Clicks come to that slowly: half
  // of those found by 0.5 would be none. Of purchases chances are less well known.
  double sure_of_change() const { return !clicks() ? 0 : clicks_ ? 0.65 : 0.9; }
  // How often there is one, where rewards are purchases.
  std::optional<double> PurchaseChance() const {
    if (clicks_ || !purchases_) return std::nullopt;
    return sizes_.positives / (sizes_.positives + sizes_.zeros);
  }

  // A reward of one of `users`, of whom `of_user` rewards count as neither 0 nor 1. Returns whether
  // this one does, too.
  bool Watch(double r, std::uint64_t of_user = 0, std::uint64_t users = 0) {
    const bool other = r != 0 && r != 1 && MayTell(of_user, users);
    ones_ += r == 1 ? 1 : 0;
    others_ += other ? 1 : 0;
    Judge();
    return other;
  }
  // The same reward, once it is within limits: of a user who sends many few come here.
  void WatchSize(double r) {
    if (r > 0) {
      ++sizes_.positives;
      sizes_.sum += r;
      sizes_.squares += r * r;
    } else {
      ++(r < 0 ? sizes_.negatives : sizes_.zeros);
    }
    JudgeSizes();
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
    if (clicks()) {
      const double worth = click();
      // Clamped: a linear prediction can leave [0, 1].
      const double chance = std::clamp((mean + offset) / worth, kLeastChance, 1 - kLeastChance);
      return std::log(r + offset > (clicks_ ? 0.5 : kLeastPrice * worth) ? chance : 1 - chance);
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
  // What older states lack.
  void SaveSizes(ByteWriter& out) const {
    for (const double value :
         {sizes_.zeros, sizes_.negatives, sizes_.positives, sizes_.sum, sizes_.squares}) {
      out.Double(value);
    }
  }
  void LoadSizes(ByteReader& in) {
    for (double* const value :
         {&sizes_.zeros, &sizes_.negatives, &sizes_.positives, &sizes_.sum, &sizes_.squares}) {
      *value = in.Double("sizes of rewards");
      if (!(*value >= 0)) in.Fail("sizes of rewards", "are negative");
    }
    JudgeSizes();
  }
  // Those of a state that does not tell them: rewards other than clicks stay Gaussian.
  void ForgetSizes() {
    sizes_ = {.negatives = others_ > 0 ? static_cast<double>(kForGood) : 0};
    JudgeSizes();
  }

 private:
  static constexpr double kLeastChance = 0.02;
  static constexpr double kRarest = 1e-3;
  static constexpr std::uint64_t kHardlyAny = 50;  // ones for each other reward
  static constexpr std::uint64_t kForGood = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kFewUsers = 10;  // of fewer everybody is a large part
  static constexpr double kManyZeros = 0.25;      // of the rewards where things are bought
  static constexpr double kLeastPrice = 1e-3;     // of the usual one

  // No single user decides what the rewards of all are: of theirs no more count than of the others
  // together, and one.
  bool MayTell(std::uint64_t of_user, std::uint64_t users) const {
    return strict_ || users < kFewUsers || 2 * of_user <= others_ + elsewhere_.others;
  }

  // Of all users' rewards that are within limits.
  struct Sizes {
    double zeros = 0;
    double negatives = 0;
    double positives = 0;
    double sum = 0;
    double squares = 0;
  };

  void JudgeSizes() {
    const double all = sizes_.zeros + sizes_.negatives + sizes_.positives;
    purchases_ = !strict_ && sizes_.squares > 0 && sizes_.zeros >= kManyZeros * all &&
                 kHardlyAny * sizes_.negatives <= sizes_.positives;
  }

  void Judge() {
    const std::uint64_t others = others_ + elsewhere_.others;
    const std::uint64_t ones = ones_ + elsewhere_.ones;
    clicks_ = others == 0 || (!strict_ && others <= ones / kHardlyAny);
  }

  bool clicks_ = true;
  bool purchases_ = false;
  bool strict_ = false;
  std::uint64_t ones_ = 0;
  std::uint64_t others_ = 0;
  Counts elsewhere_;
  Sizes sizes_;
};

}  // namespace codband
