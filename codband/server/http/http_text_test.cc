#include "codband/server/http/http_text.h"

#include <gtest/gtest.h>

namespace codband::server {
namespace {

TEST(HttpTextTest, SecretsAreEqualOrNot) {
  EXPECT_TRUE(SameSecret("key", "key"));
  EXPECT_FALSE(SameSecret("key", "kez"));
  EXPECT_FALSE(SameSecret("key", "ke"));
  EXPECT_FALSE(SameSecret("key", "keykey"));
  EXPECT_FALSE(SameSecret("key", ""));
  EXPECT_FALSE(SameSecret("", "key"));
}

}  // namespace
}  // namespace codband::server
