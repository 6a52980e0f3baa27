#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/policy/policy.h"

namespace codband {

// The users with a young period who came last, each once: those whose assignment is worth
// resampling. Not thread-safe for writing.
class YoungUsers {
 public:
  static constexpr std::size_t kMost = 512;

  std::size_t size() const { return users_.size(); }
  UserId user(std::size_t place) const { return users_[place]; }

  // The user is one of them. `time` counts observations: beyond kMost places are taken in turn.
  void Note(UserId user, std::uint64_t time);
  // A place to resample. Precondition: there is one.
  std::size_t Draw(RandomStream& random) const { return random.Below(users_.size()); }
  // Whoever has the place is young no more.
  void Drop(std::size_t place);
  void Forget(UserId user);
  // All for whom `keep` does not say so are no longer among them.
  template <typename Keep>
  void KeepIf(const Keep& keep) {
    std::erase_if(users_, [&](UserId user) { return !keep(user); });
  }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  std::vector<UserId> users_;
};

}  // namespace codband
