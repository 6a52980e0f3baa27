// codband.Engine: the durable engine in this process. Requests and replies are the JSON of the HTTP
// API, read and written by the server's own code, so that both mean the same.
#include <pybind11/stl.h>

#include <future>
#include <mutex>
#include <shared_mutex>

#include "codband/base/file.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/api/reply_json.h"
#include "codband/server/api/request_json.h"
#include "codband/server/config/config.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"

namespace codband::python {
namespace {

using namespace py::literals;
using codband::engine::RankReply;

// Thread-safe; closing waits for calls that have begun, later ones are refused.
class EngineHandle {
 public:
  EngineHandle(const std::filesystem::path& directory,
               const std::vector<std::pair<std::string, std::string>>& settings) {
    server::ConfigSources sources;
    for (const auto& [key, value] : settings) sources.flags.push_back({key, key, value});
    auto config = server::ReadServeConfig(sources);
    ThrowIfError(config.status());
    auto engine = [&]() -> Result<std::unique_ptr<engine::Engine>> {
      const py::gil_scoped_release release;
      CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(directory));
      auto store =
          server::OpenDataStore(std::filesystem::absolute(directory), config.value().store);
      if (!store.ok()) return store.status();
      return engine::Engine::Open(std::move(store).value(), config.value().engine);
    }();
    engine_ = ValueOf(std::move(engine));
  }
  // What was accepted is committed first, which may take a while.
  ~EngineHandle() {
    const py::gil_scoped_release release;
    engine_.reset();
  }

  std::string Rank(const std::string& body, bool explain) {
    std::string reply;
    Call([&](engine::Engine& engine) -> Status {
      server::JsonParser parser;
      auto request = server::ParseRank(parser, body, engine.dim());
      if (!request.ok()) return request.status();
      request.value().explain = explain;
      std::promise<Status> done;
      engine.Rank(
          std::move(request).value(),
          [&](const RankReply& ranked) { server::AppendRankReply(reply, ranked); },
          [&](Status status) { done.set_value(std::move(status)); });
      return done.get_future().get();
    });
    return reply;
  }

  std::string Reward(const std::string& event_id, double value) {
    std::string reply;
    Call([&](engine::Engine& engine) -> Status {
      std::promise<Result<engine::RewardReply>> done;
      engine.Reward(event_id, value,
                    [&](Result<engine::RewardReply> result) { done.set_value(std::move(result)); });
      const Result<engine::RewardReply> result = done.get_future().get();
      if (!result.ok()) return result.status();
      switch (result.value().outcome) {
        case engine::RewardOutcome::kLate:
          return {StatusCode::kGone, "eventId: the event's wait for a reward is over"};
        case engine::RewardOutcome::kUnknown:
          return Status::NotFound("eventId: there is no such event");
        case engine::RewardOutcome::kAccepted:
        case engine::RewardOutcome::kDuplicate:
          server::AppendRewardReply(reply, event_id, result.value());
      }
      return {};
    });
    return reply;
  }

  void PutItems(const std::vector<std::string>& bodies) {
    Call([&](engine::Engine& engine) -> Status {
      server::JsonParser parser;
      std::vector<engine::Item> items;
      for (const std::string& body : bodies) {
        auto item = server::ParseItem(parser, body, engine.dim());
        if (!item.ok()) return item.status();
        items.push_back(std::move(item).value());
      }
      std::promise<Status> done;
      engine.PutItems(std::move(items), [&](Status status) { done.set_value(std::move(status)); });
      return done.get_future().get();
    });
  }

  // A change of what the id names.
  void Change(void (engine::Engine::*change)(std::string, engine::Engine::Done<Status>),
              const std::string& id) {
    Call([&](engine::Engine& engine) -> Status {
      std::promise<Status> done;
      (engine.*change)(id, [&](Status status) { done.set_value(std::move(status)); });
      return done.get_future().get();
    });
  }

  // The JSON that `append` makes of what `read` gives.
  template <typename Read, typename Append>
  std::string Report(const Read& read, const Append& append) {
    std::string reply;
    Call([&](engine::Engine& engine) -> Status {
      auto result = read(engine);
      if (!result.ok()) return result.status();
      append(reply, result.value());
      return {};
    });
    return reply;
  }

