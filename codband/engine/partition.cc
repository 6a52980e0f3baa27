#include "codband/engine/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/base/parse.h"
#include "codband/engine/local_engine.h"
#include "codband/engine/records.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

// No number of changes is like this.
constexpr std::uint64_t kWithColumns = 0xffff'c01c'ffff'c01c;

constexpr std::size_t kMadeUpIdBytes = 32;  // of hex digits; see LocalEngine::NewEventId

}  // namespace

std::string EncodeChanges(std::span<const CatalogueChange> changes) {
  // Where the number of features is fixed it is as it was before there were columns.
  const bool with_columns = std::ranges::any_of(
      changes, [](const CatalogueChange& change) { return !change.columns.empty(); });
  ByteWriter out;
  if (with_columns) out.U64(kWithColumns);
  out.U64(changes.size());
  for (const CatalogueChange& change : changes) {
    out.U64(change.put.size());
    for (const Item& item : change.put) out.String(EncodeItem(item));
    out.U64(change.deleted.size());
    for (const std::string& id : change.deleted) out.String(id);
    if (!with_columns) continue;
    out.U64(change.first_column);
    features::SaveAdditions(out, change.columns);
  }
  return out.Take();
}

Result<std::vector<CatalogueChange>> DecodeChanges(std::string_view bytes) {
  ByteReader in(bytes);
  const bool with_columns = in.Skip(kWithColumns);
  std::vector<CatalogueChange> changes(in.Count("number of changes", 16));
  for (CatalogueChange& change : changes) {
    for (std::size_t left = in.Count("number of items", 8); left > 0 && in.ok(); --left) {
      auto item = DecodeItem(in.String("item"));
      if (!item.ok()) return item.status();
      change.put.push_back(std::move(item).value());
    }
    for (std::size_t left = in.Count("number of ids", 8); left > 0 && in.ok(); --left) {
      change.deleted.push_back(in.String("id"));
    }
    if (!with_columns) continue;
    change.first_column = in.U64("first column");
    change.columns = features::LoadAdditions(in);
  }
  in.ExpectEnd();
  if (!in.ok()) {
    return Status::Corruption("a change of the catalogue cannot be read: " + in.status().message());
  }
  return changes;
}

std::optional<std::uint32_t> PartitionOfEvent(std::string_view event_id) {
  if (event_id.size() < kMadeUpIdBytes + 3) return std::nullopt;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(event_id.substr(0, kMadeUpIdBytes), is_hex)) return std::nullopt;
  const std::string_view rest = event_id.substr(kMadeUpIdBytes);
  if (!rest.starts_with(".p")) return std::nullopt;
  return ParseNumber<std::uint32_t>(rest.substr(2));
}

Result<std::uint64_t> LocalEngine::CatalogueSequence() const {
  std::string bytes;
  const Status found = store_->Get(store::Table::kMeta, kCatalogueKey, bytes);
  if (found.code() == StatusCode::kNotFound) return std::uint64_t{0};
  if (!found.ok()) return found;
  return ReadNumberKey(bytes);
}

void LocalEngine::Follow(std::uint64_t sequence, std::vector<CatalogueChange> changes,
                         Partition::Done done) {
  Committer::FollowCommand command{.sequence = sequence, .done = std::move(done)};
  for (CatalogueChange& change : changes) {
    Committer::FollowCommand::Change& next = command.changes.emplace_back();
    for (Item& item : change.put) {
      // What the loop has it must take: it was checked when it came.
      next.put.push_back(std::make_shared<const Item>(std::move(item)));
    }
    next.deleted = std::move(change.deleted);
    if (change.columns.empty()) continue;
    if (command.columns.empty()) command.first_column = change.first_column;
    std::ranges::move(change.columns, std::back_inserter(command.columns));
  }
  committer_->Submit(std::move(command));
}

bool LocalEngine::shares() const {
  return learner_->Read(
      [](const Learned& learned) { return learned.policy->shared_pool() != nullptr; });
}

Result<SharedPool::Merged> LocalEngine::Merge(std::span<const std::string> registers,
                                              std::string_view previous) const {
  // A function of its arguments and the policy's spec: learning need not wait for it.
  const std::size_t dim = dim_ == 0 ? kFirstDim : dim_;
  const auto policy = options_.make_policy ? options_.make_policy(options_.policy, dim)
                                           : MakePolicy(options_.policy, {.dim = dim});
  if (!policy.ok()) return policy.status();
  return policy.value()->shared_pool()->Merge(registers, previous);
}

void LocalEngine::Import(std::string pool, Partition::Done done) {
  committer_->Submit(Committer::ImportCommand{.pool = std::move(pool), .done = std::move(done)});
}

}  // namespace codband::engine
