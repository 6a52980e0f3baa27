#include "codband/policy/codband/belief.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/check.h"

namespace codband {
namespace {

// Chances below this are of no consequence: a change brings more at every step.
constexpr double kNegligible = 1e-6;

}  // namespace

double Belief::rest() const {
  double sum = fresh_;
  for (const Entry& entry : entries()) sum += entry.chance;
  return std::max(0.0, 1 - sum);
}

void Belief::Settle(ModelId model) {
  Clear();
  entries_[0] = {.model = model, .chance = 1};
  count_ = 1;
}

void Belief::Assign(const ModelPool& pool, std::span<const double> chances) {
  CODBAND_DCHECK(chances.size() == pool.size() + 1);
  Clear();
  for (std::size_t k = 0; k < pool.size(); ++k) {
    if (chances[k] < kNegligible) continue;
    // Sorted by chance, the older model first where equal; the least likely falls out.
    std::size_t place = count_;
    while (place > 0 && entries_[place - 1].chance < chances[k]) --place;
    if (place == kEntries) continue;
    if (count_ < kEntries) ++count_;
    std::move_backward(entries_.begin() + place, entries_.begin() + count_ - 1,
                       entries_.begin() + count_);
    entries_[place] = {.model = pool.model(k).id, .chance = chances[k]};
  }
  fresh_ = chances.back();
}

void Belief::Expand(const ModelPool& pool, std::span<const double> prior_weights,
                    std::span<double> chances) const {
  CODBAND_DCHECK(chances.size() == pool.size() + 1 && prior_weights.size() >= pool.size());
  std::ranges::fill(chances, 0.0);
  double listed = fresh_;
  for (const Entry& entry : entries()) {
    const auto index = pool.IndexOf(entry.model);
    if (!index) continue;
    chances[*index] = entry.chance;
    listed += entry.chance;
  }
  chances.back() = fresh_;
  const double rest = std::max(0.0, 1 - listed);
  double total = 0;
  for (std::size_t k = 0; k < pool.size(); ++k) {
    if (chances[k] == 0) total += prior_weights[k];
  }
  if (total == 0) {
    // Nobody else to give it to: what is listed is all there is.
    if (listed > 0) {
      for (double& chance : chances) chance /= listed;
    } else {
      chances.back() = 1;
    }
    return;
  }
  for (std::size_t k = 0; k < pool.size(); ++k) {
    if (chances[k] == 0) chances[k] = rest * prior_weights[k] / total;
  }
}

void Belief::Save(ByteWriter& out) const {
  out.U32(count_);
  for (const Entry& entry : entries()) {
    out.U64(entry.model);
    out.Double(entry.chance);
  }
  out.Double(fresh_);
}

void Belief::Load(ByteReader& in) {
  Clear();
  const std::uint32_t count = in.U32("number of beliefs");
  if (count > kEntries) {
    in.Fail("number of beliefs", fmt::format("is {}, expected at most {}", count, kEntries));
    return;
  }
  const auto chance = [&](double value) {
    if (!(value >= 0 && value <= 1 + 1e-9)) {
      in.Fail("belief", fmt::format("is {}, expected a chance", value));
    }
    return value;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    entries_[i].model = in.U64("believed model");
    entries_[i].chance = chance(in.Double("belief"));
  }
  count_ = count;
  fresh_ = chance(in.Double("belief in a fresh taste"));
}

}  // namespace codband
