#include "codband/policy/codband/column_groups.h"

#include <algorithm>
#include <utility>

#include "codband/base/check.h"

namespace codband {
namespace {

// What follows are groups. No number of an older state is like this.
constexpr std::uint64_t kGroupsFollow = 0xffff'96a0'ffff'96a0;

constexpr double kWeight = 1;  // a

}  // namespace

void ColumnGroups::Set(std::span<const std::uint32_t> groups) {
  groups_.assign(groups.begin(), groups.end());
  const std::size_t count = groups.empty() ? 0 : std::ranges::max(groups) + std::size_t{1};
  CODBAND_CHECK(count <= groups.size());
  factors_.resize(count, 1);
}

void ColumnGroups::Start(std::size_t models) { sums_.assign(models * factors_.size(), {}); }

void ColumnGroups::Add(std::size_t model, std::size_t feature, double determined, double distance) {
  if (feature >= groups_.size()) return;
  Sums& sums = sums_[model * factors_.size() + groups_[feature]];
  sums.determined += determined;
  sums.distance += distance;
}

// From the sums of the first groups.
void ColumnGroups::TakeFactors(double common) {
  Sums all;
  for (std::size_t g = 0; g < factors_.size(); ++g) {
    if (!sums_.empty()) all.Add(sums_[g]);
  }
  const double usual = all.distance / all.determined;
  for (std::size_t g = 0; g < factors_.size(); ++g) {
    const bool told = usual > 0 && sums_[g].determined != all.determined;
    factors_[g] =
        told ? (sums_[g].determined + kWeight) / (sums_[g].distance / usual + kWeight) : 1;
  }
  common_ = common;
}

void ColumnGroups::Undo() {
  factors_.assign(before_.begin(), before_.end());
  common_ = common_before_;
}

void ColumnGroups::Forget() {
  std::ranges::fill(factors_, 1.0);
  common_ = 0;
}

void ColumnGroups::Save(ByteWriter& out) const {
  out.U64(kGroupsFollow);
  out.Double(common_);
  out.U64(factors_.size());
  out.Doubles(factors_);
  out.U64(groups_.size());
  for (const std::uint32_t group : groups_) out.U32(group);
}

void ColumnGroups::Load(ByteReader& in) {
  const std::vector<std::uint32_t> known = std::exchange(*this, {}).groups_;
  if (!in.Skip(kGroupsFollow)) return Set(known);
  common_ = in.Double("common precision");
  factors_.resize(in.Count("number of groups", sizeof(double)));
  in.Doubles("precision of a group", factors_);
  groups_.resize(in.Count("number of grouped features", sizeof(std::uint32_t)));
  for (std::uint32_t& group : groups_) {
    group = in.U32("group of a feature");
    if (group >= factors_.size()) in.Fail("group of a feature", "is beyond all groups");
  }
  const auto positive = [](double factor) { return factor > 0; };
  if (!std::ranges::all_of(factors_, positive) || !(common_ >= 0)) {
    in.Fail("precision of a group", "is not positive");
  }
  if (!in.ok()) {
    *this = {};
  } else if (known.size() > groups_.size()) {
    Set(known);
  }
}

}  // namespace codband
