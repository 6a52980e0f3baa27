#include "codband/base/string_hash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace codband {
namespace {

TEST(StringHashTest, EqualStringsHaveEqualHashes) {
  StringViewSet set;
  std::vector<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(fmt::format("id-{}", i));
  for (const std::string& id : ids) EXPECT_TRUE(set.insert(id).second);
  for (const std::string& id : ids) EXPECT_TRUE(set.contains(std::string(id)));
  EXPECT_FALSE(set.contains("id-1000"));
}

// These have the same low sixteen bits of XXH3 without a secret: in a table of that size they would
// all begin at one place.
TEST(StringHashTest, KeysThatCollideWithoutTheSecretDoNotWithIt) {
  constexpr std::string_view kColliding[] = {
      "item-39626",  "item-70917",  "item-101123", "item-146661", "item-156290", "item-171038",
      "item-226166", "item-275087", "item-450393", "item-648486", "item-677581", "item-681382",
      "item-697457", "item-703885", "item-786380", "item-809925"};
  std::set<std::size_t> places;
  for (const std::string_view key : kColliding) places.insert(StringHash()(key) & 0xffff);
  EXPECT_GT(places.size(), std::size(kColliding) / 2);
}

}  // namespace
}  // namespace codband
