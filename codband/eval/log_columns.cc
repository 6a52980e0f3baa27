#include "codband/eval/log_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "codband/base/parse.h"
#include "codband/policy/policy.h"

namespace codband::eval {

using features::Cell;
using features::Cells;
using features::ColumnSpace;
using features::NamedFeature;
using features::Side;

namespace {

// The number in "Features.f12".
std::optional<std::size_t> PlainIndex(std::string_view name) {
  constexpr std::string_view kPrefix = "Features.f";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return ParseNumber<std::size_t>(name.substr(kPrefix.size()));
}

// What is counted most, and of equals what came first.
struct Tally {
  std::uint64_t count = 0;
  std::size_t order = 0;

  friend bool operator<(const Tally& a, const Tally& b) {
    return a.count != b.count ? a.count > b.count : a.order < b.order;
  }
};

}  // namespace

LogColumns::LogColumns(const std::function<void(const Visit&)>& visit_log,
                       std::optional<std::size_t> dim, const std::function<void()>& between) {
  if (FindPlain(visit_log, dim)) return;
  style_ = dim ? Style::kHashed : Style::kByName;
  if (dim) {
    dim_ = *dim;
    return;
  }
  FindNames(visit_log);
  FindCrossings(visit_log, between);
  dim_ = std::max<std::size_t>(space_.size(), 1);
}

bool LogColumns::FindPlain(const std::function<void(const Visit&)>& visit_log,
                           std::optional<std::size_t> dim) {
  bool plain = true;
  bool any = false;
  visit_log([&](std::span<const NamedCandidate> candidates, std::span<const NamedFeature> context) {
    plain = plain && (context.empty() || dim);
    for (const NamedCandidate& candidate : candidates) {
      // Logs omit zeros: an item whose features are all 0 looks like one without features.
      if (candidate.features.front().name == "_tag=" + candidate.name) continue;
      for (const NamedFeature& feature : candidate.features) {
        const auto index = PlainIndex(feature.name);
        plain = plain && index && *index < dim.value_or(kMaxFeatures);
        if (index) dim_ = std::max(dim_, *index + 1);
        any = true;
      }
    }
  });
  dim_ = dim.value_or(dim_);
  return plain && any;
}

void LogColumns::FindNames(const std::function<void(const Visit&)>& visit_log) {
  std::map<std::pair<Side, std::string>, Tally> names;
  const auto count = [&](Side side, std::span<const NamedFeature> features) {
    for (const NamedFeature& feature : features) {
      ++names.try_emplace({side, feature.name}, Tally{.order = names.size()}).first->second.count;
    }
  };
  visit_log([&](std::span<const NamedCandidate> candidates, std::span<const NamedFeature> context) {
    for (const NamedCandidate& candidate : candidates) count(Side::kItem, candidate.features);
    count(Side::kContext, context);
  });
  std::vector<std::pair<Tally, const std::pair<Side, std::string>*>> sorted;
  for (const auto& [name, tally] : names) sorted.emplace_back(tally, &name);
  std::ranges::sort(sorted);
  std::vector<ColumnSpace::Addition> added;
  for (const auto& [tally, name] : sorted) {
    space_.Admit(name->first, name->second, limits_, added);
  }
}

void LogColumns::FindCrossings(const std::function<void(const Visit&)>& visit_log,
                               const std::function<void()>& between) {
  std::unordered_map<std::uint64_t, Tally> pairs;
  visit_log([&](std::span<const NamedCandidate> candidates, std::span<const NamedFeature> context) {
    for (const NamedFeature& other : context) {
      between();
      const auto second = space_.PlaceOf(Side::kContext, other.name, limits_);
      for (const NamedCandidate& candidate : candidates) {
        for (const NamedFeature& feature : candidate.features) {
          const auto first = space_.PlaceOf(Side::kItem, feature.name, limits_);
          if (!first || !second) continue;
          const std::uint64_t key = std::uint64_t{first->column} << 32 | second->column;
          ++pairs.try_emplace(key, Tally{.order = pairs.size()}).first->second.count;
        }
      }
    }
  });
  std::vector<std::pair<Tally, std::uint64_t>> sorted;
  for (const auto& [pair, tally] : pairs) sorted.emplace_back(tally, pair);
  std::ranges::sort(sorted);
  std::vector<ColumnSpace::Addition> added;
  for (const auto& [tally, pair] : sorted) {
    space_.AdmitCrossing(static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair),
                         limits_, added);
  }
}

std::string LogColumns::Text() const {
  switch (style_) {
    case Style::kPlain:
      return fmt::format("{} as logged", dim_);
    case Style::kHashed:
      return fmt::format("{} hashed by name", dim_);
    default:
      return fmt::format(
          "{} by name{}{}", dim_,
          space_.crossings() == 0 ? "" : fmt::format(", {} of them crossings", space_.crossings()),
          space_.shares() ? fmt::format(", {} shared", space_.shared_columns()) : "");
  }
}

std::vector<double> LogColumns::Rows(std::span<const NamedCandidate> candidates,
                                     std::span<const NamedFeature> context) {
  std::vector<double> rows(candidates.size() * dim_);
  if (style_ == Style::kByName) {
    Cells cells;
    features::Resolve(space_, limits_, Side::kContext, context, cells);
    features::Compact(cells);
    crossed_.Set(space_, limits_, features::CrossingRules(), cells);
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::span<double> row = std::span(rows).subspan(i * dim_, dim_);
    const std::vector<NamedFeature>& named = candidates[i].features;
    if (style_ == Style::kHashed) {
      features::HashFeatures(named, row);
    } else if (style_ == Style::kByName) {
      Cells cells;
      features::Resolve(space_, limits_, Side::kItem, named, cells);
      features::Compact(cells);
      crossed_.AddTo(row, cells);
    } else {
      for (const NamedFeature& feature : named) {
        const auto index = PlainIndex(feature.name);
        if (index) row[*index] = feature.value;
      }
    }
  }
  return rows;
}

}  // namespace codband::eval
