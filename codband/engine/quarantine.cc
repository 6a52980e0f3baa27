#include "codband/engine/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/engine/records.h"

namespace codband::engine {

Status Quarantine::Load() {
  const std::string from = QuarantineKey(0);
  const std::string prefix = from.substr(0, from.size() - 8);
  const std::string to = prefix.substr(0, prefix.size() - 1) + '0';  // the byte after '/'
  std::map<std::uint64_t, QuarantinedEntry> found;
  const Status read =
      store_.Scan(store::Table::kMeta, from, to, [&](std::string_view key, auto value) {
        const auto first = ReadNumberKey(key.substr(prefix.size()));
        if (!first.ok()) return true;  // no entry of the log has this number
        auto entry = DecodeQuarantined(value);
        // The key alone says which entry is left out.
        found[first.value()] =
            entry.ok() && entry.value().first == first.value()
                ? std::move(entry).value()
                : QuarantinedEntry{.first = first.value(),
                                   .last = first.value(),
                                   .reason = "the record of the reason is damaged"};
        return true;
      });
  CODBAND_RETURN_IF_ERROR(read);
  const std::lock_guard lock(mutex_);
  by_first_ = std::move(found);
  return {};
}

Status Quarantine::Write(const store::StoreBatch& batch) const {
  return read_only_ || batch.empty() ? Status() : store_.Write(batch, true);
}

// The one writer may read without the lock, which must not be held while the store works: a scan of
// the store calls Contains().
Status Quarantine::Add(QuarantinedEntry entry, std::uint64_t checkpoint) {
  store::StoreBatch batch;
  batch.Put(store::Table::kMeta, QuarantineKey(entry.first), EncodeQuarantined(entry));
  std::size_t dropped = 0;
  for (auto oldest = by_first_.begin();
       by_first_.size() - dropped >= kMostKept && oldest->second.last <= checkpoint; ++oldest) {
    batch.Delete(store::Table::kMeta, QuarantineKey(oldest->first));
    ++dropped;
  }
  CODBAND_RETURN_IF_ERROR(Write(batch));
  const std::lock_guard lock(mutex_);
  while (dropped-- > 0) by_first_.erase(by_first_.begin());
  by_first_[entry.first] = std::move(entry);
  return {};
}

Status Quarantine::Erase(std::span<const UserId> users) {
  std::vector<QuarantinedEntry> erased;
  store::StoreBatch batch;
  for (const auto& [first, entry] : by_first_) {
    if (entry.user.empty() || std::ranges::count(users, names_.User(entry.user)) == 0) continue;
    erased.push_back({.first = entry.first,
                      .last = entry.last,
                      .time_ms = entry.time_ms,
                      .reason = "its user was forgotten"});
    batch.Put(store::Table::kMeta, QuarantineKey(first), EncodeQuarantined(erased.back()));
  }
  CODBAND_RETURN_IF_ERROR(Write(batch));
  const std::lock_guard lock(mutex_);
  for (QuarantinedEntry& entry : erased) by_first_[entry.first] = std::move(entry);
  return {};
}

std::optional<QuarantinedEntry> Quarantine::Find(std::uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  const auto after = by_first_.upper_bound(sequence);
  if (after == by_first_.begin() || std::prev(after)->second.last < sequence) return std::nullopt;
  return std::prev(after)->second;
}

std::optional<QuarantinedEntry> Quarantine::FindEvent(std::uint64_t event) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [first, entry] : by_first_) {
    if (entry.event == event && !entry.user.empty() && !entry.forgets) return entry;
  }
  return std::nullopt;
}

bool Quarantine::HasUser(const std::string& user) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(by_first_, [&](const auto& each) { return each.second.user == user; });
}

std::vector<QuarantinedEntry> Quarantine::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<QuarantinedEntry> list;
  for (const auto& [first, entry] : by_first_) list.push_back(entry);
  return list;
}

std::uint64_t Quarantine::entries() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  for (const auto& [first, entry] : by_first_) count += entry.last - first + 1;
  return count;
}

bool Quarantine::EndsInARow(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  if (by_first_.size() < count) return false;
  auto entry = by_first_.rbegin();
  for (std::size_t i = 1; i < count; ++i) {
    const std::uint64_t next = entry->first;
    if ((++entry)->second.last + 1 != next) return false;
  }
  return true;
}

Status QuarantineStatus(const QuarantinedEntry& entry) {
  if (entry.forgets) {
    return Status::Corruption(fmt::format(
        "the user could not be removed from what was learned: {}; log entry {} is in quarantine, "
        "'codband doctor' lists it",
        entry.reason, entry.first));
  }
  return {StatusCode::kRejected,
          fmt::format("value: is kept but cannot be learned: {}; log entry {} is in quarantine and "
                      "changes no recommendation",
                      entry.reason, entry.first)};
}

}  // namespace codband::engine
