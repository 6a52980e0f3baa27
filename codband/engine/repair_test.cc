// Damaged bytes anywhere in a data directory: whatever they hit, the rest goes on, or a repair
// makes it go on.
#include "codband/engine/repair.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/random.h"
#include "codband/engine/engine_testing.h"

namespace codband::engine {
namespace {

namespace fs = std::filesystem;

constexpr int kUsers = 60;

std::string UserName(int user) { return fmt::format("visitor-{}", user); }

EngineOptions RepairOptions() {
  return {.dim = 3, .users_in_memory = 4, .checkpoint_events = 40, .sync = false};
}

// A directory as a killed server leaves it, with files of every kind; and what is in it.
struct Original {
  TempDirectory directory;
  fs::path path;
  std::map<std::string, std::uint64_t> observations;
};

std::unique_ptr<Original> MakeOriginal() {
  auto original = std::make_unique<Original>();
  EngineBox box(RepairOptions());
  EXPECT_TRUE(box.Put(ThreeItems()).ok());
  for (int i = 0; i < 400; ++i) {
    const std::string user = UserName(i * 7 % kUsers);
    Visit(box, user, i % 2 == 0 ? "a" : "b", i);
    ++original->observations[user];
  }
  EXPECT_TRUE(box.Rank({.event_id = "waits", .user = UserName(1)}).ok());
  original->path = original->directory.path() / "data";
  // A copy while it runs: the write-ahead log has the newest changes.
  EXPECT_TRUE(box->Backup(original->path).ok());
  return original;
}

// Opens the data and uses it: how many users have lost something. Every other user is as before,
// and writes, learning and checkpoints go on. New users are refused whose records would be where
// nothing can be read: nobody knows that there is none.
struct UsedData {
  Status opened;
  std::set<std::string> lost;
  std::set<std::string> refused;
  std::vector<std::string> damage;
};

UsedData UseData(const fs::path& data, const Original& original) {
  UsedData use;
  auto store = store::OpenRocksDbStore(data, {.create = false});
  use.opened = store.status();
  if (!store.ok()) return use;
  EngineOptions options = RepairOptions();
  options.now_ms = [] { return std::int64_t{1'000'100}; };  // nobody's wait is over
  auto opened = Engine::Open(std::move(store).value(), options);
  use.opened = opened.status();
  if (!opened.ok()) return use;
  Engine& engine = *opened.value();
  for (const auto& [user, count] : original.observations) {
    const auto report = engine.GetUser(user);
    if (report.ok() && report.value().observations == count) continue;
    EXPECT_TRUE(!report.ok() || report.value().observations < count) << user;
    use.lost.insert(user);
  }
  // Others are ranked and learned from, with checkpoints in between.
  for (int i = 0; i < 60; ++i) {
    const std::string event = fmt::format("after-{}", i);
    const std::string user = fmt::format("later-{}", i % 5);
    const Status ranked = Wait<Status>([&](auto done) {
      engine.Rank(
          {.event_id = event,
           .user = user,
           .candidates = {{.id = "x", .features = {1, 0, 0}}, {.id = "y", .features = {0, 1, 0}}}},
          [](const RankReply&) {}, std::move(done));
    });
    EXPECT_TRUE(ranked.ok()) << ranked.ToString();
    if (!ranked.ok()) continue;
    const auto reward =
        Wait<Result<RewardReply>>([&](auto done) { engine.Reward(event, 1, std::move(done)); });
    if (reward.ok()) continue;
    EXPECT_NE(reward.status().message().find("is damaged"), std::string::npos)
        << reward.status().ToString();
    use.refused.insert(user);
  }
  const Status saved = engine.Checkpoint();
  EXPECT_TRUE(saved.ok()) << saved.ToString();
  for (const QuarantinedEntry& entry : engine.Quarantined()) {
    EXPECT_TRUE(use.lost.contains(entry.user) || use.refused.contains(entry.user))
        << "left out: " << entry.user;
  }
  use.damage = engine.Stats().damage;
  EXPECT_TRUE(use.refused.empty() || !use.damage.empty());
  return use;
}

struct Flip {
  std::string file;
  std::uint64_t at = 0;
  int bytes = 1;
};

// Flips some bytes of a random file of the kind; nothing if there is none.
std::optional<Flip> FlipBytes(const fs::path& data, const std::string& kind, RandomStream& random) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(data / "rocksdb")) {
    if (entry.path().filename().string().find(kind) != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  if (files.empty()) return std::nullopt;
  std::ranges::sort(files);
  const fs::path file = files[random.Below(files.size())];
  std::string content = ReadFile(file).value();
  if (content.empty()) return std::nullopt;
  Flip flip{.file = file.filename().string(), .at = random.Below(content.size())};
  flip.bytes = random.Below(3) == 0 ? 100 : 1;
  for (std::uint64_t i = flip.at; i < content.size() && i < flip.at + flip.bytes; ++i) {
    content[i] = static_cast<char>(content[i] ^ (1 + random.Below(255)));
  }
  fs::remove(file);  // it may be linked
  EXPECT_TRUE(WriteFileDurably(file, content).ok());
  return flip;
}

TEST(RepairTest, ASoundDirectoryIsLeftAlone) {
  const auto original = MakeOriginal();
  const auto report = RepairData(original->path, true);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report.value().damage, std::vector<std::string>());
  EXPECT_EQ(report.value().drops, std::vector<std::string>());
  EXPECT_EQ(report.value().kept_aside, "");
  EXPECT_FALSE(fs::exists(original->path / "repair"));
  const UsedData use = UseData(original->path, *original);
  EXPECT_TRUE(use.opened.ok()) << use.opened.ToString();
  EXPECT_TRUE(use.lost.empty());
}

// Whatever is hit: the engine starts and nothing but what is named is missing, or it says that the
// data is damaged; and it starts after a repair.
void FlipOften(std::uint64_t seed, int times) {
  const auto original = MakeOriginal();
  std::map<std::string, int> outcomes;
  for (int i = 0; i < times && !testing::Test::HasFailure(); ++i) {
    RandomStream random({.seed = seed, .event = static_cast<std::uint64_t>(i)}, 5);
    const fs::path data = original->directory.path() / fmt::format("flip{}", i);
    fs::copy(original->path, data, fs::copy_options::recursive);
    constexpr const char* kKinds[] = {".sst",     ".sst",    ".sst",   ".log",
                                      "MANIFEST", "CURRENT", "OPTIONS"};
    const char* kind = kKinds[static_cast<std::size_t>(i) % std::size(kKinds)];
    const auto flip = FlipBytes(data, kind, random);
    ASSERT_TRUE(flip) << kind;
    SCOPED_TRACE(
        fmt::format("case {}: {} bytes at {} of {}", i, flip->bytes, flip->at, flip->file));
    const fs::path used = original->directory.path() / "used";
    fs::copy(data, used, fs::copy_options::recursive);
    const UsedData use = UseData(used, *original);
    fs::remove_all(used);
    if (!use.opened.ok()) {
      EXPECT_EQ(use.opened.code(), StatusCode::kCorruption) << use.opened.ToString();
    } else if (!use.lost.empty() && std::string_view(kind) == ".sst") {
      EXPECT_FALSE(use.damage.empty()) << use.lost.size() << " users lack something, unreported";
    }
    const auto plan = RepairData(data, false);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(plan.value().kept_aside.empty());
    const auto report = RepairData(data, true);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    EXPECT_EQ(report.value().drops, plan.value().drops) << "it does what it said";
    const UsedData after = UseData(data, *original);
    EXPECT_TRUE(after.opened.ok()) << after.opened.ToString();
    EXPECT_TRUE(after.damage.empty());
    EXPECT_TRUE(after.refused.empty());
    const bool told = !report.value().damage.empty() || !report.value().drops.empty();
    EXPECT_TRUE(told || after.lost == use.lost);
    EXPECT_TRUE(told || use.opened.ok());
    ++outcomes[fmt::format("{}: {}, {}", kind, use.opened.ok() ? "starts" : "refuses",
                           after.lost.empty()               ? "nothing lost"
                           : after.lost.size() < kUsers / 2 ? "some users lost"
                                                            : "most users lost")];
    fs::remove_all(data);
  }
  for (const auto& [outcome, count] : outcomes) fmt::print("{:4} {}\n", count, outcome);
}

TEST(RepairTest, FlippedBytesAnywhereAreSurvivedOrRepaired) {
#ifdef __SANITIZE_ADDRESS__
  FlipOften(2, 7);
#else
  FlipOften(1, 28);
#endif
}

}  // namespace
}  // namespace codband::engine
