#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "codband/server/api/api.h"
#include "codband/server/http/test_client.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// A server over a real engine with features by name, at most 64 columns, on a free port.
class EngineFixture : public ::testing::Test {
 protected:
  explicit EngineFixture(ApiOptions options = {}) : options_(std::move(options)) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 (std::string("codband_") + test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(directory_);
  }
  void SetUp() override { Start(); }
  ~EngineFixture() override {
    server_.reset();
    engine_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Starts it; again, if it runs, with the data that is there.
  void Start() {
    server_.reset();
    engine_.reset();
    auto engine = engine::Engine::Open(store::OpenRocksDbStore(directory_).value(),
                                       {.columns = {.columns = 64}, .sync = false});
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = std::move(engine).value();
    auto server = StartServer(*engine_, {.port = 0}, options_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  TestReply Ask(std::string_view method, std::string_view target, std::string_view body = {},
                std::string_view headers = "Content-Type: application/json\r\n") {
    return TestClient(server_->port()).Request(method, target, body, headers);
  }

  std::filesystem::path directory_;
  ApiOptions options_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Server> server_;
};

}  // namespace codband::server
