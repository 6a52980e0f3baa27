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
  for (const auto& [partition, life] : lives_) Close(partition, true, [] {});
  for (const auto& [partition, life] : lives_) life->thread.join();
}

void EngineHost::Tell(LogLevel level, std::string message) const {
  if (options_.engine.log) {
    options_.engine.log({.level = level, .cause = "cluster", .message = std::move(message)});
  }
}

void EngineHost::Open(const store::PartitionState& state, std::function<void(Status)> done) {
  auto& life = lives_[state.partition];
  if (life != nullptr) life->thread.join();  // it has been closed
  life = std::make_unique<Life>();
  life->state = state;
  life->thread = std::thread([this, &life = *life, done = std::move(done)] { Live(life, done); });
}

void EngineHost::Close(store::Partition partition, bool fenced, std::function<void()> done) {
  Life& life = *lives_.at(partition);
  const std::lock_guard lock(life.mutex);
  life.closing = true;
  life.fenced |= fenced;
  life.closed = std::move(done);
  // Nothing of it can be written any more: those who wait are told.
  if (fenced && life.store != nullptr) life.store->GiveUp("another node has taken over; try again");
  life.changed.notify_all();
}

void EngineHost::Live(Life& life, const std::function<void(Status)>& done) {
  auto engine = OpenEngine(life);
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
  auto store = std::make_unique<cluster::ReplicatedStore>(
      replica.value()->Take(), log_, claim, position,
      [this, claim](bool fenced) { broken_(claim, fenced); });
  {
    const std::lock_guard lock(life.mutex);
    life.store = store.get();
    if (life.fenced) store->GiveUp("another node has taken over; try again");
  }
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
      } else {
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
