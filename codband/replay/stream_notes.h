#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/replay/replay.h"

namespace codband::replay {

// What may be known about a recorded stream besides what policies see: tags of its items, and
// where its events come from. Plain data; const use from any thread.

struct ItemTags {
  struct Count {
    std::uint32_t tag = 0;  // among the names
    double count = 0;
  };
  std::vector<std::string> names;
  std::vector<std::vector<Count>> of_item;  // by the item's row
};

// Reads tags.tsv: item id, tag, how often it was given (a positive number), separated by tabs. None
// if there is no such file, or nothing in it. kInvalidArgument names file, line, value and what was
// expected.
Result<std::optional<ItemTags>> ReadTags(const std::filesystem::path& directory,
                                         const RecordedStream& stream);

struct EventOrigins {
  std::string file;  // where they were read from
  // By event, in the order of the stream: who it was in the data set, and the group of users that
  // they belong to.
  std::vector<std::uint64_t> sources;
  std::vector<std::uint64_t> groups;
};

// Reads origins.tsv, or else meta.tsv: source and group of each line of events.tsv, whole numbers
// separated by tabs; the first line may be a heading. None if there is neither file.
// kInvalidArgument as above.
Result<std::optional<EventOrigins>> ReadOrigins(const std::filesystem::path& directory,
                                                const RecordedStream& stream);

struct WeightedTag {
  std::string tag;
  double weight = 0;
};

// The tags of the `item_count` items that the parameter scores best, the heaviest tag first, at
// most `tag_count` of them. Each item has the weight 1, which its tags share as often as they were
// given: an item that thousands have tagged says no more than another. Items of equal score come in
// the order of the file, tags of equal weight by name. Precondition: theta has the stream's
// dimension.
std::vector<WeightedTag> TagsOfBestItems(const RecordedStream& stream, const ItemTags& tags,
                                         std::span<const double> theta, std::size_t item_count,
                                         std::size_t tag_count);

}  // namespace codband::replay