  py::dict Stats() {
    engine::EngineStats stats;
    Call([&](engine::Engine& engine) -> Status {
      stats = engine.Stats();
      return {};
    });
    return py::dict(
        "policy"_a = stats.policy, "dim"_a = stats.dim, "ranks"_a = stats.ranks,
        "rewards_accepted"_a = stats.rewards_accepted,
        "rewards_duplicate"_a = stats.rewards_duplicate, "rewards_late"_a = stats.rewards_late,
        "rewards_unknown"_a = stats.rewards_unknown, "learned"_a = stats.learned,
        "changes"_a = stats.changes, "models"_a = stats.models, "users"_a = stats.users,
        "items"_a = stats.items, "pending"_a = stats.pending, "quarantined"_a = stats.quarantined);
  }

  template <typename Use>
  void Call(const Use& use) {
    const Status status = [&]() -> Status {
      const py::gil_scoped_release release;
      const std::shared_lock lock(mutex_);
      if (engine_ == nullptr) return {StatusCode::kUnavailable, "the engine is closed"};
      return use(*engine_);
    }();
    ThrowIfError(status);
  }

  void Close() {
    const Status status = [&]() -> Status {
      const py::gil_scoped_release release;
      const std::unique_lock lock(mutex_);
      if (engine_ == nullptr) return {};
      Status closed = engine_->Close();
      engine_.reset();
      return closed;
    }();
    ThrowIfError(status);
  }

  bool closed() const {
    const std::shared_lock lock(mutex_);
    return engine_ == nullptr;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unique_ptr<engine::Engine> engine_;  // null once closed
};

}  // namespace

void BindEngine(py::module_& module) {
  using engine::Engine;
  py::class_<EngineHandle>(module, "Engine", "See codband.Engine.")
      .def(py::init([](const std::string& directory,
                       const std::vector<std::pair<std::string, std::string>>& settings) {
        return std::make_unique<EngineHandle>(directory, settings);
      }))
      .def("rank", &EngineHandle::Rank)
      .def("reward", &EngineHandle::Reward)
      .def("activate", [](EngineHandle& handle,
                          const std::string& id) { handle.Change(&Engine::Activate, id); })
      .def("put_items", &EngineHandle::PutItems)
      .def("delete_item", [](EngineHandle& handle,
                             const std::string& id) { handle.Change(&Engine::DeleteItem, id); })
      .def("forget",
           [](EngineHandle& handle, const std::string& id) { handle.Change(&Engine::Forget, id); })
      .def("get_item",
           [](EngineHandle& handle, const std::string& id) {
             std::optional<ItemDescription> learned;
             return handle.Report(
                 [&](Engine& e) {
                   learned = e.DescribeItem(id);
                   return e.GetItem(id);
                 },
                 [&](std::string& out, const engine::Item& item) {
                   server::AppendItem(out, item, learned);
                 });
           })
      .def("user",
           [](EngineHandle& handle, const std::string& id) {
             return handle.Report([&](Engine& e) { return e.GetUser(id); }, server::AppendUser);
           })
      .def("models",
           [](EngineHandle& handle, std::size_t top) {
             return handle.Report(
                 [&](Engine& e) -> Result<std::vector<engine::ModelReport>> {
                   return e.Models(top);
                 },
                 server::AppendModels);
           })
      .def("changes",
           [](EngineHandle& handle, std::size_t limit) {
             return handle.Report(
                 [&](Engine& e) -> Result<std::vector<engine::Change>> {
                   return e.RecentChanges(limit);
                 },
                 server::AppendChanges);
           })
      .def("stats", &EngineHandle::Stats)
      .def("checkpoint",
           [](EngineHandle& handle) { handle.Call([](Engine& e) { return e.Checkpoint(); }); })
      .def("backup",
           [](EngineHandle& handle, const std::string& directory) {
             handle.Call([&](Engine& e) { return e.Backup(directory); });
           })
      .def("check", [](EngineHandle& handle) { handle.Call([](Engine& e) { return e.Check(); }); })
      .def_property_readonly("closed", &EngineHandle::closed)
      .def("close", &EngineHandle::Close);
}

}  // namespace codband::python
