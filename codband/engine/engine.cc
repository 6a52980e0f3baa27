#include "codband/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <unordered_set>

#include "codband/base/clock.h"
#include "codband/base/version.h"
#include "codband/engine/catalogue.h"
#include "codband/engine/committer.h"
#include "codband/engine/learner.h"
#include "codband/engine/left_right.h"
#include "codband/engine/records.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kDefaultDim = 32;
constexpr std::size_t kDefaultTopOfCatalogue = 100;
constexpr std::size_t kTaggedItems = 100;  // of a model, whose tags are counted
constexpr std::int64_t kHourMs = 3'600'000;

class LocalEngine final : public Engine {
 public:
  LocalEngine(std::unique_ptr<Store> store, const EngineOptions& options, std::size_t dim)
      : store_(std::move(store)),
        options_(options),
        dim_(dim),
        catalogue_(Catalogue(dim), Catalogue(dim)) {}
  ~LocalEngine() override {
    if (committer_ != nullptr) committer_->Stop();
    if (learner_ != nullptr) learner_->Stop();
  }

  Status Start(std::function<void(const FinishedDecision&)> on_finished);

  void Rank(RankRequest request, Done<Result<RankReply>> done) override;
  void Reward(std::string event_id, double value, Done<Result<RewardReply>> done) override;
  void Activate(std::string event_id, Done<Status> done) override;
  void PutItems(std::vector<Item> items, Done<Status> done) override;
  void DeleteItem(std::string id, Done<Status> done) override;
  Result<Item> GetItem(const std::string& id) const override;
  void Forget(std::string user, Done<Status> done) override;
  Result<UserReport> GetUser(const std::string& user) override;
  Status VisitUsers(const std::function<bool(const UserReport&)>& visit) override;
  std::vector<ModelReport> Models(std::size_t top) override;
  Result<ModelReport> GetModel(ModelId id, std::size_t top) override;
  std::vector<Change> RecentChanges(std::size_t most) override;
  EngineStats Stats() override;
  std::size_t dim() const override { return dim_; }
  Status Checkpoint() override;
  Status Backup(const std::filesystem::path& directory) override;
  Status Check() override;

 private:
  Status CheckAll();

  // The actions on offer, with their features row after row.
  struct Offer {
    std::vector<std::string_view> ids;                    // of the request or the catalogue
    std::vector<double> gathered;                         // unless the catalogue's own can be used
    std::vector<const std::vector<NamedFeature>*> named;  // nullptr: given as numbers
    ArmsView arms;
    bool whole_catalogue = false;
  };

  Status MakeOffer(const RankRequest& request, const Catalogue& catalogue, Offer& offer) const;
  RankReply MakeReply(const RankRequest& request, const Offer& offer, const Ranking& ranking) const;
  Explanation Explain(const RankRequest& request, const Offer& offer, const Ranking& ranking,
                      const Learned& learned) const;
  PendingDecision MakePending(RankRequest& request, const Offer& offer, Ranking& ranking) const;
  ModelReport Describe(ModelDescription model, double all_periods, std::size_t top) const;
  UserReport Describe(UserId id, const Person& person, const Learned& learned) const;

  std::unique_ptr<Store> store_;
  EngineOptions options_;
  std::size_t dim_;
  LeftRight<Catalogue> catalogue_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Committer> committer_;
  std::atomic<std::uint64_t> ranks_{0};
};

