#include "codband/policy/codband/young_users.h"

#include <fmt/format.h>

namespace codband {
namespace {

// What is saved begins with it since format 7. Before, there were kBefore ids, of which a user
// could have several, and 0 where there was none.
constexpr std::uint64_t kYoungUsers = 0xffff'704e'ffff'704e;
constexpr std::size_t kBefore = 64;

}  // namespace

void YoungUsers::Note(UserId user, std::uint64_t time) {
  if (std::ranges::find(users_, user) != users_.end()) return;
  if (users_.size() < kMost) {
    users_.push_back(user);
  } else {
    users_[time % kMost] = user;
  }
}

void YoungUsers::Drop(std::size_t place) {
  users_[place] = users_.back();
  users_.pop_back();
}

void YoungUsers::Forget(UserId user) {
  const auto place = std::ranges::find(users_, user);
  if (place != users_.end()) Drop(static_cast<std::size_t>(place - users_.begin()));
}

void YoungUsers::Save(ByteWriter& out) const {
  out.U64(kYoungUsers);
  out.U64(users_.size());
  for (const UserId user : users_) out.U64(user);
}

void YoungUsers::Load(ByteReader& in) {
  users_.clear();
  if (!in.Skip(kYoungUsers)) {
    for (std::size_t i = 0; i < kBefore && in.ok(); ++i) Note(in.U64("young user"), 0);
    return;
  }
  const std::size_t count = in.Count("number of young users", sizeof(UserId));
  if (count > kMost) {
    in.Fail("number of young users", fmt::format("is {}, expected at most {}", count, kMost));
    return;
  }
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const UserId user = in.U64("young user");
    Note(user, 0);
    if (users_.size() != i + 1) return in.Fail("young user", "appears twice");
  }
}

}  // namespace codband
