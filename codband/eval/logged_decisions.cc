#include "codband/eval/logged_decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"

namespace codband::eval {
namespace {

// The offset of `values` in `pool`: that of the last ones if they are equal, else appended.
template <typename T>
std::size_t Place(std::vector<T>& pool, std::size_t last, std::span<const T> values) {
  if (last <= pool.size() && pool.size() - last >= values.size() &&
      std::equal(values.begin(), values.end(), pool.begin() + static_cast<std::ptrdiff_t>(last))) {
    return last;
  }
  pool.insert(pool.end(), values.begin(), values.end());
  return pool.size() - values.size();
}

}  // namespace

Status WrongNumber(std::string_view field, double value, std::string_view expected) {
  return Status::InvalidArgument(fmt::format("{} = {}, expected {}", field, value, expected));
}

std::uint32_t NameTable::Add(std::string_view name) {
  const auto [place, added] =
      ids_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  return place->second;
}

LoggedDecisions::LoggedDecisions(std::size_t dim, std::size_t most_bytes)
    : dim_(dim), most_bytes_(most_bytes) {
  CODBAND_CHECK(dim > 0 && dim <= kMaxFeatures);
}

Status LoggedDecisions::Check(const LoggedEvent& event, const LoggedOffer& offer) const {
  if (event.chosen >= offer.actions.size()) {
    return Status::InvalidArgument(
        fmt::format("chosen = {}, expected an index below {} (candidates)", event.chosen,
                    offer.actions.size()));
  }
  // Written so that NaN fails.
  if (!(event.propensity > 0 && event.propensity <= 1)) {
    return WrongNumber("propensity", event.propensity, "a number above 0 and at most 1");
  }
  if (event.propensity < kLeastPropensity) {
    return WrongNumber("propensity", event.propensity, "a number from 1e-12 to 1");
  }
  if (!(std::abs(event.reward) <= kLargestNumber)) {
    return WrongNumber("reward", event.reward, "a number within ±1e15");
  }
  CODBAND_CHECK(offer.features.size() == offer.actions.size() * dim_);
  for (std::size_t i = 0; i < offer.features.size(); ++i) {
    if (std::abs(offer.features[i]) <= kLargestNumber) continue;
    return WrongNumber(fmt::format("feature {} of candidate {}", i % dim_, i / dim_),
                       offer.features[i], "a number within ±1e15");
  }
  if (offer.probabilities.empty()) return {};
  if (offer.probabilities.size() != offer.actions.size()) {
    return Status::InvalidArgument(fmt::format("{} probabilities, expected {} (candidates)",
                                               offer.probabilities.size(), offer.actions.size()));
  }
  double sum = 0;
  for (std::size_t i = 0; i < offer.probabilities.size(); ++i) {
    const double p = offer.probabilities[i];
    if (!(p >= 0 && p <= 1)) {
      return WrongNumber(fmt::format("probability of candidate {}", i), p, "a number from 0 to 1");
    }
    if (p > 0 && p < kLeastPropensity) {
      return WrongNumber(fmt::format("probability of candidate {}", i), p,
                         "0 or a number from 1e-12 to 1");
    }
    sum += p;
  }
  if (std::abs(sum - 1) > kTolerance) return WrongNumber("sum of the probabilities", sum, "1");
  if (std::abs(offer.probabilities[event.chosen] - event.propensity) > kTolerance) {
    return WrongNumber("propensity", event.propensity,
                       fmt::format("{}, the probability of the chosen candidate",
                                   offer.probabilities[event.chosen]));
  }
  return {};
}

Status LoggedDecisions::CheckRoom(std::size_t candidates) const {
  const std::size_t numbers = features_.size() + probabilities_.size() + candidates * (dim_ + 1);
  const std::size_t ids = actions_.size() + candidates;
  const std::size_t bytes = numbers * sizeof(double) +
                            ids * (sizeof(std::uint32_t) + sizeof(ItemId)) +
                            (records_.size() + 1) * sizeof(Record);
  if (bytes <= most_bytes_) return {};
  return Status::InvalidArgument(
      fmt::format("the log up to here takes more than {} MiB of memory, expected a shorter one",
                  most_bytes_ >> 20U));
}

Status LoggedDecisions::Add(const LoggedEvent& event, const LoggedOffer& offer) {
  CODBAND_RETURN_IF_ERROR(CheckRoom(offer.actions.size()));
  CODBAND_RETURN_IF_ERROR(Check(event, offer));
  const Record last = records_.empty() ? Record{} : records_.back();
  Record record{.event = event, .count = offer.actions.size()};
  record.actions = Place(actions_, last.actions, offer.actions);
  items_.insert(items_.end(), actions_.begin() + static_cast<std::ptrdiff_t>(items_.size()),
                actions_.end());
  record.features = Place(features_, last.features, offer.features);
  record.probabilities = offer.probabilities.empty()
                             ? kNone
                             : Place(probabilities_, last.probabilities, offer.probabilities);
  records_.push_back(record);
  return {};
}

void LoggedDecisions::SortByTime() {
  std::ranges::stable_sort(records_, {}, [](const Record& record) { return record.event.time_ms; });
}

std::span<const std::uint32_t> LoggedDecisions::actions(std::size_t i) const {
  return std::span(actions_).subspan(records_[i].actions, records_[i].count);
}

ArmsView LoggedDecisions::arms(std::size_t i) const {
  return {.features = std::span(features_).subspan(records_[i].features, records_[i].count * dim_),
          .dim = dim_,
          .items = std::span(items_).subspan(records_[i].actions, records_[i].count)};
}

std::span<const double> LoggedDecisions::probabilities(std::size_t i) const {
  if (records_[i].probabilities == kNone) return {};
  return std::span(probabilities_).subspan(records_[i].probabilities, records_[i].count);
}

}  // namespace codband::eval
