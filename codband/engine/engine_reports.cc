// What the engine tells about users, models and itself, and whether its data is consistent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "codband/engine/local_engine.h"

namespace codband::engine {
namespace {

// The tags of a model are those of its best items only: over all items every group has the same.
constexpr std::size_t kMostTagged = 100;
constexpr std::size_t kOneTaggedOf = 4;

// The tags of these items: how many have them, and how much more often than all items.
void AddTags(const Catalogue& catalogue, std::span<const std::pair<double, std::size_t>> best,
             std::size_t top, ModelReport& report) {
  std::map<std::string_view, std::pair<double, double>> tags;  // of the best, of all
  for (const auto& [ignored, index] : best) {
    for (const std::string& tag : catalogue.item(index).tags) ++tags[tag].first;
  }
  for (std::size_t i = 0; i < catalogue.size(); ++i) {
    for (const std::string& tag : catalogue.item(i).tags) {
      if (const auto found = tags.find(tag); found != tags.end()) ++found->second.second;
    }
  }
  const double share = static_cast<double>(best.size()) / static_cast<double>(catalogue.size());
  for (const auto& [tag, counts] : tags) {
    report.tags.push_back({std::string(tag), counts.first, counts.first / counts.second / share});
  }
  std::ranges::stable_sort(report.tags, std::greater<>(), &ModelReport::Top::weight);
  if (report.tags.size() > top) report.tags.resize(top);
}

std::string_view KindText(const features::ColumnSpace::Column& column) {
  using Kind = features::ColumnSpace::Kind;
  if (column.kind == Kind::kCrossing) return "crossing";
  if (column.kind == Kind::kShared) return "shared";
  switch (column.side) {
    case features::Side::kItem:
      return "item";
    case features::Side::kContext:
      return "context";
    default:
      return "user";
  }
}

// Whether the policy expects most of the first action. What it would try to learn about others does
// not count: where the baseline is shown it learns nothing of them, and would want to for ever.
bool Agrees(const Ranking& ranking) {
  const double best = std::ranges::max(ranking.arms, {}, &Ranking::Arm::mean).mean;
  const std::size_t chosen = ranking.decision.arm;
  return ranking.arms[0].mean == best && (chosen == 0 || ranking.arms[chosen].mean < best);
}

}  // namespace

DecisionFacts LocalEngine::FactsOf(const RankRequest& request, const Ranking& ranking) const {
  const EventKey key{.seed = options_.seed, .event = HashEvent(request.event_id)};
  DecisionFacts facts{.mode = options_.mode,
                      .agrees = Agrees(ranking),
                      .explored = options_.exploration_floor > 0,
                      .offered = static_cast<std::uint32_t>(ranking.arms.size()),
                      .baseline_mean = ranking.arms.front().mean};
  facts.source = options_.mode != Mode::kOnline                   ? Source::kBaseline
                 : ChosenByFloor(key, options_.exploration_floor) ? Source::kFloor
                                                                  : Source::kPolicy;
  for (const Ranking::Arm& arm : ranking.arms) facts.uniform_mean += arm.mean;
  facts.uniform_mean /= static_cast<double>(facts.offered);
  if (!std::isfinite(facts.uniform_mean)) {  // one that is not cannot be stored
    facts.explored = false;
    facts.baseline_mean = facts.uniform_mean = 0;
  }
  return facts;
}

UserReport LocalEngine::Describe(UserId id, const Person& person, const Learned& learned) const {
  UserReport report{.user = person.name,
                    .since_ms = person.since_ms(),
                    .observations = person.observations,
                    .first_ms = person.first_ms,
                    .changes = {}};
  if (const auto description = learned.policy->DescribeUser(id)) {
    report.model = description->model;
    report.model_chance = description->chance;
    report.period_observations = description->observations;
  }
  for (const Person::Move& move : person.moves) {
    report.changes.push_back({.user = person.name,
                              .time_ms = move.time_ms,
                              .from = move.from,
                              .to = move.to,
                              .evidence = move.evidence});
  }
  for (const Person::Tick& tick : person.ticks) {
    report.ticks.push_back({.time_ms = std::int64_t{tick.time_s} * 1000,
                            .reward = tick.reward,
                            .expected = tick.expected});
  }
  return report;
}

Result<UserReport> LocalEngine::GetUser(const std::string& user) {
  try {
    return learner_->Read([&](const Learned& learned) -> Result<UserReport> {
      std::optional<Person> scratch;
      const UserId id = options_.names.User(user);
      const Person* person = learned.people.Peek(id, scratch);
      if (person == nullptr) {
        return Status::NotFound(fmt::format("userId: nothing is known of '{}'", user));
      }
      if (person->name != user) return MistakenName(user);
      return Describe(id, *person, learned);
    });
  } catch (const std::exception& error) {
    return Status::IoError(error.what());
  }
}

std::optional<ItemDescription> LocalEngine::DescribeItem(const std::string& id) const {
  return learner_->Read([&](const Learned& learned) {
    return learned.policy->DescribeItem(options_.names.Item(id));
  });
}

Status LocalEngine::VisitUsers(const std::function<bool(const UserReport&)>& visit) {
  const Learner::Unsaved unsaved = learner_->CollectUnsaved();
  const std::unordered_set<UserId> erased(unsaved.erased.begin(), unsaved.erased.end());
  std::map<UserId, std::string> fresh(unsaved.people.begin(), unsaved.people.end());
  Status damaged;
  bool more = true;
  UserReport report;
  const auto visit_bytes = [&](UserId id, std::string_view bytes) {
    ByteReader in(bytes);
    Person person;
    person.Load(in);
    in.ExpectEnd();
    if (!in.ok()) {
      damaged = Status::Corruption(fmt::format("user {:016x}: {}", id, in.status().message()));
      return false;
    }
    try {
      report =
          learner_->Read([&](const Learned& learned) { return Describe(id, person, learned); });
    } catch (const std::exception& error) {  // the policy's record could not be read from disk
      damaged = Status::IoError(error.what());
      return false;
    }
    more = visit(report);
    return more;
  };
  // Store and `fresh` are both in the order of ids, and so are the visits.
  const auto visit_fresh_before = [&](std::optional<UserId> id) {
    while (more && damaged.ok() && !fresh.empty() && (!id || fresh.begin()->first < *id)) {
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
  visit_fresh_before(std::nullopt);
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
      best.emplace_back(-catalogue.Dot(i, report.parameter), i);
    }
    std::vector<double> features;
    learner_->Read([&](const Learned& learned) {
      features.resize(learned.policy->dim());
      for (auto& [negated, index] : best) {
        const ItemId item = options_.names.Item(catalogue.item(index).id);
        catalogue.ReadFeatures(index, features);
        negated *= learned.policy->FeatureWeight(features);
        negated -= model.intercept + learned.policy->ItemEffectOn(model.id, item);
      }
    });
    const std::size_t tagged =
        std::min(kMostTagged, (best.size() + kOneTaggedOf - 1) / kOneTaggedOf);
    const std::size_t ranked = std::min(best.size(), std::max(top, tagged));
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(ranked));
    for (std::size_t i = 0; i < std::min(top, ranked); ++i) {
      report.items.push_back({catalogue.item(best[i].second).id, -best[i].first});
    }
    AddTags(catalogue, std::span(best).first(tagged), top, report);
    const std::size_t worst = std::min(best.size(), top);
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(worst),
                              std::greater<>());
    for (std::size_t i = 0; i < worst; ++i) {
      report.worst.push_back({catalogue.item(best[i].second).id, -best[i].first});
    }
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

SeriesReport LocalEngine::Series(std::int64_t from_ms, std::int64_t to_ms, std::int64_t step_ms) {
  SeriesReport report{.step_ms = step_ms};
  std::map<std::int64_t, SeriesReport::Point> points;
  for (auto& [time_ms, activity] : committer_->activity().Range(from_ms, to_ms, step_ms)) {
    points[time_ms].activity = std::move(activity);
  }
  const std::int64_t now_ms = options_.now_ms();
  learner_->Read([&](const Learned& learned) {
    for (auto& [time_ms, groups] : learned.groups.Range(from_ms, to_ms, step_ms)) {
      points[time_ms].groups = std::move(groups);
    }
    // The step that goes on has what is now.
    const auto last = points.empty() ? points.end() : std::prev(points.end());
    if (last == points.end() || last->first + step_ms <= now_ms || now_ms >= to_ms) return;
    last->second.groups += GroupSeries::Now(learned.policy->DescribeModels(), learned.users);
  });
  for (auto& [time_ms, point] : points) {
    point.time_ms = time_ms;
    report.points.push_back(std::move(point));
  }
  return report;
}

FeatureReport LocalEngine::Features() {
  FeatureReport report;
  if (dim_ != 0) return report;
  report.limit = rules_.limits.columns;
  learner_->Read([&](const Learned& learned) {
    const features::ColumnSpace& space = learned.columns.space();
    const std::vector<ModelDescription> models = learned.policy->DescribeModels();
    double periods = 0;
    for (const ModelDescription& model : models) periods += static_cast<double>(model.periods);
    for (std::size_t i = 0; i < space.size(); ++i) {
      const ColumnUse& use = learned.columns.uses()[i];
      ColumnReport& column = report.columns.emplace_back();
      column.name = space.NameOf(i);
      column.kind = KindText(space.column(i));
      column.count = use.count;
      if (use.has_range()) {
        column.min = use.min;
        column.max = use.max;
      }
      const double rms =
          use.count == 0 ? 0 : std::sqrt(use.squares / static_cast<double>(use.count));
      for (const ModelDescription& model : models) {
        if (i >= model.theta.size() || periods == 0) continue;
        column.importance +=
            static_cast<double>(model.periods) / periods * std::abs(model.theta[i]) * rms;
      }
    }
    for (const features::ColumnSpace::Sharer& sharer : space.sharers()) {
      report.sharing.push_back(sharer.name);
    }
  });
  return report;
}

EngineStats LocalEngine::Stats() {
  EngineStats stats;
  const Committer::Counters& counters = committer_->counters();
  stats.policy = options_.policy;
  stats.columns_limit = dim_ == 0 ? rules_.limits.columns : 0;
  stats.ranks = ranks_;
  stats.rewards_accepted = counters.accepted;
  stats.rewards_duplicate = counters.duplicate;
  stats.rewards_late = counters.late;
  stats.rewards_unknown = counters.unknown;
  stats.rewards_defaulted = counters.defaulted;
  stats.expired = counters.expired;
  stats.activity = committer_->activity().since_start();
  stats.pending = static_cast<std::uint64_t>(std::max<std::int64_t>(0, counters.pending));
  stats.changes_last_hour = learner_->ChangesSince(options_.now_ms() - kHourMs);
  stats.checkpoints = learner_->checkpoints();
  stats.quarantined = learner_->quarantine().entries();
  // In this order: what is applied was committed before.
  stats.applied_sequence = learner_->applied_sequence();
  stats.committed_sequence = committer_->committed_sequence();
  stats.checkpoint_sequence = learner_->checkpoint_sequence();
  learner_->Read([&](const Learned& learned) {
    stats.changes = learned.changes;
    stats.learned = learned.sequence;
    stats.models = learned.policy->model_count();
    stats.users_in_memory = learned.people.size();
    stats.user_bytes = kCopies * learned.user_bytes();
    stats.users = learned.users;
    stats.dim = learned.policy->dim();
    const features::ColumnSpace& space = learned.columns.space();
    stats.columns = space.own();
    stats.crossings = space.crossings();
    stats.shared_columns = space.shared_columns();
    stats.sharing_names = space.sharers().size();
  });
  stats.items = catalogue_.Read([](const Catalogue& catalogue) { return catalogue.size(); });
  stats.queue = committer_->queue_length();
  stats.store = store_->Stats();
  stats.damage = store_->Damage();
  stats.erasing = eraser_ == nullptr ? 0 : eraser_->waiting();
  stats.cleared_sequence = learner_->cleared_sequence();
  if (eraser_ != nullptr) {
    stats.erased_sequence = eraser_->ErasedUpTo(stats.cleared_sequence);
    stats.last_erased_sequence = eraser_->last_erased();
  }
  stats.last_error = committer_->last_error();
  if (stats.last_error.empty()) stats.last_error = learner_->last_error();
  if (stats.last_error.empty() && eraser_ != nullptr) stats.last_error = eraser_->last_error();
  return stats;
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

}  // namespace codband::engine
