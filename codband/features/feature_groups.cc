#include "codband/features/feature_groups.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>

namespace codband::features {

std::vector<std::uint32_t> GroupsOf(const ColumnSpace& space) {
  std::vector<std::uint32_t> groups;
  groups.reserve(space.size());
  std::unordered_map<std::string, std::uint32_t> by_key;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const ColumnSpace::Column& each = space.column(i);
    std::string key = "shared";
    if (each.kind == ColumnSpace::Kind::kName) {
      key = fmt::format("{} {}", static_cast<int>(each.side), BaseOf(each.name));
    } else if (each.kind == ColumnSpace::Kind::kCrossing) {
      key = fmt::format("x {} {}", groups[each.item], groups[each.other]);
    }
    const auto next = static_cast<std::uint32_t>(by_key.size());
    groups.push_back(by_key.try_emplace(std::move(key), next).first->second);
  }
  return groups;
}

}  // namespace codband::features
