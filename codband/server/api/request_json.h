#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/engine/item.h"

namespace codband::server {

// Readers of request bodies. Pure functions of any bytes: the request, or kInvalidArgument whose
// message is the field, a colon and the reason ("actions[3].features: has 7 numbers, expected 25").
// What is unknown, given twice, nested deeper than kMaxJsonDepth, not UTF-8 or not a finite number
// is refused; nothing is repaired. Safe from any thread; each keeps a parser of its own.

using engine::kMaxIdBytes;
inline constexpr std::size_t kMaxNameBytes = 1024;  // of a feature: its path and its word
inline constexpr std::size_t kMaxJsonDepth = 64;

// {"eventId"?, "userId" | "user", "actions"?, "contextFeatures"?, "excludedActions"?, "topK"?,
// "deferActivation"?}. Features given by name are hashed into `dim` numbers. Precondition: dim > 0.
Result<engine::RankRequest> ParseRank(std::string_view body, std::size_t dim);

// {"value": number}.
Result<double> ParseReward(std::string_view body);

// {"id", "features", "tags"?}. With `id` (that of the path) the one in the body may be left out,
// and must be the same otherwise. Precondition: dim > 0.
Result<engine::Item> ParseItem(std::string_view body, std::size_t dim, std::string_view id = {});

// {"directory": absolute path}.
Result<std::filesystem::path> ParseBackup(std::string_view body);

}  // namespace codband::server
