#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codband/engine/engine.h"
#include "codband/server/api/api_error.h"

namespace codband::server {

// The JSON of every reply, appended to a string that the caller reuses. Pure functions, safe from
// any thread.

void AppendRankReply(std::string& out, const engine::RankReply& reply);
// Precondition: accepted or a duplicate; the other outcomes are errors.
void AppendRewardReply(std::string& out, std::string_view event_id,
                       const engine::RewardReply& reply);
// With what was learned of it, if anything was.
void AppendItem(std::string& out, const engine::Item& item,
                const std::optional<ItemDescription>& learned = {});
// A page of at most `limit`; "next" is what to ask for after it, if there may be more. `learned`:
// what was learned of each, or nothing at all.
void AppendItems(std::string& out, std::span<const engine::Item> items, std::size_t limit,
                 std::span<const std::optional<ItemDescription>> learned = {});
void AppendFeatures(std::string& out, const engine::FeatureReport& report);
void AppendUser(std::string& out, const engine::UserReport& report);
void AppendModels(std::string& out, std::span<const engine::ModelReport> models);
void AppendModel(std::string& out, const engine::ModelReport& model);  // with its parameter
void AppendChanges(std::string& out, std::span<const engine::Change> changes);
void AppendBackupReply(std::string& out, std::string_view name);
void AppendError(std::string& out, const HttpError& error,
                 const std::optional<ImportProgress>& progress = {});

}  // namespace codband::server
