#include "codband/server/http/http_error.h"

#include <gtest/gtest.h>

namespace codband::server {
namespace {

TEST(HttpErrorTest, EveryCodeHasItsAnswer) {
  EXPECT_EQ(ToHttpError(Status::InvalidArgument("x")).status, 400);
  EXPECT_EQ(ToHttpError(Status::NotFound("x")).status, 404);
  EXPECT_EQ(ToHttpError(Status::Corruption("x")).status, 500);
  EXPECT_EQ(ToHttpError(Status(StatusCode::kCheckFailed, "x")).status, 409);
  EXPECT_EQ(ToHttpError(Status(StatusCode::kConflict, "x")).status, 409);
  EXPECT_EQ(ToHttpError(Status(StatusCode::kGone, "x")).status, 410);
  EXPECT_EQ(ToHttpError(Status(StatusCode::kRejected, "x")).status, 422);
  const HttpError busy = ToHttpError(Status(StatusCode::kUnavailable, "x"));
  EXPECT_EQ(busy.status, 503);
  EXPECT_GT(busy.retry_after_s, 0);
}

TEST(HttpErrorTest, AFullDiskIsNotAnyDiskError) {
  EXPECT_EQ(ToHttpError(Status::IoError("log: Input/output error")).status, 503);
  const HttpError full = ToHttpError(Status::IoError("log: No space left on device"));
  EXPECT_EQ(full.status, 507);
  EXPECT_EQ(full.code, "NoSpace");
}

TEST(HttpErrorTest, TheFieldIsTheFirstWord) {
  const HttpError error = ToHttpError(Status::InvalidArgument("a[3].b: has 7: bad"));
  EXPECT_EQ(error.field, "a[3].b");
  EXPECT_EQ(error.message, "has 7: bad");
  EXPECT_EQ(ToHttpError(Status::InvalidArgument("no field: here")).field, "");
  EXPECT_EQ(ToHttpError(Status::InvalidArgument("no field: here")).message, "no field: here");
  EXPECT_EQ(ToHttpError(Status::NotFound("item: none")).field, "");
  EXPECT_EQ(ToHttpError(Status(StatusCode::kConflict, "eventId: 'e' is over")).field, "eventId");
}

}  // namespace
}  // namespace codband::server
