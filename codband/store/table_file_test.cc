#include "codband/store/table_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/store/rocksdb_repair.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;

class TableFileTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    {
      auto store = Open(data());
      StoreBatch batch;
      for (int i = 0; i < 10; ++i) batch.Put(Table::kUsers, fmt::format("user-{}", i), "1");
      ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
    }
    for (const auto& entry : fs::directory_iterator(data() / "rocksdb")) {
      if (entry.path().extension() == ".sst") file_ = entry.path();
    }
    bytes_ = ReadFile(file_).value();
  }

  fs::path data() const { return directory_ / "data"; }
  bool IsRefused() const {
    return CheckTableFile(*rocksdb::FileSystem::Default(), file_.string()).IsCorruption();
  }
  void Write(const std::string& bytes) const {
    fs::remove(file_);
    ASSERT_TRUE(WriteFileDurably(file_, bytes).ok());
  }
  // The bytes of the file whose highest bit is what is checked.
  std::set<std::size_t> CheckedBytes() const {
    std::set<std::size_t> checked;
    for (std::size_t at = 0; at < bytes_.size(); ++at) {
      std::string damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
      Write(damaged);
      if (IsRefused()) checked.insert(at);
    }
    return checked;
  }

  fs::path file_;
  std::string bytes_;
};

TEST_F(TableFileTest, ASoundFileIsTaken) { EXPECT_FALSE(IsRefused()); }

TEST_F(TableFileTest, DamageThatEndsRocksDbIsAnErrorAndIsRepaired) {
  const std::set<std::size_t> checked = CheckedBytes();
  ASSERT_EQ(checked.size(), 1U);
  std::string damaged = bytes_;
  const std::size_t at = *checked.begin();
  EXPECT_EQ(damaged.substr(at - 3, 4), std::string("\x01\0\0\0", 4));
  damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
  Write(damaged);

  const auto refused = OpenRocksDbStore(data(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kCorruption);
  EXPECT_NE(refused.status().message().find(file_.filename().string()), std::string::npos)
      << refused.status().ToString();

  std::vector<std::string> notes;
  bool list_made_anew = false;
  auto store = OpenDamagedStore(data(), directory_ / "work", notes, list_made_anew);
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  EXPECT_FALSE(list_made_anew);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find(file_.filename().string()), std::string::npos) << notes[0];
  EXPECT_EQ(All(*store.value(), Table::kUsers).size(), 10U);
  EXPECT_EQ(ReadFile(file_).value(), damaged) << "the original is left alone";
}

TEST_F(TableFileTest, AnyByteMayBeDamaged) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kStep = 101;
#else
  constexpr std::size_t kStep = 13;
#endif
  for (std::size_t at = 0; at < bytes_.size(); at += kStep) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(~damaged[at]);
    Write(damaged);
    SCOPED_TRACE(fmt::format("byte {} of {}", at, bytes_.size()));
    auto store = OpenRocksDbStore(data(), {});
    if (!store.ok()) {
      EXPECT_EQ(store.status().code(), StatusCode::kCorruption) << store.status().ToString();
      continue;
    }
    std::vector<Store::Lost> lost;
    EXPECT_TRUE(store.value()
                    ->ScanPastDamage(
                        Table::kUsers, [](auto, auto) { return true; }, lost)
                    .ok());
  }
}

}  // namespace
}  // namespace codband::store
