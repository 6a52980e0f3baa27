#include "codband/server/api/api_error.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace codband::server {
namespace {

TEST(WithoutPathsTest, HidesAbsolutePathsAndNothingElse) {
  EXPECT_EQ(WithoutPaths("cannot write to /var/lib/codband/rocksdb: IO error: No space left on "
                         "device: While appending to file: /var/lib/codband/rocksdb/000012.log: No "
                         "space left on device"),
            "cannot write to <path>: IO error: No space left on device: While appending to file: "
            "<path>: No space left on device");
  EXPECT_EQ(WithoutPaths("/srv/x"), "<path>");
  EXPECT_EQ(WithoutPaths("cannot open '/srv/my data/x' (of /home/ada/y), code 3"),
            "cannot open '<path>' (of <path>), code 3");
  EXPECT_EQ(WithoutPaths("cannot create /srv/my data/rocksdb/LOG in time"),
            "cannot create <path> in time");
  EXPECT_EQ(WithoutPaths("/usr/src/codband/policy/x.cc:31: check failed: a / b < 1"),
            "<path>: check failed: a / b < 1");
  for (const char* text : {"", "Input/output error", "reads/s", "1 / 2", "a/b", "/"}) {
    EXPECT_EQ(WithoutPaths(text), text);
  }
}

TEST(SetApiErrorTest, OnlyFaultsOfTheServerAreShownWithoutPaths) {
  Reply reply;
  SetApiError(reply, Status::IoError("cannot read /data/rocksdb: Input/output error"));
  EXPECT_EQ(reply.body, R"({"error":{"code":"IoError","message":)"
                        R"("cannot read <path>: Input/output error"}})");
  // What a client sent comes back to it as it was.
  reply.Reset();
  SetApiError(reply, Status::NotFound("there is no item '/a/b'"));
  EXPECT_EQ(reply.body, R"({"error":{"code":"NotFound","message":"there is no item '/a/b'"}})");
  reply.Reset();
  SetApiError(
      reply,
      ErrorOfException(std::make_exception_ptr(std::runtime_error("/srv/codband/x.cc:3: broken"))));
  EXPECT_EQ(reply.body, R"({"error":{"code":"Internal","message":"<path>: broken"}})");
}

}  // namespace
}  // namespace codband::server
