#include "codband/policy/user_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace codband {
namespace {

std::vector<UserId> FriendsOf(const UserGraph& graph, UserId user) {
  const auto friends = graph.FriendsOf(user);
  std::vector<UserId> sorted(friends.begin(), friends.end());
  std::ranges::sort(sorted);
  return sorted;
}

UserGraph ParseOrDie(std::string_view text) {
  Result<UserGraph> graph = UserGraph::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  return std::move(graph).value();
}

std::string GraphErrorOf(std::string_view text) {
  const Result<UserGraph> graph = UserGraph::Parse(text);
  EXPECT_FALSE(graph.ok()) << text;
  EXPECT_EQ(graph.status().code(), StatusCode::kInvalidArgument);
  return graph.status().message();
}

TEST(UserGraphTest, PairsAreFriendsBothWays) {
  const UserGraph graph = ParseOrDie("1 2\n2 3\n");
  EXPECT_EQ(FriendsOf(graph, 1), std::vector<UserId>{2});
  EXPECT_EQ(FriendsOf(graph, 2), (std::vector<UserId>{1, 3}));
  EXPECT_EQ(FriendsOf(graph, 3), std::vector<UserId>{2});
  EXPECT_TRUE(graph.FriendsOf(4).empty());
  EXPECT_EQ(graph.user_count(), 3U);
}

TEST(UserGraphTest, BlanksTabsCommasCommentsAndLineEndsOfAnySystem) {
  const UserGraph graph =
      ParseOrDie("# id id\n\n  1 \t 2  \r\n3,4\n5, 6\r\n   # 7 8\n \t \n18446744073709551615 0");
  EXPECT_EQ(FriendsOf(graph, 1), std::vector<UserId>{2});
  EXPECT_EQ(FriendsOf(graph, 3), std::vector<UserId>{4});
  EXPECT_EQ(FriendsOf(graph, 5), std::vector<UserId>{6});
  EXPECT_TRUE(graph.FriendsOf(7).empty());
  EXPECT_EQ(FriendsOf(graph, 0), std::vector<UserId>{18446744073709551615U});
  EXPECT_EQ(graph.user_count(), 8U);
}

TEST(UserGraphTest, IgnoresSelfLoopsAndRepeatedEdges) {
  const UserGraph graph = ParseOrDie("1 2\n2 1\n1 2\n1 1\n9 9\n");
  EXPECT_EQ(FriendsOf(graph, 1), std::vector<UserId>{2});
  EXPECT_EQ(FriendsOf(graph, 2), std::vector<UserId>{1});
  EXPECT_TRUE(graph.FriendsOf(9).empty());
  EXPECT_EQ(graph.user_count(), 2U);
}

TEST(UserGraphTest, NothingIsAGraphWithoutFriends) {
  EXPECT_EQ(ParseOrDie("").user_count(), 0U);
  EXPECT_EQ(ParseOrDie("\n\n# none\n").user_count(), 0U);
}

TEST(UserGraphTest, ErrorsNameTheLineAndWhatItSays) {
  EXPECT_EQ(GraphErrorOf("1 2\n# fine\n\n3\n"), "friends, line 4: \"3\", expected two user ids");
  EXPECT_EQ(GraphErrorOf("1 2 3"), "friends, line 1: \"1 2 3\", expected two user ids");
  EXPECT_EQ(GraphErrorOf("1 2\n1 two"), "friends, line 2: \"1 two\", expected two user ids");
  EXPECT_EQ(GraphErrorOf("1 -2"), "friends, line 1: \"1 -2\", expected two user ids");
  EXPECT_EQ(GraphErrorOf("1 2.5"), "friends, line 1: \"1 2.5\", expected two user ids");
  EXPECT_EQ(GraphErrorOf("1;2"), "friends, line 1: \"1;2\", expected two user ids");
  // One more than a user id can be.
  EXPECT_EQ(GraphErrorOf("1 18446744073709551616"),
            "friends, line 1: \"1 18446744073709551616\", expected two user ids");
}

}  // namespace
}  // namespace codband
