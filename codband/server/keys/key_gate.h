#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/gatekeeper.h"
#include "codband/server/keys/key_failures.h"
#include "codband/server/keys/key_file.h"
#include "codband/server/keys/sessions.h"

namespace codband::server {

inline constexpr std::size_t kShortestKey = 16;  // of one that a person has chosen

struct KeyGateOptions {
  std::filesystem::path file = {};  // of keys; empty: none
  std::string admin_key = {};       // one that has the role admin; empty: none
  std::size_t max_failures = 10;    // wrong keys of an address before it has to wait; 0: never
  std::function<KeyFailures::Clock::time_point()> now = &KeyFailures::Clock::now;
};

// The keys of a server, from a file that may change while it runs and from one setting. Every
// request needs one of them, even when the file has none left. Keys are kept as hashes only.
class KeyGate final : public Gatekeeper {
 public:
  // Errors of ReadKeyFile; kInvalidArgument if there is no key at all.
  static Result<std::unique_ptr<KeyGate>> Open(KeyGateOptions options);

  Verdict Check(const boost::asio::ip::address& client, std::string_view key) override;
  std::variant<Opened, HttpError> OpenSession(const boost::asio::ip::address& client,
                                              std::string_view key) override;
  std::optional<SessionFacts> FindSession(std::string_view token) override;
  void CloseSession(std::string_view token) override;
  std::vector<KeyUse> ListKeys() override;
  std::uint64_t generation() const override { return generation_.load(std::memory_order_acquire); }

  // Reads the file again if it has changed since, or in any case. The keys that were read last stay
  // valid if it cannot be read. Returns the number of keys if it was read. From one thread.
  enum class When { kChanged, kNow };
  Result<std::optional<std::size_t>> Reload(When when);

 private:
  // What tells that a file was replaced or written to.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Records = std::vector<KeyRecord>;

  explicit KeyGate(KeyGateOptions options);
  // The record of the key, if it is right, goes to `found`.
  Verdict Check(const boost::asio::ip::address& client, std::string_view key, KeyRecord& found);
  Stamp StampOfFile() const;
  // The record of this key; nullptr if there is none.
  const KeyRecord* Find(const Records& records, std::string_view key) const;

  const std::filesystem::path file_;
  const std::optional<KeyRecord> admin_;
  const KeyRecord nobody_;  // of a key that nobody has: the salt by which wrong keys are hashed
  const std::function<KeyFailures::Clock::time_point()> now_;
  Stamp stamp_;

  std::atomic<std::uint64_t> generation_ = 1;
  std::mutex mutex_;                        // guards what follows
  std::shared_ptr<const Records> records_;  // shared with checks that go on while it is replaced
  KeyFailures failures_;
  Sessions sessions_;
  std::map<std::string, std::int64_t> last_use_ms_;  // by the name of the key
};

}  // namespace codband::server
