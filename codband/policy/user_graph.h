#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codband/base/status.h"
#include "codband/policy/policy.h"

namespace codband {

// The friendships between users: an undirected graph given as a list of edges. Const functions may
// run concurrently.
class UserGraph {
 public:
  // Text with a pair of user ids on each line, separated by blanks, a tab or a comma; empty lines
  // and lines that start with # are skipped. kInvalidArgument names the line and what is wrong.
  static Result<UserGraph> Parse(std::string_view text);

  std::size_t user_count() const { return friends_.size(); }  // users with at least one friend
  std::span<const UserId> FriendsOf(UserId user) const;

  // Ignores self-loops and edges that are there already.
  void Add(UserId a, UserId b);

 private:
  std::unordered_map<UserId, std::vector<UserId>> friends_;
};

}  // namespace codband
