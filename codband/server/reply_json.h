#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codband/engine/engine.h"
#include "codband/server/http_error.h"

namespace codband {

// The JSON of every answer, appended to a string that the caller reuses. Numbers are the shortest
// that read back the same; one that is not finite is written as null. Strings are valid JSON
// whatever is in them: invalid UTF-8 becomes U+FFFD. Safe from any thread.

void AppendJsonString(std::string& out, std::string_view text);
void AppendJsonNumber(std::string& out, double value);
void AppendJsonNumber(std::string& out, std::uint64_t value);

void AppendRankReply(std::string& out, const RankReply& reply);
// Precondition: accepted or a duplicate; the others are errors.
void AppendRewardReply(std::string& out, std::string_view event_id, const RewardReply& reply);
void AppendItem(std::string& out, const Item& item);
void AppendUser(std::string& out, const UserReport& report);
void AppendModels(std::string& out, std::span<const ModelReport> models);
void AppendModel(std::string& out, const ModelReport& model);  // with its parameter
void AppendChanges(std::string& out, std::span<const Change> changes);
void AppendError(std::string& out, const HttpError& error);

}  // namespace codband
