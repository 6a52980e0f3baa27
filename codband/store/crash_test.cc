// A writing process is killed at random moments.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "codband/base/random.h"
#include "codband/store/test_support.h"

namespace codband::store {
namespace {

using Content = std::map<std::string, std::string>;

struct Acknowledged {
  std::uint64_t batches = 0;
  std::uint64_t bulks = 0;
};

class CrashTest : public StoreTest {
 protected:
  // Runs the writer, kills it after `lines` acknowledgements and `delay`, and reads to the end what
  // it had acknowledged.
  void RunAndKill(std::size_t lines, std::chrono::microseconds delay, bool sync,
                  Acknowledged& acknowledged) {
    int output[2];
    ASSERT_EQ(::pipe2(output, O_CLOEXEC), 0);
    const std::string directory = (directory_ / "data").string();
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(output[1], STDOUT_FILENO);
      ::execl(CODBAND_STORE_WRITER, CODBAND_STORE_WRITER, directory.c_str(),
              sync ? "sync" : "nosync", nullptr);
      ::_exit(127);
    }
    ::close(output[1]);
    std::string text;
    char buffer[4096];
    bool killed = false;
    std::size_t seen = 0;
    while (true) {
      const ssize_t got = ::read(output[0], buffer, sizeof(buffer));
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
      seen += static_cast<std::size_t>(std::count(buffer, buffer + got, '\n'));
      if (!killed && seen >= lines) {
        std::this_thread::sleep_for(delay);
        ::kill(child, SIGKILL);
        killed = true;
      }
    }
    ::close(output[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << status;
    std::istringstream stream(text);
    std::string what;
    std::uint64_t number = 0;
    while (stream >> what >> number) {
      (what == "w" ? acknowledged.batches : acknowledged.bulks) = number;
    }
  }

  static void Check(const Store& store, const Acknowledged& acknowledged) {
    // All batches up to the last acknowledged one are there, and at most one more.
    const Content log = All(store, Table::kLog);
    ASSERT_FALSE(log.empty());
    EXPECT_EQ(log.begin()->first, fmt::format("{:08}", 1));
    EXPECT_EQ(log.rbegin()->first, fmt::format("{:08}", log.size()));
    EXPECT_EQ(Get(store, Table::kItems, "last"), fmt::format("{}", log.size()));
    EXPECT_GE(log.size(), acknowledged.batches);
    EXPECT_LE(log.size(), acknowledged.batches + 1);
    // All users are of the generation that the meta table names.
    const std::string generation = Get(store, Table::kMeta, "generation");
    for (const auto& [user, value] : All(store, Table::kUsers)) ASSERT_EQ(value, generation);
    EXPECT_TRUE(generation == fmt::format("{}", acknowledged.bulks) ||
                generation == fmt::format("{}", acknowledged.bulks + 1) ||
                (acknowledged.bulks == 0 && generation == "(kNotFound)"))
        << generation << " after " << acknowledged.bulks;
  }
};

TEST_F(CrashTest, NothingAcknowledgedIsLostAndNothingIsHalfDone) {
  RandomStream random({.seed = 11, .event = 0}, 0);
  Acknowledged acknowledged;
  for (int round = 0; round < 10; ++round) {
    RunAndKill(1 + random.Below(round % 2 == 0 ? 60 : 1500),
               std::chrono::microseconds(random.Below(3000)), round % 2 == 0, acknowledged);
    if (HasFatalFailure()) return;
    // What a reader sees, and what the next process finds.
    {
      const auto store = Open(directory_ / "data", {.read_only = true});
      ASSERT_NE(store, nullptr);
      Check(*store, acknowledged);
    }
    if (round % 4 == 3) {
      const auto store = Open(directory_ / "data");
      ASSERT_NE(store, nullptr);
      Check(*store, acknowledged);
      EXPECT_FALSE(std::filesystem::exists(directory_ / "data" / "rocksdb" / "bulk"));
      EXPECT_TRUE(store->Verify().ok());
    }
    if (HasFailure()) return;
  }
}

TEST_F(CrashTest, AStoreThatWasBeingMadeCanBeMade) {
  RandomStream random({.seed = 12, .event = 0}, 0);
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove_all(directory_ / "data");
    int status = 0;
    const std::string directory = (directory_ / "data").string();
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      ::dup2(null, STDOUT_FILENO);
      ::execl(CODBAND_STORE_WRITER, CODBAND_STORE_WRITER, directory.c_str(), "sync", nullptr);
      ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(150'000)));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_NE(Open(directory_ / "data"), nullptr) << round;
  }
}

}  // namespace
}  // namespace codband::store
