#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/engine/engine.h"

namespace codband::server {

// An engine in memory that learns nothing, for tests of the server: rankings are by position, with
// numbers of full precision. Like the real one it completes calls on a thread of its own, many at a
// time. Some ids make it fail: see Rank and PutItems.
class FakeEngine final : public engine::Engine {
 public:
  static constexpr std::size_t kDim = 4;

  FakeEngine() : thread_([this] { Run(); }) {}
  ~FakeEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  // No call completes until Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    wake_.notify_all();
  }
  // Waits until `count` calls are waiting for their completion.
  void AwaitWaiting(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completions_.size() >= count; });
  }
  std::size_t items() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  void set_last_error(std::string error) {
    const std::lock_guard lock(mutex_);
    last_error_ = std::move(error);
  }
  engine::RankRequest last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }
  std::uint64_t calls() const { return calls_; }  // that change something

  // The user "busy" gets kUnavailable, "disk" a full disk, "broken" another error of the disk,
  // "corrupt" kCorruption, "bad" kInvalidArgument, "throw" an exception, "memory" another;
  // "now" an answer before the call returns.
  void Rank(engine::RankRequest request,
            const std::function<void(const engine::RankReply&)>& ranked,
            Done<Status> done) override {
    ++calls_;
    if (request.user == "throw") throw std::runtime_error("the engine is broken");
    if (request.user == "memory") throw std::bad_alloc();
    const bool now = request.user == "now";
    {
      const std::lock_guard lock(mutex_);
      last_request_ = request;
    }
    const Result<engine::RankReply> reply = MakeReply(std::move(request));
    if (reply.ok()) ranked(reply.value());
    if (now) return done(reply.status());
    Later([status = reply.status(), done = std::move(done)] { done(status); });
  }
  Status CheckReward(double) const override { return {}; }
  void Reward(std::string event_id, double /*value*/,
              Done<Result<engine::RewardReply>> done) override {
    ++calls_;
    engine::RewardReply reply;
    {
      const std::lock_guard lock(mutex_);
      if (event_id == "late") {
        reply.outcome = engine::RewardOutcome::kLate;
      } else if (event_id == "unknown") {
        reply.outcome = engine::RewardOutcome::kUnknown;
      } else if (!rewarded_.insert(event_id).second) {
        reply.outcome = engine::RewardOutcome::kDuplicate;
      } else {
        reply.sequence = rewarded_.size();
      }
    }
    Later([reply, done = std::move(done)] { done(reply); });
  }
  void Activate(std::string event_id, Done<Status> done) override {
    ++calls_;
    const Status status =
        event_id == "unknown" ? Status::NotFound("there is no such event") : Status();
    Later([status, done = std::move(done)] { done(status); });
  }
  std::string NewEventId() override { return "made-up"; }
  Result<std::vector<std::string>> FindEvents(const std::string&, std::size_t) const override {
    return std::vector<std::string>();
  }
  // An item "throw" makes it throw an exception.
  void PutItems(std::vector<engine::Item> items, Done<Status> done) override {
    ++calls_;
    for (const engine::Item& item : items) {
      if (item.id == "throw") throw std::runtime_error("the engine is broken");
    }
    {
      const std::lock_guard lock(mutex_);
      for (engine::Item& item : items) {
        std::string id = item.id;
        items_.insert_or_assign(std::move(id), std::move(item));
      }
    }
    Later([done = std::move(done)] { done(Status()); });
  }
  void DeleteItem(std::string id, Done<Status> done) override {
    ++calls_;
    Status status;
    {
      const std::lock_guard lock(mutex_);
      if (items_.erase(id) == 0) status = Status::NotFound("there is no item '" + id + "'");
    }
    Later([status, done = std::move(done)] { done(status); });
  }
  Result<engine::Item> GetItem(const std::string& id) const override {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find(id);
    if (found == items_.end()) return Status::NotFound("there is no item '" + id + "'");
    return found->second;
  }
  std::vector<engine::Item> ListItems(const std::string& after, std::size_t most) const override {
    const std::lock_guard lock(mutex_);
    std::vector<engine::Item> page;
    for (auto item = items_.upper_bound(after); item != items_.end() && page.size() < most;
         ++item) {
      page.push_back(item->second);
    }
    return page;
  }
  engine::FeatureReport Features() override {
    return {.limit = 256,
            .columns = {{.name = "genre=jazz × device=phone",
                         .kind = "crossing",
                         .count = 3,
                         .min = 1,
                         .max = 1,
                         .importance = 0.25}},
            .sharing = {"tags=<b>"}};
  }
  std::optional<ItemDescription> DescribeItem(const std::string& id) const override {
    if (id != "hit") return std::nullopt;
    return ItemDescription{.shown = 3,
                           .reward = 2,
                           .effect = 0.25,
                           .width = 0.125,
                           .groups = {{.model = 1, .users = 2, .effect = 0.5, .width = 0.25}}};
  }
  void Forget(std::string user, Done<Status> done) override {
    ++calls_;
    const Status status =
        user == "nobody" ? Status::NotFound("there is no user 'nobody'") : Status();
    Later([status, done = std::move(done)] { done(status); });
  }
  Result<engine::UserReport> GetUser(const std::string& user) override {
    if (user == "nobody") return Status::NotFound("there is no user 'nobody'");
    return engine::UserReport{.user = user,
                              .model = 2,
                              .model_chance = 0.75,
                              .since_ms = 1'562'500'800'123,
                              .observations = 40,
                              .period_observations = 12,
                              .changes = {{user, 1'562'500'800'123, 1, 2}}};
  }
  Status VisitUsers(const std::function<bool(const engine::UserReport&)>& /*visit*/) override {
    return {};
  }
  std::vector<engine::ModelReport> Models(std::size_t top) override {
    return {MakeModel(0, top), MakeModel(1, top)};
  }
  Result<engine::ModelReport> GetModel(ModelId id, std::size_t top) override {
    if (id > 1) return Status::NotFound("there is no model " + std::to_string(id));
    return MakeModel(id, top);
  }
  engine::SeriesReport Series(std::int64_t from_ms, std::int64_t /*to_ms*/,
                              std::int64_t step_ms) override {
    engine::SeriesReport report{.step_ms = step_ms};
    engine::SeriesReport::Point& point = report.points.emplace_back();
    point.time_ms = from_ms / step_ms * step_ms;
    point.activity.decisions = 4;
    for (const double reward : {0.0, 1.0}) point.activity.rewards[0][0].Add(reward);
    point.groups = {.changes = 1, .users = 3, .groups = {{0, 2}, {1, 1}}};
    return report;
  }
  std::vector<engine::Change> RecentChanges(std::size_t most) override {
    std::vector<engine::Change> changes = {{"<b>eve</b>", 1'562'500'800'123, 0, 1},
                                           {"adam", 1'562'500'700'000, kNoModel, 0}};
    changes.resize(std::min(most, changes.size()));
    return changes;
  }
  std::vector<engine::QuarantinedEntry> Quarantined() override { return {}; }
  Status Close() override { return {}; }
  engine::EngineStats Stats() override {
    const std::lock_guard lock(mutex_);
    engine::EngineStats stats;
    stats.policy = "codband";
    stats.dim = kDim;
    stats.ranks = calls_;
    stats.models = 2;
    stats.users = 3;
    stats.items = items_.size();
    stats.committed_sequence = 12;
    stats.applied_sequence = 5;
    stats.last_error = last_error_;
    return stats;
  }
  std::size_t dim() const override { return kDim; }
  Status Checkpoint() override { return {}; }
  Status Backup(const std::filesystem::path& directory) override {
    ++calls_;
    if (directory.filename() == "broken") {
      return Status::IoError("cannot write to " + directory.string() + ": Input/output error");
    }
    std::filesystem::create_directories(directory);
    return {};
  }
  Status Check() override { return {}; }

 private:
  static engine::ModelReport MakeModel(ModelId id, std::size_t top) {
    engine::ModelReport model;
    model.id = id;
    model.popularity = 0.5;
    model.users = 2;
    model.periods = 3;
    model.observations = 10;
    model.parameter = {0.5, -1, 0, 0.25};
    model.items = {{"song-1", 0.9}, {"song-2", 0.8}};
    model.tags = {{"rock & roll", 7}};
    model.items.resize(std::min(top, model.items.size()));
    model.tags.resize(std::min(top, model.tags.size()));
    return model;
  }

  static Result<engine::RankReply> MakeReply(engine::RankRequest request) {
    if (request.user == "busy") return Status(StatusCode::kUnavailable, "the queue is full");
    if (request.user == "disk") return Status::IoError("data/log: No space left on device");
    if (request.user == "broken") return Status::IoError("data/log: Input/output error");
    if (request.user == "corrupt") return Status::Corruption("user record ends early");
    if (request.user == "bad")
      return Status::InvalidArgument("actions[1]: is not in the catalogue");
    engine::RankReply reply;
    reply.event_id = request.event_id.empty() ? "made-up" : std::move(request.event_id);
    reply.model = request.user == "new" ? kNoModel : 3;
    const double count = static_cast<double>(request.candidates.size());
    for (std::size_t i = 0; i < request.candidates.size(); ++i) {
      const double x = static_cast<double>(i + 1) / 7.0;
      reply.ranking.push_back(
          {std::move(request.candidates[i].id), 1 / count, x / 3, x / 11, 1.0 / (13.0 + x)});
    }
    if (!reply.ranking.empty()) reply.reward_action_id = reply.ranking.front().id;
    if (request.explain) {
      reply.explanation = engine::Explanation{.contributions = {{"genre=rock", 0.5}},
                                              .intercept = 0.1,
                                              .group_users = 4,
                                              .group_observations = 40,
                                              .last_change_ms = 1'562'500'800'123};
    }
    return reply;
  }

  void Later(std::function<void()> completion) {
    {
      const std::lock_guard lock(mutex_);
      completions_.push_back(std::move(completion));
    }
    wake_.notify_one();
    changed_.notify_all();
  }
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || (!held_ && !completions_.empty()); });
      if (completions_.empty()) return;
      std::vector<std::function<void()>> batch = std::exchange(completions_, {});
      lock.unlock();
      for (const std::function<void()>& completion : batch) completion();
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> completions_;
  std::map<std::string, engine::Item> items_;
  std::set<std::string> rewarded_;
  engine::RankRequest last_request_;
  std::string last_error_;
  std::atomic<std::uint64_t> calls_ = 0;
  bool held_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace codband::server
