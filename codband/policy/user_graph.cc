#include "codband/policy/user_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "codband/base/lines.h"

namespace codband {
namespace {

constexpr std::string_view kBlanks = " \t,\r";

// Takes the next number off the front of `line`.
bool TakeId(std::string_view& line, UserId& id) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
  if (error != std::errc{}) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return line.empty() || kBlanks.find(line.front()) != std::string_view::npos;
}

}  // namespace

Result<UserGraph> UserGraph::Parse(std::string_view text) {
  UserGraph graph;
  TextLines lines(text);
  while (lines.Next()) {
    std::string_view line = lines.line();
    const std::size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] == '#') continue;
    UserId a = 0;
    UserId b = 0;
    if (!TakeId(line, a) || !TakeId(line, b) ||
        line.find_first_not_of(kBlanks) != std::string_view::npos) {
      return Status::InvalidArgument(fmt::format("friends, line {}: \"{}\", expected two user ids",
                                                 lines.number(), lines.line()));
    }
    graph.Add(a, b);
  }
  return graph;
}

void UserGraph::Add(UserId a, UserId b) {
  if (a == b) return;
  std::vector<UserId>& of_a = friends_[a];
  if (std::ranges::find(of_a, b) != of_a.end()) return;
  of_a.push_back(b);
  friends_[b].push_back(a);
}

std::span<const UserId> UserGraph::FriendsOf(UserId user) const {
  const auto found = friends_.find(user);
  if (found == friends_.end()) return {};
  return found->second;
}

}  // namespace codband
