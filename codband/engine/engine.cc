#include "codband/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <unordered_set>

#include "codband/base/clock.h"
#include "codband/base/version.h"
#include "codband/engine/local_engine.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

constexpr std::size_t kDefaultDim = 32;
// The tags of a model are those of its best items: of all, every group would have the same.
constexpr std::size_t kMostTagged = 100;
constexpr std::size_t kOneTaggedOf = 4;
constexpr std::int64_t kHourMs = 3'600'000;

}  // namespace

Status LocalEngine::Start(std::function<void(const FinishedDecision&)> on_finished) {
  auto learner = Learner::Open(*store_, options_, dim_);
  if (!learner.ok()) return learner.status();
  learner_ = std::move(learner).value();

  std::vector<std::shared_ptr<const Item>> items;
  Status damaged;
  CODBAND_RETURN_IF_ERROR(
      store_->Scan(store::Table::kItems, {}, {}, [&](std::string_view key, std::string_view value) {
        auto item = DecodeItem(value);
        if (item.ok()) damaged = CheckItem(item.value(), dim_);
        if (!item.ok() || !damaged.ok()) {
          damaged = Status::Corruption(fmt::format(
              "item '{}': {}", key, item.ok() ? damaged.message() : item.status().message()));
          return false;
        }
        items.push_back(std::make_shared<const Item>(std::move(item).value()));
        return true;
      }));
  CODBAND_RETURN_IF_ERROR(damaged);
  catalogue_.Write([&](Catalogue& catalogue) { catalogue.Put(items); });

  auto committer =
      Committer::Open(*store_, *learner_, catalogue_, options_, std::move(on_finished));
  if (!committer.ok()) return committer.status();
  committer_ = std::move(committer).value();
  if (options_.read_only) return {};
  learner_->Start();
  committer_->Start();
  // From the first decision on, the directory says which policy it is of.
  return learner_->has_checkpoint() ? Status() : learner_->Checkpoint();
}
void LocalEngine::Reward(std::string event_id, double value, Done<Result<RewardReply>> done) {
  if (!(std::abs(value) <= kLargestNumber)) {
    return done(Status::InvalidArgument(
        fmt::format("value: is {}, expected a number within ±1e15", value)));
  }
  if (const Status status = CheckId("eventId", event_id); !status.ok()) return done(status);
  committer_->Submit(Committer::RewardCommand{
      .event_id = std::move(event_id), .value = value, .done = std::move(done)});
}

void LocalEngine::Activate(std::string event_id, Done<Status> done) {
  if (const Status status = CheckId("eventId", event_id); !status.ok()) return done(status);
  committer_->Submit(
      Committer::ActivateCommand{.event_id = std::move(event_id), .done = std::move(done)});
}

void LocalEngine::PutItems(std::vector<Item> items, Done<Status> done) {
  std::vector<std::shared_ptr<const Item>> shared;
  shared.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const Status status = CheckItem(items[i], dim_); !status.ok()) {
      return done(items.size() == 1
                      ? status
                      : Status::InvalidArgument(fmt::format("items[{}].{}", i, status.message())));
    }
    shared.push_back(std::make_shared<const Item>(std::move(items[i])));
  }
  committer_->Submit(
      Committer::PutItemsCommand{.items = std::move(shared), .done = std::move(done)});
}

void LocalEngine::DeleteItem(std::string id, Done<Status> done) {
  committer_->Submit(Committer::DeleteItemCommand{.id = std::move(id), .done = std::move(done)});
}

Result<Item> LocalEngine::GetItem(const std::string& id) const {
  return catalogue_.Read([&](const Catalogue& catalogue) -> Result<Item> {
    const Item* item = catalogue.Find(id);
    if (item == nullptr) return Status::NotFound(fmt::format("id: there is no item '{}'", id));
    return *item;
  });
}

void LocalEngine::Forget(std::string user, Done<Status> done) {
  if (const Status status = CheckId("userId", user); !status.ok()) return done(status);
  committer_->Submit(Committer::ForgetCommand{.user = std::move(user), .done = std::move(done)});
}