Status LocalEngine::Start(std::function<void(const FinishedDecision&)> on_finished) {
  auto learner = Learner::Open(*store_, options_, dim_);
  if (!learner.ok()) return learner.status();
  learner_ = std::move(learner).value();

  std::vector<std::shared_ptr<const Item>> items;
  Status damaged;
  CODBAND_RETURN_IF_ERROR(
      store_->Scan(Table::kItems, {}, {}, [&](std::string_view key, std::string_view value) {
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

// A random name for an event: uniqueness is all that is asked of it.
std::string NewEventId() {
  thread_local std::random_device device;
  const auto word = [&] { return static_cast<std::uint32_t>(device()); };
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", word(), word(), word(), word());
}

// A table of hashes with room to spare: most places are found empty or filled at the first look.
Status CheckNoneTwice(const std::vector<Candidate>& candidates) {
  thread_local std::vector<std::uint32_t> places;  // 0: empty, else index + 1
  const std::size_t size = std::bit_ceil(4 * candidates.size());
  places.assign(size, 0);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& id = candidates[i].id;
    std::size_t place = HashEvent(id) & (size - 1);
    for (; places[place] != 0; place = (place + 1) & (size - 1)) {
      if (candidates[places[place] - 1].id == id) {
        return Status::InvalidArgument(fmt::format("actions: '{}' is there twice", id));
      }
    }
    places[place] = static_cast<std::uint32_t>(i + 1);
  }
  return {};
}

Status LocalEngine::MakeOffer(const RankRequest& request, const Catalogue& catalogue,
                              Offer& offer) const {
  const std::unordered_set<std::string_view> excluded(request.excluded.begin(),
                                                      request.excluded.end());
  const auto nothing = [&] {
    return Status::InvalidArgument(
        request.candidates.empty() && catalogue.size() == 0
            ? "actions: none given and the catalogue is empty; give some, or PUT /v1/items/{id}"
            : "excludedActions: excludes every action, expected at least one to be left");
  };
  if (request.candidates.empty()) {
    offer.whole_catalogue = true;
    const bool some_left_out = std::ranges::any_of(
        excluded, [&](std::string_view id) { return catalogue.Find(id) != nullptr; });
    offer.ids.reserve(catalogue.size());
    for (std::size_t i = 0; i < catalogue.size(); ++i) {
      const Item& item = catalogue.item(i);
      if (some_left_out) {
        if (excluded.contains(item.id)) continue;
        offer.gathered.insert(offer.gathered.end(), item.features.begin(), item.features.end());
      }
      offer.ids.push_back(item.id);
      offer.named.push_back(item.named.empty() ? nullptr : &item.named);
    }
    offer.arms =
        some_left_out ? ArmsView{.features = offer.gathered, .dim = dim_} : catalogue.arms();
    return offer.ids.empty() ? nothing() : Status();
  }
  CODBAND_RETURN_IF_ERROR(CheckNoneTwice(request.candidates));
  offer.ids.reserve(request.candidates.size());
  offer.named.reserve(request.candidates.size());
  offer.gathered.reserve(request.candidates.size() * dim_);
  for (std::size_t i = 0; i < request.candidates.size(); ++i) {
    const Candidate& candidate = request.candidates[i];
    const auto field = [&](std::string_view name) {
      return fmt::format("actions[{}].{}", i, name);
    };
    if (candidate.id.empty()) CODBAND_RETURN_IF_ERROR(CheckId(field("id"), candidate.id));
    if (!excluded.empty() && excluded.contains(candidate.id)) continue;
    if (candidate.features.empty()) {
      const Item* item = catalogue.Find(candidate.id);
      if (item == nullptr) {
        return Status::InvalidArgument(
            fmt::format("{}: '{}' is not in the catalogue; give its features, or PUT /v1/items/{}",
                        field("id"), candidate.id, candidate.id));
      }
      offer.gathered.insert(offer.gathered.end(), item->features.begin(), item->features.end());
      offer.named.push_back(item->named.empty() ? nullptr : &item->named);
    } else {
      CODBAND_RETURN_IF_ERROR(CheckId(field("id"), candidate.id));
      CODBAND_RETURN_IF_ERROR(CheckFeatures(field("features"), candidate.features, dim_));
      offer.gathered.insert(offer.gathered.end(), candidate.features.begin(),
                            candidate.features.end());
      offer.named.push_back(candidate.named.empty() ? nullptr : &candidate.named);
    }
    offer.ids.push_back(candidate.id);
  }
  offer.arms = {.features = offer.gathered, .dim = dim_};
  return offer.ids.empty() ? nothing() : Status();
}

void LocalEngine::Rank(RankRequest request, Done<Result<RankReply>> done) {
  if (const Status status = CheckId("userId", request.user); !status.ok()) return done(status);
  const bool known_id = !request.event_id.empty();
  if (!known_id) request.event_id = NewEventId();
  if (const Status status = CheckId("eventId", request.event_id); !status.ok()) {
    return done(status);
  }
  thread_local Ranking ranking;
  Offer offer;
  RankReply reply;
  PendingDecision pending;
  try {
    const Status status = catalogue_.Read([&](const Catalogue& catalogue) -> Status {
      CODBAND_RETURN_IF_ERROR(MakeOffer(request, catalogue, offer));
      learner_->Read([&](const Learned& learned) {
        learned.policy->Rank(HashUser(request.user), offer.arms,
                             {.seed = options_.seed, .event = HashEvent(request.event_id)},
                             options_.exploration_floor, ranking);
        reply = MakeReply(request, offer, ranking);
        if (request.explain) reply.explanation = Explain(request, offer, ranking, learned);
      });
      pending = MakePending(request, offer, ranking);
      return {};
    });
    if (!status.ok()) return done(status);
  } catch (const std::exception& error) {
    // A record that could not be read from disk, or an invariant that does not hold.
    return done(Status::IoError(error.what()));
  }
  ++ranks_;
  committer_->Submit(Committer::RankCommand{
      .event_id = std::move(request.event_id),
      .known_id = known_id,
      .deadline_ms = pending.deadline_ms,
      .pending = pending.Encode(),
      .done = [done = std::move(done), reply = std::move(reply)](const Status& status) mutable {
        if (!status.ok()) return done(status);
        done(std::move(reply));
      }});
}

RankReply LocalEngine::MakeReply(const RankRequest& request, const Offer& offer,
                                 const Ranking& ranking) const {
  const std::uint32_t chosen = ranking.decision.arm;
  thread_local std::vector<std::uint32_t> order;
  order.resize(offer.ids.size());
  std::iota(order.begin(), order.end(), 0U);
  std::size_t count = order.size();
  if (request.top_k > 0) {
    count = std::min(count, request.top_k);
  } else if (offer.whole_catalogue) {
    count = std::min(count, kDefaultTopOfCatalogue);
  }
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    if ((a == chosen) != (b == chosen)) return a == chosen;
    const double score_a = ranking.arms[a].score;
    const double score_b = ranking.arms[b].score;
    return score_a != score_b ? score_a > score_b : a < b;
  };
  // Selecting first is for a few of many; a heap is slow where all are asked for.
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < order.size()) std::ranges::nth_element(order, end, better);
  std::ranges::sort(order.begin(), end, better);
  RankReply reply{
      .event_id = request.event_id,
      .reward_action_id = std::string(offer.ids[options_.mode == Mode::kOnline ? chosen : 0]),
      .ranking = {},
      .model = ranking.decision.model,
      .explanation = {}};
  reply.ranking.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Ranking::Arm& arm = ranking.arms[order[i]];
    reply.ranking.push_back({.id = std::string(offer.ids[order[i]]),
                             .probability = arm.probability,
                             .score = arm.score,
                             .mean = arm.mean,
                             .width = arm.width});
  }
  return reply;
}

