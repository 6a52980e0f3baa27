#include "codband/engine/column_clerk.h"

namespace codband::engine {

using features::Cells;
using features::ColumnSpace;
using features::NamedFeature;
using features::Side;

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

ColumnClerk::Additions ColumnClerk::Admit(const NewColumns& wanted) {
  Additions added;
  for (const NewColumns::Name& each : wanted.names) {
    space_.Admit(each.side, each.name, limits_, added);
  }
  for (const features::WantedCrossing& pair : wanted.crossings) {
    const auto item = space_.PlaceOf(Side::kItem, pair.item, limits_);
    const auto other = space_.PlaceOf(pair.side, pair.other, limits_);
    if (item && other) space_.AdmitCrossing(item->column, other->column, limits_, added);
  }
  return added;
}

ColumnClerk::Additions ColumnClerk::Admit(std::span<const std::shared_ptr<const Item>> items,
                                          std::vector<Cells>& cells) {
  Additions added;
  for (const std::shared_ptr<const Item>& item : items) {
    const std::vector<NamedFeature> all = AllNamed(item->features, item->named);
    for (const NamedFeature& feature : all) {
      space_.Admit(Side::kItem, feature.name, limits_, added);
    }
    features::Resolve(space_, limits_, Side::kItem, all, cells.emplace_back());
    features::Compact(cells.back());
  }
  return added;
}

std::vector<double> ColumnClerk::FeaturesOf(const NewColumns& wanted) {
  Cells item = wanted.item;
  features::Resolve(space_, limits_, Side::kItem, wanted.item_features, item);
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
