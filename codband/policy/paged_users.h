#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "codband/base/bytes.h"
#include "codband/base/status.h"
#include "codband/policy/policy.h"

namespace codband {

// A record of the archive cannot be read.
class UnreadableRecord : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Durable storage for the records of users who have been evicted from memory.
class UserArchive {
 public:
  virtual ~UserArchive() = default;
  // The record of a user, as PagedUsers::SaveUser received it; false if there is none. Any number
  // of threads may read. Throws UnreadableRecord if it is damaged or the disk fails.
  virtual bool Read(UserId user, std::string& bytes) const = 0;
};

// How many users may be in memory.
struct UserRoom {
  std::size_t users = std::numeric_limits<std::size_t>::max();
  std::size_t bytes = std::numeric_limits<std::size_t>::max();  // that their records take
};

// The capability of a policy to keep only recently active users in memory (Policy::paged_users).
// Its state is in two parts: what all users share, and one record for each user. Records of
// inactive users live in an archive and are read back when they are needed.
//
// A checkpoint calls SaveShared and SaveChangedUsers, writes both durably, then MarkUsersSaved and
// EvictUsers. Thread safety is that of the policy: const functions may run concurrently with
// choosing.
class PagedUsers {
 public:
  virtual ~PagedUsers() = default;

  // `archive` outlives the policy and holds a record of every user who was saved and then evicted.
  virtual void SetArchive(const UserArchive* archive) = 0;

  // All state but the records of users.
  virtual void SaveShared(ByteWriter& out) const = 0;
  virtual void LoadShared(ByteReader& in) = 0;

  // Calls save(user, bytes) with the record of every user who may have changed since
  // MarkUsersSaved(), in the order of ids. Deleting the records of forgotten users from the archive
  // is the caller's task.
  using SaveUser = std::function<void(UserId user, std::string bytes)>;
  virtual void SaveChangedUsers(const SaveUser& save) const = 0;

  // The archive now holds what SaveChangedUsers gave, and forgotten users no longer.
  virtual void MarkUsersSaved() = 0;

  // Evicts the least recently used records until the others have room in memory. Records that
  // changed since MarkUsersSaved() stay.
  virtual void EvictUsers(const UserRoom& room) = 0;

  virtual std::size_t users_in_memory() const = 0;
  virtual std::size_t bytes_in_memory() const = 0;  // that their records take

  // Whether the shared state equals the sum over the records of all users. `all` calls its argument
  // for each record until that returns false. kCorruption says what does not match.
  using VisitRecord = std::function<bool(UserId user, std::string_view bytes)>;
  virtual Status CheckUsers(const std::function<Status(const VisitRecord&)>& all) const = 0;
};

// A policy without the capability seen as one with it: all of its state is shared, and there are no
// records.
class UnpagedUsers final : public PagedUsers {
 public:
  // `policy` outlives it.
  explicit UnpagedUsers(Policy& policy) : policy_(policy) {}

  void SetArchive(const UserArchive*) override {}
  void SaveShared(ByteWriter& out) const override { policy_.SaveState(out); }
  void LoadShared(ByteReader& in) override { policy_.LoadState(in); }
  void SaveChangedUsers(const SaveUser&) const override {}
  void MarkUsersSaved() override {}
  void EvictUsers(const UserRoom&) override {}
  std::size_t users_in_memory() const override { return 0; }
  std::size_t bytes_in_memory() const override { return 0; }
  Status CheckUsers(const std::function<Status(const VisitRecord&)>&) const override { return {}; }

 private:
  Policy& policy_;
};

}  // namespace codband