Explanation LocalEngine::Explain(const RankRequest& request, const Offer& offer,
                                 const Ranking& ranking, const Learned& learned) const {
  Explanation out{.contributions = {}, .intercept = ranking.intercept, .last_change_ms = {}};
  const std::uint32_t shown = options_.mode == Mode::kOnline ? ranking.decision.arm : 0;
  if (!ranking.theta.empty()) {
    if (offer.named[shown] != nullptr) {
      for (const NamedFeature& feature : *offer.named[shown]) {
        const HashedPlace place = PlaceOf(feature.name, dim_);
        out.contributions.push_back(
            {feature.name, ranking.theta[place.index] * (place.sign * feature.value)});
      }
    } else {
      const std::span<const double> x = offer.arms.arm(shown);
      for (std::size_t i = 0; i < dim_; ++i) {
        out.contributions.push_back({fmt::format("{}", i), ranking.theta[i] * x[i]});
      }
    }
    std::ranges::stable_sort(out.contributions, std::greater<>(),
                             [](const auto& each) { return std::abs(each.value); });
  }
  for (const ModelDescription& model : learned.policy->DescribeModels()) {
    if (model.id != ranking.decision.model) continue;
    out.group_users = model.users;
    out.group_observations = model.observations;
  }
  std::optional<Person> scratch;
  const Person* person = learned.people.Peek(HashUser(request.user), scratch);
  if (person != nullptr && !person->moves.empty()) {
    out.last_change_ms = person->moves.back().time_ms;
  }
  return out;
}

