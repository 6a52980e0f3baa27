#include "codband/engine/column_clerk.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace codband::engine {

using features::Cells;
using features::ColumnSpace;
using features::NamedFeature;
using features::Side;

namespace {

// So many names of one request are counted: it cannot displace what others have counted.
constexpr std::size_t kMostCounted = 64;

}  // namespace

std::vector<NamedFeature> AllNamed(std::span<const double> numbers,
                                   std::span<const NamedFeature> named) {
  std::vector<NamedFeature> all;
  all.reserve(numbers.size() + named.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    all.push_back({.name = features::PlaceName("", i), .value = numbers[i]});
  }
  all.insert(all.end(), named.begin(), named.end());
  return all;
}

std::vector<NamedFeature> NamedFeaturesOf(const Item& item) {
  if (IsKnownByIdAlone(item)) return {{.name = "id=" + item.id, .value = 1}};
  return AllNamed(item.features, item.named);
}

Cells CellsOf(const ColumnSpace& space, const features::ColumnLimits& limits, const Item& item,
              std::vector<NamedFeature>* unknown) {
  Cells cells;
  std::vector<NamedFeature> all = NamedFeaturesOf(item);
  if (IsKnownByIdAlone(item) && !space.Find(Side::kItem, all.front().name)) {
    if (unknown != nullptr && IdHasRoom(space, limits)) unknown->push_back(std::move(all.front()));
    return cells;
  }
  features::Resolve(space, limits, Side::kItem, all, cells, unknown);
  features::Compact(cells);
  return cells;
}

Status ColumnClerk::Load(const store::Store& store) {
  CODBAND_RETURN_IF_ERROR(sightings_.Load(store));
  // A repair may have left records of columns that are gone.
  return owners_.Load(store, [&](std::uint32_t column) {
    return column < space_.size() && space_.column(column).kind == ColumnSpace::Kind::kName &&
           space_.column(column).side != Side::kItem;
  });
}

void ColumnClerk::Begin() {
  mark_ = space_.mark();
  renamed_.clear();
  sightings_.Begin();
  owners_.Begin();
}

void ColumnClerk::Undo() {
  space_.ReturnTo(mark_);
  for (auto& [column, name] : renamed_) {
    if (column < space_.size()) space_.Rename(column, std::move(name));
  }
  renamed_.clear();
  sightings_.Undo();
  owners_.Undo();
}

std::vector<std::uint32_t> ColumnClerk::Forget(UserId user, store::StoreBatch& batch) {
  std::vector<std::uint32_t> columns = owners_.Forget(user, batch);
  for (const std::uint32_t column : columns) {
    renamed_.emplace_back(column, space_.column(column).name);
    space_.ForgetName(column);
  }
  return columns;
}

