#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codband/features/column_space.h"

namespace codband::features {

// Which columns belong together, by column: those of one name ("genre=jazz" and "genre=rock", all
// places of an array), the crossings of two such names, and the shared ones. Groups are numbered in
// the order of their first columns, so that they keep their numbers as the space grows.
std::vector<std::uint32_t> GroupsOf(const ColumnSpace& space);

}  // namespace codband::features
