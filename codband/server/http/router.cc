#include "codband/server/http/router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codband/base/text.h"
#include "codband/server/http/http_text.h"

namespace codband::server {
namespace {

// The path and the query of a target.
std::pair<std::string_view, std::string_view> SplitTarget(std::string_view target) {
  const std::size_t question = target.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
  std::string_view path = target.substr(0, question);
  if (!path.starts_with('/')) {
    const std::size_t scheme = path.find("://");
    if (scheme != std::string_view::npos) {
      const std::size_t slash = path.find('/', scheme + 3);
      path = slash == std::string_view::npos ? "/" : path.substr(slash);
    }
  }
  return {path, query};
}

bool Matches(std::string_view pattern, std::string_view path, std::string_view& raw_id) {
  const std::size_t brace = pattern.find('{');
  if (brace == std::string_view::npos) return pattern == path;
  if (!path.starts_with(pattern.substr(0, brace))) return false;
  const std::string_view after = pattern.substr(pattern.find('}') + 1);
  std::string_view rest = path.substr(brace);
  const std::string_view id = rest.substr(0, rest.find('/'));
  if (id.empty() || rest.substr(id.size()) != after) return false;
  raw_id = id;
  return true;
}

}  // namespace

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kDelete:
      return "DELETE";
  }
  return "?";
}

std::string AccessText(Access access) {
  switch (access) {
    case Access::kRank:
      return "rank";
    case Access::kItems:
      return "items";
    case Access::kRead:
      return "read";
    case Access::kAdmin:
      return "admin";
    case Access::kItemsOrRead:
      return "items or read";
    case Access::kAnyKey:
      return "any";
    case Access::kOpen:
      return "none";
  }
  return "?";
}

RouteMatch Router::Match(std::string_view method, std::string_view target) const {
  RouteMatch match;
  std::string_view path;
  std::tie(path, match.query) = SplitTarget(target);
  match.head = method == "HEAD";
  const std::string_view wanted = match.head ? "GET" : method;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (!Matches(routes_[i].pattern, path, match.raw_id)) continue;
    match.kind = RouteMatch::Kind::kWrongMethod;
    if (MethodName(routes_[i].method) == wanted) {
      match.kind = RouteMatch::Kind::kFound;
      match.route = &routes_[i];
      match.index = i;
      return match;
    }
  }
  return match;
}

std::string Router::AllowedMethods(std::string_view target) const {
  const std::string_view path = SplitTarget(target).first;
  std::vector<std::string_view> methods;
  std::string_view ignored;
  for (const Route& route : routes_) {
    if (!Matches(route.pattern, path, ignored)) continue;
    methods.push_back(MethodName(route.method));
    if (route.method == Method::kGet) methods.push_back("HEAD");
  }
  std::sort(methods.begin(), methods.end());
  return fmt::format("{}", fmt::join(methods, ", "));
}

std::vector<std::string_view> Router::NearPaths(std::string_view target) const {
  constexpr std::size_t kMost = 3;
  constexpr std::size_t kLongest = 200;  // bytes of the path that are compared
  const std::string_view path = SplitTarget(target).first.substr(0, kLongest);
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const Route& route : routes_) {
    // An id may be anything: a path that begins like the pattern is near.
    const std::string_view stem = route.pattern.substr(0, route.pattern.find('{'));
    const std::size_t distance = stem.size() < route.pattern.size() && path.starts_with(stem)
                                     ? 1
                                     : EditDistance(path, route.pattern);
    if (distance * 2 > std::max(path.size(), route.pattern.size())) continue;
    const auto same = [&](const auto& other) { return other.second == route.pattern; };
    if (std::none_of(found.begin(), found.end(), same)) found.emplace_back(distance, route.pattern);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> paths;
  for (std::size_t i = 0; i < std::min(found.size(), kMost); ++i) paths.push_back(found[i].second);
  return paths;
}

Result<Query> ParseQuery(std::string_view query, std::span<const std::string_view> known) {
  Query parameters;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    Result<std::string> name = UrlDecode(part.substr(0, equals), true);
    Result<std::string> value =
        UrlDecode(equals < part.size() ? part.substr(equals + 1) : std::string_view{}, true);
    if (!name.ok()) return Status::InvalidArgument("query: " + name.status().message());
    if (!value.ok()) {
      return Status::InvalidArgument(name.value() + ": " + value.status().message());
    }
    if (std::find(known.begin(), known.end(), name.value()) == known.end()) {
      return Status::InvalidArgument(fmt::format("query: has no parameter '{}'; known: {}",
                                                 name.value(), fmt::join(known, ", ")));
    }
    for (const auto& [other, ignored] : parameters) {
      if (other == name.value()) return Status::InvalidArgument(other + ": is given twice");
    }
    parameters.emplace_back(std::move(name).value(), std::move(value).value());
  }
  return parameters;
}

}  // namespace codband::server
