#include "codband/server/admin/findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/engine/records.h"
#include "codband/server/admin/admin_testing.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/admin/restore.h"

namespace codband::server {
namespace {

class FindingsTest : public AdminTest {
 protected:
  // Damages every table file; whether there was one.
  bool Damage() const {
    bool damaged = false;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(data())) {
      if (entry.path().extension() != ".sst") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(20);
      file << "ZZ";
      damaged = true;
    }
    return damaged;
  }
};

const Finding& Part(const std::vector<Finding>& findings, const std::string& part) {
  const auto found = std::ranges::find(findings, part, &Finding::part);
  EXPECT_NE(found, findings.end()) << part;
  return *found;
}

TEST_F(FindingsTest, ASoundDirectoryIsDescribed) {
  { Learn(*Open(), 30); }
  const auto findings = ExamineData(data());
  ASSERT_TRUE(findings.ok()) << findings.status().message();
  EXPECT_TRUE(CheckSound(data(), findings.value()).ok());
  EXPECT_EQ(Part(findings.value(), "server").text, "none runs on it");
  EXPECT_NE(Part(findings.value(), "identity").text.find("2 features"), std::string::npos);
  EXPECT_NE(Part(findings.value(), "checkpoint").text.find("3 users"), std::string::npos);
  EXPECT_EQ(Part(findings.value(), "catalogue").text.rfind("2 items", 0), 0U);
  EXPECT_NE(Part(findings.value(), "models").text.find("add up to their 3 users"),
            std::string::npos);
}

// They are left out; what was learned is sound without them.
TEST_F(FindingsTest, LogEntriesInQuarantineAreListed) {
  { Learn(*Open(), 3); }
  EXPECT_EQ(Part(ExamineData(data()).value(), "quarantine").text, "empty");
  {
    const auto store = store::OpenRocksDbStore(data()).value();
    store::StoreBatch batch;
    batch.Put(store::Table::kLog, engine::NumberKey(4), "junk");
    ASSERT_TRUE(store->Write(batch, true).ok());
  }
  const auto before = ExamineData(data());
  EXPECT_NE(Part(before.value(), "quarantine").text.find("log entry 4, since "), std::string::npos)
      << Part(before.value(), "quarantine").text;
  { Learn(*Open(), 0); }  // the start succeeds and remembers it
  const auto after = ExamineData(data());
  EXPECT_NE(Part(after.value(), "quarantine").text.find(": cannot be read: "), std::string::npos)
      << Part(after.value(), "quarantine").text;
  EXPECT_TRUE(CheckSound(data(), after.value()).ok());
}

TEST_F(FindingsTest, NoDataIsNotFound) {
  EXPECT_EQ(ExamineData(data()).status().code(), StatusCode::kNotFound);
}

TEST_F(FindingsTest, ANoteWithoutAServerTellsOfACrash) {
  { Learn(*Open(), 3); }
  ASSERT_TRUE(WriteServerNote(data(), {.url = "http://127.0.0.1:1", .pid = 42}).ok());
  const auto findings = ExamineData(data());
  EXPECT_EQ(Part(findings.value(), "server").text,
            "none answers; one at http://127.0.0.1:1 did not shut down cleanly");
  EXPECT_TRUE(CheckSound(data(), findings.value()).ok());
}

TEST_F(FindingsTest, DamagedBytesAreNotSound) {
  { Learn(*Open(), 30); }
  ASSERT_TRUE(Damage());
  const auto findings = ExamineData(data());
  ASSERT_TRUE(findings.ok()) << findings.status().message();
  const Status sound = CheckSound(data(), findings.value());
  EXPECT_EQ(sound.code(), StatusCode::kCheckFailed);
  EXPECT_NE(sound.message().find(data().string()), std::string::npos) << sound.message();
  EXPECT_FALSE(Part(findings.value(), "store").sound);
}

TEST_F(FindingsTest, ARecordThatCannotBeReadIsNotSound) {
  { Learn(*Open(), 30); }
  {
    auto store = store::OpenRocksDbStore(data()).value();
    store::StoreBatch batch;
    engine::CheckpointRecord::Put("nonsense", batch);
    ASSERT_TRUE(store->Write(batch, true).ok());
  }
  const auto findings = ExamineData(data());
  ASSERT_TRUE(findings.ok()) << findings.status().message();
  EXPECT_TRUE(Part(findings.value(), "store").sound) << "the checksums match";
  EXPECT_FALSE(Part(findings.value(), "checkpoint").sound);
  EXPECT_FALSE(Part(findings.value(), "models").sound);
  EXPECT_TRUE(Part(findings.value(), "catalogue").sound) << "the rest is still examined";
}

class RestoreTest : public FindingsTest {};

TEST_F(RestoreTest, TheRestoredDirectoryHoldsTheBackup) {
  { Learn(*Open(), 30); }
  const auto findings = RestoreBackup(data(), path("restored"));
  ASSERT_TRUE(findings.ok()) << findings.status().message();
  EXPECT_EQ(Part(findings.value(), "catalogue").text.rfind("2 items", 0), 0U);
  EXPECT_EQ(OpenDataForReading(path("restored")).value()->Stats().applied_sequence, 30U);
  EXPECT_EQ(OpenDataForReading(data()).value()->Stats().applied_sequence, 30U);
}

TEST_F(RestoreTest, OnlyANewOrEmptyDirectoryIsTaken) {
  { Learn(*Open(), 3); }
  ASSERT_TRUE(EnsureDirectory(path("empty")).ok());
  EXPECT_TRUE(RestoreBackup(data(), path("empty")).ok());
  const auto again = RestoreBackup(data(), path("empty"));
  EXPECT_EQ(again.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(again.status().message().find("it contains rocksdb"), std::string::npos)
      << again.status().message();
}

TEST_F(RestoreTest, AnInterruptedRestoreIsRepeated) {
  { Learn(*Open(), 3); }
  ASSERT_TRUE(EnsureDirectory(path("to") / "restore.unfinished").ok());
  ASSERT_TRUE(WriteFileDurably(path("to") / "restore.unfinished" / "half", "a file").ok());
  EXPECT_EQ(OpenDataForReading(path("to")).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(RestoreBackup(data(), path("to")).ok());
  EXPECT_EQ(OpenDataForReading(path("to")).value()->Stats().applied_sequence, 3U);
  EXPECT_FALSE(std::filesystem::exists(path("to") / "restore.unfinished"));
}

TEST_F(RestoreTest, ADamagedBackupIsRefusedBeforeAnythingIsWritten) {
  { Learn(*Open(), 30); }
  ASSERT_TRUE(Damage());
  EXPECT_EQ(RestoreBackup(data(), path("to")).status().code(), StatusCode::kCheckFailed);
  EXPECT_FALSE(std::filesystem::exists(path("to")));
}

}  // namespace
}  // namespace codband::server
