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
  std::vector<double> features;  // d numbers
  std::vector<features::NamedFeature>
      named;  // what the features were hashed from; empty if given as numbers
  std::vector<std::string> tags;

  friend bool operator==(const Item&, const Item&) = default;
};

}  // namespace codband::engine