UserReport LocalEngine::Describe(UserId id, const Person& person, const Learned& learned) const {
  UserReport report{.user = person.name,
                    .since_ms = person.since_ms(),
                    .observations = person.observations,
                    .changes = {}};
  if (const auto description = learned.policy->DescribeUser(id)) {
    report.model = description->model;
    report.model_chance = description->chance;
    report.period_observations = description->observations;
  }
  for (const Person::Move& move : person.moves) {
    report.changes.push_back(
        {.user = person.name, .time_ms = move.time_ms, .from = move.from, .to = move.to});
  }
  return report;
}

Result<UserReport> LocalEngine::GetUser(const std::string& user) {
  try {
    return learner_->Read([&](const Learned& learned) -> Result<UserReport> {
      std::optional<Person> scratch;
      const UserId id = HashUser(user);
      const Person* person = learned.people.Peek(id, scratch);
      if (person == nullptr) {
        return Status::NotFound(fmt::format("userId: nothing is known of '{}'", user));
      }
      return Describe(id, *person, learned);
    });
  } catch (const std::exception& error) {
    return Status::IoError(error.what());
  }
}

Status LocalEngine::VisitUsers(const std::function<bool(const UserReport&)>& visit) {
  const Learner::Unsaved unsaved = learner_->CollectUnsaved();
  const std::unordered_set<UserId> erased(unsaved.erased.begin(), unsaved.erased.end());
  std::map<UserId, std::string> fresh(unsaved.people.begin(), unsaved.people.end());
  Status damaged;
  bool more = true;
  const auto visit_bytes = [&](UserId id, std::string_view bytes) {
    ByteReader in(bytes);
    Person person;
    person.Load(in);
    in.ExpectEnd();
    if (!in.ok()) {
      damaged = Status::Corruption(fmt::format("user {:016x}: {}", id, in.status().message()));
      return false;
    }
    more = visit(
        learner_->Read([&](const Learned& learned) { return Describe(id, person, learned); }));
    return more;
  };
  // Both are in the order of ids.
  const auto visit_fresh_before = [&](UserId id) {
    while (more && damaged.ok() && !fresh.empty() && fresh.begin()->first < id) {
      visit_bytes(fresh.begin()->first, fresh.begin()->second);
      fresh.erase(fresh.begin());
    }
  };
  CODBAND_RETURN_IF_ERROR(store_->Scan(
      store::Table::kPeople, {}, {}, [&](std::string_view key, std::string_view value) {
        const auto id = ReadNumberKey(key);
        if (!id.ok()) {
          damaged = id.status();
          return false;
        }
        visit_fresh_before(id.value());
        if (!more || !damaged.ok()) return false;
        if (erased.contains(id.value()) || fresh.contains(id.value())) return true;
        return visit_bytes(id.value(), value);
      }));
  visit_fresh_before(std::numeric_limits<UserId>::max());
  return damaged;
}

ModelReport LocalEngine::Describe(ModelDescription model, double all_periods,
                                  std::size_t top) const {
  ModelReport report{.id = model.id,
                     .popularity = static_cast<double>(model.periods) / all_periods,
                     .users = model.users,
                     .periods = model.periods,
                     .observations = model.observations,
                     .parameter = std::move(model.theta),
                     .items = {},
                     .tags = {}};
  if (top == 0) return report;
  catalogue_.Read([&](const Catalogue& catalogue) {
    std::vector<std::pair<double, std::size_t>> best;
    best.reserve(catalogue.size());
    for (std::size_t i = 0; i < catalogue.size(); ++i) {
      best.emplace_back(-linalg::Dot(catalogue.arms().arm(i), report.parameter) - model.intercept,
                        i);
    }
    const std::size_t tagged =
        std::min(kMostTagged, (best.size() + kOneTaggedOf - 1) / kOneTaggedOf);
    const std::size_t ranked = std::min(best.size(), std::max(top, tagged));
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(ranked));
    std::map<std::string, double> tags;
    for (std::size_t i = 0; i < ranked; ++i) {
      const Item& item = catalogue.item(best[i].second);
      if (i < top) report.items.push_back({item.id, -best[i].first});
      if (i < tagged) {
        for (const std::string& tag : item.tags) ++tags[tag];
      }
    }
    for (const auto& [tag, count] : tags) report.tags.push_back({tag, count});
    std::ranges::stable_sort(report.tags, std::greater<>(), &ModelReport::Top::weight);
    if (report.tags.size() > top) report.tags.resize(top);
  });
  return report;
}

