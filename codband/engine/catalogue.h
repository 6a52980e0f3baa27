#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codband/base/status.h"
#include "codband/base/string_hash.h"
#include "codband/engine/item.h"
#include "codband/engine/name_hash.h"
#include "codband/features/column_space.h"
#include "codband/policy/policy.h"

namespace codband::engine {

inline constexpr std::size_t kMaxNamedFeatures = 4096;  // of an item, of a context

// Whether the item is valid. kInvalidArgument names the field and what is expected. dim 0: any
// number of features, by name or not.
Status CheckItem(const Item& item, std::size_t dim, double max_abs_feature);
// The same for an id alone, and for features alone; `field` is what the message calls them.
Status CheckId(std::string_view field, std::string_view id);
Status CheckFeatures(std::string_view field, std::span<const double> features, std::size_t dim,
                     double max_abs);
Status CheckNamed(std::string_view field, std::span<const features::NamedFeature> named,
                  double max_abs);

// The items that can be recommended, ordered by id; their features lie row after row, so that all
// can be ranked without a copy; or, if `dim` is 0, they have sparse cells. Const functions may run
// concurrently.
class Catalogue {
 public:
  explicit Catalogue(std::size_t dim, const NameHash& names = {}) : dim_(dim), names_(names) {}
  // What is known of an item points into the catalogue.
  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;
  Catalogue(Catalogue&&) = default;
  Catalogue& operator=(Catalogue&&) = default;

  std::size_t size() const { return items_.size(); }
  const Item& item(std::size_t index) const { return *items_[index]; }
  // What a ranking needs of an item.
  struct Known {
    const Item* item;
    ItemId number;                          // for policies
    std::span<const features::Cell> cells;  // where dim is 0
  };
  // nullptr if there is none.
  const Known* Look(const HashedText& id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &found->second;
  }
  const Item* Find(std::string_view id) const {
    const Known* const known = Look(HashedText(id));
    return known == nullptr ? nullptr : known->item;
  }
  // All features, in the order of the items. Precondition: dim > 0.
  ArmsView arms() const { return {.features = features_, .dim = dim_, .items = numbers_}; }
  // The numbers of the items for policies, in the same order.
  std::span<const ItemId> numbers() const { return numbers_; }
  // The features of an item where dim is 0.
  const features::Cells& cells(std::size_t index) const { return cells_[index]; }
  std::optional<std::size_t> IndexOf(std::string_view id) const;
  // The index of the first item after this id.
  std::size_t IndexAfter(std::string_view id) const;
  // All features of an item, whether dim is 0 or not; columns beyond `out` are left out.
  void ReadFeatures(std::size_t index, std::span<double> out) const;
  // parameter · features. Of sparse items, columns beyond the parameter count as 0.
  double Dot(std::size_t index, std::span<const double> parameter) const;

  // Inserts new items and replaces known ones; the last of equal ids wins. Items are shared with
  // other catalogues. `cells`, if dim is 0, has those of each. O(n d) if there are new ones.
  void Put(std::span<const std::shared_ptr<const Item>> items,
           std::span<const features::Cells> cells = {});
  // Returns whether there was one. O(n d).
  bool Erase(std::string_view id);

 private:
  // The item at the index, which is new or has taken the place of another, is found by its id.
  void Enter(std::size_t index);

  std::size_t dim_;
  NameHash names_;
  // The keys are the items' own ids, the cells those in cells_.
  std::unordered_map<std::string_view, Known, HashedTextHash, HashedTextEqual> by_id_;
  std::vector<std::shared_ptr<const Item>> items_;
  std::vector<double> features_;
  std::vector<features::Cells> cells_;  // if dim is 0
  std::vector<ItemId> numbers_;
};

}  // namespace codband::engine
