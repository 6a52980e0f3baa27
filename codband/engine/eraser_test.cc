// A forgotten user is gone from every file of the data directory.
#include "codband/engine/eraser.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/engine/engine_testing.h"
#include "codband/engine/fake_store.h"
#include "codband/engine/records.h"

namespace codband::engine {
namespace {

constexpr const char* kUser = "Qx7annaZ9";
constexpr const char* kContext = "Vw3contextK5";

// The files that hold the text.
std::vector<std::string> Grep(const std::filesystem::path& directory, const std::string& text) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const auto content = ReadFile(entry.path());  // it may be gone by now
    if (content.ok() && content.value().find(text) != std::string::npos) {
      files.push_back(entry.path().filename().string());
    }
  }
  return files;
}

EngineOptions Options() {
  EngineOptions options;
  options.keep_candidates = true;  // contexts are stored
  options.checkpoint_events = 10;
  options.erase_delay_ms = 1;
  return options;
}

// Rewards before and after checkpoints, and two decisions without one.
void Live(EngineBox& box) {
  ASSERT_TRUE(box.Put(ThreeItems()).ok());
  Play(box, 0, 10);
  for (int i = 0; i < 12; ++i) {
    const std::string event = "event" + std::to_string(i);
    ASSERT_TRUE(box.Rank({.event_id = event, .user = kUser, .context = kContext}).ok());
    if (i < 10) {
      ASSERT_TRUE(box.Reward(event, i % 2).ok());
    }
    if (i == 6) {
      ASSERT_TRUE(box->Checkpoint().ok());
    }
  }
  ASSERT_FALSE(Grep(box.directory(), kUser).empty());
  ASSERT_FALSE(Grep(box.directory(), kContext).empty());
}

void ExpectGone(EngineBox& box) {
  // None may be left to erase because the last checkpoint has not told of them yet.
  Await([&] { return box->Stats().erasing == 0 && Grep(box.directory(), kUser).empty(); });
  EXPECT_EQ(Grep(box.directory(), kUser), std::vector<std::string>());
  EXPECT_EQ(Grep(box.directory(), kContext), std::vector<std::string>());
  // Everybody else is as they were.
  EXPECT_EQ(box->GetUser("user1").value().observations, 10U);
  EXPECT_TRUE(box->Check().ok());
}

TEST(EraserTest, AForgottenUserIsGoneFromEveryFile) {
  EngineBox box(Options());
  Live(box);
  const std::uint64_t pending = box->Stats().pending;
  ASSERT_TRUE(box.Forget(kUser).ok());
  Await([&] { return box->Stats().checkpoint_sequence == box->Stats().committed_sequence; });
  ExpectGone(box);
  EXPECT_EQ(box->Stats().pending, pending - 2) << "their decisions no longer wait";
  EXPECT_EQ(box->Stats().last_error, "");
}

TEST(EraserTest, TheNextProcessGoesOnWithIt) {
  EngineOptions options = Options();
  options.erase_delay_ms = 86'400'000;
  EngineBox box(options);
  Live(box);
  ASSERT_TRUE(box.Forget(kUser).ok());
  box.Close();
  EXPECT_FALSE(Grep(box.directory(), kUser).empty()) << "nothing was erased yet";
  box.options().erase_delay_ms = 1;
  box.Open();
  ExpectGone(box);
}

TEST(EraserTest, ManyUsersAreErasedTogetherAndAFailureIsTriedAgain) {
  FakeStore store;
  PendingDecision pending{.user = "ann"};
  pending.decision.user = 7;
  pending.decision.propensity = 1;
  store.Put(store::Table::kPending, "event", pending.Encode());
  for (const UserId user : {7, 8, 9}) store.Put(store::Table::kMeta, Eraser::Key(user), "");
  std::vector<std::string> deleted;
  Eraser eraser(store, 5, [&](std::vector<std::string> ids, Engine::Done<Status> done) {
    deleted = std::move(ids);
    done({});
  });
  ASSERT_TRUE(eraser.Load().ok());
  EXPECT_EQ(eraser.waiting(), 3U);
  store.Fail(FakeStore::Call::kScan, store::Table::kPending);
  eraser.Start();
  Await([&] { return !eraser.last_error().empty(); });
  EXPECT_EQ(eraser.waiting(), 3U);
  EXPECT_TRUE(store.scrubs().empty());
  store.Heal();
  Await([&] { return eraser.waiting() == 0; });
  EXPECT_EQ(eraser.last_error(), "");
  EXPECT_EQ(deleted, std::vector<std::string>{"event"});
  ASSERT_EQ(store.scrubs().size(), 1U);
  EXPECT_EQ(store.scrubs().front().keys.size(), 6U);
  EXPECT_TRUE(store.content(store::Table::kMeta).empty()) << "the marks are gone";
}

}  // namespace
}  // namespace codband::engine
