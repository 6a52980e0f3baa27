#pragma once

#include <cstddef>
#include <limits>
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

enum class Access {
  kKey,   // needs the API key, if the server has one
  kOpen,  // for everybody
};

// One operation of a service. A GET route also answers HEAD.
struct Route {
  Method method = Method::kGet;
  std::string_view pattern;    // "{id}" stands for one non-empty path segment; one at most
  std::string_view operation;  // its operationId in OpenAPI
  BodyKind body = BodyKind::kNone;
  Access access = Access::kKey;
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
