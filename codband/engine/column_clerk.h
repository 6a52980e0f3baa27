#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/engine/item.h"
#include "codband/features/column_space.h"
#include "codband/features/crossings.h"

namespace codband::engine {

// What a request brought that had no column when it was ranked, with the features of the action
// that it chose.
struct NewColumns {
  struct Name {
    features::Side side = features::Side::kItem;
    std::string name;
  };
  std::vector<Name> names = {};  // in the order of the request
  // Ordered by importance: features shared by most actions first.
  std::vector<features::WantedCrossing> crossings = {};
  // Of the chosen action and the context: cells that had a column, and features that had none.
  features::Cells item = {};
  features::Cells context = {};
  std::vector<features::NamedFeature> item_features = {};
  std::vector<features::NamedFeature> context_features = {};
  std::vector<features::NamedFeature> user_features = {};
};

// The features of an item by name: numbers of a plain array are "[0]", "[1]", …
std::vector<features::NamedFeature> AllNamed(std::span<const double> numbers,
                                             std::span<const features::NamedFeature> named);

// Gives out columns, in the order of the committer's commands. What it gives out counts once it is
// durable: Begin() starts a group, Undo() takes back what the group was given. Not thread-safe:
// used only on the committer's thread.
class ColumnClerk {
 public:
  using Additions = std::vector<features::ColumnSpace::Addition>;

  ColumnClerk(features::ColumnSpace space, const features::ColumnLimits& limits,
              features::CrossingRules rules)
      : space_(std::move(space)), limits_(limits), rules_(std::move(rules)) {}

  std::size_t size() const { return space_.size(); }

  void Begin() { mark_ = space_.mark(); }
  void Undo() { space_.ReturnTo(mark_); }

  // What is added for a request, or for items, whose cells are then appended to `cells`.
  Additions Admit(const NewColumns& wanted);
  Additions Admit(std::span<const std::shared_ptr<const Item>> items,
                  std::vector<features::Cells>& cells);
  // The features of the chosen action, once all of them have a column.
  std::vector<double> FeaturesOf(const NewColumns& wanted);

 private:
  features::ColumnSpace space_;
  const features::ColumnLimits limits_;
  const features::CrossingRules rules_;
  features::ColumnSpace::Mark mark_;
  features::CrossedContext crossed_;
};

}  // namespace codband::engine
