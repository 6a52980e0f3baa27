#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codband/engine/engine.h"
#include "codband/server/http/http_error.h"

namespace codband::server {

// The JSON of every answer, appended to a string that the caller reuses. Numbers are the shortest
// that read back the same; one that is not finite is written as null. Strings are valid JSON
// whatever is in them: invalid UTF-8 becomes U+FFFD. Safe from any thread.

void AppendJsonString(std::string& out, std::string_view text);
void AppendJsonNumber(std::string& out, double value);
void AppendJsonNumber(std::string& out, std::uint64_t value);

void AppendRankReply(std::string& out, const engine::RankReply& reply);
// Precondition: accepted or a duplicate; the others are errors.
void AppendRewardReply(std::string& out, std::string_view event_id,
                       const engine::RewardReply& reply);
void AppendItem(std::string& out, const engine::Item& item);
void AppendUser(std::string& out, const engine::UserReport& report);
void AppendModels(std::string& out, std::span<const engine::ModelReport> models);
void AppendModel(std::string& out, const engine::ModelReport& model);  // with its parameter
void AppendChanges(std::string& out, std::span<const engine::Change> changes);
void AppendError(std::string& out, const HttpError& error);

}  // namespace codband::server
