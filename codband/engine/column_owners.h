#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// Which columns of contexts and users came from one user alone: "city=Bath" may be known of nobody
// else, and is forgotten with them. As soon as a decision for another one has the column it is
// nobody's. Columns that are not known here are nobody's, so those of directories of before.
//
// Each is a record of the store (kMeta), written with the decision. Not thread-safe.
class ColumnOwners {
 public:
  static constexpr std::string_view kPrefix = "owner/";  // of the keys (kMeta)

  // Reads the records of columns that can have an owner; those that cannot be read count as
  // missing.
  Status Load(const store::Store& store, const std::function<bool(std::uint32_t)>& can_have);

  // All that are somebody's, in ascending order.
  std::vector<std::uint32_t> Owned() const;

  // The column is new, with a decision for this user.
  void Add(std::uint32_t column, UserId user, store::StoreBatch& batch);
  // A decision for this user has the columns.
  void Note(std::span<const std::uint32_t> columns, UserId user, store::StoreBatch& batch);
  // The user's own columns, in ascending order, which are nobody's from now on.
  std::vector<std::uint32_t> Forget(UserId user, store::StoreBatch& batch);

  // A group begins; what has changed since then is taken back.
  void Begin() { before_.clear(); }
  void Undo();

 private:
  void Set(std::uint32_t column, std::optional<UserId> owner, store::StoreBatch& batch);

  std::unordered_map<std::uint32_t, UserId> owners_;
  std::vector<std::pair<std::uint32_t, std::optional<UserId>>> before_;  // what the group changed
};

}  // namespace codband::engine
