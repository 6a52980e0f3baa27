// Many users who visit seldom: what a user takes on disk and in memory, how many events per second
// the engine makes durable and learns, how long it takes to restart.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/synthetic_load.h"
#include "codband/base/clock.h"
#include "codband/base/random.h"
#include "codband/engine/engine.h"
#include "codband/report/progress.h"
#include "codband/store/rocksdb_store.h"

namespace codband {
namespace {

struct Flags {
  std::uint64_t users = 100'000;
  std::uint64_t visits = 20;  // of each user
  std::uint64_t session = 5;  // visits in a row
  std::uint64_t tastes = 10;
  std::uint64_t items = 1000;
  std::uint64_t candidates = 10;
  std::uint64_t dim = 25;
  std::uint64_t in_memory = 50'000;
  std::uint64_t in_flight = 512;
  std::uint64_t wait_seconds = 30;
  std::uint64_t threads = 2;
  bool sync = true;
  bool json = false;
  bool keep = false;
  std::filesystem::path data;
};

constexpr std::uint64_t kItems = 1;
constexpr std::uint64_t kTastes = 2;
constexpr std::uint64_t kVisits = 3;

double RssBytes() { return ResidentBytes(getpid()); }

// The sum of the file sizes.
double DiskBytes(const std::filesystem::path& directory) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

// Users visit in sessions, interleaved with those of others; everybody has had a session before
// anybody has another.
class Population {
 public:
  explicit Population(const Flags& flags) : flags_(flags) {
    for (std::uint64_t i = 0; i < flags.items; ++i) {
      items_.push_back(UnitVector(i, kItems, flags.dim));
    }
    for (std::uint64_t i = 0; i < flags.tastes; ++i) {
      tastes_.push_back(UnitVector(i, kTastes, flags.dim));
    }
    for (std::uint64_t i = 0; i < flags.in_flight; ++i) NextSession(slots_.emplace_back());
  }

  struct Slot {
    std::uint64_t user = 0;
    std::uint64_t left = 0;  // visits left in the session
    // Of the current visit.
    std::string event_id = {};
    double reward = 0;
  };
  std::deque<Slot>& slots() { return slots_; }

  std::vector<engine::Item> Items() const {
    std::vector<engine::Item> items;
    for (std::uint64_t i = 0; i < flags_.items; ++i) {
      items.push_back({.id = ItemName(i), .features = items_[i], .named = {}, .tags = {}});
    }
    return items;
  }

  engine::RankRequest Request(const Slot& slot, std::uint64_t visit) const {
    RandomStream random({1, visit}, kVisits);
    engine::RankRequest request{.user = fmt::format("user-{:08}", slot.user)};
    for (const std::uint64_t item :
         Candidates(random.Below(flags_.items), flags_.candidates, flags_.items)) {
      request.candidates.push_back({.id = ItemName(item)});
    }
    return request;
  }
  double Reward(const Slot& slot, const std::string& item) const {
    const std::vector<double>& x = items_[std::stoul(item.substr(4))];
    const std::vector<double>& taste = tastes_[slot.user * 2654435761 % flags_.tastes];
    RandomStream random({1, slot.user}, slot.left + 16);
    return MeanReward(x, taste) + 0.1 * random.Normal();
  }

