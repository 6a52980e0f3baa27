#include "codband/engine/named_offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "codband/base/string_hash.h"
#include "codband/policy/policy.h"

namespace codband::engine {

using features::Cell;
using features::Cells;
using features::ColumnSpace;
using features::NamedFeature;
using features::Side;

namespace {

// One request gets so many crossings at most; the next one gets the others.
constexpr std::size_t kMostCrossings = 64;

double SumOf(std::span<const Cell> cells) {
  double sum = 0;
  for (const Cell& cell : cells) sum += std::abs(cell.value);
  return sum;
}

}  // namespace

std::size_t PlainLength(const ColumnSpace& space) {
  if (space.shares()) return 0;
  std::size_t length = 0;
  while (space.Find(Side::kItem, features::PlaceName("", length))) ++length;
  return length;
}

Status CheckPlainLength(std::string_view field, std::size_t size, std::size_t& length) {
  if (size == 0 || size == length) return {};
  if (length == 0) {
    length = size;
    return {};
  }
  return Status::InvalidArgument(
      fmt::format("{}: has {} numbers, expected {} as the arrays before; give an array of another "
                  "length a name",
                  field, size, length));
}

void NamedOffer::Clear() {
  rows_.clear();
  cells_.clear();
  unknown_.clear();
  to_list_.clear();
  context_.clear();
  context_unknown_.clear();
  user_unknown_.clear();
}

void NamedOffer::Read(Side side, std::span<const NamedFeature> named, Cells& cells,
                      std::vector<NamedFeature>& unknown) {
  const bool list = space_->shares() && space_->sharers().size() < ColumnSpace::kMostSharers;
  for (const NamedFeature& feature : named) {
    const auto place =
        space_->PlaceOf(side, feature.name, rules_->limits, features::Source::kRequest);
    if (!place) {
      unknown.push_back(feature);
      continue;
    }
    cells.push_back({.column = place->column, .value = place->sign * feature.value});
    if (!list || space_->column(place->column).kind != ColumnSpace::Kind::kShared) continue;
    std::string listed = features::Listed(feature.name);
    if (!space_->FindSharer(side, listed)) {
      to_list_.push_back({.side = side, .name = std::move(listed)});
    }
  }
}

void NamedOffer::Start(const ColumnSpace& space, const Rules& rules, const RankRequest& request) {
  Clear();
  space_ = &space;
  rules_ = &rules;
  Read(Side::kContext, request.context_features, context_, context_unknown_);
  Read(Side::kUser, request.user_features, context_, user_unknown_);
  features::Compact(context_);
  crossed_.Set(space, rules.limits, rules.crossings, context_);
}

void NamedOffer::AddItem(std::span<const features::Cell> cells) {
  rows_.push_back(
      {.item = cells, .unknown_begin = unknown_.size(), .unknown_end = unknown_.size()});
}

void NamedOffer::AddDescribed(const Candidate& candidate) {
  Row row{.begin = cells_.size(), .unknown_begin = unknown_.size()};
  scratch_.clear();
  Read(Side::kItem, AllNamed(candidate.features, candidate.named), scratch_, unknown_);
  features::Compact(scratch_);
  cells_.insert(cells_.end(), scratch_.begin(), scratch_.end());
  row.end = cells_.size();
  row.unknown_end = unknown_.size();
  rows_.push_back(row);
}

std::span<const Cell> NamedOffer::CellsOf(const Row& row) const {
  if (row.item) return *row.item;
  return std::span(cells_).subspan(row.begin, row.end - row.begin);
}

Status NamedOffer::Fill(std::size_t dim, std::vector<double>& out) const {
  out.assign(rows_.size() * dim, 0.0);
  double around = SumOf(context_);
  for (const NamedFeature& each : context_unknown_) around += std::abs(each.value);
  for (const NamedFeature& each : user_unknown_) around += std::abs(each.value);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    // No column can get more than this, whatever shares it, now or once all names have a column.
    double sum = SumOf(CellsOf(row));
    for (std::size_t u = row.unknown_begin; u < row.unknown_end; ++u) {
      sum += std::abs(unknown_[u].value);
    }
    if (!(sum * (1 + around) + around <= kLargestNumber)) {
      return Status::InvalidArgument(
          fmt::format("contextFeatures: the sum of its features ({}) times that of an action ({}) "
                      "is beyond {}, "
                      "expected smaller numbers",
                      around, sum, kLargestNumber));
    }
    crossed_.AddTo(std::span(out).subspan(i * dim, dim), CellsOf(row));
  }
  return {};
}

