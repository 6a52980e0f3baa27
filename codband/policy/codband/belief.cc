#include "codband/policy/codband/belief.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/check.h"

namespace codband {
namespace {

// Chances below this are negligible: the hazard brings more at every step.
constexpr double kNegligible = 1e-6;

}  // namespace

double Belief::rest() const {
  double sum = fresh_;
  for (std::size_t i = 0; i < count_; ++i) sum += chances_[i];
  return std::max(0.0, 1 - sum);
}

void Belief::Settle(ModelId model) {
  Clear();
  models_[0] = model;
  chances_[0] = 1;
  count_ = 1;
}

void Belief::Assign(const ModelPool& pool, std::span<const double> chances) {
  CODBAND_DCHECK(chances.size() == pool.size() + 1);
  Clear();
  for (std::size_t k = 0; k < pool.size(); ++k) {
    if (chances[k] < kNegligible) continue;
    // Sorted by chance, the older model first where equal; the least likely falls out.
    std::size_t place = count_;
    const auto chance = static_cast<float>(chances[k]);
    while (place > 0 && chances_[place - 1] < chance) --place;
    if (place == kEntries) continue;
    if (count_ < kEntries) ++count_;
    for (std::size_t i = count_ - 1; i > place; --i) {
      models_[i] = models_[i - 1];
      chances_[i] = chances_[i - 1];
    }
    models_[place] = pool.model(k).id;
    chances_[place] = chance;
  }
  fresh_ = static_cast<float>(chances.back());
}

void Belief::Expand(const ModelPool& pool, std::span<const double> prior_weights,
                    std::span<double> chances) const {
  CODBAND_DCHECK(chances.size() == pool.size() + 1 && prior_weights.size() >= pool.size());
  std::ranges::fill(chances, 0.0);
  double listed = fresh_;
  for (std::size_t i = 0; i < count_; ++i) {
    const auto index = pool.IndexOf(models_[i]);
    if (!index) continue;
    chances[*index] = chances_[i];
    listed += chances_[i];
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

void Belief::Translate(const ModelAliases& aliases) {
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    const ModelId model = aliases.Resolve(models_[i]);
    const auto end = models_.begin() + kept;
    const auto same = std::find(models_.begin(), end, model);
    float chance = chances_[i];
    if (same != end) {
      std::size_t place = static_cast<std::size_t>(same - models_.begin());
      chance += chances_[place];
      for (--kept; place < kept; ++place) {
        models_[place] = models_[place + 1];
        chances_[place] = chances_[place + 1];
      }
    }
    std::size_t place = kept++;
    for (; place > 0 && chances_[place - 1] < chance; --place) {
      models_[place] = models_[place - 1];
      chances_[place] = chances_[place - 1];
    }
    models_[place] = model;
    chances_[place] = chance;
  }
  std::fill(models_.begin() + kept, models_.begin() + count_, ModelId{});
  std::fill(chances_.begin() + kept, chances_.begin() + count_, 0.0F);
  count_ = kept;
}

void Belief::Save(ByteWriter& out) const {
  out.U32(count_);
  for (std::size_t i = 0; i < count_; ++i) out.U64(models_[i]);
  out.Floats(std::span(chances_).first(count_));
  out.Floats({&fresh_, 1});
}

void Belief::Load(ByteReader& in) {
  Clear();
  const std::uint32_t count = in.U32("number of beliefs");
  if (count > kEntries) {
    in.Fail("number of beliefs", fmt::format("is {}, expected at most {}", count, kEntries));
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) models_[i] = in.U64("believed model");
  in.Floats("beliefs", std::span(chances_).first(count));
  in.Floats("belief in a fresh parameter", {&fresh_, 1});
  count_ = count;
  double sum = fresh_;
  bool chances = fresh_ >= 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    chances = chances && chances_[i] >= 0;
    sum += chances_[i];
  }
  if (!chances || sum > 1 + 1e-5) {
    in.Fail("beliefs", fmt::format("add up to {}, expected chances of at most 1 in all", sum));
  }
}

}  // namespace codband
