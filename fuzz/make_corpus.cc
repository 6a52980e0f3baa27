// Writes the seeds of the fuzzers that read what codband itself writes: make_corpus DIRECTORY.
// scripts/fuzz.sh --seeds calls it after a format has changed.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "codband/engine/records.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/registry.h"

namespace {

using namespace codband;

constexpr std::size_t kDim = 2;

void Write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

Decision ADecision() {
  return {.user = 7, .arm = 1, .features = {1, 0.5}, .model = 0, .period = 0, .mean = 0.25};
}

void WriteLog(const std::filesystem::path& to) {
  const auto tagged = [](char table, const std::string& bytes) { return table + bytes; };
  engine::LogRecord record{
      .time_ms = 5, .user = "ann", .event = 9, .reward = 1, .decision = ADecision()};
  Write(to / "learn", tagged('\0', record.Encode()));
  record.reward = 1e-200;  // its square is zero
  Write(to / "learn_tiny", tagged('\0', record.Encode()));
  record.kind = engine::LogRecord::Kind::kForget;
  Write(to / "forget", tagged('\0', record.Encode()));
  engine::PendingDecision pending{.time_ms = 5,
                                  .deadline_ms = 6,
                                  .user = "ann",
                                  .decision = ADecision(),
                                  .context = "{}",
                                  .candidates = {{"x", 0.5, {1, 2}}, {"y", 0.5, {3, 4}}}};
  Write(to / "waiting", tagged('\1', pending.Encode()));
  pending.state = engine::PendingDecision::State::kRewarded;
  Write(to / "rewarded", tagged('\1', pending.Encode()));
  const engine::Deadline deadline{.time_ms = 6, .number = 1, .event_ids = {"e1", "e2"}};
  Write(to / "deadline", tagged('\2', deadline.Key() + deadline.Encode()));
  Write(to / "identity",
        tagged('\3', engine::Identity{.dim = kDim, .created_ms = 4, .version = "0.1.0"}.Encode()));
}

void WriteItems(const std::filesystem::path& to) {
  Write(to / "numbers",
        engine::EncodeItem({.id = "a", .features = {1, 2}, .named = {}, .tags = {"rock", "loud"}}));
  Write(to / "names", engine::EncodeItem({.id = "b",
                                          .features = {1, 2},
                                          .named = {{"genre=rock", 1}, {"price", 2.5}},
                                          .tags = {}}));
}

// A state for each policy, after a few rewards.
void WriteStates(const std::filesystem::path& to) {
  std::vector<std::string> learners = RegisteredSpecs();
  std::erase_if(learners, [](const auto& spec) { return FindPolicy(spec).value()->knows_truth; });
  const std::vector<double> arms = {1, 0, 0, 1};
  for (std::size_t i = 0; i < learners.size(); ++i) {
    const auto policy = std::move(MakePolicy(learners[i], {.dim = kDim})).value();
    for (std::uint64_t event = 0; event < 12; ++event) {
      const Decision decision = policy->Choose(event % 2 + 1, {arms, kDim}, {1, event});
      policy->Learn(decision, decision.arm == event % 2 ? 1 : 0, {1, event});
    }
    ByteWriter out;
    out.U8(static_cast<std::uint8_t>(i));
    policy->SaveState(out);
    std::string name = learners[i];
    std::ranges::replace(name, ':', '-');
    Write(to / name, out.Take());
  }
}

void WriteSpecs(const std::filesystem::path& to) {
  for (const std::string& spec : RegisteredSpecs()) {
    std::string name = spec;
    std::ranges::replace(name, ':', '-');
    Write(to / name, spec);
  }
  Write(to / "list", "linucb:alpha=0.3,lambda=1,codband:paper,likelihood=joint");
}

// A single user, whose record is the whole of the models.
void WriteCheckpoints(const std::filesystem::path& to) {
  for (const int visits : {0, 3, 60}) {
    auto policy = std::move(MakePolicy("codband", {.dim = kDim})).value();
    engine::CheckpointRecord checkpoint{
        .spec = policy->spec(),
        .sequence = 9,
        .users = 1,
        .changes = 1,
        .recent = {{.user = "ann", .time_ms = 5, .from = 0, .to = 1}},
        .shared = {}};
    const std::vector<double> arms = {1, 0, 0, 1};
    for (std::uint64_t event = 0; event < static_cast<std::uint64_t>(visits); ++event) {
      const Decision decision = policy->Choose(1, {arms, kDim}, {1, event});
      const std::uint32_t liked = event < 30 ? 0 : 1;  // the user changes
      policy->Learn(decision, decision.arm == liked ? 1 : 0, {1, event});
    }
    ByteWriter shared;
    policy->paged_users()->SaveShared(shared);
    checkpoint.shared = shared.Take();
    std::string user;
    policy->paged_users()->SaveChangedUsers(
        [&](UserId, std::string bytes) { user = std::move(bytes); });
    engine::Person person{.name = "ann", .observations = 3, .first_ms = 2, .moves = {}};
    person.AddMove({.time_ms = 5, .from = 0, .to = 1});
    ByteWriter of_person;
    person.Save(of_person);
    ByteWriter out;
    out.String(checkpoint.Encode());
    out.String(user);
    out.String(of_person.bytes());
    Write(to / ("visits" + std::to_string(visits)), out.Take());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY\n";
    return 2;
  }
  const std::filesystem::path to = argv[1];
  WriteLog(to / "log_fuzz");
  WriteItems(to / "item_fuzz");
  WriteStates(to / "state_fuzz");
  WriteSpecs(to / "spec_fuzz");
  WriteCheckpoints(to / "checkpoint_fuzz");
}
