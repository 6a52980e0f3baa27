#include "codband/server/keys/key_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/file.h"

namespace codband::server {
namespace {

class KeyFileTest : public testing::Test {
 protected:
  KeyFileTest() {
    std::string name = testing::TempDir() + "/codband_keys_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~KeyFileTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path file() const { return directory_ / "keys"; }

  std::filesystem::path directory_;
};

TEST(KeyHashTest, IsHmacSha256) {
  // RFC 4231, test case 2.
  EXPECT_EQ(HashKey("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(KeyRecordTest, RecognisesItsKeyAndNoOther) {
  const KeyRecord record = MakeKeyRecord("a", Access::kRank, "the key");
  EXPECT_TRUE(IsKeyOf(record, "the key"));
  for (const char* other : {"", "the kez", "the key ", "the ke"}) {
    EXPECT_FALSE(IsKeyOf(record, other)) << other;
  }
  EXPECT_NE(MakeKeyRecord("a", Access::kRank, "the key").hash, record.hash) << "salts differ";
}

TEST_F(KeyFileTest, AKeyIsReturnedOnceAndStoredAsAHash) {
  const std::string key = AddKey(file(), "shop-1.x", Access::kItems).value();
  EXPECT_EQ(NameInKey(key), "shop-1.x");
  EXPECT_EQ(key.size(), std::string("cb_shop-1.x_").size() + 64);
  const std::string text = ReadFile(file()).value();
  EXPECT_EQ(text.find(key.substr(key.size() - 64)), std::string::npos);
  struct stat facts {};
  ASSERT_EQ(::stat(file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  const auto records = ReadKeyFile(file()).value();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].name, "shop-1.x");
  EXPECT_EQ(records[0].role, Access::kItems);
  EXPECT_TRUE(IsKeyOf(records[0], key));
}

TEST_F(KeyFileTest, KeysAreAddedAndRemovedByName) {
  const std::string first = AddKey(file(), "first", Access::kRank).value();
  const std::string second = AddKey(file(), "second", Access::kAdmin).value();
  EXPECT_NE(first.substr(first.size() - 64), second.substr(second.size() - 64));
  EXPECT_EQ(AddKey(file(), "first", Access::kRank).status().code(), StatusCode::kConflict);
  EXPECT_EQ(RemoveKey(file(), "third").code(), StatusCode::kNotFound);
  EXPECT_TRUE(RemoveKey(file(), "first").ok());
  const auto records = ReadKeyFile(file()).value();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(IsKeyOf(records[0], second));
  for (const char* name : {"", "a b", "a_b", "a/b", "a#", "ä"}) {
    EXPECT_EQ(AddKey(file(), name, Access::kRank).status().code(), StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_FALSE(AddKey(file(), std::string(65, 'a'), Access::kRank).ok());
  EXPECT_EQ(RemoveKey(directory_ / "none", "first").code(), StatusCode::kNotFound);
}

TEST_F(KeyFileTest, AMissingDirectoryIsTold) {
  const Status status = AddKey(directory_ / "none" / "keys", "shop", Access::kRank).status();
  EXPECT_NE(status.message().find("make its directory first"), std::string::npos)
      << status.message();
}

TEST_F(KeyFileTest, ThoseWhoAddAtTheSameTimeLoseNothing) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(AddKey(file(), "k" + std::to_string(i), Access::kRank).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ReadKeyFile(file()).value().size(), 8U);
}

TEST_F(KeyFileTest, WrongLinesAreNamed) {
  const std::string salt(32, 'a');
  const std::string hash(64, 'b');
  const std::string good = "one rank " + salt + " " + hash;
  EXPECT_EQ(ParseKeyFile("# a comment\n\n  " + good + " # mine\r\n").value().size(), 1U);
  EXPECT_EQ(ParseKeyFile("").value().size(), 0U);
  const std::string bad[] = {
      "one rank " + salt,
      good + " more",
      "one chief " + salt + " " + hash,
      "one any " + salt + " " + hash,
      "o/e rank " + salt + " " + hash,
      "one rank " + salt + " " + hash.substr(1),
      "one rank " + salt.substr(1) + "g " + hash,
      "two rank " + salt + " " + hash,
  };
  for (const std::string& line : bad) {
    const auto records = ParseKeyFile("two rank " + salt + " " + hash + "\n" + line + "\n");
    ASSERT_FALSE(records.ok()) << line;
    EXPECT_EQ(records.status().message().rfind("line 2: ", 0), 0U) << records.status().message();
    EXPECT_EQ(records.status().message().find(hash), std::string::npos);
  }
}

TEST_F(KeyFileTest, AFileThatOthersMayWriteIsRefused) {
  ASSERT_TRUE(AddKey(file(), "one", Access::kRank).ok());
  for (const mode_t mode : {0620U, 0602U, 0666U}) {
    ::chmod(file().c_str(), mode);
    EXPECT_EQ(ReadKeyFile(file()).status().code(), StatusCode::kInvalidArgument) << mode;
    EXPECT_FALSE(AddKey(file(), "two", Access::kRank).ok());
  }
  ::chmod(file().c_str(), 0640);
  EXPECT_TRUE(ReadKeyFile(file()).ok()) << "hashes may be read";
}

TEST(NameInKeyTest, IsEmptyForOtherTexts) {
  const std::string secret(64, '0');
  EXPECT_EQ(NameInKey("cb_a_" + secret), "a");
  for (const std::string& text :
       {std::string(), std::string("cb_"), "cb__" + secret, "cb_a" + secret, "xx_a_" + secret}) {
    EXPECT_EQ(NameInKey(text), "") << text;
  }
}

}  // namespace
}  // namespace codband::server
