#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/check.h"
#include "codband/policy/paged_users.h"

namespace codband {

// A record of type T for each user, of which only some are in memory: the others are in an archive
// and are read when they are asked for. Without an archive all are in memory. What the table says
// does not depend on which is where.
//
// References stay valid until the user is erased or let go. Saved in the order of user ids, so that
// equal tables give equal bytes. Const functions may run concurrently.
template <typename T>
class PagedUserTable {
 public:
  // New users, and those about to be read, start as make().
  explicit PagedUserTable(std::function<T()> make) : make_(std::move(make)) {}

  void SetArchive(const UserArchive* archive) { archive_ = archive; }

  std::size_t size() const { return entries_.size(); }  // in memory

  // The record to look at, or nullptr. One that is in the archive is read into `scratch`.
  const T* Peek(UserId user, std::optional<T>& scratch) const {
    const auto found = entries_.find(user);
    if (found != entries_.end()) return &found->second.record;
    scratch = Read(user);
    return scratch ? &*scratch : nullptr;
  }

  // The record to change, or nullptr.
  T* Find(UserId user) {
    auto found = entries_.find(user);
    if (found == entries_.end()) {
      std::optional<T> record = Read(user);
      if (!record) return nullptr;
      found = entries_.emplace(user, Entry{.record = std::move(*record)}).first;
    }
    return Touch(found->second);
  }
  T& FindOrMake(UserId user) {
    if (T* found = Find(user)) return *found;
    return *Touch(entries_.emplace(user, Entry{.record = make_()}).first->second);
  }

  // Returns whether there was one.
  bool Erase(UserId user) {
    const bool archived = archive_ != nullptr && Find(user) != nullptr;
    if (archived) erased_.insert(user);  // the archive still has it
    return entries_.erase(user) > 0;
  }

  // Calls visit(user, record) for every user in memory, in no particular order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [user, entry] : entries_) visit(user, entry.record);
  }

  // Calls save(user, bytes) for every record that may have changed since the last MarkSaved().
  void SaveChanged(const std::function<void(UserId, std::string)>& save) const {
    for (const UserId user : Users([](const Entry& entry) { return entry.changed; })) {
      ByteWriter out;
      entries_.at(user).record.Save(out);
      save(user, out.Take());
    }
  }
  // The archive holds what SaveChanged gave, and no longer those who were erased.
  void MarkSaved() {
    for (auto& [user, entry] : entries_) entry.changed = false;
    erased_.clear();
  }

  // Drops records that the archive holds as they are, those not asked for longest first, until
  // `most` or none such are left. O(n); a tenth more is dropped, so that it is rare.
  void Evict(std::size_t most) {
    if (archive_ == nullptr || entries_.size() <= most) return;
    std::vector<std::pair<std::uint64_t, UserId>> unchanged;  // by when they were used
    unchanged.reserve(entries_.size());
    for (const auto& [user, entry] : entries_) {
      if (!entry.changed) unchanged.emplace_back(entry.used, user);
    }
    const std::size_t surplus = entries_.size() - (most - most / 10);
    if (surplus < unchanged.size()) {
      std::ranges::nth_element(unchanged, unchanged.begin() + static_cast<std::ptrdiff_t>(surplus));
      unchanged.resize(surplus);
    }
    for (const auto& [used, user] : unchanged) entries_.erase(user);
  }

  void Save(ByteWriter& out) const {
    const std::vector<UserId> users = Users([](const Entry&) { return true; });
    out.U64(users.size());
    for (const UserId user : users) {
      out.U64(user);
      entries_.at(user).record.Save(out);
    }
  }
  void Load(ByteReader& in) {
    entries_.clear();
    const std::size_t count = in.Count("number of users", sizeof(UserId));
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const UserId user = in.U64("user");
      const auto [entry, is_new] = entries_.emplace(user, Entry{.record = make_()});
      if (!is_new) in.Fail("user", "appears twice");
      entry->second.record.Load(in);
    }
  }

  // A record from bytes that SaveChanged gave.
  Result<T> Decode(std::string_view bytes) const {
    T record = make_();
    ByteReader in(bytes);
    record.Load(in);
    in.ExpectEnd();
    if (!in.ok()) return in.status();
    return record;
  }

 private:
  struct Entry {
    T record;
    std::uint64_t used : 63 = 0;  // when it was last asked for
    bool changed : 1 = false;
  };
  static constexpr std::uint64_t kLastMoment = ~std::uint64_t{0} >> 1;

  T* Touch(Entry& entry) {
    entry.used = ++now_ & kLastMoment;
    entry.changed = true;
    return &entry.record;
  }

  std::optional<T> Read(UserId user) const {
    if (archive_ == nullptr || erased_.contains(user)) return std::nullopt;
    std::string bytes;
    if (!archive_->Read(user, bytes)) return std::nullopt;
    Result<T> record = Decode(bytes);
    CODBAND_CHECK(record.ok());  // the archive checks its bytes
    return std::move(record).value();
  }

  template <typename Predicate>
  std::vector<UserId> Users(const Predicate& predicate) const {
    std::vector<UserId> users;
    for (const auto& [user, entry] : entries_) {
      if (predicate(entry)) users.push_back(user);
    }
    std::ranges::sort(users);
    return users;
  }

  std::function<T()> make_;
  const UserArchive* archive_ = nullptr;
  std::unordered_map<UserId, Entry> entries_;
  std::unordered_set<UserId> erased_;
  std::uint64_t now_ = 0;
};

}  // namespace codband
