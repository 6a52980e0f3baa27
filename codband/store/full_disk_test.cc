// A full disk. The disk is a small tmpfs in a mount namespace of the test's own, so that nothing is
// left mounted if it crashes; each test runs itself again inside.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/random.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

using Content = std::map<std::string, std::string>;
using testing::HasSubstr;

constexpr const char* kInside = "CODBAND_FULL_DISK_TEST_INSIDE";

int RunShell(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class FullDiskTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    disk_ = directory_ / "disk";
    std::filesystem::create_directories(disk_);
    const char* flags = ::geteuid() == 0 ? "-m" : "-rm";
    if (std::getenv(kInside) != nullptr) {  // NOLINT(concurrency-mt-unsafe)
      ASSERT_EQ(::mount("tmpfs", disk_.c_str(), "tmpfs", 0, "size=24m"), 0) << std::strerror(errno);
      return;
    }
    if (RunShell(fmt::format("unshare {} mount -t tmpfs -o size=1m tmpfs {} 2>/dev/null", flags,
                             disk_.string())) != 0) {
      GTEST_SKIP() << "not permitted to mount a tmpfs: neither as root nor by unshare -rm";
    }
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = fmt::format("{}.{}", test->test_suite_name(), test->name());
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const int code = RunShell(fmt::format("{}=1 unshare {} '{}' --gtest_filter={} --gtest_brief=1",
                                          kInside, flags, self, name));
    EXPECT_EQ(code, 0) << "failed in its namespace, see above";
    outside_ = true;
  }
  void TearDown() override {
    if (std::getenv(kInside) != nullptr) ::umount2(disk_.c_str(), MNT_DETACH);
    StoreTest::TearDown();
  }

  // Leaves `free_bytes`.
  void Fill(std::size_t free_bytes = 0) {
    const int fd =
        ::open((disk_ / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) continue;
    const auto size = ::lseek(fd, 0, SEEK_END);
    ASSERT_EQ(::ftruncate(fd, std::max<off_t>(0, size - static_cast<off_t>(free_bytes))), 0);
    ::close(fd);
  }
  void MakeRoom() { std::filesystem::remove(disk_ / "filler"); }

  std::filesystem::path disk_;
  bool outside_ = false;  // the test has been run inside
};

TEST_F(FullDiskTest, WritesFailWithTheReasonAndWorkAgainWhenThereIsRoom) {
  if (outside_) return;
  auto store = Open(disk_ / "data");
  Content expected;
  const std::string value(50'000, 'v');
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Put(*store, Table::kItems, fmt::format("{:04}", i), value, true).ok());
    expected[fmt::format("{:04}", i)] = value;
  }
  Fill();
  std::vector<std::string> failed;
  for (int i = 20; failed.size() < 10; ++i) {
    const std::string key = fmt::format("{:04}", i);
    const Status status = Put(*store, Table::kItems, key, value, i % 2 == 0);
    if (status.ok()) {
      expected[key] = value;
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kIoError);
    EXPECT_THAT(status.message(), HasSubstr((disk_ / "data" / "rocksdb").string()));
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
    failed.push_back(key);
  }
  ASSERT_FALSE(failed.empty());
  EXPECT_TRUE(All(*store, Table::kItems) == expected) << "what was there can be read meanwhile";

  // A process killed now would leave the same content.
  std::filesystem::copy(disk_ / "data", directory_ / "copy",
                        std::filesystem::copy_options::recursive);
  EXPECT_TRUE(All(*Open(directory_ / "copy"), Table::kItems) == expected);

  MakeRoom();
  ASSERT_TRUE(Put(*store, Table::kItems, "room", "again", true).ok());
  expected["room"] = "again";
  EXPECT_TRUE(All(*store, Table::kItems) == expected);
  store.reset();
  EXPECT_TRUE(All(*Open(disk_ / "data"), Table::kItems) == expected);
}

