#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/route.h"

namespace codband::server {

// Finds the route of a request in a table of routes, which it borrows. Immutable: safe from any
// thread. `target` is that of the request line; of an absolute one ("http://host/path") only the
// path counts. Cost: one comparison per route.
class Router {
 public:
  explicit Router(std::span<const Route> routes) : routes_(routes) {}

  std::span<const Route> routes() const { return routes_; }

  RouteMatch Match(std::string_view method, std::string_view target) const;

  // For the header Allow: "DELETE, GET, HEAD, PUT".
  std::string AllowedMethods(std::string_view target) const;

  // Up to three patterns within a small edit distance of the target's path, nearest first.
  std::vector<std::string_view> NearPaths(std::string_view target) const;

 private:
  std::span<const Route> routes_;
};

// The decoded parameters of a query string. kInvalidArgument for one that is not in `known`, or
// that is given twice.
using Query = std::vector<std::pair<std::string, std::string>>;
Result<Query> ParseQuery(std::string_view query, std::span<const std::string_view> known);

}  // namespace codband::server
