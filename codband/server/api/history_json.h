#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/api/json_value.h"

namespace codband::server {

// Something that happened before, to be learned: a user got an item, and what it brought.
struct HistoryEvent {
  std::string id;  // of the event; made of the others if not given
  std::string user;
  engine::Candidate item;  // without features: one of the catalogue
  double value = 0;
};

inline constexpr std::size_t kMaxHistoryEvents = 10'000;  // of one request

// {"events": [{"userId", "itemId", "value", "features"?, "time"?, "eventId"?}, …]}. The same rules
// as for other requests (request_json.h). `time` is any text; it tells equal events apart.
Result<std::vector<HistoryEvent>> ParseHistory(JsonParser& parser, std::string_view body,
                                               std::size_t dim);

// What became of a request.
struct HistoryOutcome {
  std::size_t accepted = 0;
  std::size_t duplicates = 0;
  struct Skipped {
    std::size_t index = 0;
    std::string reason;
  };
  std::vector<Skipped> skipped = {};
};
void AppendHistoryReply(std::string& out, const HistoryOutcome& outcome);

}  // namespace codband::server
