#include "codband/features/hashed_features.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace codband::features {

HashedPlace PlaceOf(std::string_view name, std::size_t dim) {
  const std::uint64_t hash = XXH3_64bits(name.data(), name.size());
  return {.index = hash % dim, .sign = (hash >> 63) == 0 ? 1.0 : -1.0};
}

void HashFeatures(std::span<const NamedFeature> named, std::span<double> out) {
  for (const NamedFeature& feature : named) {
    const HashedPlace place = PlaceOf(feature.name, out.size());
    out[place.index] += place.sign * feature.value;
  }
}

}  // namespace codband::features
