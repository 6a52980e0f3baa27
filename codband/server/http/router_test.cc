#include "codband/server/http/router.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace codband::server {
namespace {

using Kind = RouteMatch::Kind;

constexpr std::array<Route, 6> kRoutes = {{
    {Method::kPost, "/v1/rank", "rank", BodyKind::kWhole},
    {Method::kPost, "/v1/events/{id}/reward", "reward", BodyKind::kWhole},
    {Method::kPut, "/v1/items/{id}", "put"},
    {Method::kGet, "/v1/items/{id}", "get"},
    {Method::kGet, "/v1/models", "models"},
    {Method::kGet, "/", "page"},
}};
const Router kRouter(kRoutes);

TEST(RouterTest, EveryRouteIsFoundByItsOwnPath) {
  for (std::size_t i = 0; i < kRoutes.size(); ++i) {
    std::string path(kRoutes[i].pattern);
    const std::size_t brace = path.find("{id}");
    if (brace != std::string::npos) path.replace(brace, 4, "a%2Fb");
    const std::string target = path + "?x=1";
    const RouteMatch match = kRouter.Match(MethodName(kRoutes[i].method), target);
    ASSERT_EQ(match.kind, Kind::kFound) << path;
    EXPECT_EQ(match.route, &kRoutes[i]);
    EXPECT_EQ(match.index, i);
    EXPECT_EQ(match.query, "x=1");
    EXPECT_EQ(match.raw_id, brace != std::string::npos ? "a%2Fb" : "");
    EXPECT_FALSE(match.head);
  }
}

TEST(RouterTest, HeadIsAGetWithoutItsBody) {
  const RouteMatch match = kRouter.Match("HEAD", "/v1/models");
  ASSERT_EQ(match.kind, Kind::kFound);
  EXPECT_EQ(match.route->operation, "models");
  EXPECT_TRUE(match.head);
  EXPECT_EQ(kRouter.Match("HEAD", "/v1/rank").kind, Kind::kWrongMethod);
}

TEST(RouterTest, PathsThatAreNotInTheTableAreNotFound) {
  for (const char* path :
       {"", "*", "/v1", "/v1/rank/", "/v1/items/", "/v1/items//", "/v1/items/a/b", "/v1/events/a",
        "/v1/events//reward", "/v1/events/a/rewards", "//", "/V1/rank", "/v1/rank%20"}) {
    EXPECT_EQ(kRouter.Match("GET", path).kind, Kind::kNoSuchPath) << path;
  }
}

TEST(RouterTest, OfAnAbsoluteTargetOnlyThePathCounts) {
  EXPECT_EQ(kRouter.Match("POST", "http://host:8080/v1/rank?explain=true").kind, Kind::kFound);
  EXPECT_EQ(kRouter.Match("GET", "http://host").route->operation, "page");
}

TEST(RouterTest, AWrongMethodIsToldTheAllowedOnes) {
  EXPECT_EQ(kRouter.Match("GET", "/v1/rank").kind, Kind::kWrongMethod);
  EXPECT_EQ(kRouter.Match("get", "/v1/models").kind, Kind::kWrongMethod);
  EXPECT_EQ(kRouter.AllowedMethods("/v1/rank?x"), "POST");
  EXPECT_EQ(kRouter.AllowedMethods("/v1/items/a"), "GET, HEAD, PUT");
}

TEST(RouterTest, NearPathsAreWithinAFewEdits) {
  EXPECT_EQ(kRouter.NearPaths("/v1/ranks").front(), "/v1/rank");
  EXPECT_EQ(kRouter.NearPaths("/rank").front(), "/v1/rank");
  EXPECT_EQ(kRouter.NearPaths("/v1/event/a/reward").front(), "/v1/events/{id}/reward");
  EXPECT_EQ(kRouter.NearPaths("/v1/items/a/b").front(), "/v1/items/{id}");
  EXPECT_LE(kRouter.NearPaths("/v1/i").size(), 3u);
  EXPECT_TRUE(kRouter.NearPaths("/" + std::string(100'000, 'x')).empty());
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

}  // namespace
}  // namespace codband::server
