#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/column_owners.h"
#include "codband/engine/item.h"
#include "codband/engine/sightings.h"
#include "codband/features/column_space.h"
#include "codband/features/crossings.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// What a request brought that had no column when it was ranked, with the features of the action
// that it chose.
struct NewColumns {
  struct Name {
    features::Side side = features::Side::kItem;
    std::string name;
  };
  std::vector<Name> names = {};    // in the order of the request
  std::vector<Name> sharing = {};  // that share columns and are not on the list of those
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

// The features of an item of the catalogue. One that has none is told apart by its id, which is the
// feature "id=…" then, for as many such items as IdHasRoom says.
std::vector<features::NamedFeature> NamedFeaturesOf(const Item& item);
inline bool IsKnownByIdAlone(const Item& item) {
  return item.features.empty() && item.named.empty();
}
// Whether an id gets a column: as many of the first columns as are kept for the catalogue. Of many
// items a column each costs more than it tells; of the others the effects of items are learned.
inline bool IdHasRoom(const features::ColumnSpace& space, const features::ColumnLimits& limits) {
  return space.own() < limits.columns / 4;
}
// The cells of an item of the catalogue. An id without a column has none. Names without a place go
// to `unknown`, if it is given, and an id that would get a column.
features::Cells CellsOf(const features::ColumnSpace& space, const features::ColumnLimits& limits,
                        const Item& item, std::vector<features::NamedFeature>* unknown = nullptr);

// The limits where the loop has given out all columns there are: a name without one shares.
inline constexpr features::ColumnLimits kGivenOut{.columns = 0};

// Gives out columns, in the order of the committer's commands. What it gives out counts once it is
// durable: Begin() starts a group, Undo() takes back what the group was given. Not thread-safe:
// used only on the committer's thread.
//
// Names of the catalogue get a column as long as there is one. Names of requests do so up to
// ColumnLimits::at_once; later ones once they were seen in decisions for several users
// (engine/sightings.h), and count as 0 until then. An array gets all of its columns or none.
//
// Partitions of a loop have the same columns (engine/partition.h): there the clerk finds out what
// is to be asked for (Ask), and columns come from the loop (Follow). Nobody else may ever hear of
// what one user alone has sent: names of contexts and users wait for several users from the first
// one on, however often one of them sends them.
class ColumnClerk {
 public:
  using Additions = std::vector<features::ColumnSpace::Addition>;
  enum class Source { kOwn, kLoop };  // of columns

  ColumnClerk(features::ColumnSpace space, const features::ColumnLimits& limits,
              features::CrossingRules rules, const SipKey& secret = {},
              Source source = Source::kOwn)
      : space_(std::move(space)),
        limits_(limits),
        rules_(std::move(rules)),
        of_loop_(source == Source::kLoop),
        sightings_(secret) {}

  std::size_t size() const { return space_.size(); }

  // Reads what the last process has counted.
  Status Load(const store::Store& store);

  void Begin();
  void Undo();

  // What is added for a request of the user, or for items, whose cells are then appended to
  // `cells`. What is counted goes to the batch.
  Additions Admit(const NewColumns& wanted, UserId user, store::StoreBatch& batch);
  Additions Admit(std::span<const std::shared_ptr<const Item>> items,
                  std::vector<features::Cells>& cells);
  // What the loop is to be asked for, which Admit would add; it is not added. Who gives out the
  // loop's columns counts those `at_once`: others may have asked for more of them meanwhile.
  // Crossings follow once their names have columns.
  Additions Ask(const NewColumns& wanted, UserId user, store::StoreBatch& batch);
  // What the loop has added to `first` columns. kCorruption if that does not fit; nothing has
  // changed then.
  Status Follow(std::uint64_t first, std::span<const features::ColumnSpace::Addition> additions);
  // The cells of items whose names the loop knows.
  void Place(std::span<const std::shared_ptr<const Item>> items,
             std::vector<features::Cells>& cells) const;
  // A decision for the user has these columns.
  void Note(std::span<const std::uint32_t> columns, UserId user, store::StoreBatch& batch) {
    owners_.Note(columns, user, batch);
  }
  // Renames the columns that were the user's alone. Returns which.
  std::vector<std::uint32_t> Forget(UserId user, store::StoreBatch& batch);
  // The features of the chosen action, once all of them have a column.
  std::vector<double> FeaturesOf(const NewColumns& wanted);

 private:
  // Whether a name that the user has sent is not to be told before others have sent it.
  bool IsPrivate(features::Side side, UserId user) const {
    return of_loop_ && side != features::Side::kItem && user != kNobody;
  }

  features::ColumnSpace space_;
  const features::ColumnLimits limits_;
  const features::CrossingRules rules_;
  const bool of_loop_;
  Sightings sightings_;
  ColumnOwners owners_;
  std::vector<std::pair<std::uint32_t, std::string>> renamed_;  // by the group: their old names
  features::ColumnSpace::Mark mark_;
  features::CrossedContext crossed_;
};

}  // namespace codband::engine
