#include "codband/server/api/text.h"

#include <gtest/gtest.h>

namespace codband::server {
namespace {

TEST(ServerTextTest, SecretsAreEqualOrNot) {
  EXPECT_TRUE(SameSecret("key", "key"));
  EXPECT_FALSE(SameSecret("key", "kez"));
  EXPECT_FALSE(SameSecret("key", "ke"));
  EXPECT_FALSE(SameSecret("key", "keykey"));
  EXPECT_FALSE(SameSecret("key", ""));
  EXPECT_FALSE(SameSecret("", "key"));
}

}  // namespace
}  // namespace codband::server
