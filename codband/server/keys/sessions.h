#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "codband/server/http/gatekeeper.h"
#include "codband/server/keys/key_file.h"

namespace codband::server {

// Who has logged in: sessions by their tokens, of which only hashes are kept. A session that was
// not used for kIdle is over; of more than kMost the one that was quiet for longest ends, and so it
// is with those of one key, so that a key cannot end the sessions of others. In memory: a restart
// ends them all. Not thread-safe.
class Sessions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours kIdle{12};
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kMostOfKey = 50;

  struct Session {
    KeyRecord key;  // that opened it
    std::string csrf;
    Clock::time_point last_use;
  };

  // Opens one and returns its token: 256 random bits in hex.
  std::string Open(const KeyRecord& key, Clock::time_point now);
  // The session of the token, which is used now; nullptr if there is none.
  const Session* Find(std::string_view token, Clock::time_point now);
  void Close(std::string_view token);

 private:
  // Ends the quietest of those that count if there are as many as may be.
  template <typename Counts>
  void MakeRoom(std::size_t most, const Counts& counts);

  const std::string salt_ = MakeKeyRecord("", Access::kRead, "").salt;
  std::map<std::string, Session, std::less<>> sessions_;  // by the hash of the token
};

}  // namespace codband::server
