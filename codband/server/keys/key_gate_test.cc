#include "codband/server/keys/key_gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "codband/base/file.h"

namespace codband::server {
namespace {

using boost::asio::ip::make_address;
using std::chrono::minutes;
using std::chrono::seconds;
using Time = KeyFailures::Clock::time_point;

TEST(KeyFailuresTest, WaitsGrowAfterTheFirstFailures) {
  KeyFailures failures(3);
  const auto client = make_address("192.0.2.1");
  Time now = Time(minutes(100));
  for (std::uint64_t key = 1; key < 3; ++key) {
    failures.Note(client, key, now);
    EXPECT_EQ(failures.Wait(client, now), seconds(0)) << key;
  }
  for (int i = 0; i < 12; ++i) {
    failures.Note(client, 100 + static_cast<std::uint64_t>(i), now);
    const auto expected = std::min<KeyFailures::Clock::duration>(seconds(1 << i), minutes(5));
    EXPECT_EQ(failures.Wait(client, now), expected) << i;
    now += expected;
    EXPECT_EQ(failures.Wait(client, now), seconds(0)) << i;
  }
  EXPECT_EQ(failures.Wait(make_address("192.0.2.2"), now), seconds(0)) << "another address";
  now += minutes(11);
  failures.Note(client, 999, now);
  EXPECT_EQ(failures.Wait(client, now), seconds(0)) << "forgiven after a quiet time";
}

TEST(KeyFailuresTest, TheSameWrongKeyIsNotAGuess) {
  KeyFailures failures(3);
  const auto client = make_address("192.0.2.1");
  Time now = Time(minutes(100));
  for (int i = 0; i < 100; ++i) failures.Note(client, 7, now += seconds(1));
  EXPECT_EQ(failures.Wait(client, now), seconds(0));
  for (std::uint64_t key = 8; key < 10; ++key) failures.Note(client, key, now);
  EXPECT_GT(failures.Wait(client, now), seconds(0));
}

TEST(KeyFailuresTest, AddressesOfOneSiteCountTogether) {
  KeyFailures failures(1);
  const Time now = Time(minutes(100));
  failures.Note(make_address("2001:db8:1:2::1"), 1, now);
  EXPECT_GT(failures.Wait(make_address("2001:db8:1:2:3::9"), now), seconds(0));
  EXPECT_EQ(failures.Wait(make_address("2001:db8:1:3::1"), now), seconds(0));
  failures.Note(make_address("::ffff:192.0.2.7"), 1, now);
  EXPECT_GT(failures.Wait(make_address("192.0.2.7"), now), seconds(0));
  EXPECT_EQ(failures.Wait(make_address("192.0.2.8"), now), seconds(0));
}

TEST(KeyFailuresTest, RemembersABoundedNumberOfAddresses) {
  KeyFailures failures(1);
  Time now = Time(minutes(100));
  const auto address = [](std::size_t i) {
    return boost::asio::ip::address(
        boost::asio::ip::address_v4(static_cast<boost::asio::ip::address_v4::uint_type>(i)));
  };
  for (std::size_t i = 0; i <= KeyFailures::kMostAddresses; ++i) {
    failures.Note(address(i), 1, now += std::chrono::microseconds(1));
  }
  EXPECT_EQ(failures.Wait(address(0), now), seconds(0)) << "the quietest is forgotten";
  EXPECT_GT(failures.Wait(address(1), now), seconds(0));
  EXPECT_GT(failures.Wait(address(KeyFailures::kMostAddresses), now), seconds(0));
}

class KeyGateTest : public testing::Test {
 protected:
  KeyGateTest() {
    std::string name = testing::TempDir() + "/codband_gate_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~KeyGateTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path file() const { return directory_ / "keys"; }
  KeyGateOptions Options() {
    return {.file = file(), .max_failures = 3, .now = [this] { return now_; }};
  }

  std::filesystem::path directory_;
  Time now_ = Time(minutes(100));
  const boost::asio::ip::address client_ = make_address("192.0.2.1");
};

TEST_F(KeyGateTest, EveryKeyHasItsRole) {
  const std::string rank = AddKey(file(), "shop", Access::kRank).value();
  const std::string items = AddKey(file(), "shop2", Access::kItems).value();
  KeyGateOptions options = Options();
  options.admin_key = "a key of the settings";
  const auto gate = KeyGate::Open(options).value();
  EXPECT_EQ(gate->Check(client_, rank).role, Access::kRank);
  EXPECT_EQ(gate->Check(client_, items).role, Access::kItems);
  EXPECT_EQ(gate->Check(client_, "a key of the settings").role, Access::kAdmin);
  // The secret of one with the name of the other.
  EXPECT_EQ(gate->Check(client_, "cb_shop2_" + rank.substr(rank.size() - 64)).role, std::nullopt);
  EXPECT_EQ(gate->Check(client_, "").role, std::nullopt);
}

TEST_F(KeyGateTest, AWrongKeyMayNotBeTriedForEver) {
  const std::string right = AddKey(file(), "shop", Access::kRank).value();
  const auto gate = KeyGate::Open(Options()).value();
  for (int i = 0; i < 3; ++i) {
    const auto verdict = gate->Check(client_, "guess " + std::to_string(i));
    EXPECT_EQ(verdict.role, std::nullopt);
    EXPECT_EQ(verdict.retry_after_s, 0);
  }
  EXPECT_EQ(gate->Check(client_, "guess").retry_after_s, 1);
  EXPECT_EQ(gate->Check(client_, right).retry_after_s, 1) << "not even looked at";
  EXPECT_EQ(gate->Check(make_address("192.0.2.2"), right).role, Access::kRank);
  now_ += seconds(1);
  EXPECT_EQ(gate->Check(client_, right).role, Access::kRank);
  EXPECT_EQ(gate->Check(client_, "guess 4").retry_after_s, 0);
  EXPECT_EQ(gate->Check(client_, right).retry_after_s, 2) << "a right key forgives nothing";
}

TEST_F(KeyGateTest, ChangesOfTheFileCountWithoutARestart) {
  const std::string old = AddKey(file(), "old", Access::kRank).value();
  const auto gate = KeyGate::Open(Options()).value();
  const std::uint64_t before = gate->generation();
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).value(), std::nullopt);
  EXPECT_EQ(gate->generation(), before);
  // Both are valid while an application changes over.
  const std::string renewed = AddKey(file(), "renewed", Access::kRank).value();
  EXPECT_EQ(gate->Check(client_, renewed).role, std::nullopt) << "not read yet";
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).value(), 2U);
  EXPECT_NE(gate->generation(), before);
  EXPECT_EQ(gate->Check(client_, old).role, Access::kRank);
  EXPECT_EQ(gate->Check(client_, renewed).role, Access::kRank);
  ASSERT_TRUE(RemoveKey(file(), "old").ok());
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).value(), 1U);
  EXPECT_EQ(gate->Check(client_, old).role, std::nullopt);
  EXPECT_EQ(gate->Reload(KeyGate::When::kNow).value(), 1U) << "also if nothing has changed";
}