bool NamedOffer::MissesCrossings() const {
  const bool takes = TakesAtOnce();
  const bool context_is_new = takes && (!context_unknown_.empty() || !user_unknown_.empty());
  if (rules_->crossings.none() || (context_.empty() && !context_is_new)) return false;
  if (context_is_new || (takes && !unknown_.empty())) return true;
  return crossed_.misses_any() && std::ranges::any_of(rows_, [&](const Row& row) {
           return std::ranges::any_of(
               CellsOf(row), [&](const Cell& cell) { return crossed_.Misses(cell.column); });
         });
}

void NamedOffer::WantCrossings(NewColumns& wanted) const {
  // How many arms have each feature. The order of the map is of no account: it is sorted below.
  struct Worth {
    std::string_view name;
    bool place = false;
    std::size_t arms = 0;
    std::size_t order = 0;
  };
  std::map<std::string_view, Worth> by_name;
  const auto count = [&](std::string_view name) {
    Worth& worth = by_name.try_emplace(name, Worth{name, false, 0, by_name.size()}).first->second;
    ++worth.arms;
  };
  const bool takes = TakesAtOnce();
  for (const Row& row : rows_) {
    for (const Cell& cell : CellsOf(row)) {
      if (cell.column >= space_->size()) continue;  // newer than what is read here
      const ColumnSpace::Column& column = space_->column(cell.column);
      if (column.kind == ColumnSpace::Kind::kName) count(column.name);
    }
    if (!takes) continue;
    for (std::size_t i = row.unknown_begin; i < row.unknown_end; ++i) count(unknown_[i].name);
  }
  std::vector<Worth> items;
  for (auto& [name, worth] : by_name) {
    worth.place = features::IsPlaceName(name);
    items.push_back(worth);
  }
  std::ranges::sort(items, [](const Worth& a, const Worth& b) {
    if (a.place != b.place) return b.place;
    return a.arms != b.arms ? a.arms > b.arms : a.order < b.order;
  });
  std::vector<std::pair<Side, std::string_view>> others;
  for (const Cell& cell : context_) {
    const ColumnSpace::Column& column = space_->column(cell.column);
    if (column.kind == ColumnSpace::Kind::kName) others.emplace_back(column.side, column.name);
  }
  if (takes) {
    for (const NamedFeature& each : context_unknown_) {
      others.emplace_back(Side::kContext, each.name);
    }
    for (const NamedFeature& each : user_unknown_) others.emplace_back(Side::kUser, each.name);
  }
  // One more than there is room for: it makes the others share.
  const std::size_t limit = rules_->limits.crossings();
  const std::size_t most =
      std::min(kMostCrossings, limit - std::min(limit, space_->Taken(rules_->limits)) + 1);
  for (const Worth& item : items) {
    for (const auto& [side, other] : others) {
      if (wanted.crossings.size() >= most) return;
      if (!rules_->crossings.Allows(other, item.name)) continue;
      const auto first = space_->Find(Side::kItem, item.name);
      const auto second = space_->Find(side, other);
      if (first && second && space_->FindCrossing(*first, *second)) continue;
      wanted.crossings.push_back(
          {.item = std::string(item.name), .side = side, .other = std::string(other)});
    }
  }
}

std::vector<std::uint32_t> NamedOffer::ContextColumns() const {
  std::vector<std::uint32_t> columns;
  columns.reserve(context_.size());
  for (const Cell& cell : context_) {
    if (space_->column(cell.column).kind == ColumnSpace::Kind::kName)
      columns.push_back(cell.column);
  }
  return columns;
}

std::unique_ptr<NewColumns> NamedOffer::Wanted(std::size_t chosen) const {
  const bool names =
      !unknown_.empty() || !context_unknown_.empty() || !user_unknown_.empty() || !to_list_.empty();
  const bool crossings = MissesCrossings();
  if (!names && !crossings) return nullptr;
  auto wanted = std::make_unique<NewColumns>();
  StringViewSet seen;
  for (const NamedFeature& feature : unknown_) {
    if (seen.insert(feature.name).second) {
      wanted->names.push_back({.side = Side::kItem, .name = feature.name});
    }
  }
  for (const NamedFeature& each : context_unknown_) {
    wanted->names.push_back({.side = Side::kContext, .name = each.name});
  }
  for (const NamedFeature& each : user_unknown_) {
    wanted->names.push_back({.side = Side::kUser, .name = each.name});
  }
  wanted->sharing = to_list_;
  if (crossings) WantCrossings(*wanted);
  const Row& row = rows_[chosen];
  const std::span<const Cell> cells = CellsOf(row);
  wanted->item.assign(cells.begin(), cells.end());
  wanted->item_features.assign(unknown_.begin() + static_cast<std::ptrdiff_t>(row.unknown_begin),
                               unknown_.begin() + static_cast<std::ptrdiff_t>(row.unknown_end));
  wanted->context = context_;
  wanted->context_features = context_unknown_;
  wanted->user_features = user_unknown_;
  return wanted;
}

}  // namespace codband::engine
