#pragma once

#include <memory>
#include <string>

#include "codband/policy/codband/belief.h"
#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/change_rate.h"
#include "codband/policy/codband/change_window.h"

namespace codband {

// What the Bayesian filter keeps of a user.
struct FilterState final : DetectorState {
  FilterState(bool intercept, std::size_t window_size) : window(intercept, window_size) {}

  // Precondition: the user's detector is of this kind.
  static FilterState& Of(UserRecord& user) { return static_cast<FilterState&>(*user.detector); }
  static const FilterState& Of(const UserRecord& user) {
    return static_cast<const FilterState&>(*user.detector);
  }

  Verdicts verdicts() const override { return trial.verdicts; }
  void Translate(const ModelAliases& aliases, const Period& period) override;
  std::size_t MemoryBytes() const override {
    return sizeof(*this) + kHeapBlock + window.HeapBytes();
  }
  std::string Fault(const Period& period) const override;
  void Save(ByteWriter& out) const override;
  void Load(ByteReader& in, const RecordLayout& layout) override;
  void SaveRest(ByteWriter& out) const override { window.SaveOffsets(out); }
  void LoadRest(ByteReader& in) override { window.LoadOffsets(in); }

  ChangeWindow window;  // the observations that a change found now may turn out to precede
  Belief belief = {};   // the posterior over the user's model
  Trial trial = {};     // of the last change found
};

// detector=bayes: change points inferred over the shared pool.
//
// While a period is young (as many observations as features, at least 16), and later each time it
// has grown by half, it is reviewed: scored as a whole by a collapsed Gibbs step, whose posterior
// becomes the belief. Other users with a young period are resampled along with a young one.
//
// As soon as a review has found one model all but sure, and others have taught that model as much,
// the user's place in the pool is known, and changes are looked for, however young the period: each
// observation updates the belief by the forward filter of change_filter.h. A period that is in
// doubt by the filter is not reviewed, for a window's length at most: it may turn out to be two.
// (Clicks take long to tell: while a change is suspected their window is four times as long, doubt
// may last as long, and the hazard rises where many users change at once, fashion.h.)
// When another model or a fresh parameter has more than half of the belief (clicks: 0.65,
// purchases: 0.9), the change is dated within the window, and the observations since then move to a
// new period on the new model; if the new model explains those before as well, the whole period
// moves, and no change is reported. A change found is on trial (change_rate.h), from which the
// hazard is learned.
//
// An observation that no model explains, the user's least of all, is an outlier or the first of a
// new taste. With outliers=limited it is left out, unless another one was not long ago: a new taste
// is noticed an observation later, and a single outlier changes nothing.
//
// For each model that may matter O(d²) an observation between reviews, O(d³) for a review; O(K d)
// and O(K d²) for the others. O(d³) for a change.
std::unique_ptr<ChangeDetector> MakeBayesDetector(const DetectorContext& context);

}  // namespace codband
