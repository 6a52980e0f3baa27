#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"

namespace codband {

// Features that belong together (the words of one name, the crossings of two names) have a prior
// precision of their own, so that a name that says nothing does not blur one that says much. Group
// g has λ_g where all features together have λ; by the same fixed point (prior_learner.h),
//   λ_g/λ = (γ_g + a) / (|μ - m|²_g/v + a),     v = Σ|μ - m|² / Σγ,
// sums over all groups, with a weak prior worth a = 1 direction: a group of which nothing is known,
// and one that is alone, is like all. Without groups there is nothing to learn, and all factors
// are 1. Not thread-safe for writing.
class ColumnGroups {
 public:
  // The group of each of the first features; the others have none. Groups are numbered from 0 and
  // keep their numbers from one call to the next.
  void Set(std::span<const std::uint32_t> groups);
  bool empty() const { return groups_.empty(); }
  std::size_t size() const { return groups_.size(); }  // features that have one

  // λ_g/λ of a feature.
  double Factor(std::size_t feature) const {
    return feature < groups_.size() ? factors_[groups_[feature]] : 1;
  }
  // The λ that factors were learned with; 0: nothing was learned.
  double common() const { return common_; }

  // Learning: Start, Add for every model and feature, then Learn. `shrink` is for each model what
  // its distances are multiplied by.
  void Start(std::size_t models);
  void Add(std::size_t model, std::size_t feature, double determined, double distance);
  template <typename Shrink>
  void Learn(double common, const Shrink& shrink) {
    before_.assign(factors_.begin(), factors_.end());
    common_before_ = common_;
    if (empty()) return;
    Sums* const all = sums_.data();  // those of the first model
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const std::size_t model = i / factors_.size();
      sums_[i].distance *= shrink(model);
      if (model > 0) all[i % factors_.size()].Add(sums_[i]);
    }
    TakeFactors(common);
  }
  // As before the last Learn.
  void Undo();
  // Nothing is known any more.
  void Forget();

  void Save(ByteWriter& out) const;
  // What was saved, or nothing if the bytes are from before there were groups. If more features had
  // groups already, they keep them.
  void Load(ByteReader& in);

 private:
  struct Sums {
    double determined = 0;
    double distance = 0;

    void Add(const Sums& other) {
      determined += other.determined;
      distance += other.distance;
    }
  };
  void TakeFactors(double common);

  std::vector<std::uint32_t> groups_;  // by feature
  std::vector<double> factors_;        // by group
  double common_ = 0;
  std::vector<double> before_;  // of the last Learn
  double common_before_ = 0;
  std::vector<Sums> sums_;  // scratch: groups of the first model, of the second, …
};

}  // namespace codband
