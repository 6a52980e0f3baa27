#pragma once

#include "codband/engine/power_cut_testing.h"

namespace codband::engine {

// Cuts the power again and again under eight clients, with small checkpoints, few users in memory,
// and disks that fail or are full in between. After every cut:
//   - every reward that was acknowledged is in the log, and no event is in it twice;
//   - every user has as many observations as the log says, every decision and every item that was
//     acknowledged is there;
//   - what was learned equals, bit for bit, what an undisturbed twin learned from the same log.
class PowerCuts {
 public:
  PowerCuts(std::uint64_t seed, int clients, bool by_name = false)
      : random_({.seed = seed, .event = 0}, 3),
        box_(std::make_unique<DiskBox>(std::make_shared<store::FaultFileSystem>(seed))),
        twin_(std::make_shared<store::FaultFileSystem>(seed)) {
    for (int i = 0; i < clients; ++i) clients_.emplace_back(i, world_);
    world_.by_name = by_name;
    options_ = {.dim = by_name ? 0U : 3U,
                .columns = {.columns = 60},
                .reward_wait_ms = 60'000,
                .default_reward = 0.25,
                .users_in_memory = 4,
                .checkpoint_events = 9,
                .checkpoint_interval_ms = 86'400'000,
                .now_ms = [this] { return world_.now_ms.load(); },
                .steady_ms = [this] { return world_.now_ms.load(); },
                .boot_id = "of the test",
                .event_id_seed = 1,
                .name_secret = SipKey{.low = 1, .high = 2}};
  }

  // One cut, and the start after it. Returns false after a failure.
  bool Once() {
    std::unique_ptr<Engine> engine = Open();
    if (engine == nullptr) return false;
    if (cuts_ == 0) PutItems(*engine);
    world_.cut = false;
    world_.stop = false;
    std::vector<std::thread> threads;
    for (CutClient& client : clients_) {
      threads.emplace_back(
          [&, key = EventKey{.seed = random_(), .event = cuts_}] { client.Run(*engine, key); });
    }
    MakeTrouble();
    std::shared_ptr<store::FaultFileSystem> left;
    world_.cut = true;
    recorder_.Cut([&] { left = box_->disk().CutPower(random_()); });
    ++cuts_;
    Heal();
    world_.stop = true;
    for (std::thread& thread : threads) thread.join();
    engine.reset();
    failures_ += box_->disk().failures();
    box_ = std::make_unique<DiskBox>(std::move(left));
    engine = Open();
    if (engine == nullptr) return false;
    recorder_.FoundAfterCut(engine->Stats().applied_sequence);
    CheckState(*engine);
    for (const CutClient& client : clients_) client.Check(*engine);
    return !testing::Test::HasFailure();
  }

  std::string Summary() const {
    CutClient::Counts sum;
    for (const CutClient& client : clients_) {
      sum.ranks += client.counts().ranks;
      sum.rewards += client.counts().rewards;
      sum.forgets += client.counts().forgets;
      sum.items += client.counts().items;
      sum.refused += client.counts().refused;
    }
    return fmt::format(
        "{} power cuts, {} of them during a write to the log, {} injected errors, {} requests "
        "refused; acknowledged: {} ranks, {} "
        "rewards, {} forgets, {} items; {} log entries, {} lost, {} doubled; equal to the twin {} "
        "times",
        cuts_, recorder_.cuts_in_flight(), failures_, sum.refused, sum.ranks, sum.rewards,
        sum.forgets, sum.items, checked_, lost_, doubled_, equal_);
  }
  std::uint64_t refused() const {
    std::uint64_t count = 0;
    for (const CutClient& client : clients_) count += client.counts().refused;
    return count;
  }
  std::uint64_t failures() const { return failures_; }

 private:
  std::unique_ptr<Engine> Open() {
    world_.now_ms +=
        10;  // a start takes time; decisions are later than a request to forget before it
    auto store = box_->Open();
    EXPECT_TRUE(store.ok()) << "after cut " << cuts_ << ": " << store.status().ToString();
    if (!store.ok()) return nullptr;
    auto recording = std::make_unique<RecordingStore>(std::move(store).value(), recorder_);
    store_ = recording.get();
    auto engine = Engine::Open(std::move(recording), options_);
    EXPECT_TRUE(engine.ok()) << "after cut " << cuts_ << ": " << engine.status().ToString();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }

  static void PutItems(Engine& engine) {
    const Status put =
        Wait<Status>([&](auto done) { engine.PutItems(ThreeItems(), std::move(done)); });
    EXPECT_TRUE(put.ok()) << put.ToString();
  }

  void Heal() {
    box_->disk().SetCapacity(~std::uint64_t{0});
    box_->disk().SetFaults({});
  }

