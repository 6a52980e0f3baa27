#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace codband::server {

enum class Method { kGet, kPost, kPut, kDelete };
std::string_view MethodName(Method method);

// How the body of a request is read.
enum class BodyKind {
  kNone,      // none is expected; one that comes is read and ignored
  kWhole,     // read as a whole before the request is handled, up to max_body_bytes
  kStreamed,  // handled piece by piece while it arrives, up to max_stream_bytes
};

// Roles of keys, as bits, and sets of roles: who may use a route. A key has one role; admin may use
// every route. If the server has no keys, every route is open.
enum class Access : std::uint8_t {
  kRank = 1,   // rankings and their rewards
  kItems = 2,  // the catalogue
  kRead = 4,   // reports, metrics
  kAdmin = 8,
  kItemsOrRead = kItems | kRead,
  kAnyKey = kRank | kItems | kRead | kAdmin,
  kOpen = 128,  // for everybody, without a key
};
inline constexpr Access kRoles[] = {Access::kRank, Access::kItems, Access::kRead, Access::kAdmin};

constexpr bool Allows(Access role, Access needed) {
  const auto bits = [](Access access) { return static_cast<unsigned>(access); };
  return role == Access::kAdmin || needed == Access::kOpen || (bits(role) & bits(needed)) != 0;
}

// The role, or the roles but admin that are let in: "rank", "items or read"; "any", or "none" where
// no key is needed.
std::string AccessText(Access access);

// One operation of a service. A GET route also answers HEAD.
struct Route {
  Method method = Method::kGet;
  std::string_view pattern;    // "{id}" stands for one non-empty path segment; one at most
  std::string_view operation;  // its operationId in OpenAPI
  BodyKind body = BodyKind::kNone;
  Access access = Access::kAdmin;
};

inline constexpr std::size_t kNoRoute = std::numeric_limits<std::size_t>::max();

// The route of a request, or why there is none.
struct RouteMatch {
  enum class Kind { kFound, kNoSuchPath, kWrongMethod };
  Kind kind = Kind::kNoSuchPath;
  const Route* route = nullptr;  // if found
  std::size_t index = kNoRoute;  // of the route in its table, if found
  bool head = false;             // HEAD: the reply goes without its body
  std::string_view raw_id;       // what stood for "{id}", still encoded; borrowed from the target
  std::string_view query;        // after the '?'; borrowed from the target
};

}  // namespace codband::server
