#include "codband/engine/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/engine/records.h"
#include "codband/linalg/kernels.h"

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
  if (dim == 0 && features.size() > kMaxNamedFeatures) {
    return Status::InvalidArgument(fmt::format("{}: has {} numbers, expected at most {}", field,
                                               features.size(), kMaxNamedFeatures));
  }
  if (dim != 0 && features.size() != dim) {
    return Status::InvalidArgument(
        fmt::format("{}: has {} numbers, expected {}", field, features.size(), dim));
  }
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (!(std::abs(features[i]) <= max_abs)) {
      return Status::InvalidArgument(fmt::format("{}[{}]: is {}, expected a number within ±{}",
                                                 field, i, features[i], max_abs));
    }
  }
  return {};
}

Status CheckNamed(std::string_view field, std::span<const features::NamedFeature> named,
                  double max_abs) {
  if (named.size() > kMaxNamedFeatures) {
    return Status::InvalidArgument(fmt::format("{}: has {} features, expected at most {}", field,
                                               named.size(), kMaxNamedFeatures));
  }
  constexpr std::size_t kMost = features::ColumnSpace::kMaxNameBytes;
  for (const features::NamedFeature& feature : named) {
    if (feature.name.empty() || feature.name.size() > kMost) {
      return Status::InvalidArgument(
          fmt::format("{}: has a feature whose name has {} bytes, expected 1 to {}", field,
                      feature.name.size(), kMost));
    }
    if (!(std::abs(feature.value) <= max_abs)) {
      return Status::InvalidArgument(fmt::format("{}.{:.200}: is {}, expected a number within ±{}",
                                                 field, feature.name, feature.value, max_abs));
    }
  }
  return {};
}

Status CheckItem(const Item& item, std::size_t dim, double max_abs_feature) {
  CODBAND_RETURN_IF_ERROR(CheckId("id", item.id));
  if (dim == 0) CODBAND_RETURN_IF_ERROR(CheckNamed("features", item.named, max_abs_feature));
  CODBAND_RETURN_IF_ERROR(CheckFeatures("features", item.features, dim, max_abs_feature));
  double sum = 0;  // no column can get more, whatever shares it
  for (const features::NamedFeature& feature : item.named) sum += std::abs(feature.value);
  for (const double feature : item.features) sum += std::abs(feature);
  if (dim == 0 && !(sum <= kLargestNumber)) {
    return Status::InvalidArgument(
        fmt::format("features: add up to {}, expected at most {}", sum, kLargestNumber));
  }
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

std::size_t Catalogue::IndexAfter(std::string_view id) const {
  return static_cast<std::size_t>(
      std::ranges::upper_bound(items_, id, {},
                               [](const auto& item) -> std::string_view { return item->id; }) -
      items_.begin());
}

void Catalogue::ReadFeatures(std::size_t index, std::span<double> out) const {
  if (dim_ > 0) {
    std::ranges::copy(arms().arm(index).first(std::min(dim_, out.size())), out.begin());
    return;
  }
  std::ranges::fill(out, 0.0);
  for (const features::Cell& cell : cells_[index]) {
    if (cell.column < out.size()) out[cell.column] = cell.value;
  }
}

double Catalogue::Dot(std::size_t index, std::span<const double> parameter) const {
  if (dim_ > 0) return linalg::Dot(arms().arm(index), parameter);
  double sum = 0;
  for (const features::Cell& cell : cells_[index]) {
    if (cell.column < parameter.size()) sum += cell.value * parameter[cell.column];
  }
  return sum;
}

void Catalogue::Put(std::span<const std::shared_ptr<const Item>> items,
                    std::span<const features::Cells> cells) {
  CODBAND_CHECK(cells.size() == (dim_ == 0 ? items.size() : 0));
  std::vector<std::size_t> fresh;  // indices of items
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::shared_ptr<const Item>& item = items[i];
    CODBAND_CHECK(dim_ == 0 || item->features.size() == dim_);
    if (const auto index = IndexOf(item->id)) {
      by_id_.erase(item->id);
      items_[*index] = item;
      if (dim_ == 0) cells_[*index] = cells[i];
      std::copy_n(item->features.begin(), dim_,
                  features_.begin() + static_cast<std::ptrdiff_t>(*index * dim_));
      Enter(*index);
    } else {
      fresh.push_back(i);
    }
  }
  if (fresh.empty()) return;
  // Keep the last of equal ids: reversed and stably sorted, it comes first.
  std::ranges::reverse(fresh);
  const auto id = [&](std::size_t i) -> std::string_view { return items[i]->id; };
  std::ranges::stable_sort(fresh, {}, id);
  const auto repeated = std::ranges::unique(fresh, {}, id);
  fresh.erase(repeated.begin(), repeated.end());

  // Merge from the back, so that each row moves once.
  std::size_t from = items_.size();
  std::size_t left = fresh.size();
  items_.resize(from + left);
  features_.resize(items_.size() * dim_);
  if (dim_ == 0) cells_.resize(items_.size());
  numbers_.resize(items_.size());
  const auto row = [&](std::size_t i) {
    return features_.begin() + static_cast<std::ptrdiff_t>(i * dim_);
  };
  for (std::size_t to = items_.size(); left > 0;) {
    --to;
    if (from > 0 && items_[from - 1]->id > id(fresh[left - 1])) {
      --from;
      std::copy(row(from), row(from + 1), row(to));
      numbers_[to] = numbers_[from];
      items_[to] = std::move(items_[from]);
      if (dim_ == 0) cells_[to] = std::move(cells_[from]);
    } else {
      --left;
      const std::size_t i = fresh[left];
      std::copy_n(items[i]->features.begin(), dim_, row(to));
      numbers_[to] = names_.Item(items[i]->id);
      items_[to] = items[i];
      if (dim_ == 0) cells_[to] = cells[i];
      Enter(to);
    }
  }
}

// Rows of cells move with their memory: what is entered stays valid.
void Catalogue::Enter(std::size_t index) {
  Known known{.item = items_[index].get(), .number = numbers_[index], .cells = {}};
  if (dim_ == 0) known.cells = cells_[index];
  by_id_.emplace(items_[index]->id, known);
}

bool Catalogue::Erase(std::string_view id) {
  const auto index = IndexOf(id);
  if (!index) return false;
  by_id_.erase(id);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(*index));
  const auto row = features_.begin() + static_cast<std::ptrdiff_t>(*index * dim_);
  features_.erase(row, row + static_cast<std::ptrdiff_t>(dim_));
  if (dim_ == 0) cells_.erase(cells_.begin() + static_cast<std::ptrdiff_t>(*index));
  numbers_.erase(numbers_.begin() + static_cast<std::ptrdiff_t>(*index));
  return true;
}

}  // namespace codband::engine
