#include "codband/store/rocksdb_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/random.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;
using Content = std::map<std::string, std::string>;
using testing::HasSubstr;

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Batches of several tables are in one write-ahead log, as after a kill.
class RocksDbLogTest : public StoreTest {
 protected:
  static constexpr int kBatches = 40;

  void SetUp() override {
    StoreTest::SetUp();
    auto store = Open(directory_ / "data");
    ASSERT_NE(store, nullptr);
    RandomStream random({.seed = 5, .event = 0}, 0);
    for (int i = 0; i < kBatches; ++i) {
      // Most are small; some go over a block of the log, some over several.
      const std::size_t size = i % 4 == 3 ? random.Below(100'000) : random.Below(300);
      StoreBatch batch;
      for (const Table table : {Table::kLog, Table::kPending, Table::kDeadlines}) {
        batch.Put(table, fmt::format("{:04}", i),
                  std::string(size / 3, static_cast<char>('a' + i % 26)));
      }
      batch.Put(Table::kItems, "last", fmt::format("{}", i));
      ASSERT_TRUE(store->Write(batch, true).ok());
      ends_.push_back(fs::file_size(Newest(directory_ / "data")));
    }
    store.reset();
    log_ = Newest(directory_ / "data");
    bytes_ = ReadFile(log_).value();
    ASSERT_EQ(bytes_.size(), ends_.back());
    ASSERT_GT(bytes_.size(), 4U * 32'768);
  }

  static std::vector<fs::path> Logs(const fs::path& directory) {
    std::vector<fs::path> logs;
    for (const auto& entry : fs::directory_iterator(directory / "rocksdb")) {
      if (entry.path().extension() == ".log") logs.push_back(entry.path());
    }
    std::ranges::sort(logs);
    return logs;
  }
  static fs::path Newest(const fs::path& directory) { return Logs(directory).back(); }

  // How many batches there are. Expects a prefix of what was written, with no batch in part.
  static int Prefix(const Store& store) {
    const Content log = All(store, Table::kLog);
    const int count = static_cast<int>(log.size());
    EXPECT_EQ(All(store, Table::kPending), log);
    EXPECT_EQ(All(store, Table::kDeadlines), log);
    EXPECT_EQ(Get(store, Table::kItems, "last"),
              count == 0 ? "(kNotFound)" : fmt::format("{}", count - 1));
    for (int i = 0; i < count; ++i) EXPECT_EQ(log.count(fmt::format("{:04}", i)), 1U);
    return count;
  }

  // Batches that end within the first `size` bytes.
  int WholeBatches(std::uint64_t size) const {
    return static_cast<int>(std::ranges::upper_bound(ends_, size) - ends_.begin());
  }

  std::vector<std::uint64_t> ends_;  // of the batches in the log
  fs::path log_;
  std::string bytes_;
};

// A file system on which another process deletes the oldest log while it is read: it is emptied
// after the first block.
class DeletingEnv final : public rocksdb::EnvWrapper {
 public:
  explicit DeletingEnv(fs::path oldest)
      : rocksdb::EnvWrapper(rocksdb::Env::Default()), oldest_(std::move(oldest)) {}
  const char* Name() const override { return "DeletingEnv"; }

  rocksdb::Status NewSequentialFile(const std::string& path,
                                    std::unique_ptr<rocksdb::SequentialFile>* file,
                                    const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = target()->NewSequentialFile(path, file, options);
    if (status.ok() && path == oldest_)
      *file = std::make_unique<Emptied>(std::move(*file), oldest_);
    return status;
  }

 private:
  class Emptied final : public rocksdb::SequentialFile {
   public:
    Emptied(std::unique_ptr<rocksdb::SequentialFile> file, fs::path path)
        : file_(std::move(file)), path_(std::move(path)) {}
    rocksdb::Status Read(std::size_t n, rocksdb::Slice* got, char* scratch) override {
      const rocksdb::Status status = file_->Read(n, got, scratch);
      fs::resize_file(path_, 0);
      return status;
    }
    rocksdb::Status Skip(std::uint64_t n) override { return file_->Skip(n); }

   private:
    std::unique_ptr<rocksdb::SequentialFile> file_;
    const fs::path path_;
  };

  const fs::path oldest_;
};

TEST_F(RocksDbLogTest, ALogThatIsDeletedWhileItIsReadIsNotDamaged) {
  const fs::path newer = log_.parent_path() / "999999.log";
  fs::copy(log_, newer);
  DeletingEnv env(log_);
  const Status checked = CheckLogs(env, log_.parent_path());
  EXPECT_TRUE(checked.ok()) << checked.ToString();
  EXPECT_EQ(fs::file_size(log_), 0U);
  // One whose end is torn and stays is damaged.
  WriteBytes(log_, bytes_.substr(0, 32'768));
  EXPECT_EQ(CheckLogs(*rocksdb::Env::Default(), log_.parent_path()).code(),
            StatusCode::kCorruption);
}

TEST_F(RocksDbLogTest, ALogCutAnywhereLeavesTheBatchesBeforeTheCut) {
  std::vector<std::size_t> cuts = {0, 1, 6, 7, 8, 32'767, 32'768, 32'769, 65'536, bytes_.size()};
  for (std::size_t i = 0; i < ends_.size(); i += 3) {
    for (const std::size_t cut : {ends_[i] - 1, ends_[i], ends_[i] + 7}) cuts.push_back(cut);
  }
  RandomStream random({.seed = 6, .event = 0}, 0);
  for (int i = 0; i < 60; ++i) cuts.push_back(random.Below(bytes_.size()));
  int number = 0;
  for (const std::size_t cut : cuts) {
    if (cut > bytes_.size()) continue;
    WriteBytes(log_, bytes_.substr(0, cut));
    const auto store = Open(directory_ / "data", {.read_only = true});
    ASSERT_NE(store, nullptr) << cut;
    ASSERT_EQ(Prefix(*store), WholeBatches(cut)) << cut;
    // To open it for writing takes longer, and has to come to the same.
    if (++number % 20 != 0) continue;
    const fs::path copy = directory_ / fmt::format("copy{}", cut);
    fs::copy(directory_ / "data", copy, fs::copy_options::recursive);
    for (int again = 0; again < 2; ++again) {
      const auto written = Open(copy);
      ASSERT_NE(written, nullptr) << cut;
      ASSERT_EQ(Prefix(*written), WholeBatches(cut)) << cut;
    }
  }
}

TEST_F(RocksDbLogTest, AFlippedBitBeforeAWholeBatchIsCorruption) {
  RandomStream random({.seed = 7, .event = 0}, 0);
  for (int i = 0; i < 200; ++i) {
    std::size_t at = random.Below(ends_[kBatches - 2]);
    // The first 100 in headers, the others anywhere.
    if (i < 100) at = ends_[random.Below(kBatches - 2)] + random.Below(7);
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Below(8)));
    WriteBytes(log_, damaged);
    const Status status = CheckLogs(*rocksdb::Env::Default(), directory_ / "data" / "rocksdb");
    if (status.ok()) {
      // Only the zero padding at the end of a block may change: it is never read.
      EXPECT_GE(at % 32'768, 32'768U - 7) << at;
      EXPECT_EQ(Prefix(*Open(directory_ / "data", {.read_only = true})), kBatches) << at;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kCorruption);
    EXPECT_THAT(status.message(), HasSubstr(log_.string()));
    if (i % 20 == 0) {
      EXPECT_EQ(OpenStatus(directory_ / "data", {.read_only = true}).code(),
                StatusCode::kCorruption);
    }
  }
  EXPECT_EQ(OpenStatus(directory_ / "data").code(), StatusCode::kCorruption);
  WriteBytes(log_, bytes_);
  EXPECT_EQ(Prefix(*Open(directory_ / "data")), kBatches);
}

TEST_F(RocksDbLogTest, ADamagedLastBatchIsDropped) {
  RandomStream random({.seed = 8, .event = 0}, 0);
  const std::uint64_t start = ends_[kBatches - 2];
  for (int i = 0; i < 20; ++i) {
    std::string damaged = bytes_;
    const std::size_t at = start + random.Below(bytes_.size() - start);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Below(8)));
    WriteBytes(log_, damaged);
    const auto store = Open(directory_ / "data", {.read_only = true});
    ASSERT_NE(store, nullptr) << at;
    EXPECT_GE(Prefix(*store), kBatches - 1);
  }
}

