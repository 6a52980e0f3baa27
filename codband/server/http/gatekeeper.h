#pragma once

// clang-format off: g++ 12 needs it before Asio.
#include <utility>
// clang-format on

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codband/server/http/http_error.h"
#include "codband/server/http/request_reader.h"
#include "codband/server/http/route.h"

namespace codband::server {

// Knows the keys of a server. Safe from any thread.
class Gatekeeper {
 public:
  struct Verdict {
    std::optional<Access> role = {};  // of the key: one of the roles; none: it is wrong
    std::uint64_t generation = 0;     // of the set of keys that it was looked up in
    std::int64_t retry_after_s = 0;   // > 0: the key was not looked at, too many were wrong before
  };
  virtual ~Gatekeeper() = default;

  // Whose key it is. A wrong one counts against the client's address.
  virtual Verdict Check(const boost::asio::ip::address& client, std::string_view key) = 0;
  // Changes whenever a cached verdict may be stale.
  virtual std::uint64_t generation() const = 0;

  // Sessions of people who have shown a key: a cookie has the token, and writes also send `csrf`,
  // which pages of other sites cannot know. A session ends with its key, or after hours without
  // use.
  struct SessionFacts {
    Access role = Access::kRead;
    std::string name = {};  // of the key; empty: that of the setting
    std::string csrf = {};
  };
  struct Opened {
    std::string token = {};
    SessionFacts facts = {};
  };
  // Errors are those of a request with such a key: 401 or 429.
  virtual std::variant<Opened, HttpError> OpenSession(const boost::asio::ip::address& client,
                                                      std::string_view key) = 0;
  virtual std::optional<SessionFacts> FindSession(std::string_view token) = 0;
  virtual void CloseSession(std::string_view token) = 0;

  // The keys there are, without the keys.
  struct KeyUse {
    std::string name = {};
    Access role = Access::kRead;
    std::optional<std::int64_t> last_use_ms = {};  // since the start; of a connection its first
  };
  virtual std::vector<KeyUse> ListKeys() = 0;
};

// What a client with this verdict is told, unless its key is right.
std::optional<HttpError> VerdictError(const Gatekeeper::Verdict& verdict);

// Whether the requests of one connection may be answered, by their keys. Remembers the key that the
// last request was admitted with, so that the requests of a connection cost one comparison. Belongs
// to the thread of its connection.
class RequestAccess {
 public:
  // Without a gatekeeper everything is allowed. It outlives the object.
  RequestAccess(Gatekeeper* gatekeeper, boost::asio::ip::address client)
      : gatekeeper_(gatekeeper), client_(std::move(client)) {}

  const boost::asio::ip::address& client() const { return client_; }

  // What is wrong, if anything: 401, 403 or 429. `route` is nullptr if there is none: any key will
  // do to be told so, but without one nothing is told.
  std::optional<HttpError> Check(const RequestHead& head, const Route* route);

 private:
  std::optional<HttpError> CheckSession(const RequestHead& head, Access needed);

  Gatekeeper* const gatekeeper_;
  const boost::asio::ip::address client_;
  std::string admitted_key_;  // empty: none yet
  Gatekeeper::Verdict verdict_;
};

}  // namespace codband::server
