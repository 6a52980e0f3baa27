#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace codband::features {

// A feature that has a name: a number ("price", 3.5), or a word ("genre=rock", 1).
struct NamedFeature {
  std::string name;
  double value = 0;

  friend bool operator==(const NamedFeature&, const NamedFeature&) = default;
};

// Feature hashing: adds named features to `out` (d numbers). The 64-bit XXH3 hash h of the name
// gives the index (h mod d) and the sign (+ if the top bit is 0), so that collisions cancel on
// average. The same on every machine.
void HashFeatures(std::span<const NamedFeature> named, std::span<double> out);

// Index and sign of a name.
struct HashedPlace {
  std::size_t index;
  double sign;
};
HashedPlace PlaceOf(std::string_view name, std::size_t dim);

}  // namespace codband::features