TEST_F(RocksDbLogTest, WhatALossOfPowerLeavesBehindTheEndIsDropped) {
  std::string noise(70'000, ' ');
  RandomStream random({.seed = 9, .event = 0}, 0);
  for (char& c : noise) c = static_cast<char>(random());
  for (const std::string& tail : {std::string(1, '\0'), std::string(5'000, '\0'),
                                  std::string(100'000, '\0'), noise.substr(0, 100), noise}) {
    WriteBytes(log_, bytes_ + tail);
    EXPECT_EQ(Prefix(*Open(directory_ / "data", {.read_only = true})), kBatches);
    // Within the last batch: its second half did not reach the disk.
    WriteBytes(log_, bytes_.substr(0, (ends_[kBatches - 2] + bytes_.size()) / 2) + tail);
    EXPECT_EQ(Prefix(*Open(directory_ / "data", {.read_only = true})), kBatches - 1);
  }
  EXPECT_EQ(Prefix(*Open(directory_ / "data")), kBatches - 1);
}

TEST_F(RocksDbLogTest, ACutLogBeforeAnotherOneIsCorruption) {
  const fs::path data = directory_ / "two";
  auto store = Open(data, {.write_buffer_bytes = 1 << 20});
  ASSERT_TRUE(Put(*store, Table::kItems, "keeps the first log", "1").ok());
  for (int i = 0; Logs(data).size() < 2; ++i) {
    ASSERT_TRUE(Put(*store, Table::kLog, fmt::format("{:06}", i), std::string(1'000, 'v')).ok());
  }
  ASSERT_TRUE(Put(*store, Table::kLog, "in the second log", "1").ok());
  store.reset();
  ASSERT_TRUE(CheckLogs(*rocksdb::Env::Default(), data / "rocksdb").ok());
  const fs::path first = Logs(data).front();
  fs::resize_file(first, fs::file_size(first) - 3);
  const Status status = OpenStatus(data);
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr(first.string()));
}

TEST_F(RocksDbLogTest, CutLogsRemovesWhatWasNotAcknowledged) {
  // Four sequence numbers a batch.
  for (const int kept : {kBatches, kBatches - 1, 17, 3, 0}) {
    ASSERT_TRUE(CutLogs(*rocksdb::Env::Default(), directory_ / "data" / "rocksdb",
                        4 * static_cast<std::uint64_t>(kept))
                    .ok());
    EXPECT_EQ(fs::file_size(log_), kept == 0 ? 0 : ends_[static_cast<std::size_t>(kept) - 1]);
    EXPECT_EQ(Prefix(*Open(directory_ / "data", {.read_only = true})), kept);
  }
}

TEST_F(RocksDbLogTest, CutLogsLeavesADamagedLogAlone) {
  bytes_[ends_[3] + 20] ^= 1;
  WriteBytes(log_, bytes_);
  EXPECT_EQ(CutLogs(*rocksdb::Env::Default(), directory_ / "data" / "rocksdb", 4 * kBatches).code(),
            StatusCode::kCorruption);
  EXPECT_EQ(ReadFile(log_).value(), bytes_);
}

// If it counted as no logs, CutLogs would leave a failed write behind and CheckLogs miss damage.
TEST_F(RocksDbLogTest, ADirectoryThatCannotBeListedIsAnError) {
  const fs::path file = directory_ / "file";
  WriteBytes(file, "not a directory");
  EXPECT_EQ(CheckLogs(*rocksdb::Env::Default(), file).code(), StatusCode::kIoError);
  EXPECT_EQ(CutLogs(*rocksdb::Env::Default(), file, 0).code(), StatusCode::kIoError);
  EXPECT_EQ(LogBytes(*rocksdb::Env::Default(), file).status().code(), StatusCode::kIoError);
  EXPECT_THAT(CheckLogs(*rocksdb::Env::Default(), file).message(), HasSubstr(file.string()));
}

}  // namespace
}  // namespace codband::store
