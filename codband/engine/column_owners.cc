#include "codband/engine/column_owners.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "codband/engine/records.h"

namespace codband::engine {
namespace {

constexpr std::string_view kAfterPrefix = "owner0";  // '0' follows '/'

}  // namespace

Status ColumnOwners::Load(const store::Store& store,
                          const std::function<bool(std::uint32_t)>& can_have) {
  return store.Scan(store::Table::kMeta, std::string(kPrefix), std::string(kAfterPrefix),
                    [&](std::string_view key, std::string_view value) {
                      const auto column = ReadNumberKey(key.substr(kPrefix.size()));
                      const auto owner = ReadNumberKey(value);
                      if (!column.ok() || !owner.ok()) return true;
                      const auto index = static_cast<std::uint32_t>(column.value());
                      if (can_have(index)) owners_[index] = owner.value();
                      return true;
                    });
}

void ColumnOwners::Set(std::uint32_t column, std::optional<UserId> owner,
                       store::StoreBatch& batch) {
  const auto found = owners_.find(column);
  before_.emplace_back(column,
                       found == owners_.end() ? std::nullopt : std::optional(found->second));
  const std::string key = std::string(kPrefix) + NumberKey(column);
  if (owner) {
    owners_[column] = *owner;
    batch.Put(store::Table::kMeta, key, NumberKey(*owner));
  } else {
    owners_.erase(column);
    batch.Delete(store::Table::kMeta, key);
  }
}

void ColumnOwners::Add(std::uint32_t column, UserId user, store::StoreBatch& batch) {
  Set(column, user == kNobody ? std::nullopt : std::optional(user), batch);
}

void ColumnOwners::Note(std::span<const std::uint32_t> columns, UserId user,
                        store::StoreBatch& batch) {
  if (owners_.empty()) return;
  for (const std::uint32_t column : columns) {
    const auto found = owners_.find(column);
    if (found != owners_.end() && found->second != user) Set(column, std::nullopt, batch);
  }
}

std::vector<std::uint32_t> ColumnOwners::Forget(UserId user, store::StoreBatch& batch) {
  std::vector<std::uint32_t> columns;
  for (const auto& [column, owner] : owners_) {
    if (owner == user) columns.push_back(column);
  }
  std::ranges::sort(columns);
  for (const std::uint32_t column : columns) Set(column, std::nullopt, batch);
  return columns;
}

std::vector<std::uint32_t> ColumnOwners::Owned() const {
  std::vector<std::uint32_t> columns;
  for (const auto& [column, owner] : owners_) columns.push_back(column);
  std::ranges::sort(columns);
  return columns;
}

void ColumnOwners::Undo() {
  for (; !before_.empty(); before_.pop_back()) {
    const auto& [column, owner] = before_.back();
    if (owner) {
      owners_[column] = *owner;
    } else {
      owners_.erase(column);
    }
  }
}

}  // namespace codband::engine
