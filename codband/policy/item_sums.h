#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/model_aliases.h"
#include "codband/policy/policy.h"

namespace codband {

// What is known of one item beyond its features (item_effects.h): of one partition, or of several
// (shared_pool.h).
struct ItemSums {
  struct Group {
    ModelId model;
    double weight = 0;
    double sum = 0;
    std::uint64_t users = 0;
  };
  ItemId id;
  std::uint64_t shown = 0;
  double reward = 0;
  double squares = 0;
  double own_products = 0;
  double own_squares = 0;
  std::vector<Group> groups = {};

  // Sums of the same item. Models go by the names that `aliases` gives them.
  void Add(const ItemSums& other, const ModelAliases& aliases);

  static void Save(std::span<const ItemSums> items, ByteWriter& out);
  // In the order of ids.
  static std::vector<ItemSums> Load(ByteReader& in);
};

}  // namespace codband
