#include "codband/base/excerpt.h"

#include <gtest/gtest.h>

namespace codband {
namespace {

TEST(ExcerptTest, ExcerptIsShortAndPrintable) {
  EXPECT_EQ(Excerpt(std::string("a\0\n\xE9", 4)), "a\\x00\\x0a\\xe9");
  EXPECT_EQ(Excerpt(std::string(50, 'x')), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace codband
