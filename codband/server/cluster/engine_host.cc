#include "codband/server/cluster/engine_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "codband/base/clock.h"
#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"

namespace codband::server {
namespace {

constexpr std::chrono::milliseconds kLookPeriod(200);
constexpr std::chrono::seconds kEndPatience(10);
// More than standbys take to have read what was appended: they look four times in the time of a
// lease.
constexpr std::chrono::milliseconds kFollowTime(2000);
// Of a partition, however many there are.
constexpr std::uint64_t kLeastStoreBytes = 4 << 20;
constexpr std::size_t kLeastUserBytes = 16 << 20;
constexpr std::size_t kLeastUsers = 1000;

Erasures::Cleared ClearedOf(engine::Engine& engine) {
  const engine::EngineStats stats = engine.Stats();
  return {.cleared = stats.cleared_sequence,
          .erased = stats.erased_sequence,
          .last_erased = stats.last_erased_sequence};
}

}  // namespace

EngineHost::EngineHost(store::PartitionLog& log, EngineHostOptions options, Serve serve,
                       Broken broken)
    : log_(log),
      options_(std::move(options)),
      serve_(std::move(serve)),
      broken_(std::move(broken)) {}

EngineHost::~EngineHost() {
  for (const auto& [partition, life] : lives_) {
    Close(partition, true, [] {});
    EndFollow(partition);
    const std::lock_guard lock(life->mutex);
    life->ending = true;
    life->changed.notify_all();
  }
  for (const auto& [partition, life] : lives_) life->thread.join();
}

void EngineHost::Tell(LogLevel level, std::string message) const {
  if (options_.engine.log) {
    options_.engine.log({.level = level, .cause = "cluster", .message = std::move(message)});
  }
}

EngineHost::Life& EngineHost::LifeOf(store::Partition partition) {
  auto& life = lives_[partition];
  if (life == nullptr) {
    life = std::make_unique<Life>();
    life->thread = std::thread([this, partition, &life = *life] { Run(partition, life); });
  }
  return *life;
}

void EngineHost::Open(const store::PartitionState& state, std::function<void(Status)> done) {
  Life& life = LifeOf(state.partition);
  const std::lock_guard lock(life.mutex);
  life.opening.emplace(state, std::move(done));
  life.closing = life.fenced = life.follows = false;
  life.changed.notify_all();
}

void EngineHost::Follow(store::Partition partition, std::uint64_t last) {
  Life& life = LifeOf(partition);
  const std::lock_guard lock(life.mutex);
  life.follows = true;
  life.follow_to = last;
  life.asked = life.standby == nullptr || life.standby->reached() < last;
  if (life.asked) life.changed.notify_all();
}

void EngineHost::EndFollow(store::Partition partition) {
  Life& life = LifeOf(partition);
  const std::lock_guard lock(life.mutex);
  life.follows = false;
  if (life.standby != nullptr) life.standby->Stop();
  life.changed.notify_all();
}

std::uint64_t EngineHost::FollowedTo(store::Partition partition) const {
  const auto life = lives_.find(partition);
  if (life == lives_.end()) return 0;
  const std::lock_guard lock(life->second->mutex);
  return life->second->standby == nullptr ? 0 : life->second->standby->reached();
}

bool EngineHost::IsClosing(Life& life) {
  const std::lock_guard lock(life.mutex);
  return life.closing;
}

// Does what is wanted of the partition, one thing after the other.
void EngineHost::Run(store::Partition partition, Life& life) {
  const auto is_left = [&] {
    return life.standby != nullptr && (!life.follows || life.standby->stopped());
  };
  std::unique_lock lock(life.mutex);
  while (true) {
    life.changed.wait(lock, [&] {
      return life.ending || life.opening || is_left() || (life.follows && life.asked);
    });
    if (life.opening) {
      const auto [state, done] = *std::exchange(life.opening, std::nullopt);
      life.state = state;
      lock.unlock();
      Live(life, done);
    } else if (is_left()) {
      lock.unlock();
      DropStandby(partition, life);
    } else if (life.ending) {
      return;
    } else {
      life.asked = false;
      const std::uint64_t last = life.follow_to;
      lock.unlock();
      FollowOn(partition, life, last);
    }
    lock.lock();
  }
}

void EngineHost::FollowOn(store::Partition partition, Life& life, std::uint64_t last) {
  if (life.standby == nullptr) {
    if (options_.erasures != nullptr) options_.erasures->UseCopy(partition);
    const std::lock_guard lock(life.mutex);
    life.standby = std::make_shared<Standby>(
        log_, Standby::Options{.partition = partition,
                               .directory = CopyDirectory(options_.data, partition),
                               .store = StoreOptions(),
                               .engine = EngineOptionsOf(partition)});
    if (!life.follows && !life.opening) life.standby->Stop();
  }
  const Status status = life.standby->Follow(last);
  const std::lock_guard lock(life.mutex);
  const bool news = life.follows && std::exchange(life.told, !status.ok()) != !status.ok();
  if (!news && !status.ok()) return;
  if (!status.ok()) {
    Tell(LogLevel::kWarning,
         fmt::format("partition {} cannot be followed: {}; a takeover by this node would have to "
                     "catch up, nothing else; it is tried again",
                     partition, status.message()));
  } else if (news) {
    Tell(LogLevel::kInfo, fmt::format("partition {} is followed again", partition));
  }
}

void EngineHost::DropStandby(store::Partition partition, Life& life) {
  const std::uint64_t erased = life.standby->erased();
  std::shared_ptr<Standby> dropped;
  {
    const std::lock_guard lock(life.mutex);
    dropped = std::exchange(life.standby, nullptr);
  }
  dropped.reset();
  if (options_.erasures != nullptr) options_.erasures->LeaveCopy(partition, erased);
}

void EngineHost::Close(store::Partition partition, bool fenced, std::function<void()> done) {
  Life& life = LifeOf(partition);
  const std::lock_guard lock(life.mutex);
  life.closing = true;
  life.fenced |= fenced;
  life.closed = std::move(done);
  // Nothing of it can be written any more: those who wait are told.
  if (fenced && life.store != nullptr) life.store->GiveUp("another node has taken over; try again");
  life.changed.notify_all();
}

void EngineHost::Live(Life& life, const Opened& done) {
  auto engine = OpenStandby(life);
  if (!engine.ok()) engine = OpenEngine(life);
  if (engine.ok()) serve_(life.state.claim(), engine.value().get());
  done(engine.status());
  if (engine.ok()) {
    KeepCheckpoints(life, *engine.value());
    EndEngine(life, *engine.value());
    const std::uint64_t erased = ClearedOf(*engine.value()).erased;
    engine.value().reset();
    if (options_.erasures != nullptr) options_.erasures->LeaveCopy(life.state.partition, erased);
  }
  std::unique_lock lock(life.mutex);
  life.changed.wait(lock, [&] { return life.closing; });
  const auto closed = std::move(life.closed);
  lock.unlock();
  closed();
}

Standby::Owned EngineHost::Own(Life& life) {
  return [&life](cluster::ReplicatedStore& store) {
    const std::lock_guard lock(life.mutex);
    life.store = &store;
    if (life.fenced) store.GiveUp("another node has taken over; try again");
  };
}

cluster::ReplicatedStore::OnGivenUp EngineHost::OnGivenUp(const store::Claim& claim) const {
  return [this, claim](bool fenced) { broken_(claim, fenced); };
}

// Goes on with what was followed, if it is ready; the rest is left to OpenEngine.
Result<std::unique_ptr<engine::Engine>> EngineHost::OpenStandby(Life& life) {
  if (life.standby == nullptr) return Status(StatusCode::kUnavailable, "it was not followed");
  const std::uint64_t had = life.standby->reached();
  auto engine = life.standby->Serve(life.state, OnGivenUp(life.state.claim()), Own(life),
                                    options_.on_finished);
  std::shared_ptr<Standby> dropped;
  {
    const std::lock_guard lock(life.mutex);
    dropped = std::exchange(life.standby, nullptr);
    if (!engine.ok()) life.store = nullptr;
  }
  Tell(engine.ok() ? LogLevel::kInfo : LogLevel::kWarning,
       engine.ok() ? fmt::format("partition {}: it was followed up to frame {} of {}",
                                 life.state.partition, had, life.state.last_sequence)
                   : fmt::format("partition {}: what was followed cannot go on: {}; it catches up "
                                 "from the local copy",
                                 life.state.partition, engine.status().message()));
  return engine;
}

// Requests that were accepted are answered, unless the log does not answer for too long.
void EngineHost::EndEngine(Life& life, engine::Engine& engine) {
  const auto ended = std::async(std::launch::async, [&] {
    serve_(life.state.claim(), nullptr);
    static_cast<void>(engine.Close());
  });
  if (ended.wait_for(kEndPatience) != std::future_status::ready) {
    life.store->GiveUp("the node stops, and the log does not answer");
    ended.wait();
  }
  const std::lock_guard lock(life.mutex);
  life.store = nullptr;
}

// A node may come to have all partitions: together they take no more memory than one server.
store::RocksDbOptions EngineHost::StoreOptions() const {
  store::RocksDbOptions options = options_.store;
  if (options_.partitions == 1) return options;
  options.cache_bytes = std::max(options.cache_bytes / options_.partitions, kLeastStoreBytes);
  options.write_buffer_bytes =
      std::max(options.write_buffer_bytes / options_.partitions, kLeastStoreBytes);
  return options;
}

engine::EngineOptions EngineHost::EngineOptionsOf(store::Partition partition) const {
  engine::EngineOptions options = options_.engine;
  options.moves_between_machines = true;
  if (options_.partitions == 1) return options;
  options.partition = partition;
  options.users_in_memory = std::max(options.users_in_memory / options_.partitions, kLeastUsers);
  options.user_memory_bytes =
      std::max(options.user_memory_bytes / options_.partitions, kLeastUserBytes);
  return options;
}

Result<std::unique_ptr<engine::Engine>> EngineHost::OpenEngine(Life& life) {
  const store::Partition partition = life.state.partition;
  if (options_.erasures != nullptr) options_.erasures->UseCopy(partition);
  auto replica =
      cluster::StoreReplica::Open(CopyDirectory(options_.data, partition), StoreOptions());
  if (!replica.ok()) return replica.status();
  const std::uint64_t had = replica.value()->position().sequence;
  CODBAND_RETURN_IF_ERROR(
      cluster::CatchUpAndWait(log_, partition, *replica.value(), life.state.last_sequence));
  Tell(LogLevel::kInfo, fmt::format("partition {}: the local copy had {} frames of {}", partition,
                                    had, life.state.last_sequence));
  const store::Claim claim = life.state.claim();
  const cluster::Position position = replica.value()->position();
  auto store = std::make_unique<cluster::ReplicatedStore>(replica.value()->Take(), log_, claim,
                                                          position, OnGivenUp(claim));
  Own(life)(*store);
  auto engine =
      engine::Engine::Open(std::move(store), EngineOptionsOf(partition), options_.on_finished);
  if (!engine.ok()) {
    const std::lock_guard lock(life.mutex);
    life.store = nullptr;
  }
  return engine;
}

// A checkpoint is due after so many frames or so long, if there is a frame that it would have or
// something that the last one had and the engine has cleared since.
void EngineHost::KeepCheckpoints(Life& life, engine::Engine& engine) {
  std::uint64_t stored = life.state.first_sequence - 1;  // what a checkpoint has
  std::uint32_t attempt = 0;
  double last_seconds = WallSeconds();
  Erasures::Cleared noted;
  std::unique_lock lock(life.mutex);
  while (true) {
    const bool closing = life.changed.wait_for(lock, kLookPeriod, [&] { return life.closing; });
    if (closing) return;
    const std::uint64_t frames = life.store->position().sequence - stored;
    const double waited_ms = 1000 * (WallSeconds() - last_seconds);
    const bool interval_over = waited_ms >= static_cast<double>(options_.checkpoint_interval_ms);
    if (frames < options_.checkpoint_frames && !interval_over) continue;
    lock.unlock();
    const Erasures::Cleared cleared = ClearedOf(engine);
    if (frames > 0 || !(cleared == noted)) {
      const Status status = StoreOneCheckpoint(life, stored, ++attempt);
      if (status.ok()) {
        noted = cleared;
      } else if (!IsClosing(life)) {
        Tell(LogLevel::kWarning,
             fmt::format("partition {}: no checkpoint could be stored: {}; nothing is lost, it is "
                         "tried again, the log grows meanwhile",
                         life.state.partition, status.message()));
      }
    }
    // Which pool was in it may be known later.
    if (options_.erasures != nullptr) options_.erasures->NoteCheckpoint(life.state.claim(), noted);
    last_seconds = WallSeconds();
    lock.lock();
  }
}

// The store is not closed while this thread is here.
Status EngineHost::StoreOneCheckpoint(Life& life, std::uint64_t& sequence, std::uint32_t attempt) {
  const std::filesystem::path directory =
      CopyDirectory(options_.data, life.state.partition) / "checkpoint";
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  CODBAND_RETURN_IF_ERROR(life.store->Backup(directory));
  {
    // Those who follow shall not find that the log does not reach back to them any more.
    std::unique_lock lock(life.mutex);
    if (life.changed.wait_for(lock, kFollowTime, [&] { return life.closing; })) {
      std::filesystem::remove_all(directory, ignored);
      return {StatusCode::kUnavailable, "the partition is closed"};
    }
  }
  Result<cluster::Checkpoint> checkpoint = Status(StatusCode::kUnavailable, "not read yet");
  {
    store::RocksDbOptions read_only = StoreOptions();
    read_only.read_only = true;
    const auto snapshot = store::OpenRocksDbStore(directory, read_only);
    if (!snapshot.ok()) return snapshot.status();
    checkpoint = cluster::ReadCheckpoint(*snapshot.value());
  }
  std::filesystem::remove_all(directory, ignored);
  if (!checkpoint.ok()) return checkpoint.status();
  checkpoint.value().attempt = attempt;
  const std::uint64_t covered = checkpoint.value().position.sequence;
  std::promise<Status> stored;
  cluster::StoreCheckpoint(log_, life.state.claim(), std::move(checkpoint).value(),
                           [&](Status status) { stored.set_value(std::move(status)); });
  const Status status = stored.get_future().get();
  if (status.ok()) sequence = covered;
  return status;
}

}  // namespace codband::server