std::vector<ModelReport> LocalEngine::Models(std::size_t top) {
  std::vector<ModelDescription> models =
      learner_->Read([](const Learned& learned) { return learned.policy->DescribeModels(); });
  double all_periods = 0;
  for (const ModelDescription& model : models) all_periods += static_cast<double>(model.periods);
  std::vector<ModelReport> reports;
  for (ModelDescription& model : models) {
    reports.push_back(Describe(std::move(model), all_periods, top));
  }
  std::ranges::stable_sort(reports, std::greater<>(), &ModelReport::periods);
  return reports;
}

Result<ModelReport> LocalEngine::GetModel(ModelId id, std::size_t top) {
  std::vector<ModelDescription> models =
      learner_->Read([](const Learned& learned) { return learned.policy->DescribeModels(); });
  double all_periods = 0;
  for (const ModelDescription& model : models) all_periods += static_cast<double>(model.periods);
  for (ModelDescription& model : models) {
    if (model.id == id) return Describe(std::move(model), all_periods, top);
  }
  return Status::NotFound(fmt::format("modelId: there is no model {}", id));
}

std::vector<Change> LocalEngine::RecentChanges(std::size_t most) {
  return learner_->Read([&](const Learned& learned) {
    const std::size_t count = std::min(most, learned.recent.size());
    return std::vector<Change>(learned.recent.rbegin(),
                               learned.recent.rbegin() + static_cast<std::ptrdiff_t>(count));
  });
}

EngineStats LocalEngine::Stats() {
  EngineStats stats;
  const Committer::Counters& counters = committer_->counters();
  stats.policy = options_.policy;
  stats.dim = dim_;
  stats.ranks = ranks_;
  stats.rewards_accepted = counters.accepted;
  stats.rewards_duplicate = counters.duplicate;
  stats.rewards_late = counters.late;
  stats.rewards_unknown = counters.unknown;
  stats.rewards_defaulted = counters.defaulted;
  stats.expired = counters.expired;
  stats.pending = static_cast<std::uint64_t>(std::max<std::int64_t>(0, counters.pending));
  stats.changes_last_hour = learner_->ChangesSince(options_.now_ms() - kHourMs);
  stats.checkpoints = learner_->checkpoints();
  // In this order: what is applied was committed before.
  stats.applied_sequence = learner_->applied_sequence();
  stats.committed_sequence = committer_->committed_sequence();
  stats.checkpoint_sequence = learner_->checkpoint_sequence();
  learner_->Read([&](const Learned& learned) {
    stats.changes = learned.changes;
    stats.learned = learned.sequence;
    stats.models = learned.policy->model_count();
    stats.users_in_memory = learned.people.size();
    stats.users = learned.users;
  });
  stats.items = catalogue_.Read([](const Catalogue& catalogue) { return catalogue.size(); });
  stats.queue = committer_->queue_length();
  stats.store = store_->Stats();
  stats.last_error = committer_->last_error();
  if (stats.last_error.empty()) stats.last_error = learner_->last_error();
  return stats;
}

Status LocalEngine::Checkpoint() {
  if (options_.read_only) return Status(StatusCode::kUnavailable, "opened for reading only");
  return learner_->Checkpoint();
}

Status LocalEngine::Backup(const std::filesystem::path& directory) {
  return store_->Backup(directory);
}

Status LocalEngine::Check() {
  Status sound;
  try {
    learner_->RunBetween([&] { sound = CheckAll(); });
  } catch (const std::exception& error) {
    return Status::IoError(error.what());
  }
  return sound;
}

