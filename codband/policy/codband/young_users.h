#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/policy/policy.h"

namespace codband {

// The users with a young period who came last: those whose assignment is worth resampling. A place
// that nobody has taken holds 0, which may as well be a user. Not thread-safe for writing.
class YoungUsers {
 public:
  // `time` counts observations; each place is taken in turn.
  void Note(UserId user, std::uint64_t time) { users_[time % users_.size()] = user; }
  UserId Draw(RandomStream& random) const { return users_[random.Below(users_.size())]; }
  void Forget(UserId user) { std::ranges::replace(users_, user, UserId{0}); }

  void Save(ByteWriter& out) const {
    for (const UserId user : users_) out.U64(user);
  }
  void Load(ByteReader& in) {
    for (UserId& user : users_) user = in.U64("young user");
  }

 private:
  std::array<UserId, 64> users_{};
};

}  // namespace codband
