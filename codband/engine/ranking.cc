// How LocalEngine ranks.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "codband/base/random.h"
#include "codband/base/string_hash.h"
#include "codband/engine/local_engine.h"

namespace codband::engine {
namespace {

constexpr std::size_t kDefaultTopOfCatalogue = 100;
// A workspace keeps the memory of so many arms, or of the whole catalogue if that is larger.
constexpr std::size_t kKeptArms = 1024;
// Of the event ids that are made up.
constexpr std::uint64_t kEventIdPurpose = 0x6576656e74;

// Refuses the same action twice: it would have two chances of being chosen. A hash table with open
// addressing, at most a quarter full.
// `hashed` becomes the ids with their hashes.
Status CheckNoneTwice(const std::vector<Candidate>& candidates, std::vector<std::uint32_t>& slots,
                      std::vector<HashedText>& hashed) {
  const std::size_t size = std::bit_ceil(4 * candidates.size());
  slots.assign(size, 0);
  hashed.clear();
  hashed.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& id = candidates[i].id;
    std::size_t slot = hashed.emplace_back(id).hash & (size - 1);
    for (; slots[slot] != 0; slot = (slot + 1) & (size - 1)) {
      if (candidates[slots[slot] - 1].id == id) {
        return Status::InvalidArgument(
            fmt::format("actions[{}].id: is '{}', as that of actions[{}]; expected another", i, id,
                        slots[slot] - 1));
      }
    }
    slots[slot] = static_cast<std::uint32_t>(i + 1);
  }
  return {};
}

// The other arms share what the chosen one leaves of the probability, in their present proportion.
void ScaleOthers(std::uint32_t chosen, std::vector<Ranking::Arm>& arms) {
  double others = 0;
  for (std::size_t i = 0; i < arms.size(); ++i) others += i == chosen ? 0 : arms[i].probability;
  const double left = 1 - arms[chosen].probability;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (i == chosen) continue;
    arms[i].probability = others > 0 ? left * (arms[i].probability / others)
                                     : left / static_cast<double>(arms.size() - 1);
  }
}

// The last so many digits.
void AppendHex(std::uint64_t number, int digits, std::string& out) {
  for (int i = digits - 1; i >= 0; --i) out += "0123456789abcdef"[number >> (4 * i) & 15U];
}

}  // namespace

Status LocalEngine::CheckRequest(const RankRequest& request) const {
  if (!request.user.empty()) CODBAND_RETURN_IF_ERROR(CheckId("userId", request.user));
  const auto check = [&](std::string_view field, const auto& named) -> Status {
    if (named.empty() || dim_ == 0) return CheckNamed(field, named, options_.max_abs_feature);
    return Status::InvalidArgument(fmt::format(
        "{}: is given, but this data directory has a fixed number of features ({}), of the items "
        "alone; expected none, or a directory that gives every name a column",
        field, dim_));
  };
  CODBAND_RETURN_IF_ERROR(check("contextFeatures", request.context_features));
  return check("userFeatures", request.user_features);
}

// The time, then 80 random bits. Ids in the order of time let the store append instead of insert.
std::string LocalEngine::NewEventId() {
  RandomStream random({.seed = *options_.event_id_seed, .event = next_event_id_++},
                      kEventIdPurpose);
  std::string id;
  AppendHex(static_cast<std::uint64_t>(options_.now_ms()), 12, id);
  AppendHex(random() >> 48, 4, id);
  AppendHex(random(), 16, id);
  if (options_.partition) id += fmt::format(".p{}", *options_.partition);  // PartitionOfEvent
  return id;
}

UserId LocalEngine::UserOf(const RankRequest& request) const {
  return request.user.empty() ? kNobody : options_.names.User(request.user);
}

Status LocalEngine::CheckName(const std::string& user, const Learned& learned) const {
  std::optional<Person> scratch;
  const Person* const person = learned.people.Peek(options_.names.User(user), scratch);
  return person == nullptr || person->name == user ? Status() : MistakenName(user);
}

