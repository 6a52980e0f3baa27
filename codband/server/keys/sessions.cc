#include "codband/server/keys/sessions.h"

#include <map>

namespace codband::server {

template <typename Counts>
void Sessions::MakeRoom(std::size_t most, const Counts& counts) {
  std::size_t count = 0;
  auto quietest = sessions_.end();
  for (auto each = sessions_.begin(); each != sessions_.end(); ++each) {
    if (!counts(each->second)) continue;
    ++count;
    if (quietest == sessions_.end() || each->second.last_use < quietest->second.last_use) {
      quietest = each;
    }
  }
  if (count >= most) sessions_.erase(quietest);
}

std::string Sessions::Open(const KeyRecord& key, Clock::time_point now) {
  std::erase_if(sessions_, [&](const auto& each) { return now - each.second.last_use > kIdle; });
  MakeRoom(kMostOfKey, [&](const Session& each) { return each.key.hash == key.hash; });
  MakeRoom(kMost, [](const Session&) { return true; });
  std::string token = RandomHex(32);
  sessions_[HashKey(salt_, token)] = {.key = key, .csrf = RandomHex(16), .last_use = now};
  return token;
}

const Sessions::Session* Sessions::Find(std::string_view token, Clock::time_point now) {
  const auto found = sessions_.find(HashKey(salt_, token));
  if (found == sessions_.end()) return nullptr;
  if (now - found->second.last_use > kIdle) {
    sessions_.erase(found);
    return nullptr;
  }
  found->second.last_use = now;
  return &found->second;
}

void Sessions::Close(std::string_view token) { sessions_.erase(HashKey(salt_, token)); }

}  // namespace codband::server
