#include "codband/features/crossings.h"

#include <fmt/format.h>

#include <algorithm>

namespace codband::features {
namespace {

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool Matches(std::string_view pattern, std::string_view name) {
  return pattern == "*" || (!name.empty() && pattern == BaseOf(name));
}

}  // namespace

Result<CrossingRules> CrossingRules::Parse(std::string_view text) {
  CrossingRules rules;
  const std::string_view whole = Trimmed(text);
  rules.all_ = whole == "all";
  if (rules.all_ || whole == "none") return rules;
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view pair = Trimmed(rest.substr(0, comma));
    const std::size_t colon = pair.find(':');
    const std::string_view other = Trimmed(pair.substr(0, std::min(colon, pair.size())));
    const std::string_view item =
        colon == std::string_view::npos ? std::string_view() : Trimmed(pair.substr(colon + 1));
    if (other.empty() || item.empty()) {
      return Status::InvalidArgument(fmt::format(
          "crossings: has '{:.100}', expected \"all\", \"none\" or pairs of a feature of the "
          "context and one of the items, such as \"device:genre, hour:*\"",
          pair));
    }
    rules.pairs_.push_back({.other = std::string(other), .item = std::string(item)});
    if (comma == rest.size()) return rules;
    rest.remove_prefix(comma + 1);
  }
}

bool CrossingRules::Allows(std::string_view other, std::string_view item) const {
  if (all_) return true;
  return std::ranges::any_of(pairs_, [&](const Pair& pair) {
    return Matches(pair.other, other) && Matches(pair.item, item);
  });
}

void CrossedContext::Set(const ColumnSpace& space, const ColumnLimits& limits,
                         const CrossingRules& rules, std::span<const Cell> context) {
  context_.assign(context.begin(), context.end());
  begin_.assign(space.size() + 1, 0);
  missing_.assign(space.size(), 0);
  products_.clear();
  misses_any_ = false;
  for (std::uint32_t item = 0; item < space.size(); ++item) {
    begin_[item] = static_cast<std::uint32_t>(products_.size());
    const ColumnSpace::Column& column = space.column(item);
    const bool of_items = column.kind == ColumnSpace::Kind::kShared ||
                          (column.kind == ColumnSpace::Kind::kName && column.side == Side::kItem);
    if (!of_items || rules.none()) continue;
    const bool own_only = rules.all() && space.IsPlace(item);
    for (const Cell& cell : context_) {
      if (cell.column >= space.size() || cell.value == 0) continue;
      if (!rules.Allows(space.column(cell.column).name, column.name)) continue;
      if (own_only && !space.HasRoomForCrossings(limits) &&
          !space.FindCrossing(item, cell.column)) {
        continue;
      }
      if (const auto place = space.CrossingPlace(item, cell.column, limits)) {
        products_.push_back({.column = place->column, .factor = place->sign * cell.value});
      } else {
        missing_[item] = 1;
        misses_any_ = true;
      }
    }
  }
  begin_[space.size()] = static_cast<std::uint32_t>(products_.size());
}

void CrossedContext::AddTo(std::span<double> row, std::span<const Cell> item) const {
  for (const Cell& cell : context_) {
    if (cell.column < row.size()) row[cell.column] += cell.value;
  }
  for (const Cell& cell : item) {
    if (cell.column < row.size()) row[cell.column] += cell.value;
    if (cell.column + std::size_t{1} >= begin_.size()) continue;
    for (std::uint32_t i = begin_[cell.column]; i < begin_[cell.column + 1]; ++i) {
      if (products_[i].column < row.size()) {
        row[products_[i].column] += products_[i].factor * cell.value;
      }
    }
  }
}

}  // namespace codband::features