Status LocalEngine::MakeOffer(const RankRequest& request, const Catalogue& catalogue,
                              const Learned& learned, RankWorkspace& workspace) const {
  const StringViewSet excluded(request.excluded.begin(), request.excluded.end());
  Offer& offer = workspace.offer;
  offer.whole_catalogue = request.candidates.empty();
  workspace.most_arms = std::max(
      workspace.most_arms, offer.whole_catalogue ? catalogue.size() : request.candidates.size());
  if (dim_ == 0) offer.by_name.Start(learned.columns.space(), rules_, request);
  if (offer.whole_catalogue) {
    OfferCatalogue(excluded, catalogue, offer);
  } else {
    CODBAND_RETURN_IF_ERROR(CheckNoneTwice(request.candidates, workspace.slots, offer.hashed));
    const bool plain = dim_ == 0 && std::ranges::any_of(request.candidates, [](const auto& each) {
                         return !each.features.empty();
                       });
    const std::size_t length = plain ? PlainLength(learned.columns.space()) : 0;
    CODBAND_RETURN_IF_ERROR(
        OfferCandidates(request.candidates, excluded, catalogue, length, offer));
  }
  if (offer.ids.empty()) {
    return Status::InvalidArgument(
        request.candidates.empty() && catalogue.size() == 0
            ? "actions: none given and the catalogue is empty; give some, or PUT /v1/items/{id}"
            : "excludedActions: excludes every action, expected at least one to be left");
  }
  if (dim_ != 0) return {};
  const std::size_t dim = learned.policy->dim();
  CODBAND_RETURN_IF_ERROR(offer.by_name.Fill(dim, offer.gathered));
  offer.arms = {.features = offer.gathered,
                .dim = dim,
                .items = offer.items.empty() ? catalogue.numbers() : offer.items};
  return {};
}

void LocalEngine::OfferCatalogue(const StringViewSet& excluded, const Catalogue& catalogue,
                                 Offer& offer) const {
  const bool some_left_out = std::ranges::any_of(
      excluded, [&](std::string_view id) { return catalogue.Find(id) != nullptr; });
  offer.ids.reserve(catalogue.size());
  offer.named.reserve(catalogue.size());
  if (some_left_out) {
    offer.gathered.reserve(catalogue.size() * dim_);
    offer.items.reserve(catalogue.size());
  }
  for (std::size_t i = 0; i < catalogue.size(); ++i) {
    const Item& item = catalogue.item(i);
    if (some_left_out && excluded.contains(item.id)) continue;
    offer.ids.push_back(item.id);
    if (some_left_out) offer.items.push_back(catalogue.numbers()[i]);
    if (dim_ == 0) {
      offer.by_name.AddItem(catalogue.cells(i));
      continue;
    }
    if (some_left_out) {
      offer.gathered.insert(offer.gathered.end(), item.features.begin(), item.features.end());
    }
    offer.named.push_back(item.named.empty() ? nullptr : &item.named);
  }
  if (dim_ == 0) return;
  offer.arms = catalogue.arms();
  if (some_left_out) {
    offer.arms = {.features = offer.gathered, .dim = dim_, .items = offer.items};
  }
}

Status LocalEngine::CheckDescribed(const Candidate& candidate, std::size_t index,
                                   std::size_t& plain_length) const {
  const std::string field = fmt::format("actions[{}].features", index);
  CODBAND_RETURN_IF_ERROR(CheckId(fmt::format("actions[{}].id", index), candidate.id));
  if (dim_ == 0) {
    CODBAND_RETURN_IF_ERROR(CheckNamed(field, candidate.named, options_.max_abs_feature));
    CODBAND_RETURN_IF_ERROR(CheckPlainLength(field, candidate.features.size(), plain_length));
  }
  return CheckFeatures(field, candidate.features, dim_, options_.max_abs_feature);
}

