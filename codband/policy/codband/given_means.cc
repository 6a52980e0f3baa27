#include "codband/policy/codband/given_means.h"

#include <algorithm>

namespace codband {
namespace {

// On a model with less than this chance it does not matter what it would learn from the user.
constexpr double kTelling = 1e-3;

}  // namespace

void GivenMeans::Find(const ModelPool& pool, const linalg::SufficientStats& data, std::size_t own,
                      std::span<const double> chances) {
  if (dim_ != pool.prior().dim()) {
    dim_ = pool.prior().dim();
    joint_ = std::make_unique<linalg::JointLikelihood>(dim_);
  }
  models_.clear();
  queries_.clear();
  for (std::size_t k = 0; k < chances.size(); ++k) {
    if (k == own || !(chances[k] >= kTelling)) continue;
    models_.push_back(k);
    queries_.push_back({.posterior = k < pool.size() ? &pool.model(k).posterior : &pool.prior(),
                        .contains_data = false});
  }
  rows_.resize(models_.size() * dim_);
  joint_->Means(data, queries_, rows_);
}

std::span<const double> GivenMeans::Of(std::size_t k) const {
  const auto place = std::ranges::lower_bound(models_, k);
  if (place == models_.end() || *place != k) return {};
  const auto row = static_cast<std::size_t>(place - models_.begin());
  return std::span(rows_).subspan(row * dim_, dim_);
}

}  // namespace codband
