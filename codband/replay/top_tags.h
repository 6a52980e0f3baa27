#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "codband/replay/recorded_stream.h"

namespace codband::replay {

struct WeightedTag {
  std::string tag;
  double weight = 0;
};

// The tags of the `item_count` items that the parameter scores highest, the heaviest tag first, at
// most `tag_count` of them. Each item has weight 1, which its tags share in proportion to how often
// they were given, so that an item that thousands have tagged counts no more than another. Ties are
// broken by the order of the file for items and by name for tags. Precondition: theta has the
// stream's dimension.
std::vector<WeightedTag> TagsOfBestItems(const RecordedStream& stream, const ItemTags& tags,
                                         std::span<const double> theta, std::size_t item_count,
                                         std::size_t tag_count);

}  // namespace codband::replay