Status LocalEngine::OfferCandidates(const std::vector<Candidate>& candidates,
                                    const StringViewSet& excluded, const Catalogue& catalogue,
                                    std::size_t plain_length, Offer& offer) const {
  offer.ids.reserve(candidates.size());
  offer.named.reserve(candidates.size());
  offer.gathered.reserve(candidates.size() * dim_);
  offer.items.reserve(candidates.size());
  const auto add = [&](const std::vector<double>& numbers, const auto& named) {
    offer.gathered.insert(offer.gathered.end(), numbers.begin(), numbers.end());
    offer.named.push_back(named.empty() ? nullptr : &named);
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.id.empty()) {
      CODBAND_RETURN_IF_ERROR(CheckId(fmt::format("actions[{}].id", i), candidate.id));
    }
    if (!excluded.empty() && excluded.contains(candidate.id)) continue;
    ItemId number = kNoItem;
    if (candidate.described()) {
      number = options_.names.Item(candidate.id);
      CODBAND_RETURN_IF_ERROR(CheckDescribed(candidate, i, plain_length));
      if (dim_ == 0) {
        offer.by_name.AddDescribed(candidate);
      } else {
        add(candidate.features, candidate.named);
      }
    } else {
      const Catalogue::Known* const known = catalogue.Look(offer.hashed[i]);
      if (known == nullptr) {
        return Status::InvalidArgument(fmt::format(
            "actions[{}].id: '{}' is not in the catalogue; give its features, or PUT /v1/items/{}",
            i, candidate.id, candidate.id));
      }
      if (dim_ == 0) {
        offer.by_name.AddItem(known->cells);
      } else {
        add(known->item->features, known->item->named);
      }
      number = known->number;
    }
    offer.ids.push_back(candidate.id);
    offer.items.push_back(number);
  }
  if (dim_ != 0) offer.arms = {.features = offer.gathered, .dim = dim_, .items = offer.items};
  return {};
}

Result<std::optional<PendingDecision>> LocalEngine::FindEarlier(const std::string& event_id,
                                                                std::uint64_t fingerprint) const {
  if (fingerprint == 0) return std::optional<PendingDecision>();
  auto found = committer_->Look(event_id);
  if (found.status().code() == StatusCode::kNotFound) return std::optional<PendingDecision>();
  if (!found.ok()) return found.status();
  CODBAND_RETURN_IF_ERROR(PendingDecisions::CheckRepeat(event_id, found.value(), fingerprint));
  return std::optional<PendingDecision>(std::move(found).value());
}

// The same choice as before, among what the policy says of the other arms now.
Status LocalEngine::TakeEarlier(const PendingDecision& earlier, RankWorkspace& workspace) const {
  const auto found = std::ranges::find(workspace.offer.ids, earlier.action);
  if (found == workspace.offer.ids.end()) {
    return Status(
        StatusCode::kConflict,
        fmt::format("eventId: its choice '{}' is no longer in the catalogue, expected the "
                    "id of a new event",
                    earlier.action));
  }
  if (options_.mode != Mode::kOnline) return {};
  Decision& decision = workspace.ranking.decision;
  decision = earlier.decision;
  decision.arm = static_cast<std::uint32_t>(found - workspace.offer.ids.begin());
  workspace.ranking.arms[decision.arm] = {.mean = decision.mean,
                                          .width = decision.width,
                                          .score = decision.score,
                                          .probability = decision.propensity};
  ScaleOthers(decision.arm, workspace.ranking.arms);
  return {};
}

Status LocalEngine::RankOffer(const RankRequest& request, const PendingDecision* earlier,
                              const Learned& learned, RankWorkspace& workspace) const {
  learned.policy->Rank(UserOf(request), workspace.offer.arms,
                       {.seed = options_.seed, .event = HashEvent(request.event_id)},
                       options_.exploration_floor, workspace.ranking);
  if (earlier != nullptr) CODBAND_RETURN_IF_ERROR(TakeEarlier(*earlier, workspace));
  MakeReply(request, workspace);
  if (earlier != nullptr) workspace.reply.reward_action_id = earlier->action;
  if (request.explain) {
    workspace.reply.explanation = Explain(request, workspace.offer, workspace.ranking, learned);
  }
  return {};
}

// A user's record could not be read from disk, or an invariant does not hold.
Status LocalEngine::CannotRank(const char* reason) const {
  if (options_.log) {
    options_.log({.level = LogLevel::kError,
                  .cause = "record",
                  .message = fmt::format("a user could not be ranked for: {}; others are not "
                                         "affected; 'codband doctor' tells what is damaged",
                                         reason)});
  }
  return Status::IoError(reason);
}

// An id that a partition made up is looked for there alone.
Status LocalEngine::CheckEventId(const std::string& id) const {
  CODBAND_RETURN_IF_ERROR(CheckId("eventId", id));
  const auto maker = PartitionOfEvent(id);
  if (!options_.partition || !maker || maker == options_.partition) return {};
  return Status::InvalidArgument(
      fmt::format("eventId: is '{}', as ids that the server makes up, but for other users; "
                  "expected one of your "
                  "own",
                  id));
}

