#include "codband/server/http/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "codband/server/api/openapi.h"

namespace codband::server {
namespace {

using nlohmann::json;
using Kind = RouteMatch::Kind;

TEST(RouterTest, RoutesAreInTheOrderOfTheirIds) {
  for (std::size_t i = 0; i < Routes().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(Routes()[i].id), i);
  }
}

TEST(RouterTest, EveryRouteIsFoundByItsOwnPath) {
  for (const Route& route : Routes()) {
    std::string path(route.pattern);
    const std::size_t brace = path.find("{id}");
    if (brace != std::string::npos) path.replace(brace, 4, "a%2Fb");
    const std::string target = path + "?x=1";
    const RouteMatch match = MatchRoute(MethodName(route.method), target);
    ASSERT_EQ(match.kind, Kind::kFound) << path;
    EXPECT_EQ(match.route->id, route.id);
    EXPECT_EQ(match.query, "x=1");
    EXPECT_EQ(match.raw_id, brace != std::string::npos ? "a%2Fb" : "");
    EXPECT_FALSE(match.head);
  }
}

TEST(RouterTest, HeadIsAGetWithoutItsBody) {
  const RouteMatch match = MatchRoute("HEAD", "/v1/models");
  ASSERT_EQ(match.kind, Kind::kFound);
  EXPECT_EQ(match.route->id, RouteId::kModels);
  EXPECT_TRUE(match.head);
  EXPECT_EQ(MatchRoute("HEAD", "/v1/rank").kind, Kind::kWrongMethod);
}

TEST(RouterTest, OnlyHealthIsOpen) {
  for (const Route& route : Routes()) {
    EXPECT_EQ(route.open, route.pattern.starts_with("/v1/health/")) << route.pattern;
  }
}

TEST(RouterTest, UnknownPaths) {
  for (const char* path :
       {"", "*", "/v1", "/v1/rank/", "/v1/items/", "/v1/items//", "/v1/items/a/b", "/v1/events/a",
        "/v1/events//reward", "/v1/events/a/rewards", "//", "/V1/rank", "/v1/rank%20"}) {
    EXPECT_EQ(MatchRoute("GET", path).kind, Kind::kNoSuchPath) << path;
  }
}

TEST(RouterTest, AnAbsoluteTargetCountsByItsPath) {
  EXPECT_EQ(MatchRoute("POST", "http://host:8080/v1/rank?explain=true").kind, Kind::kFound);
  EXPECT_EQ(MatchRoute("GET", "http://host").route->id, RouteId::kPage);
}

TEST(RouterTest, WrongMethodsKnowTheRightOnes) {
  EXPECT_EQ(MatchRoute("GET", "/v1/rank").kind, Kind::kWrongMethod);
  EXPECT_EQ(MatchRoute("get", "/v1/models").kind, Kind::kWrongMethod);
  EXPECT_EQ(AllowedMethods("/v1/rank?x"), "POST");
  EXPECT_EQ(AllowedMethods("/v1/items/a"), "DELETE, GET, HEAD, PUT");
  EXPECT_EQ(AllowedMethods("/v1/users/a"), "DELETE, GET, HEAD");
}

TEST(RouterTest, NearPathsAreThoseOnceMistyped) {
  EXPECT_EQ(NearPaths("/v1/ranks").front(), "/v1/rank");
  EXPECT_EQ(NearPaths("/rank").front(), "/v1/rank");
  EXPECT_EQ(NearPaths("/v1/event/a/reward").front(), "/v1/events/{id}/reward");
  EXPECT_EQ(NearPaths("/v1/items/a/b").front(), "/v1/items/{id}");
  EXPECT_EQ(NearPaths("/v1/health").size(), 3u);
  EXPECT_TRUE(NearPaths("/" + std::string(100'000, 'x')).empty());
}

TEST(RouterTest, IdsAreDecoded) {
  EXPECT_EQ(DecodeId("a%2Fb%20c+d").value(), "a/b c+d");
  EXPECT_EQ(DecodeId("caf%C3%A9").value(), "café");
  EXPECT_EQ(DecodeId("%").status().message(),
            "id: has a '%' at byte 0 that no two hex digits follow");
  EXPECT_FALSE(DecodeId("a%4").ok());
  EXPECT_FALSE(DecodeId("a%zz").ok());
  EXPECT_EQ(DecodeId("%ff").status().message(), "id: is not valid UTF-8");
  EXPECT_TRUE(DecodeId(std::string(256, 'a')).ok());
  EXPECT_EQ(DecodeId(std::string(257, 'a')).status().message(),
            "id: has 257 bytes, expected 1 to 256");
}

TEST(RouterTest, QueriesAreDecodedAndChecked) {
  constexpr std::array<std::string_view, 2> kKnown = {"top", "name"};
  EXPECT_EQ(ParseQuery("top=3&&name=a+b%26", kKnown).value(),
            (Query{{"top", "3"}, {"name", "a b&"}}));
  EXPECT_EQ(ParseQuery("top", kKnown).value(), (Query{{"top", ""}}));
  EXPECT_TRUE(ParseQuery("", kKnown).value().empty());
  EXPECT_EQ(ParseQuery("tip=3", kKnown).status().message(),
            "query: has no parameter 'tip'; known: top, name");
  EXPECT_EQ(ParseQuery("top=1&top=2", kKnown).status().message(), "top: is given twice");
  EXPECT_FALSE(ParseQuery("top=%", kKnown).ok());
}

// The descriptions of the API and the router say the same.
TEST(OpenApiTest, HasTheRoutesOfTheRouter) {
  const json api = json::parse(kOpenApiJson);
  std::set<std::string> described;
  for (const auto& [path, methods] : api.at("paths").items()) {
    for (const auto& [method, ignored] : methods.items()) described.insert(method + " " + path);
  }
  std::set<std::string> routed;
  for (const Route& route : Routes()) {
    std::string method(MethodName(route.method));
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(std::tolower(c)); });
    routed.insert(method + " " + std::string(route.pattern));
  }
  EXPECT_EQ(described, routed);
}

TEST(OpenApiTest, SaysWhichRoutesNeedTheKey) {
  const json api = json::parse(kOpenApiJson);
  EXPECT_FALSE(api.at("security").empty());
  for (const Route& route : Routes()) {
    for (const auto& [method, operation] : api["paths"][std::string(route.pattern)].items()) {
      const bool open = operation.contains("security") && operation["security"].empty();
      EXPECT_EQ(open, route.open) << route.pattern;
    }
  }
}

void CollectReferences(const json& value, std::set<std::string>& out) {
  if (value.is_object() && value.contains("$ref")) out.insert(value["$ref"].get<std::string>());
  if (value.is_structured()) {
    for (const json& child : value) CollectReferences(child, out);
  }
}

TEST(OpenApiTest, ReferencesLeadSomewhereAndEverySchemaIsUsed) {
  const json api = json::parse(kOpenApiJson);
  std::set<std::string> references;
  CollectReferences(api, references);
  for (const std::string& reference : references) {
    ASSERT_EQ(reference.front(), '#');
    EXPECT_TRUE(api.contains(json::json_pointer(reference.substr(1)))) << reference;
  }
  for (const auto& [name, ignored] : api["components"]["schemas"].items()) {
    EXPECT_TRUE(references.contains("#/components/schemas/" + name)) << name;
  }
}

TEST(OpenApiTest, EveryOperationHasAnAnswerAndItsParameters) {
  const json api = json::parse(kOpenApiJson);
  for (const auto& [path, methods] : api["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(operation.contains("operationId")) << path;
      EXPECT_TRUE(operation.contains("summary")) << path;
      bool good = false;
      for (const auto& [status, ignored] : operation["responses"].items()) {
        good = good || status[0] == '2';
      }
      EXPECT_TRUE(good) << path;
      const bool has_id = path.find("{id}") != std::string::npos;
      const std::string parameters = operation.value("parameters", json::array()).dump();
      EXPECT_EQ(parameters.find("\"in\":\"path\"") != std::string::npos, has_id) << path;
    }
  }
}

}  // namespace
}  // namespace codband::server
