#include "codband/server/keys/sessions.h"

#include <algorithm>

namespace codband::server {

std::string Sessions::Open(const KeyRecord& key, Clock::time_point now) {
  std::erase_if(sessions_, [&](const auto& each) { return now - each.second.last_use > kIdle; });
  if (sessions_.size() >= kMost) {
    sessions_.erase(std::ranges::min_element(
        sessions_, {}, [](const auto& each) { return each.second.last_use; }));
  }
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