  // Gives the slot its next session; false if there are no more.
  bool NextSession(Slot& slot) {
    const std::uint64_t rounds = flags_.visits / flags_.session;
    const std::uint64_t session = next_session_++;
    if (session >= rounds * flags_.users) return false;
    // Another order in each round: multiplication by a number coprime to `users` permutes.
    const std::uint64_t round = session / flags_.users;
    slot = {.user = session * (2'147'483'647 - 2 * round) % flags_.users, .left = flags_.session};
    return true;
  }
  std::uint64_t total_visits() const {
    return flags_.visits / flags_.session * flags_.session * flags_.users;
  }

 private:
  const Flags& flags_;
  std::vector<std::vector<double>> items_;
  std::vector<std::vector<double>> tastes_;
  std::deque<Slot> slots_;
  std::atomic<std::uint64_t> next_session_{0};
};

// Slots that are ready for their next visit.
class ReadySlots {
 public:
  void Push(Population::Slot* slot) {
    const std::lock_guard lock(mutex_);
    slots_.push_back(slot);
    wake_.notify_one();
  }
  void Finish() {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    wake_.notify_all();
  }
  // nullptr once everything is done.
  Population::Slot* Pop() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return finished_ || !slots_.empty(); });
    if (slots_.empty()) return nullptr;
    Population::Slot* slot = slots_.front();
    slots_.pop_front();
    return slot;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Population::Slot*> slots_;
  bool finished_ = false;
};

void Expect(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// Plays every visit: several threads rank; rewards follow once a decision is durable.
void Play(engine::Engine& engine, Population& population, const Flags& flags) {
  ReadySlots ready;
  report::Progress progress({.total = static_cast<double>(population.total_visits())});
  std::atomic<std::uint64_t> visits = 0;
  std::atomic<std::uint64_t> done = 0;
  const auto finish_visit = [&](Population::Slot* slot) {
    const std::uint64_t count = ++done;
    if (count % 1000 == 0) progress.Set(static_cast<double>(count));
    if (--slot->left > 0 || population.NextSession(*slot)) ready.Push(slot);
    if (count == population.total_visits()) ready.Finish();
  };
  const auto rank = [&](Population::Slot* slot) {
    const auto ranked = [&, slot](const engine::RankReply& reply) {
      slot->event_id = reply.event_id;
      slot->reward = population.Reward(*slot, reply.reward_action_id);
    };
    engine.Rank(population.Request(*slot, ++visits), ranked, [&, slot](const Status& status) {
      if (!status.ok()) return ready.Push(slot);  // refused: try again
      engine.Reward(
          slot->event_id, slot->reward, [&, slot](const Result<engine::RewardReply>& reward) {
            if (!reward.ok() || reward.value().outcome != engine::RewardOutcome::kAccepted) {
              return ready.Push(slot);
            }
            finish_visit(slot);
          });
    });
  };
  for (Population::Slot& slot : population.slots()) {
    if (slot.left > 0) ready.Push(&slot);
  }
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < flags.threads; ++i) {
    threads.emplace_back([&] {
      while (Population::Slot* slot = ready.Pop()) rank(slot);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Waits until no decision is pending and the store's compactions are done.
void Settle(engine::Engine& engine) {
  while (engine.Stats().pending > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Expect(engine.Checkpoint());
  for (int same = 0, before = -1; same < 10;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const int now = static_cast<int>(engine.Stats().store.disk_bytes >> 20);
    same = now == before ? same + 1 : 0;
    before = now;
  }
}

struct Figures {
  double seconds = 0;
  double visits = 0;
  double disk_bytes = 0, store_bytes = 0;
  double rss_start = 0, rss_end = 0, held = 0;
  double models = 0, checkpoints = 0;
  double start_seconds = 0, check_seconds = 0;
};

std::unique_ptr<engine::Engine> Open(const Flags& flags) {
  auto store = store::OpenRocksDbStore(flags.data);
  Expect(store.status());
  auto engine =
      engine::Engine::Open(std::move(store).value(),
                           {.dim = flags.dim,
                            .reward_wait_ms = static_cast<std::int64_t>(flags.wait_seconds) * 1000,
                            .users_in_memory = flags.in_memory,
                            .sync = flags.sync});
  Expect(engine.status());
  return std::move(engine).value();
}

Figures Measure(const Flags& flags) {
  Figures out;
  Population population(flags);
  auto engine = Open(flags);
  engine->PutItems(population.Items(), Expect);
  while (engine->Stats().items < flags.items) std::this_thread::yield();
  out.rss_start = RssBytes();
  const double start = WallSeconds();
  Play(*engine, population, flags);
  out.seconds = WallSeconds() - start;
  out.visits = static_cast<double>(population.total_visits());
  Settle(*engine);
  const engine::EngineStats stats = engine->Stats();
  if (stats.users != flags.users) throw std::runtime_error("users are missing");
  out.held = static_cast<double>(stats.users_in_memory);
  out.models = static_cast<double>(stats.models);
  out.checkpoints = static_cast<double>(stats.checkpoints);
  out.rss_end = RssBytes();
  out.store_bytes = static_cast<double>(stats.store.disk_bytes);
  out.disk_bytes = DiskBytes(flags.data);
  engine.reset();
  const double reopen = WallSeconds();
  engine = Open(flags);
  out.start_seconds = WallSeconds() - reopen;
  const double check = WallSeconds();
  Expect(engine->Check());
  out.check_seconds = WallSeconds() - check;
  return out;
}

void Print(const Flags& flags, const Figures& figures) {
  const auto users = static_cast<double>(flags.users);
  const double per_user_disk = figures.disk_bytes / users;
  const double per_user_memory = (figures.rss_end - figures.rss_start) / figures.held;
  if (flags.json) {
    fmt::print(
        "{{\"users\": {}, \"visits\": {}, \"dim\": {}, \"users_in_memory\": {}, \"seconds\": "
        "{:.1f}, \"visits_per_second\": {:.0f}, \"events_per_second\": {:.0f}, "
        "\"disk_bytes_per_user\": {:.0f}, \"store_bytes_per_user\": {:.0f}, "
        "\"memory_bytes_per_user\": {:.0f}, \"users_held\": {:.0f}, \"rss_start\": {:.0f}, "
        "\"rss_end\": {:.0f}, \"models\": {:.0f}, \"checkpoints\": {:.0f}, \"start_seconds\": "
        "{:.3f}, \"check_seconds\": {:.1f}}}\n",
        flags.users, flags.visits, flags.dim, flags.in_memory, figures.seconds,
        figures.visits / figures.seconds, 2 * figures.visits / figures.seconds, per_user_disk,
        figures.store_bytes / users, per_user_memory, figures.held, figures.rss_start,
        figures.rss_end, figures.models, figures.checkpoints, figures.start_seconds,
        figures.check_seconds);
    return;
  }
  fmt::print("{:L} users, {} visits each, {} features, {:.0f} models\n", flags.users, flags.visits,
             flags.dim, figures.models);
  fmt::print("time                {:.0f} s: {:.0f} ranks and {:.0f} rewards a second\n",
             figures.seconds, figures.visits / figures.seconds, figures.visits / figures.seconds);
  fmt::print("disk                {:.0f} bytes a user ({:.0f} MB in all)\n", per_user_disk,
             figures.disk_bytes / 1e6);
  fmt::print("memory              {:.0f} bytes a user held ({:.0f} MB, {:.0f} MB at the start)\n",
             per_user_memory, figures.rss_end / 1e6, figures.rss_start / 1e6);
  fmt::print("users in memory     {:.0f}, at most {} wanted\n", figures.held, flags.in_memory);
  fmt::print("checkpoints         {:.0f}\n", figures.checkpoints);
  fmt::print("start               {:.3f} s\n", figures.start_seconds);
  fmt::print("check of everything {:.1f} s\n", figures.check_seconds);
}

}  // namespace
}  // namespace codband

int main(int argc, char** argv) {
  using namespace codband;
  Flags flags;
  CLI::App app("Many users who visit seldom, in the engine itself");
  app.add_option("--users", flags.users, "Number of users")->capture_default_str();
  app.add_option("--visits", flags.visits, "Visits of each user")->capture_default_str();
  app.add_option("--in-memory", flags.in_memory, "Users held in memory")->capture_default_str();
  app.add_option("--in-flight", flags.in_flight, "Concurrent visits")->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads that rank")->capture_default_str();
  app.add_option("--dim", flags.dim, "Features of an item")->capture_default_str();
  app.add_option("--data", flags.data,
                 "The data directory to create; removed at the end unless --keep");
  app.add_flag("!--no-sync", flags.sync, "Do not fsync before a request is acknowledged");
  app.add_flag("--json", flags.json, "One JSON object");
  app.add_flag("--keep", flags.keep, "Keep the data directory");
  CLI11_PARSE(app, argc, argv);
  if (flags.data.empty()) {
    flags.data = std::filesystem::temp_directory_path() / fmt::format("codband-{}", getpid());
  }
  if (std::filesystem::exists(flags.data)) {
    fmt::print(stderr, "many_users: {} exists\n", flags.data.string());
    return 1;
  }
  int code = 0;
  try {
    Print(flags, Measure(flags));
  } catch (const std::exception& error) {
    fmt::print(stderr, "many_users: {}\n", error.what());
    code = 1;
  }
  if (!flags.keep) std::filesystem::remove_all(flags.data);
  return code;
}