void LocalEngine::Rank(RankRequest request, const std::function<void(const RankReply&)>& ranked,
                       Done<Status> done) {
  if (const Status status = CheckRequest(request); !status.ok()) return done(status);
  const std::uint64_t fingerprint = request.event_id.empty() ? 0 : FingerprintOf(request);
  if (fingerprint == 0) request.event_id = NewEventId();
  if (const Status status = CheckEventId(request.event_id); !status.ok()) return done(status);
  const auto earlier = FindEarlier(request.event_id, fingerprint);
  if (!earlier.ok()) return done(earlier.status());
  const PendingDecision* const repeats = earlier.value() ? &*earlier.value() : nullptr;
  RankWorkspaces::Lease lease(workspaces_);
  RankWorkspace& workspace = *lease;
  PendingDecision pending;
  std::unique_ptr<NewColumns> columns;
  std::vector<std::uint32_t> context_columns;
  try {
    const Status status = catalogue_.Read([&](const Catalogue& catalogue) -> Status {
      lease.set_kept_arms(std::max(catalogue.size(), kKeptArms));
      return learner_->Read([&](const Learned& learned) -> Status {
        // With a secret nobody can make up such a name, and the look at the record is spared.
        if (!options_.names.keyed() && !request.user.empty()) {
          CODBAND_RETURN_IF_ERROR(CheckName(request.user, learned));
        }
        CODBAND_RETURN_IF_ERROR(MakeOffer(request, catalogue, learned, workspace));
        CODBAND_RETURN_IF_ERROR(RankOffer(request, repeats, learned, workspace));
        if (repeats != nullptr) return {};
        pending = MakePending(request, catalogue, workspace.offer, workspace.ranking);
        if (dim_ != 0) return {};
        columns = workspace.offer.by_name.Wanted(pending.decision.arm);
        context_columns = workspace.offer.by_name.ContextColumns();
        return {};
      });
    });
    if (!status.ok()) return done(status);
  } catch (const std::exception& error) {
    return done(CannotRank(error.what()));
  }
  ranked(workspace.reply);
  if (repeats != nullptr) return done({});  // it is durable
  ++ranks_;
  if (fingerprint != 0) {
    pending.fingerprint = fingerprint;
    pending.action = workspace.reply.reward_action_id;
  }
  std::string bytes = pending.Encode();
  committer_->Submit(Committer::RankCommand{.event_id = std::move(request.event_id),
                                            .user = pending.decision.user,
                                            .made_ms = pending.made_ms,
                                            .deadline_ms = pending.deadline_ms,
                                            .fingerprint = fingerprint,
                                            .past = request.past,
                                            .action = std::move(pending.action),
                                            .pending = std::move(bytes),
                                            .columns = std::move(columns),
                                            .context_columns = std::move(context_columns),
                                            .done = std::move(done)});
}

void LocalEngine::MakeReply(const RankRequest& request, RankWorkspace& workspace) const {
  const Offer& offer = workspace.offer;
  const Ranking& ranking = workspace.ranking;
  std::vector<RankWorkspace::Place>& order = workspace.order;
  const std::uint32_t chosen = ranking.decision.arm;
  order.resize(offer.ids.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = {ranking.arms[i].score, i};
  order[chosen].score = std::numeric_limits<double>::infinity();
  std::size_t count = order.size();
  if (request.top_k > 0) {
    count = std::min(count, request.top_k);
  } else if (offer.whole_catalogue) {
    count = std::min(count, kDefaultTopOfCatalogue);
  }
  const auto better = [](const RankWorkspace::Place& a, const RankWorkspace::Place& b) {
    return a.score != b.score ? a.score > b.score : a.arm < b.arm;
  };
  // Select, then sort: faster than a heap where most or all are asked for.
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < order.size()) std::ranges::nth_element(order, end, better);
  std::ranges::sort(order.begin(), end, better);
  RankReply& reply = workspace.reply;
  reply.event_id = request.event_id;
  reply.reward_action_id = offer.ids[options_.mode == Mode::kOnline ? chosen : 0];
  reply.model = ranking.decision.model;
  reply.explanation.reset();
  reply.ranking.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Ranking::Arm& arm = ranking.arms[order[i].arm];
    RankedItem& item = reply.ranking[i];
    item.id = offer.ids[order[i].arm];
    item.probability = arm.probability;
    item.score = arm.score;
    item.mean = arm.mean;
    item.width = arm.width;
  }
}

