#include "codband/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "codband/base/clock.h"
#include "codband/base/version.h"
#include "codband/engine/local_engine.h"
#include "codband/policy/registry.h"

namespace codband::engine {
namespace {

std::uint64_t Entropy() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

// The identity of the directory, or of a new one, which is written.
Result<Identity> FindIdentity(store::Store& store, const EngineOptions& options) {
  std::string bytes;
  const Status found = store.Get(store::Table::kMeta, Identity::kKey, bytes);
  if (found.ok()) {
    auto identity = Identity::Decode(bytes);
    if (!identity.ok()) return identity.status();
    const std::size_t dim = identity.value().dim;
    if (options.dim != 0 && dim == 0) {
      return Status::InvalidArgument(
          fmt::format("dimension: is {}, but this data directory gives every name a column of its "
                      "own; leave it at 0 or start a new directory",
                      options.dim));
    }
    if (options.dim != 0 && options.dim != dim) {
      return Status::InvalidArgument(fmt::format(
          "dimension: is {}, but this data directory was made for {} features, and what was "
          "learned about them means nothing for another number; keep {} or start a new directory",
          options.dim, dim, dim));
    }
    return identity;
  }
  if (found.code() != StatusCode::kNotFound) return found;
  if (options.read_only) return Status::NotFound("there is no codband data in this directory");
  Identity identity{
      .dim = options.dim, .created_ms = options.now_ms(), .version = std::string(kVersion)};
  identity.name_secret = options.name_secret;
  if (!identity.name_secret) identity.name_secret = SipKey{.low = Entropy(), .high = Entropy()};
  store::StoreBatch batch;
  identity.Put(batch);
  CODBAND_RETURN_IF_ERROR(store.Write(batch, true));
  return identity;
}

Status CheckLimits(const EngineOptions& options) {
  const double min = options.reward_min;
  const double max = options.reward_max;
  if (!(min < max && min >= -kLargestNumber && max <= kLargestNumber)) {
    return Status::InvalidArgument(fmt::format(
        "rewards: the range is from {} to {}, expected a minimum below the maximum, both within "
        "±{}",
        min, max, kLargestNumber));
  }
  if (options.default_reward &&
      !(*options.default_reward >= min && *options.default_reward <= max)) {
    return Status::InvalidArgument(
        fmt::format("rewards.default: is {}, expected a number from {} to {}",
                    *options.default_reward, min, max));
  }
  if (!(options.max_abs_feature > 0 && options.max_abs_feature <= kLargestNumber)) {
    return Status::InvalidArgument(
        fmt::format("features.max_abs: is {}, expected a number above 0, {} at most",
                    options.max_abs_feature, kLargestNumber));
  }
  const std::size_t columns = options.columns.columns;
  if (columns < 1 || columns > features::ColumnLimits::kMost) {
    return Status::InvalidArgument(fmt::format("features.max_columns: is {}, expected 1 to {}",
                                               columns, features::ColumnLimits::kMost));
  }
  const auto rules = features::CrossingRules::Parse(options.crossings);
  if (!rules.ok()) return Status::InvalidArgument("features." + rules.status().message());
  return {};
}

}  // namespace

Status LocalEngine::Start(std::function<void(const FinishedDecision&)> on_finished) {
  CODBAND_RETURN_IF_ERROR(LoadLearned());
  return Serve(std::move(on_finished));
}

Status LocalEngine::LoadLearned() {
  auto learner = Learner::Open(*store_, options_, dim_);
  if (learner.ok()) learner_ = std::move(learner).value();
  return learner.status();
}

Status LocalEngine::StartLearning() {
  eraser_ = std::make_unique<Eraser>(*store_, options_.erase_delay_ms, [this](auto ids, auto done) {
    Committer* const committer = serving_;
    // Who is served deletes them, and they go here with its other changes.
    if (committer == nullptr) return done({StatusCode::kUnavailable, "they are not deleted yet"});
    committer->Submit(
        Committer::EraseCommand{.event_ids = std::move(ids), .done = std::move(done)});
  });
  CODBAND_RETURN_IF_ERROR(eraser_->Load());
  learner_->set_on_erased([this](const std::vector<UserId>& users, std::uint64_t sequence) {
    eraser_->Add(users, sequence);
  });
  learner_->Start();
  eraser_->Start();
  return {};
}

Status LocalEngine::Serve(std::function<void(const FinishedDecision&)> on_finished) {
  CODBAND_RETURN_IF_ERROR(LoadItems());
  std::unique_ptr<ColumnClerk> clerk;
  if (dim_ == 0) {
    clerk = std::make_unique<ColumnClerk>(
        learner_->Read([](const Learned& learned) { return learned.columns.space(); }),
        features::ColumnLimits::Serving(options_.columns.columns), rules_.crossings,
        options_.names.secret(),
        options_.share_catalogue ? ColumnClerk::Source::kLoop : ColumnClerk::Source::kOwn);
    CODBAND_RETURN_IF_ERROR(clerk->Load(*store_));
  }
  auto committer = Committer::Open(
      *store_, catalogue_, options_, learner_->applied_sequence(),
      {.learn =
           [this](std::vector<Learner::Entry> entries) { learner_->Submit(std::move(entries)); },
       .finished = std::move(on_finished),
       .rejection = [this](std::uint64_t event) -> std::optional<Status> {
         const auto entry = learner_->quarantine().FindEvent(event);
         return entry ? std::optional(QuarantineStatus(*entry)) : std::nullopt;
       }},
      std::move(clerk));
  if (!committer.ok()) return committer.status();
  committer_ = std::move(committer).value();
  if (options_.read_only) return {};
  committer_->Start();
  serving_ = committer_.get();
  if (eraser_ == nullptr) CODBAND_RETURN_IF_ERROR(StartLearning());
  // The first checkpoint records the policy, before there is a decision of it.
  if (!learner_->has_checkpoint()) CODBAND_RETURN_IF_ERROR(learner_->Checkpoint());
  return PutUnplaced();
}

Status LocalEngine::LoadItems() {
  std::vector<std::shared_ptr<const Item>> items;
  Status damaged;
  std::vector<store::Store::Lost> lost;  // the store tells of it; the other items are served
  CODBAND_RETURN_IF_ERROR(store_->ScanPastDamage(
      store::Table::kItems,
      [&](std::string_view key, std::string_view value) {
        auto item = DecodeItem(value);
        // What was allowed when it was put stays.
        if (item.ok()) damaged = CheckItem(item.value(), dim_, kLargestNumber);
        if (!item.ok() || !damaged.ok()) {
          damaged = Status::Corruption(fmt::format(
              "item '{}': {}", key, item.ok() ? damaged.message() : item.status().message()));
          return false;
        }
        items.push_back(std::make_shared<const Item>(std::move(item).value()));
        return true;
      },
      lost));
  CODBAND_RETURN_IF_ERROR(damaged);
  std::vector<features::Cells> cells;
  if (dim_ == 0) {
    learner_->Read([&](const Learned& learned) {
      for (const auto& item : items) {
        std::vector<features::NamedFeature> unknown;
        cells.push_back(CellsOf(learned.columns.space(),
                                options_.share_catalogue ? kGivenOut : rules_.limits, *item,
                                &unknown));
        if (!unknown.empty()) unplaced_.push_back(item);
      }
    });
  }
  catalogue_.Write([&](Catalogue& catalogue) { catalogue.Put(items, cells); });
  return {};
}

// Names of items have no column after a repair that dropped what was learned, and where there was
// no room for them before and now there is. A partition gets its columns from the loop.
Status LocalEngine::PutUnplaced() {
  if (unplaced_.empty() || options_.share_catalogue) return {};
  std::promise<Status> put;
  committer_->Submit(
      Committer::PutItemsCommand{.items = std::exchange(unplaced_, {}),
                                 .done = [&put](const Status& status) { put.set_value(status); }});
  return put.get_future().get();
}

Status LocalEngine::CheckReward(double value) const {
  const bool fits = value >= options_.reward_min && value <= options_.reward_max;
  if (fits || (options_.clip_rewards && !std::isnan(value))) return {};
  return Status::InvalidArgument(fmt::format("value: is {}, expected a number from {} to {}", value,
                                             options_.reward_min, options_.reward_max));
}

void LocalEngine::Reward(std::string event_id, double value, Done<Result<RewardReply>> done) {
  if (const Status status = CheckReward(value); !status.ok()) return done(status);
  value = std::clamp(value, options_.reward_min, options_.reward_max);
  if (const Status status = CheckId("eventId", event_id); !status.ok()) return done(status);
  committer_->Submit(Committer::RewardCommand{
      .event_id = std::move(event_id), .value = value, .done = std::move(done)});
}

void LocalEngine::Activate(std::string event_id, Done<Status> done) {
  if (const Status status = CheckId("eventId", event_id); !status.ok()) return done(status);
  committer_->Submit(
      Committer::ActivateCommand{.event_id = std::move(event_id), .done = std::move(done)});
}

Result<std::vector<std::string>> LocalEngine::FindEvents(const std::string& prefix,
                                                         std::size_t most) const {
  std::vector<std::string> ids;
  CODBAND_RETURN_IF_ERROR(
      store_->Scan(store::Table::kPending, prefix, {}, [&](std::string_view key, auto) {
        if (!key.starts_with(prefix) || ids.size() == most) return false;
        ids.emplace_back(key);
        return true;
      }));
  return ids;
}

void LocalEngine::PutItems(std::vector<Item> items, Done<Status> done) {
  std::vector<std::shared_ptr<const Item>> shared;
  shared.reserve(items.size());
  std::size_t length =
      learner_->Read([](const Learned& learned) { return PlainLength(learned.columns.space()); });
  for (std::size_t i = 0; i < items.size(); ++i) {
    Status status = CheckItem(items[i], dim_, options_.max_abs_feature);
    if (status.ok()) status = CheckPlainLength("features", items[i].features.size(), length);
    if (!status.ok()) {
      return done(items.size() == 1
                      ? status
                      : Status::InvalidArgument(fmt::format("items[{}].{}", i, status.message())));
    }
    if (!options_.share_catalogue) {
      shared.push_back(std::make_shared<const Item>(std::move(items[i])));
    }
  }
  if (options_.share_catalogue) {
    CatalogueChange change;
    change.put = std::move(items);
    return options_.share_catalogue(std::move(change), std::move(done));
  }
  committer_->Submit(
      Committer::PutItemsCommand{.items = std::move(shared), .done = std::move(done)});
}

void LocalEngine::DeleteItem(std::string id, Done<Status> done) {
  if (options_.share_catalogue) {
    if (const auto known = GetItem(id); !known.ok()) return done(known.status());
    CatalogueChange change;
    change.deleted.push_back(std::move(id));
    return options_.share_catalogue(std::move(change), std::move(done));
  }
  committer_->Submit(Committer::DeleteItemCommand{.id = std::move(id), .done = std::move(done)});
}

std::vector<Item> LocalEngine::ListItems(const std::string& after, std::size_t most) const {
  return catalogue_.Read([&](const Catalogue& catalogue) {
    std::vector<Item> items;
    std::size_t bytes = 0;
    for (std::size_t i = catalogue.IndexAfter(after);
         i < catalogue.size() && items.size() < most && bytes < kItemPageBytes; ++i) {
      items.push_back(catalogue.item(i));
      bytes += items.back().bytes();
    }
    return items;
  });
}

Result<Item> LocalEngine::GetItem(const std::string& id) const {
  return catalogue_.Read([&](const Catalogue& catalogue) -> Result<Item> {
    const Item* item = catalogue.Find(id);
    if (item == nullptr) return Status::NotFound(fmt::format("id: there is no item '{}'", id));
    return *item;
  });
}

void LocalEngine::Forget(std::string user, Done<Status> done) {
  Status status = CheckId("userId", user);
  try {
    if (status.ok()) {
      status = learner_->Read([&](const Learned& learned) { return CheckName(user, learned); });
    }
  } catch (const std::exception&) {
    // A record that cannot be read is forgotten all the same.
  }
  if (!status.ok()) return done(status);
  committer_->Submit(Committer::ForgetCommand{.user = std::move(user), .done = std::move(done)});
}

Status LocalEngine::Close() {
  if (eraser_ != nullptr) eraser_->Stop();
  if (committer_ != nullptr) committer_->Stop();
  if (learner_ != nullptr) learner_->Stop();
  if (committer_ == nullptr || learner_ == nullptr) return {};
  for (const std::string& problem : {committer_->last_error(), learner_->last_error()}) {
    if (!problem.empty()) return {StatusCode::kIoError, problem};
  }
  return {};
}

Status LocalEngine::Checkpoint() {
  if (options_.read_only) return Status(StatusCode::kUnavailable, "opened for reading only");
  return learner_->Checkpoint();
}

Status LocalEngine::Backup(const std::filesystem::path& directory) {
  return store_->Backup(directory);
}

Result<std::unique_ptr<LocalEngine>> LocalEngine::Make(std::unique_ptr<store::Store> store,
                                                       const EngineOptions& given) {
  EngineOptions options = given;
  if (!options.now_ms) options.now_ms = UnixMillis;
  if (!options.steady_ms) {
    options.steady_ms = BootMillis;
    options.boot_id = BootId();
  }
  if (!options.event_id_seed) options.event_id_seed = Entropy();
  if (!(options.exploration_floor >= 0 && options.exploration_floor <= 1)) {
    return Status::InvalidArgument(fmt::format(
        "exploration_floor: is {}, expected a number from 0 to 1", options.exploration_floor));
  }
  if (options.reward_wait_ms < 1) {
    return Status::InvalidArgument(
        fmt::format("reward_wait_ms: is {}, expected at least 1", options.reward_wait_ms));
  }
  CODBAND_RETURN_IF_ERROR(CheckLimits(options));
  // Before anything is written.
  const auto policy =
      MakePolicy(options.policy, {.dim = options.dim != 0 ? options.dim : kFirstDim});
  if (!policy.ok()) return policy.status();
  const auto identity = FindIdentity(*store, options);
  if (!identity.ok()) return identity.status();
  const std::optional<SipKey>& secret = identity.value().name_secret;
  options.names = secret ? NameHash(*secret) : NameHash();
  return std::make_unique<LocalEngine>(std::move(store), options, identity.value().dim);
}

Result<std::unique_ptr<Engine>> Engine::Open(
    std::unique_ptr<store::Store> store, const EngineOptions& options,
    std::function<void(const FinishedDecision&)> on_finished) {
  auto engine = LocalEngine::Make(std::move(store), options);
  if (!engine.ok()) return engine.status();
  CODBAND_RETURN_IF_ERROR(engine.value()->Start(std::move(on_finished)));
  return std::unique_ptr<Engine>(std::move(engine).value());
}

}  // namespace codband::engine