TEST_F(KeyGateTest, AFileThatCannotBeReadChangesNothing) {
  const std::string key = AddKey(file(), "one", Access::kRank).value();
  const auto gate = KeyGate::Open(Options()).value();
  ASSERT_TRUE(WriteFileDurably(file(), "nonsense\n").ok());
  EXPECT_FALSE(gate->Reload(KeyGate::When::kChanged).ok());
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).value(), std::nullopt) << "told once";
  EXPECT_EQ(gate->Check(client_, key).role, Access::kRank);
  std::filesystem::remove(file());
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(gate->Check(client_, key).role, Access::kRank);
}

TEST_F(KeyGateTest, WithoutAKeyLeftNobodyIsLetIn) {
  const std::string key = AddKey(file(), "one", Access::kRank).value();
  const auto gate = KeyGate::Open(Options()).value();
  ASSERT_TRUE(RemoveKey(file(), "one").ok());
  EXPECT_EQ(gate->Reload(KeyGate::When::kChanged).value(), 0U);
  EXPECT_EQ(gate->Check(client_, key).role, std::nullopt);
  EXPECT_EQ(gate->Check(client_, "").role, std::nullopt);
  // To start like that would be a mistake.
  const auto none = KeyGate::Open(Options());
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(none.status().message().find("codband keys add"), std::string::npos);
  std::filesystem::remove(file());
  EXPECT_EQ(KeyGate::Open(Options()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace codband::server