  // Lets the clients work until enough is acknowledged; the disk is slow, or fails for a while, or
  // is full for a while.
  void MakeTrouble() {
    const std::uint64_t kind = random_.Below(4);
    const std::uint64_t enough = world_.acknowledged + 3 + random_.Below(80);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    const auto work_until = [&](std::uint64_t acknowledged) {
      while (world_.acknowledged < acknowledged && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    };
    // Slow syncs, so that many a cut comes between a write and its sync.
    box_->disk().SetFaults({.slow_sync = 0.3, .slow_sync_time = std::chrono::microseconds(700)});
    work_until(enough / 2 + world_.acknowledged / 2);
    if (kind == 1) {
      box_->disk().SetCapacity(box_->disk().UsedBytes() + random_.Below(20'000));
    } else if (kind == 2) {
      box_->disk().SetFaults({.write_error = 0.02, .sync_error = 0.02, .slow_sync = 0.3});
    }
    if (kind == 1 || kind == 2) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(8000)));
      if (random_.Below(3) != 0) Heal();  // or it is cut in the middle of it
    }
    work_until(enough);
    std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(1500)));
  }

  void CheckState(Engine& engine) {
    // Waits may end meanwhile, and are learned: then once more.
    StoredState state;
    std::uint64_t sequence = 0;
    do {
      const Status saved = engine.Checkpoint();
      ASSERT_TRUE(saved.ok()) << saved.ToString();
      sequence = engine.Stats().checkpoint_sequence;
      state = ReadStoredState(*store_);
    } while (engine.Stats().committed_sequence != sequence);
    const LogRecorder::Entries fresh = recorder_.After(checked_, sequence);
    CheckLog(engine, fresh);
    const bool equal = state == TwinState(fresh);
    EXPECT_TRUE(equal) << "after cut " << cuts_ << ": not what the twin has learned";
    equal_ += equal ? 1 : 0;
    checked_ = sequence;
  }

  void CheckLog(Engine& engine, const LogRecorder::Entries& fresh) {
    for (const auto& [sequence, bytes] : fresh) {
      const LogRecord record = LogRecord::Decode(bytes).value();
      if (record.kind == LogRecord::Kind::kForget) {
        observations_[record.user] = 0;
        ++forgets_[record.user];
      } else if (record.kind == LogRecord::Kind::kLearn) {
        ++observations_[record.user];
        if (!learned_.insert(record.event).second) ++doubled_;
      }
    }
    for (const CutClient& client : clients_) {
      for (const auto& [event, how] : client.rewarded()) {
        if (learned_.contains(HashEvent(event))) continue;
        ++lost_;
        ADD_FAILURE() << "after cut " << cuts_ << ": reward of " << event << " is lost: " << how;
      }
      for (const auto& [user, count] : client.forgotten()) {
        if (forgets_[user] >= count) continue;
        ++lost_;
        ADD_FAILURE() << "after cut " << cuts_ << ": request to forget " << user << " is lost";
      }
    }
    EXPECT_EQ(lost_, 0U);
    EXPECT_EQ(doubled_, 0U);
    for (const auto& [user, count] : observations_) {
      const auto report = engine.GetUser(user);
      EXPECT_EQ(report.ok() ? report.value().observations : 0, count) << user;
    }
  }

  // The twin gets the new entries of the log, learns them and stops.
  StoredState TwinState(const LogRecorder::Entries& fresh) {
    {
      auto store = std::move(twin_.Open()).value();
      store::StoreBatch batch;
      for (const auto& [sequence, bytes] : fresh) {
        batch.Put(store::Table::kLog, NumberKey(sequence), bytes);
      }
      EXPECT_TRUE(store->Write(batch, false).ok());
      EngineOptions options = options_;
      options.users_in_memory = 1'000'000;
      options.checkpoint_events = 1'000'000;
      const auto engine = Engine::Open(std::move(store), options);
      EXPECT_TRUE(engine.ok()) << engine.status().ToString();
    }
    return ReadStoredState(*std::move(twin_.Open()).value());
  }

  RandomStream random_;
  EngineOptions options_;
  CutWorld world_;
  LogRecorder recorder_;
  std::deque<CutClient> clients_;
  std::unique_ptr<DiskBox> box_;
  DiskBox twin_;
  store::Store* store_ = nullptr;  // the engine's

  std::uint64_t cuts_ = 0, failures_ = 0, lost_ = 0, doubled_ = 0, equal_ = 0;
  std::uint64_t checked_ = 0;  // the log up to here
  std::map<std::string, std::uint64_t> observations_, forgets_;
  std::set<std::uint64_t> learned_;
};

}  // namespace codband::engine
