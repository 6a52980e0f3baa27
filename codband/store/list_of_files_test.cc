#include "codband/store/list_of_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "codband/base/file.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

namespace fs = std::filesystem;

class ListOfFilesTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    {
      auto store = Open(data());
      for (int part = 0; part < 3; ++part) {
        StoreBatch batch;
        for (int i = 0; i < 10; ++i) batch.Put(Table::kUsers, fmt::format("{}-{}", part, i), "1");
        ASSERT_TRUE(store->WriteBulk(std::move(batch)).ok());
      }
    }
    for (const auto& entry : fs::directory_iterator(data() / "rocksdb")) {
      if (IsListOfFiles(entry.path().string())) list_ = entry.path();
    }
    bytes_ = ReadFile(list_).value();
    ASSERT_EQ(ReadFile(twin()).value(), bytes_);
    fs::copy(data(), directory_ / "kept", fs::copy_options::recursive);
  }

  fs::path data() const { return directory_ / "data"; }
  fs::path twin() const { return list_.string() + kTwinSuffix; }
  // The data directory as it was, but for the list and its copy.
  void Reset(const std::string& list, const std::string& copy) const {
    fs::remove_all(data());
    fs::copy(directory_ / "kept", data(), fs::copy_options::recursive);
    ASSERT_TRUE(WriteFileDurably(list_, list).ok());
    ASSERT_TRUE(WriteFileDurably(twin(), copy).ok());
  }
  void ExpectAllThere(const std::string& what) {
    auto store = OpenRocksDbStore(data(), {});
    ASSERT_TRUE(store.ok()) << what << ": " << store.status().ToString();
    int count = 0;
    ASSERT_TRUE(store.value()
                    ->Scan(Table::kUsers, {}, {},
                           [&](auto, auto) {
                             ++count;
                             return true;
                           })
                    .ok());
    EXPECT_EQ(count, 30) << what;
  }

  fs::path list_;
  std::string bytes_;
};

TEST_F(ListOfFilesTest, AnyDamagedByteIsMendedFromTheCopy) {
  for (std::size_t at = 0; at < bytes_.size(); at += 31) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(~damaged[at]);
    Reset(damaged, bytes_);
    ExpectAllThere(fmt::format("byte {} of the list", at));
    Reset(bytes_, damaged);
    ExpectAllThere(fmt::format("byte {} of the copy", at));
  }
}

TEST_F(ListOfFilesTest, AnInterruptedWriteIsCutOffBothWhereverItWasTorn) {
  // What a write of two records leaves: sectors of it, with zeros in the place of others.
  const std::string write = bytes_.substr(0, 90);
  std::string first_lost = write;
  std::fill_n(first_lost.begin(), 40, '\0');
  std::string header_kept = write;
  std::fill_n(header_kept.begin() + 10, 40, '\0');
  const std::string half = write.substr(0, 20), nothing, zeros(90, '\0');
  for (const std::string& list : {first_lost, header_kept, half, nothing, zeros}) {
    for (const std::string& copy : {first_lost, header_kept, half, nothing, zeros}) {
      Reset(bytes_ + list, bytes_ + copy);
      ExpectAllThere("torn");
    }
  }
}

TEST_F(ListOfFilesTest, WithoutACopyOnlyATornEndIsCutOff) {
  Reset(bytes_ + bytes_.substr(0, 20) + std::string(30, '\0'), "");
  fs::remove(twin());
  ExpectAllThere("torn");

  std::string damaged = bytes_;
  damaged[bytes_.size() / 2] = static_cast<char>(~damaged[bytes_.size() / 2]);
  Reset(damaged, "");
  fs::remove(twin());
  EXPECT_EQ(OpenStatus(data()).code(), StatusCode::kCorruption);
  EXPECT_EQ(ReadFile(list_).value(), damaged);
}

}  // namespace
}  // namespace codband::store