TEST_F(FullDiskTest, BulkWriteFailsWithTheReasonLeavesNothingAndWorksWhenThereIsRoom) {
  if (outside_) return;
  auto store = Open(disk_ / "data");
  const auto bulk = [&](const std::string& value) {
    StoreBatch batch;
    for (int i = 0; i < 100; ++i) batch.Put(Table::kUsers, fmt::format("{:04}", i), value);
    batch.Put(Table::kMeta, "checkpoint", value);
    return store->WriteBulk(std::move(batch));
  };
  RandomStream random({.seed = 1, .event = 0}, 0);
  const auto text = [&] {
    std::string value(20'000, ' ');
    for (char& c : value) c = static_cast<char>(random());
    return value;
  };
  const std::string first = text(), second = text();
  ASSERT_TRUE(bulk(first).ok());
  Content items;
  for (const std::size_t free_bytes : {0, 100'000, 1'000'000}) {
    SCOPED_TRACE(free_bytes);
    Fill(free_bytes);
    const Status status = bulk(second);
    EXPECT_EQ(status.code(), StatusCode::kIoError);
    EXPECT_THAT(status.message(), HasSubstr((disk_ / "data" / "rocksdb").string()));
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
    EXPECT_TRUE(Get(*store, Table::kMeta, "checkpoint") == first);
    for (const auto& [key, value] : All(*store, Table::kUsers)) ASSERT_TRUE(value == first);
    EXPECT_TRUE(std::filesystem::is_empty(disk_ / "data" / "rocksdb" / "bulk"));
    // Small writes may go on in the room that the log has reserved.
    const std::string key = fmt::format("{}", free_bytes);
    if (Put(*store, Table::kItems, key, key, true).ok()) items[key] = key;
    MakeRoom();
  }
  EXPECT_FALSE(items.empty());
  ASSERT_TRUE(bulk(second).ok());
  store.reset();
  store = Open(disk_ / "data");
  EXPECT_EQ(All(*store, Table::kItems), items);
  EXPECT_TRUE(Get(*store, Table::kMeta, "checkpoint") == second);
  for (const auto& [key, value] : All(*store, Table::kUsers)) ASSERT_TRUE(value == second);
}

TEST_F(FullDiskTest, OpeningFailsWithTheReasonAndWorksWhenThereIsRoom) {
  if (outside_) return;
  ASSERT_TRUE(Put(*Open(disk_ / "data"), Table::kItems, "a", std::string(100'000, 'v')).ok());
  Fill();
  const Status status = OpenStatus(disk_ / "data");
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
  EXPECT_THAT(status.message(), HasSubstr((disk_ / "data" / "rocksdb").string()));
  MakeRoom();
  EXPECT_EQ(Get(*Open(disk_ / "data"), Table::kItems, "a"), std::string(100'000, 'v'));
}

// What one thread has written, and how often that failed.
struct Written {
  Content content;
  int failures = 0;
};

// Writes 60 times to two tables, and on until a write fails if `until_failure`.
void WriteAtRandom(Store& store, const std::string& name, int round, EventKey key,
                   bool until_failure, Written& written) {
  RandomStream draws(key, 0);
  for (int i = 0; i < 60 || (until_failure && written.failures == 0); ++i) {
    const std::string row = fmt::format("{}-{}", name, draws.Below(50));
    std::string value(draws.Below(20'000), ' ');
    for (char& c : value) c = static_cast<char>(draws());
    value += fmt::format("{} {}", round, i);
    StoreBatch batch;
    batch.Put(Table::kItems, row, value);
    batch.Put(Table::kPending, row, value);
    if (store.Write(batch, i % 3 == 0).ok()) {
      written.content[row] = value;
    } else {
      ++written.failures;
    }
  }
}

// `users` is what the last bulk write that succeeded has written.
void WriteBulkRepeatedly(Store& store, int round, Content& users) {
  for (int i = 0; i < 5; ++i) {
    StoreBatch batch;
    Content content;
    for (int k = 0; k < 20; ++k) {
      content[fmt::format("{}", k)] = fmt::format("{} {}", round, i) + std::string(5'000, 'u');
    }
    for (const auto& [key, value] : content) batch.Put(Table::kUsers, key, value);
    if (store.WriteBulk(std::move(batch)).ok()) users = content;
  }
}

bool Holds(Store& store, const Content& rows, const Content& users) {
  return All(store, Table::kItems) == rows && All(store, Table::kPending) == rows &&
         All(store, Table::kUsers) == users;
}

// Logs, table files, flushes and compactions fail at random.
TEST_F(FullDiskTest, NoAcknowledgedWriteIsLostAndNoFailedOneComesBack) {
  if (outside_) return;
#ifdef __SANITIZE_THREAD__
  constexpr int kRounds = 1;  // it looks up a name for every race that it then suppresses
#else
  constexpr int kRounds = 5;
#endif
  const RocksDbOptions options = {.cache_bytes = 1 << 20, .write_buffer_bytes = 1 << 20};
  auto store = Open(disk_ / "data", options);
  std::array<Written, 3> written;
  Content users;
  for (int round = 0; round < kRounds; ++round) {
    RandomStream random({.seed = 3, .event = static_cast<std::uint64_t>(round)}, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < written.size(); ++t) {
      threads.emplace_back([&, t, round, key = EventKey{.seed = random(), .event = 0}] {
        // The disk is full at the end of the first round: one thread writes until that fails.
        WriteAtRandom(*store, fmt::format("{}", t), round, key, t == 0 && round == 0, written[t]);
      });
    }
    threads.emplace_back([&, round] { WriteBulkRepeatedly(*store, round, users); });
    for (int i = 0; i < 3; ++i) {
      Fill(random.Below(3'000'000));
      std::this_thread::sleep_for(std::chrono::milliseconds(random.Below(30)));
      MakeRoom();
    }
    if (round % 2 == 0) Fill();
    for (auto& thread : threads) thread.join();
    MakeRoom();
    Content rows;
    for (const Written& one : written) rows.insert(one.content.begin(), one.content.end());
    // Three views: of this process, of another one after a crash, and after a restart.
    ASSERT_TRUE(Holds(*store, rows, users));
    const auto killed = Open(disk_ / "data", {.read_only = true});
    ASSERT_NE(killed, nullptr);
    ASSERT_TRUE(Holds(*killed, rows, users));
    ASSERT_TRUE(Put(*store, Table::kMeta, "room", "again", true).ok());
    if (round % 3 == 2) {
      store.reset();
      store = Open(disk_ / "data", options);
      ASSERT_NE(store, nullptr);
      ASSERT_TRUE(Holds(*store, rows, users));
    }
  }
  EXPECT_GT(written[0].failures, 0);
  EXPECT_TRUE(store->Verify().ok());
}

}  // namespace
}  // namespace codband::store
