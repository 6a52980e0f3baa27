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
#include "codband/base/heap_bytes.h"
#include "codband/policy/paged_users.h"

namespace codband {

// A write-back LRU cache of user records of type T in front of an archive. A record that is not in
// memory is read from the archive when it is needed; Evict drops the least recently used records
// that the archive holds in their present state. Without an archive nothing is evicted, and this is
// a UserTable (user_table.h). Results never depend on which records are in memory. T has
// HeapBytes() (base/heap_bytes.h), Save(ByteWriter&) const, and Load(ByteReader&) unless another
// way to load is given; and, if there is something that older records lack, has_rest(), SaveRest
// and LoadRest, whose bytes stand behind all others.
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
  std::size_t bytes() const {                           // that they take
    return bytes_ + (used_last_ == nullptr ? 0 : BytesOf(*used_last_) - used_last_->bytes);
  }

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
      found = Insert(user, std::move(*record));
    }
    return Touch(found->second);
  }
  T& FindOrMake(UserId user) {
    if (T* found = Find(user)) return *found;
    return *Touch(Insert(user, make_())->second);
  }

  // Returns whether there was a record, in memory or in the archive.
  bool Erase(UserId user) {
    const bool archived = archive_ != nullptr && Find(user) != nullptr;
    if (archived) erased_.insert(user);  // the archive holds it until the next checkpoint
    return Remove(user);
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
    for (auto& [user, entry] : entries_) {
      visit(user, entry.record);
      Measure(entry);
    }
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

  // Evicts the least recently used of the unchanged records if there is no room for all that are in
  // memory. Makes room for a tenth more, so that it rarely has work to do. O(n log n).
  void Evict(const UserRoom& room) {
    if (archive_ == nullptr || (size() <= room.users && bytes() <= room.bytes)) return;
    std::vector<std::pair<std::uint64_t, UserId>> unchanged;  // by time of last use
    unchanged.reserve(size());
    for (const auto& [user, entry] : entries_) {
      if (!entry.changed) unchanged.emplace_back(entry.used, user);
    }
    std::ranges::sort(unchanged);
    const std::size_t users = room.users - room.users / 10;
    const std::size_t bytes_left = room.bytes - room.bytes / 10;
    for (const auto& [used, user] : unchanged) {
      if (size() <= users && bytes() <= bytes_left) return;
      Remove(user);
    }
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
    bytes_ = 0;
    used_last_ = nullptr;
    const std::size_t count = in.Count("number of users", sizeof(UserId));
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const UserId user = in.U64("user");
      if (entries_.contains(user)) return in.Fail("user", "appears twice");
      Entry& entry = Insert(user, make_())->second;
      load_(entry.record, in);
      Measure(entry);
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
        Measure(found->second);
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
    std::size_t bytes = 0;        // as they count in bytes_
    std::uint64_t used : 63 = 0;  // time of last use, in uses of the table
    bool changed : 1 = false;
  };
  static constexpr std::uint64_t kLastMoment = ~std::uint64_t{0} >> 1;

  using Entries = std::unordered_map<UserId, Entry>;

  static std::size_t BytesOf(const Entry& entry) {
    return sizeof(typename Entries::value_type) + kHeapBlock + entry.record.HeapBytes();
  }
  void Measure(Entry& entry) {
    bytes_ -= entry.bytes;
    entry.bytes = BytesOf(entry);
    bytes_ += entry.bytes;
  }

  typename Entries::iterator Insert(UserId user, T record) {
    const auto added = entries_.emplace(user, Entry{.record = std::move(record)}).first;
    Measure(added->second);
    return added;
  }
  bool Remove(UserId user) {
    const auto found = entries_.find(user);
    if (found == entries_.end()) return false;
    if (used_last_ == &found->second) used_last_ = nullptr;
    bytes_ -= found->second.bytes;
    entries_.erase(found);
    return true;
  }

  // Who asks for a record changes it afterwards: it is measured when another one is asked for.
  T* Touch(Entry& entry) {
    if (used_last_ != nullptr && used_last_ != &entry) Measure(*used_last_);
    used_last_ = &entry;
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
  Entries entries_;
  std::unordered_set<UserId> erased_;
  std::size_t bytes_ = 0;
  Entry* used_last_ = nullptr;  // its bytes are those before that
  std::uint64_t now_ = 0;
};

}  // namespace codband
