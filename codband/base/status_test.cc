#include "codband/base/status.h"

#include <gtest/gtest.h>

#include <string>

namespace codband {
namespace {

TEST(StatusTest, TextHasCodeAndMessage) {
  EXPECT_EQ(Status().ToString(), "kOk");
  EXPECT_EQ(Status::Corruption("bad byte").ToString(), "kCorruption: bad byte");
  EXPECT_EQ(Status(StatusCode::kCheckFailed, "").ToString(), "kCheckFailed");
}

TEST(ResultTest, HoldsAValueOrAStatus) {
  const Result<int> good = 7;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  const Result<int> bad = Status::NotFound("no such item");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), StatusCode::kNotFound);
  EXPECT_THROW((void)bad.value(), InternalError);
}

TEST(CheckTest, MessageHasFileLineAndCondition) {
  try {
    CODBAND_CHECK(1 + 1 == 3);
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.rfind("status_test.cc:", 0), 0U) << what;
    EXPECT_NE(what.find("1 + 1 == 3"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace codband
