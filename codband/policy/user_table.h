#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/policy/policy.h"

namespace codband {

// A hash map from users to records of type T, all in memory; paged_user_table.h is the variant that
// evicts inactive users to an archive. T has Save(ByteWriter&) const and Load(ByteReader&).
//
// References stay valid until the user is erased. Saved in the order of user ids, so that equal
// tables give equal bytes. Const functions may run concurrently; the others need exclusive access.
template <typename T>
class UserTable {
 public:
  std::size_t size() const { return records_.size(); }

  const T* Find(UserId user) const {
    const auto found = records_.find(user);
    return found == records_.end() ? nullptr : &found->second;
  }
  T* Find(UserId user) { return const_cast<T*>(std::as_const(*this).Find(user)); }

  // The record of the user, made by make() if there is none.
  template <typename Make>
  T& FindOrMake(UserId user, const Make& make) {
    if (T* found = Find(user)) return *found;
    return records_.emplace(user, make()).first->second;
  }

  // Calls visit(user, record) for every user, in no particular order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [user, record] : records_) visit(user, record);
  }

  // The same, to change the records.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [user, record] : records_) visit(user, record);
  }

  bool Erase(UserId user) { return records_.erase(user) > 0; }

  void Save(ByteWriter& out) const {
    std::vector<UserId> users;
    users.reserve(records_.size());
    for (const auto& [user, record] : records_) users.push_back(user);
    std::ranges::sort(users);
    out.U64(users.size());
    for (const UserId user : users) {
      out.U64(user);
      records_.at(user).Save(out);
    }
  }

  // Each record is made by make() and then reads itself with T::Load(in).
  template <typename Make>
  void Load(ByteReader& in, const Make& make) {
    records_.clear();
    const std::size_t count = in.Count("number of users", sizeof(UserId));
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const UserId user = in.U64("user");
      const auto [entry, is_new] = records_.emplace(user, make());
      if (!is_new) in.Fail("user", "appears twice");
      entry->second.Load(in);
    }
  }

 private:
  std::unordered_map<UserId, T> records_;
};

}  // namespace codband