PendingDecision LocalEngine::MakePending(RankRequest& request, const Offer& offer,
                                         Ranking& ranking) const {
  Decision& decision = ranking.decision;
  if (options_.mode != Mode::kOnline) {
    decision.arm = 0;
    const Ranking::Arm& baseline = ranking.arms[0];
    decision.mean = baseline.mean;
    decision.width = baseline.width;
    decision.score = baseline.score;
    decision.propensity = 1;  // it is always the one that is shown
    const std::span<const double> x = offer.arms.arm(0);
    decision.features.assign(x.begin(), x.end());
  }
  const std::int64_t now_ms = options_.now_ms();
  PendingDecision pending{.state = request.defer_activation ? PendingDecision::State::kDeferred
                                                            : PendingDecision::State::kWaiting,
                          .time_ms = now_ms,
                          .deadline_ms = now_ms + options_.reward_wait_ms,
                          .learn = options_.mode != Mode::kLoggingOnly,
                          .user = request.user,
                          .decision = decision,
                          .context = {},
                          .candidates = {}};
  if (!options_.keep_candidates) return pending;
  pending.context = std::move(request.context);
  for (std::size_t i = 0; i < offer.ids.size(); ++i) {
    const std::span<const double> x = offer.arms.arm(i);
    const double probability = options_.mode == Mode::kOnline ? ranking.arms[i].probability
                               : i == 0                       ? 1
                                                              : 0;
    pending.candidates.push_back({std::string(offer.ids[i]), probability, {x.begin(), x.end()}});
  }
  return pending;
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
  CODBAND_RETURN_IF_ERROR(
      store_->Scan(Table::kPeople, {}, {}, [&](std::string_view key, std::string_view value) {
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
      best.emplace_back(-Dot(catalogue.arms().arm(i), report.parameter) - model.intercept, i);
    }
    const std::size_t ranked = std::min(best.size(), std::max(top, kTaggedItems));
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(ranked));
    std::map<std::string, double> tags;
    for (std::size_t i = 0; i < ranked; ++i) {
      const Item& item = catalogue.item(best[i].second);
      if (i < top) report.items.push_back({item.id, -best[i].first});
      if (i < kTaggedItems) {
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
  const auto all_users = [&](const Policy::VisitRecord& visit) -> Status {
    bool more = true;
    Status damaged;
    CODBAND_RETURN_IF_ERROR(
        store_->Scan(Table::kUsers, {}, {}, [&](std::string_view key, std::string_view value) {
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
      [&](const Learned& learned) { return learned.policy->CheckUsers(all_users); }));

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
  CODBAND_RETURN_IF_ERROR(
      store_->Scan(Table::kPending, {}, {}, [&](std::string_view key, std::string_view value) {
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
Result<std::size_t> FindDimension(Store& store, const EngineOptions& options) {
  std::string bytes;
  const Status found = store.Get(Table::kMeta, Identity::kKey, bytes);
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
  StoreBatch batch;
  batch.Put(Table::kMeta, std::string(Identity::kKey), identity.Encode());
  CODBAND_RETURN_IF_ERROR(store.Write(batch, true));
  return std::size_t{identity.dim};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Open(
    std::unique_ptr<Store> store, const EngineOptions& given,
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

}  // namespace codband
