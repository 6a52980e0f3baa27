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

// A write-back LRU cache of user records of type T in front of an archive. A record that is not in
// memory is read from the archive when it is needed; Evict drops the least recently used records
// that the archive holds in their present state. Without an archive nothing is evicted, and this is
// a UserTable (user_table.h). Results never depend on which records are in memory. T has
// Save(ByteWriter&) const, and Load(ByteReader&) unless another way to load is given; and, if there
// is something that older records lack, has_rest(), SaveRest and LoadRest, whose bytes stand behind
// all others.
//
// The table never writes to the archive. Its owner does so at a checkpoint: store what SaveChanged
// gives, delete the records of erased users, then call MarkSaved. Until then, changed ("dirty")
// records stay in memory, and erased users are hidden from reads of the archive.
//
// References stay valid until the user is erased or evicted. Saved in the order of user ids, so
// that equal tables give equal bytes. Const functions may run concurrently, and neither count as
// use nor bring records into memory; the others need exclusive access.
template <typename T>
class PagedUserTable {
 public:
  static constexpr bool kHasRest = requires(const T record) { record.has_rest(); };

  // make() is the record of a new user, and what load(record, in) reads a saved one into.
  using LoadRecord = std::function<void(T&, ByteReader&)>;
  explicit PagedUserTable(
      std::function<T()> make, LoadRecord load = [](T& record, ByteReader& in) { record.Load(in); })
      : make_(std::move(make)), load_(std::move(load)) {}

  void SetArchive(const UserArchive* archive) { archive_ = archive; }

  std::size_t size() const { return entries_.size(); }  // records in memory

  // The record, to read; nullptr if there is none. One that is not in memory is read into
  // `scratch`.
  const T* Peek(UserId user, std::optional<T>& scratch) const {
    const auto found = entries_.find(user);
    if (found != entries_.end()) return &found->second.record;
    scratch = Read(user);
    return scratch ? &*scratch : nullptr;
  }

  // The record, to change, and brings it into memory; nullptr if there is none.
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

  // Returns whether there was a record, in memory or in the archive.
  bool Erase(UserId user) {
    const bool archived = archive_ != nullptr && Find(user) != nullptr;
    if (archived) erased_.insert(user);  // the archive holds it until the next checkpoint
    return entries_.erase(user) > 0;
  }

  // Calls visit(user, record) for every user in memory, in no particular order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [user, entry] : entries_) visit(user, entry.record);
  }

  // The same, to change the records as reading them back from the archive would: the archive need
  // not follow.
  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& [user, entry] : entries_) visit(user, entry.record);
  }

  // Calls save(user, bytes) for every record that may have changed since the last MarkSaved(), in
  // the order of ids.
  void SaveChanged(const std::function<void(UserId, std::string)>& save) const {
    for (const UserId user : Users([](const Entry& entry) { return entry.changed; })) {
      ByteWriter out;
      entries_.at(user).record.Save(out);
      if constexpr (kHasRest) entries_.at(user).record.SaveRest(out);
      save(user, out.Take());
    }
  }
  // The archive now holds what SaveChanged gave, and erased users no longer.
  void MarkSaved() {
    for (auto& [user, entry] : entries_) entry.changed = false;
    erased_.clear();
  }

  // Evicts the least recently used of the unchanged records if more than `most` are in memory.
  // Makes room for `most` / 10 records more, so that it rarely has work to do. O(n).
  void Evict(std::size_t most) {
    if (archive_ == nullptr || entries_.size() <= most) return;
    std::vector<std::pair<std::uint64_t, UserId>> unchanged;  // by time of last use
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
      load_(entry->second.record, in);
    }
  }

  // What Save left out, for all users who have any of it.
  void SaveRest(ByteWriter& out) const {
    const std::vector<UserId> users =
        Users([](const Entry& entry) { return entry.record.has_rest(); });
    out.U64(users.size());
    for (const UserId user : users) {
      out.U64(user);
      entries_.at(user).record.SaveRest(out);
    }
  }
  void LoadRest(ByteReader& in) {
    const std::size_t count = in.Count("number of users with items", sizeof(UserId));
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const auto found = entries_.find(in.U64("user with items"));
      if (found == entries_.end()) {
        in.Fail("user with items", "is unknown");
      } else {
        found->second.record.LoadRest(in);
      }
    }
  }

  // The record that SaveChanged gave as these bytes. Those of users who saw no items have no rest.
  Result<T> Decode(std::string_view bytes) const {
    T record = make_();
    ByteReader in(bytes);
    load_(record, in);
    if constexpr (kHasRest) {
      if (in.ok() && in.remaining() > 0) record.LoadRest(in);
    }
    in.ExpectEnd();
    if (!in.ok()) return in.status();
    return record;
  }

 private:
  struct Entry {
    T record;
    std::uint64_t used : 63 = 0;  // time of last use, in uses of the table
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
  LoadRecord load_;
  const UserArchive* archive_ = nullptr;
  std::unordered_map<UserId, Entry> entries_;
  std::unordered_set<UserId> erased_;
  std::uint64_t now_ = 0;
};

}  // namespace codband
