#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codband/features/hashed_features.h"

namespace codband::engine {

inline constexpr std::size_t kMaxIdBytes = 256;  // of users, events, items and tags

// Something that can be recommended.
struct Item {
  std::string id;
  std::vector<double> features;  // numbers; d of them where that is fixed
  // Where the number of features is fixed: what they were hashed from; empty if given as numbers.
  std::vector<features::NamedFeature> named;
  std::vector<std::string> tags;

  // About as many as it takes in a reply.
  std::size_t bytes() const {
    std::size_t sum = id.size() + features.size() * sizeof(double);
    for (const features::NamedFeature& feature : named) sum += feature.name.size() + sizeof(double);
    for (const std::string& tag : tags) sum += tag.size();
    return sum;
  }

  friend bool operator==(const Item&, const Item&) = default;
};

// A page of the catalogue ends with the item that reaches it.
inline constexpr std::size_t kItemPageBytes = std::size_t{4} << 20;

}  // namespace codband::engine