Explanation LocalEngine::Explain(const RankRequest& request, const Offer& offer,
                                 const Ranking& ranking, const Learned& learned) const {
  Explanation out{.contributions = {}, .intercept = ranking.intercept, .last_change_ms = {}};
  const std::uint32_t shown = options_.mode == Mode::kOnline ? ranking.decision.arm : 0;
  out.item = ranking.arms[shown].item;
  if (!ranking.theta.empty()) {
    const std::span<const double> x = offer.arms.arm(shown);
    const double weight = learned.policy->FeatureWeight(x);
    if (dim_ == 0) {
      const features::ColumnSpace& space = learned.columns.space();
      for (std::size_t i = 0; i < std::min(x.size(), space.size()); ++i) {
        if (x[i] == 0) continue;
        out.contributions.push_back({space.NameOf(i), ranking.theta[i] * (weight * x[i])});
      }
    } else if (offer.named[shown] != nullptr) {
      for (const features::NamedFeature& feature : *offer.named[shown]) {
        const features::HashedPlace place = features::PlaceOf(feature.name, dim_);
        out.contributions.push_back(
            {feature.name, ranking.theta[place.index] * (weight * place.sign * feature.value)});
      }
    } else {
      for (std::size_t i = 0; i < dim_; ++i) {
        out.contributions.push_back({fmt::format("{}", i), ranking.theta[i] * (weight * x[i])});
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
  const Person* person = learned.people.Peek(UserOf(request), scratch);
  if (person != nullptr && !person->moves.empty()) {
    out.last_change_ms = person->moves.back().time_ms;
  }
  return out;
}

PendingDecision LocalEngine::MakePending(RankRequest& request, const Catalogue& catalogue,
                                         const Offer& offer, Ranking& ranking) const {
  Decision& decision = ranking.decision;
  const DecisionFacts facts = FactsOf(request, ranking);  // before another one is shown
  if (options_.mode != Mode::kOnline) {
    decision.arm = 0;
    const Ranking::Arm& baseline = ranking.arms[0];
    decision.mean = baseline.mean;
    decision.width = baseline.width;
    decision.score = baseline.score;
    decision.propensity = 1;  // it is always the one that is shown
    const std::span<const double> x = offer.arms.arm(0);
    decision.features.assign(x.begin(), x.end());
    decision.item = offer.arms.item(0);
  }
  const std::int64_t now_ms = committer_->clock().now_ms();
  using State = PendingDecision::State;
  PendingDecision pending{.state = request.past               ? State::kPast
                                   : request.defer_activation ? State::kDeferred
                                                              : State::kWaiting,
                          .time_ms = options_.now_ms(),
                          .deadline_ms = now_ms + options_.reward_wait_ms,
                          .learn = options_.mode != Mode::kLoggingOnly,
                          .user = request.user,
                          .decision = decision,
                          .made_ms = now_ms,
                          .facts = facts,
                          .context = {},
                          .candidates = {}};
  if (options_.keep_candidates) KeepCandidates(request, catalogue, offer, ranking, pending);
  return pending;
}

void LocalEngine::KeepCandidates(RankRequest& request, const Catalogue& catalogue,
                                 const Offer& offer, const Ranking& ranking,
                                 PendingDecision& pending) const {
  pending.context = std::move(request.context);
  pending.user_context = std::move(request.user_context);
  std::unordered_map<std::string_view, const Candidate*, StringHash> described;
  for (const Candidate& candidate : request.candidates) {
    if (dim_ == 0 && candidate.described()) described.emplace(candidate.id, &candidate);
  }
  for (std::size_t i = 0; i < offer.ids.size(); ++i) {
    const double probability = options_.mode == Mode::kOnline ? ranking.arms[i].probability
                               : i == 0                       ? 1
                                                              : 0;
    FinishedDecision::Candidate& kept = pending.candidates.emplace_back();
    kept.id = offer.ids[i];
    kept.probability = probability;
    if (dim_ != 0) {
      const std::span<const double> x = offer.arms.arm(i);
      kept.features.assign(x.begin(), x.end());
    } else if (const auto found = described.find(offer.ids[i]); found != described.end()) {
      kept.features.assign(found->second->features.begin(), found->second->features.end());
      kept.named = found->second->named;
    } else {
      const Item& item = *catalogue.Find(offer.ids[i]);
      kept.features.assign(item.features.begin(), item.features.end());
      kept.named = item.named;
    }
  }
}

}  // namespace codband::engine