ColumnClerk::Additions ColumnClerk::Admit(const NewColumns& wanted, UserId user,
                                          store::StoreBatch& batch) {
  // What is admitted together: an array, or a name alone.
  struct Whole {
    std::size_t size = 0;
    std::optional<bool> admitted = {};
    bool at_once = false;
  };
  const auto key_of = [](const NewColumns::Name& each) {
    return std::pair(each.side, std::string(features::WholeOf(each.name)));
  };
  std::map<std::pair<Side, std::string>, Whole> wholes;
  for (const NewColumns::Name& each : wanted.names) {
    if (!space_.Find(each.side, each.name)) ++wholes[key_of(each)].size;
  }
  Additions added;
  std::size_t counted = 0;
  const auto seen_often = [&](Side side, const std::string& name) {
    return counted++ < kMostCounted &&
           sightings_.Count(
               side, name, user, batch,
               IsPrivate(side, user) ? Sightings::Often::kUsers : Sightings::Often::kBoth);
  };
  for (const NewColumns::Name& each : wanted.names) {
    const auto found = wholes.find(key_of(each));
    if (found == wholes.end()) continue;
    Whole& whole = found->second;
    if (!whole.admitted) {
      const bool shares = !space_.HasRoom(limits_, features::Source::kRequest);
      whole.at_once = !IsPrivate(each.side, user) && !shares &&
                      space_.requested() + whole.size <= limits_.at_once;
      whole.admitted = whole.at_once || (!IsPrivate(each.side, user) && shares) ||
                       seen_often(each.side, found->first.second);
    }
    if (!*whole.admitted || space_.Find(each.side, each.name)) continue;
    const std::size_t before = added.size();
    space_.Admit(each.side, each.name, limits_, added, features::Source::kRequest);
    if (of_loop_ && added.size() > before) added.back().at_once = whole.at_once;
    const auto column = space_.Find(each.side, each.name);
    if (column && each.side != Side::kItem && !of_loop_) owners_.Add(*column, user, batch);
  }
  for (const NewColumns::Name& each : wanted.sharing) {
    if (IsPrivate(each.side, user) && !seen_often(each.side, each.name)) continue;
    space_.List(each.side, each.name, added);
  }
  for (const features::WantedCrossing& pair : wanted.crossings) {
    const auto item = space_.PlaceOf(Side::kItem, pair.item, limits_, features::Source::kRequest);
    const auto other = space_.PlaceOf(pair.side, pair.other, limits_, features::Source::kRequest);
    if (item && other) space_.AdmitCrossing(item->column, other->column, limits_, added);
  }
  return added;
}

ColumnClerk::Additions ColumnClerk::Admit(std::span<const std::shared_ptr<const Item>> items,
                                          std::vector<Cells>& cells) {
  Additions added;
  for (const std::shared_ptr<const Item>& item : items) {
    if (!IsKnownByIdAlone(*item) || IdHasRoom(space_, limits_)) {
      for (const NamedFeature& feature : NamedFeaturesOf(*item)) {
        space_.Admit(Side::kItem, feature.name, limits_, added);
      }
    }
    cells.push_back(CellsOf(space_, limits_, *item));
  }
  return added;
}

ColumnClerk::Additions ColumnClerk::Ask(const NewColumns& wanted, UserId user,
                                        store::StoreBatch& batch) {
  const ColumnSpace::Mark before = space_.mark();
  Additions asked = Admit(wanted, user, batch);
  space_.ReturnTo(before);
  // The numbers of columns that are new here would be others in the loop.
  std::erase_if(asked, [&](const ColumnSpace::Addition& each) {
    return each.kind == ColumnSpace::Kind::kCrossing &&
           std::max(each.item, each.other) >= before.columns;
  });
  return asked;
}

Status ColumnClerk::Follow(std::uint64_t first, std::span<const ColumnSpace::Addition> additions) {
  if (first != space_.size()) {
    return Status::Corruption(
        fmt::format("columns of the loop begin at {}, expected {}", first, space_.size()));
  }
  const ColumnSpace::Mark before = space_.mark();
  for (const ColumnSpace::Addition& each : additions) {
    const Status status = space_.Append(each);
    if (status.ok()) continue;
    space_.ReturnTo(before);
    return status;
  }
  return {};
}

void ColumnClerk::Place(std::span<const std::shared_ptr<const Item>> items,
                        std::vector<Cells>& cells) const {
  for (const std::shared_ptr<const Item>& item : items) {
    cells.push_back(CellsOf(space_, kGivenOut, *item));
  }
}

std::vector<double> ColumnClerk::FeaturesOf(const NewColumns& wanted) {
  Cells item = wanted.item;
  features::Resolve(space_, limits_, Side::kItem, wanted.item_features, item, nullptr,
                    features::Source::kRequest);
  features::Compact(item);
  Cells context = wanted.context;
  features::Resolve(space_, limits_, Side::kContext, wanted.context_features, context);
  features::Resolve(space_, limits_, Side::kUser, wanted.user_features, context);
  features::Compact(context);
  crossed_.Set(space_, limits_, rules_, context);
  std::vector<double> row(space_.size());
  crossed_.AddTo(row, item);
  return row;
}

}  // namespace codband::engine