Status LocalEngine::CheckAll() {
  const Learner::Unsaved unsaved = learner_->CollectUnsaved();
  const std::unordered_set<UserId> erased(unsaved.erased.begin(), unsaved.erased.end());
  const auto all_users = [&](const PagedUsers::VisitRecord& visit) -> Status {
    bool more = true;
    Status damaged;
    CODBAND_RETURN_IF_ERROR(store_->Scan(
        store::Table::kUsers, {}, {}, [&](std::string_view key, std::string_view value) {
          const auto id = ReadNumberKey(key);
          if (!id.ok()) {
            damaged = id.status();
            return false;
          }
          if (!erased.contains(id.value()) && !unsaved.users.contains(id.value())) {
            more = visit(id.value(), value);
          }
          return more;
        }));
    for (const auto& [id, bytes] : unsaved.users) {
      if (more) more = visit(id, bytes);
    }
    return damaged;
  };
  CODBAND_RETURN_IF_ERROR(learner_->Read(
      [&](const Learned& learned) { return learned.users_of_policy->CheckUsers(all_users); }));

  std::uint64_t people = 0;
  CODBAND_RETURN_IF_ERROR(VisitUsers([&](const UserReport&) {
    ++people;
    return true;
  }));
  const std::uint64_t users = learner_->Read([](const Learned& learned) { return learned.users; });
  if (people != users) {
    return Status::Corruption(fmt::format("{} users are counted, {} are there", users, people));
  }
  Status damaged;
  CODBAND_RETURN_IF_ERROR(store_->Scan(
      store::Table::kPending, {}, {}, [&](std::string_view key, std::string_view value) {
        const auto pending = PendingDecision::Decode(value);
        if (!pending.ok()) {
          damaged =
              Status::Corruption(fmt::format("decision '{}': {}", key, pending.status().message()));
        }
        return damaged.ok();
      }));
  return damaged;
}

// The number of features: that of the directory, or of a new one.
Result<std::size_t> FindDimension(store::Store& store, const EngineOptions& options) {
  std::string bytes;
  const Status found = store.Get(store::Table::kMeta, Identity::kKey, bytes);
  if (found.ok()) {
    const auto identity = Identity::Decode(bytes);
    if (!identity.ok()) return identity.status();
    const std::size_t dim = identity.value().dim;
    if (options.dim != 0 && options.dim != dim) {
      return Status::InvalidArgument(fmt::format(
          "dimension: is {}, but this data directory was made for {} features, and what was "
          "learned about them means nothing for another number; keep {} or start a new directory",
          options.dim, dim, dim));
    }
    return dim;
  }
  if (found.code() != StatusCode::kNotFound) return found;
  if (options.read_only) return Status::NotFound("there is no codband data in this directory");
  const Identity identity{.dim = options.dim != 0 ? options.dim : kDefaultDim,
                          .created_ms = options.now_ms(),
                          .version = std::string(kVersion)};
  store::StoreBatch batch;
  batch.Put(store::Table::kMeta, std::string(Identity::kKey), identity.Encode());
  CODBAND_RETURN_IF_ERROR(store.Write(batch, true));
  return std::size_t{identity.dim};
}

Result<std::unique_ptr<Engine>> Engine::Open(
    std::unique_ptr<store::Store> store, const EngineOptions& given,
    std::function<void(const FinishedDecision&)> on_finished) {
  EngineOptions options = given;
  if (!options.now_ms) options.now_ms = UnixMillis;
  if (!(options.exploration_floor >= 0 && options.exploration_floor <= 1)) {
    return Status::InvalidArgument(fmt::format(
        "exploration_floor: is {}, expected a number from 0 to 1", options.exploration_floor));
  }
  if (options.reward_wait_ms < 1) {
    return Status::InvalidArgument(
        fmt::format("reward_wait_ms: is {}, expected at least 1", options.reward_wait_ms));
  }
  if (options.default_reward && !(std::abs(*options.default_reward) <= kLargestNumber)) {
    return Status::InvalidArgument(fmt::format(
        "default_reward: is {}, expected a number within ±1e15", *options.default_reward));
  }
  // Before anything is written.
  const auto policy =
      MakePolicy(options.policy, {.dim = options.dim != 0 ? options.dim : kDefaultDim});
  if (!policy.ok()) return policy.status();
  const auto dim = FindDimension(*store, options);
  if (!dim.ok()) return dim.status();
  auto engine = std::make_unique<LocalEngine>(std::move(store), options, dim.value());
  CODBAND_RETURN_IF_ERROR(engine->Start(std::move(on_finished)));
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace codband::engine
