#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "codband/base/parse.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// What a node follows, as its row has it: ";3:120;7:5" is partition 3 up to frame 120 and partition
// 7 up to frame 5; ";" nothing now; and nothing at all is of a node that follows nothing ever, as
// those of older programs.
inline std::string FollowsText(const store::NodeState& node) {
  if (!node.standby) return {};
  std::string text = node.follows.empty() ? ";" : "";
  for (const store::Followed& each : node.follows) {
    text += fmt::format(";{}:{}", each.partition, each.sequence);
  }
  return text;
}

// What cannot be read is left out.
inline void ReadFollows(std::string_view text, store::NodeState& node) {
  node.standby = !text.empty();
  node.follows.clear();
  while (!text.empty()) {
    const std::string_view each = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), each.size() + 1));
    const std::size_t colon = each.find(':');
    if (colon == each.npos) continue;
    const auto partition = ParseNumber<store::Partition>(each.substr(0, colon));
    const auto sequence = ParseNumber<std::uint64_t>(each.substr(colon + 1));
    if (partition && sequence) {
      node.follows.push_back({.partition = *partition, .sequence = *sequence});
    }
  }
}

}  // namespace codband::cluster
