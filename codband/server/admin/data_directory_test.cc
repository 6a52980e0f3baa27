#include "codband/server/admin/data_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "codband/base/file.h"
#include "codband/server/admin/admin_testing.h"

namespace codband::server {
namespace {

class DataDirectoryTest : public AdminTest {};

TEST_F(DataDirectoryTest, ANoteIsReadBackUntilItIsRemoved) {
  ASSERT_TRUE(EnsureDirectory(data()).ok());
  EXPECT_FALSE(ReadServerNote(data()).has_value());
  ASSERT_TRUE(WriteServerNote(data(), {.url = "http://127.0.0.1:1", .pid = 42}).ok());
  const auto note = ReadServerNote(data());
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->url, "http://127.0.0.1:1");
  EXPECT_EQ(note->pid, 42);
  EXPECT_FALSE(FindRunningServer(data()).has_value()) << "nobody listens on port 1";
  RemoveServerNote(data());
  EXPECT_FALSE(ReadServerNote(data()).has_value());
}

TEST_F(DataDirectoryTest, ADamagedNoteIsNone) {
  ASSERT_TRUE(EnsureDirectory(data()).ok());
  for (const char* text : {"", "{", "[]", "{\"pid\": 3}", "{\"url\": 7}"}) {
    ASSERT_TRUE(WriteFileDurably(data() / "server.json", text).ok());
    EXPECT_FALSE(ReadServerNote(data()).has_value()) << text;
  }
}

TEST_F(DataDirectoryTest, ADirectoryInUseIsUnavailableAndNamesItsServer) {
  const auto engine = Open();
  ASSERT_TRUE(WriteServerNote(data(), {.url = "http://127.0.0.1:1", .pid = 42}).ok());
  const auto second = OpenDataStore(data(), {});
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("http://127.0.0.1:1 (process 42)"), std::string::npos)
      << second.status().message();
}

TEST_F(DataDirectoryTest, MissingDataIsNotFoundAndNotCreated) {
  EXPECT_EQ(OpenDataForReading(data()).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(data()));
}

TEST_F(DataDirectoryTest, IsReadWithThePolicyItWasWrittenWith) {
  {
    const auto engine = Open("linucb:alpha=0.5");
    Learn(*engine, 5);
  }
  const auto engine = OpenDataForReading(data());
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const engine::EngineStats stats = engine.value()->Stats();
  EXPECT_EQ(stats.policy.rfind("linucb:alpha=0.5", 0), 0U) << stats.policy;
  EXPECT_EQ(stats.applied_sequence, 5U);
}

TEST_F(DataDirectoryTest, ABackupWithoutAServerIsMadeDirectly) {
  { Learn(*Open(), 5); }
  const auto how = BackUpData(data(), path("copy"));
  ASSERT_TRUE(how.ok()) << how.status().message();
  EXPECT_EQ(how.value(), "");
  EXPECT_EQ(OpenDataForReading(path("copy")).value()->Stats().applied_sequence, 5U);
  EXPECT_EQ(BackUpData(data(), path("copy")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(BackUpData(data(), "").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(BackUpData(path("none"), path("other")).status().code(), StatusCode::kNotFound);
}

TEST_F(DataDirectoryTest, ABackupOfADirectoryInUseNeedsItsServer) {
  const auto engine = Open();
  EXPECT_EQ(BackUpData(data(), path("copy")).status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(WriteServerNote(data(), {.url = "http://127.0.0.1:1", .pid = 42}).ok());
  EXPECT_EQ(BackUpData(data(), path("copy")).status().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(path("copy")));
}

}  // namespace
}  // namespace codband::server
