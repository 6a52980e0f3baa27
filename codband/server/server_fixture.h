#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "codband/server/api/api.h"
#include "codband/server/http/test_client.h"
#include "codband/server/test_support.h"

namespace codband::server {

// A server over a fake engine on a free port.
class ServerFixture : public ::testing::Test {
 protected:
  ServerFixture() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 (std::string("codband_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(directory_);
  }
  ~ServerFixture() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path backup_root() const { return directory_ / "backups"; }

  void Start(ServerOptions options = {}) {
    options.port = 0;
    Result<std::unique_ptr<Server>> server =
        StartServer(engine_, options, {.backup_root = backup_root()});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  TestClient Connect() { return TestClient(server_->port()); }
  TestReply Request(std::string_view method, std::string_view target, std::string_view body = {},
                    std::string_view headers = {}) {
    return Connect().Request(method, target, body, headers);
  }

  std::filesystem::path directory_;  // for the files of the test
  FakeEngine engine_;
  std::unique_ptr<Server> server_;
};

}  // namespace codband::server
