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

  friend bool operator==(const Item&, const Item&) = default;
};

}  // namespace codband::engine
