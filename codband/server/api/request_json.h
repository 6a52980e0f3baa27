#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/engine/item.h"
#include "codband/server/api/json_value.h"

namespace codband::server {

// Readers of requests: the request, or kInvalidArgument whose message is the field, a colon and the
// reason ("actions[3].features: has 7 numbers, expected 25"). A field that is unknown or given
// twice, nesting deeper than kMaxJsonDepth, invalid UTF-8 and numbers that are not finite are
// refused; nothing is repaired. What they return owns its memory. The parser's state does not
// matter; the functions are safe from any thread with a parser of its own.

using engine::kMaxIdBytes;
// Of a feature: its path, "=" and its word.
inline constexpr std::size_t kMaxNameBytes = features::ColumnSpace::kMaxNameBytes;
inline constexpr std::size_t kMaxJsonDepth = 64;
// That a request may bring: each is as many numbers as there are columns.
inline constexpr std::size_t kMostActions = 10'000;

// {"eventId"?, "userId"? | "user"?, "actions"?, "contextFeatures"?, "userFeatures"?,
// "excludedActions"?, "topK"?, "deferActivation"?}. Features given by name are hashed into `dim`
// numbers; if it is 0 every name has a column, of the context too. Without a userId the user is
// found at the path `user_from` of the context, or the visitor is anonymous.
Result<engine::RankRequest> ParseRank(JsonParser& parser, std::string_view body, std::size_t dim,
                                      std::string_view user_from = {});

// Of the same only whose ranking it is, the user and the event, for who passes it on: the rest is
// not looked at.
Result<engine::RankRequest> ParseRankKey(JsonParser& parser, std::string_view body,
                                         std::string_view user_from);

// {"value": number}.
Result<double> ParseReward(JsonParser& parser, std::string_view body);

// {"id", "features", "tags"?}. If `id` (that of the path) is given, the body's may be missing and
// must be the same otherwise. `dim` as of ParseRank.
Result<engine::Item> ParseItem(JsonParser& parser, std::string_view body, std::size_t dim,
                               std::string_view id = {});

// {"name": as CheckBackupName allows}.
Result<std::string> ParseBackup(JsonParser& parser, std::string_view body);

// {"key": a string}.
Result<std::string> ParseLogin(JsonParser& parser, std::string_view body);

// The decoded "{id}" of a path: 1 to kMaxIdBytes bytes of UTF-8. Errors begin with "id: ".
Result<std::string> DecodeId(std::string_view raw_id);

}  // namespace codband::server
