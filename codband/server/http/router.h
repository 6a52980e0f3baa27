#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"

namespace codband::server {

enum class Method { kGet, kPost, kPut, kDelete };

enum class RouteId {
  kRank,
  kReward,
  kActivate,
  kImportItems,
  kPutItem,
  kGetItem,
  kDeleteItem,
  kGetUser,
  kForgetUser,
  kModels,
  kModel,
  kChanges,
  kBackup,
  kLive,
  kReady,
  kMetrics,
  kOpenApi,
  kPage,
  kOther,  // no route: only in metrics
};
inline constexpr std::size_t kRouteCount = static_cast<std::size_t>(RouteId::kOther);

struct Route {
  RouteId id;
  Method method;
  std::string_view pattern;  // "{id}" stands for one segment
  bool open = false;         // answers without the API key
};

std::string_view MethodName(Method method);

// Every route, in the order of RouteId.
std::span<const Route> Routes();

// The route of a request, or why there is none.
struct RouteMatch {
  enum class Kind { kFound, kNoSuchPath, kWrongMethod };
  Kind kind = Kind::kNoSuchPath;
  const Route* route = nullptr;  // kFound
  bool head = false;             // a GET whose answer goes without its body
  std::string_view raw_id;       // what stood for "{id}", still encoded; borrowed from the target
  std::string_view query;        // after the '?'; borrowed
};

// `method` and `target` as in the request line; only the path of an absolute target counts.
RouteMatch MatchRoute(std::string_view method, std::string_view target);

// For the header "Allow" of an answer to the wrong method: "DELETE, GET, HEAD, PUT".
std::string AllowedMethods(std::string_view target);

// Up to three patterns that look most like the path of the target, nearest first.
std::vector<std::string_view> NearPaths(std::string_view target);

// The decoded id of a path: 1 to 256 bytes of UTF-8. kInvalidArgument starts with "id: ".
Result<std::string> DecodeId(std::string_view raw_id);

// The decoded parameters of a query string; kInvalidArgument for one that is not `known` or that
// comes twice.
using Query = std::vector<std::pair<std::string, std::string>>;
Result<Query> ParseQuery(std::string_view query, std::span<const std::string_view> known);

}  // namespace codband::server
