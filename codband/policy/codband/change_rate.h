#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "codband/base/bytes.h"
#include "codband/policy/codband/fashion.h"
#include "codband/policy/policy.h"

namespace codband {

// How the trials of a user's changes ended.
struct Verdicts {
  std::uint8_t confirmed = 0;
  std::uint8_t refuted = 0;  // as far as they counted, see ChangeRate
};

// The trial of a change that was found: over the next observations the new model must predict
// better than the old one would have. These observations did not help to find the change, so the
// verdict is unbiased.
struct Trial {
  static constexpr std::uint8_t kLength = 20;

  ModelId old_model = kNoModel;
  double evidence = 0;      // Σ ln p(r | new) - ln p(r | old)
  std::uint8_t left = 0;    // observations until the verdict; 0: no trial
  Verdicts verdicts = {};   // on all changes of the user
  bool in_fashion = false;  // whether it was found because many users seemed to change at once
  // Stored here to save space (bayes_detector.h): observations until another outlier may be left
  // out, and whether the place of the user's period in the pool is known.
  std::uint8_t outlier_pause = 0;
  bool placed = false;

  void Start(ModelId from, bool fashion) {
    in_fashion = fashion;
    old_model = from;
    evidence = 0;
    left = kLength;
  }

  void Save(ByteWriter& out) const {
    out.U64(old_model);
    out.Double(evidence);
    out.U8(left);
    out.U8(verdicts.confirmed);
    out.U8(verdicts.refuted);
    out.U8(static_cast<std::uint8_t>(outlier_pause | (placed ? kPlaced : 0) |
                                     (in_fashion ? kInFashion : 0)));
  }
  void Load(ByteReader& in) {
    old_model = in.U64("old model of a change");
    evidence = in.Double("evidence for a change");
    left = in.U8("rest of a trial");
    if (left > kLength) in.Fail("rest of a trial", "is too long");
    verdicts = {.confirmed = in.U8("confirmed changes"), .refuted = in.U8("refuted changes")};
    const std::uint8_t pause = in.U8("pause after an outlier");
    outlier_pause = pause & static_cast<std::uint8_t>(~(kPlaced | kInFashion));
    placed = (pause & kPlaced) != 0;
    in_fashion = (pause & kInFashion) != 0;
  }

 private:
  static constexpr std::uint8_t kPlaced = 0x80;
  static constexpr std::uint8_t kInFashion = 0x40;
};

// The hazard rate of changes, learned: the share of observations at which a change was found and
// confirmed. Where changes are refuted again and again, the model is misspecified (autocorrelated
// noise, drifting parameters), and evidence for a change is worth less than it seems: every refuted
// change divides the hazard by e, every confirmed one undoes a tenth of that. In equilibrium at
// most one change in eleven is refuted. If only one user's changes keep being refuted, at most 1 +
// (their confirmed changes) of them count. Those that were found because of a fashion (fashion.h)
// do not: they say nothing of how much evidence for a change is worth in calm times, and a pool
// that forms looks like a fashion for a while. Charged for it, calm times would never see a change
// again, and what is never found is never confirmed.
class ChangeRate {
 public:
  // `start` is the initial hazard, with the weight of one change.
  ChangeRate(double start, bool learned) : start_(start), learned_(learned) {}

  // The chance that a user changes between two observations.
  double hazard() const { return fashion_.Hazard(calm()); }

  // An observation of one of `users`, whose reward is `ratio` times as likely if they changed just
  // before it as if they did not.
  void Weigh(double ratio, std::uint64_t users) {
    if (learned_) fashion_.Weigh(calm(), ratio, users);
  }
  void EndFashion() { fashion_ = {}; }
  // Whether a change is found now because of a fashion: most of the hazard is its.
  bool in_fashion() const { return hazard() > 2 * calm(); }

  // What is known of it, and what other partitions know (shared_pool.h), which is not saved here. A
  // partition whose changes are confirmed takes away from the caution of others too: its own may be
  // negative then.
  struct Evidence {
    std::uint64_t observations = 0;
    std::uint64_t confirmed = 0;
    double caution = 0;

    void Add(const Evidence& other) {
      observations += other.observations;
      confirmed += other.confirmed;
      caution += other.caution;
    }
    void Save(ByteWriter& out) const {
      out.U64(observations);
      out.U64(confirmed);
      out.Double(caution);
    }
    void Load(ByteReader& in) {
      observations = in.U64("observations");
      confirmed = in.U64("confirmed changes");
      caution = in.Double("caution");
    }
  };
  Evidence own() const { return {own_.observations, own_.confirmed, own_.caution - relief_}; }
  void SetOwn(const Evidence& own) {
    own_ = own;
    own_.caution = std::max(0.0, own.caution);
    relief_ = 0;
  }
  double relief() const { return relief_; }  // of others
  const Evidence& others() const { return others_; }
  void SetOthers(const Evidence& others) { others_ = others; }
  void SetOthers(const Evidence& others, double relief) {
    others_ = others;
    relief_ = relief;
  }

  void Observe() { ++own_.observations; }
  // `user`: the verdicts on their changes.
  void Confirm(Verdicts& user) {
    if (user.confirmed < kMostCounted) ++user.confirmed;
    ++own_.confirmed;
    Relax(kRelief);
  }
  void Refute(Verdicts& user) {
    if (user.refuted >= kMostCounted || user.refuted >= kMostRefuted + user.confirmed) return;
    ++user.refuted;
    own_.caution += 1;
  }
  // A user with so many observations, and with these verdicts, has left.
  void Forget(std::uint64_t observations, const Verdicts& user) {
    own_.observations -= std::min(own_.observations, observations);
    own_.confirmed -= std::min<std::uint64_t>(own_.confirmed, user.confirmed);
    Relax(user.refuted - kRelief * user.confirmed);
  }

  void Save(ByteWriter& out) const { own_.Save(out); }
  void Load(ByteReader& in) {
    own_.Load(in);
    if (!(own_.caution >= 0)) in.Fail("caution", "is negative");
  }

  // What older states lack.
  void SaveFashion(ByteWriter& out) const { fashion_.Save(out); }
  void LoadFashion(ByteReader& in) { fashion_.Load(in); }

 private:
  // Where no more change than usual.
  double calm() const {
    if (!learned_) return start_;
    const double rate =
        (1 + static_cast<double>(own_.confirmed + others_.confirmed)) /
        (1 / start_ + static_cast<double>(own_.observations + others_.observations));
    return rate * std::exp(-std::max(0.0, own_.caution - relief_ + others_.caution));
  }

  static constexpr std::uint8_t kMostCounted = 255;
  static constexpr int kMostRefuted = 1;
  static constexpr double kRelief = 0.1;

  void Relax(double by) {
    const double rest = by - own_.caution;
    own_.caution = std::max(0.0, own_.caution - by);
    if (rest > 0) relief_ = std::max(relief_, std::min(relief_ + rest, others_.caution));
  }

  double start_;
  bool learned_;
  Evidence own_;
  Evidence others_;
  double relief_ = 0;
  Fashion fashion_;
};

}  // namespace codband
