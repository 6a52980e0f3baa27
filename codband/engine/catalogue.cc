#include "codband/engine/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"

namespace codband::engine {
namespace {

constexpr std::size_t kMostTags = 1000;

}  // namespace

Status CheckId(std::string_view field, std::string_view id) {
  if (id.empty() || id.size() > kMaxIdBytes) {
    return Status::InvalidArgument(
        fmt::format("{}: has {} bytes, expected 1 to {}", field, id.size(), kMaxIdBytes));
  }
  return {};
}

Status CheckFeatures(std::string_view field, std::span<const double> features, std::size_t dim,
                     double max_abs) {
  if (features.size() != dim) {
    return Status::InvalidArgument(
        fmt::format("{}: has {} numbers, expected {}", field, features.size(), dim));
  }
  for (std::size_t i = 0; i < dim; ++i) {
    if (!(std::abs(features[i]) <= max_abs)) {
      return Status::InvalidArgument(fmt::format("{}[{}]: is {}, expected a number within ±{}",
                                                 field, i, features[i], max_abs));
    }
  }
  return {};
}

Status CheckItem(const Item& item, std::size_t dim, double max_abs_feature) {
  CODBAND_RETURN_IF_ERROR(CheckId("id", item.id));
  CODBAND_RETURN_IF_ERROR(CheckFeatures("features", item.features, dim, max_abs_feature));
  if (item.tags.size() > kMostTags) {
    return Status::InvalidArgument(
        fmt::format("tags: there are {}, expected at most {}", item.tags.size(), kMostTags));
  }
  for (std::size_t i = 0; i < item.tags.size(); ++i) {
    CODBAND_RETURN_IF_ERROR(CheckId(fmt::format("tags[{}]", i), item.tags[i]));
  }
  return {};
}

std::optional<std::size_t> Catalogue::IndexOf(std::string_view id) const {
  const auto found = std::ranges::lower_bound(
      items_, id, {}, [](const auto& item) -> std::string_view { return item->id; });
  if (found == items_.end() || (*found)->id != id) return std::nullopt;
  return static_cast<std::size_t>(found - items_.begin());
}

void Catalogue::Put(std::span<const std::shared_ptr<const Item>> items) {
  std::vector<std::shared_ptr<const Item>> fresh;
  for (const std::shared_ptr<const Item>& item : items) {
    CODBAND_CHECK(item->features.size() == dim_);
    if (const auto index = IndexOf(item->id)) {
      by_id_.erase(item->id);
      by_id_.emplace(item->id, item.get());
      items_[*index] = item;
      std::ranges::copy(item->features,
                        features_.begin() + static_cast<std::ptrdiff_t>(*index * dim_));
    } else {
      fresh.push_back(item);
    }
  }
  if (fresh.empty()) return;
  // Keep the last of equal ids: reversed and stably sorted, it comes first.
  std::ranges::reverse(fresh);
  const auto id = [](const auto& item) -> std::string_view { return item->id; };
  std::ranges::stable_sort(fresh, {}, id);
  const auto repeated = std::ranges::unique(fresh, {}, id);
  fresh.erase(repeated.begin(), repeated.end());
  for (const auto& item : fresh) by_id_.emplace(item->id, item.get());

  // Merge from the back, so that each row moves once.
  std::size_t from = items_.size();
  std::size_t left = fresh.size();
  items_.resize(from + left);
  features_.resize(items_.size() * dim_);
  const auto row = [&](std::size_t i) {
    return features_.begin() + static_cast<std::ptrdiff_t>(i * dim_);
  };
  for (std::size_t to = items_.size(); left > 0;) {
    --to;
    if (from > 0 && items_[from - 1]->id > fresh[left - 1]->id) {
      --from;
      std::copy(row(from), row(from + 1), row(to));
      items_[to] = std::move(items_[from]);
    } else {
      --left;
      std::ranges::copy(fresh[left]->features, row(to));
      items_[to] = std::move(fresh[left]);
    }
  }
}

bool Catalogue::Erase(std::string_view id) {
  const auto index = IndexOf(id);
  if (!index) return false;
  by_id_.erase(id);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(*index));
  const auto row = features_.begin() + static_cast<std::ptrdiff_t>(*index * dim_);
  features_.erase(row, row + static_cast<std::ptrdiff_t>(dim_));
  return true;
}

}  // namespace codband::engine
