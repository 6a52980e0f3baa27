#include "codband/replay/play.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "codband/base/check.h"
#include "codband/base/clock.h"
#include "codband/base/random.h"
#include "codband/policy/registry.h"

namespace codband::replay {
namespace {

// Far from the purposes of policies, which use the same seed and event.
constexpr std::uint64_t kShufflePurpose = 2000;

// Reading the clock costs about as much as a cheap policy, so that many events are timed at once.
constexpr std::size_t kEventsAtOnce = 32;

// The expected reward of random choice at each checkpoint (ascending).
std::vector<double> ChanceAt(const RecordedStream& stream,
                             const std::vector<std::size_t>& checkpoints) {
  std::vector<double> chances;
  double sum = 0;
  std::size_t played = 0;
  for (const std::size_t checkpoint : checkpoints) {
    for (; played < checkpoint; ++played) {
      const RecordedStream::Event& event = stream.events[played];
      sum += event.reward / (stream.logged ? 1 : static_cast<double>(event.candidate_count()));
    }
    chances.push_back(sum);
  }
  return chances;
}

std::vector<ModelDescription> PopularModels(const Policy& policy) {
  std::vector<ModelDescription> models = policy.DescribeModels();
  std::ranges::sort(models, [](const ModelDescription& a, const ModelDescription& b) {
    if (a.users != b.users) return a.users > b.users;
    if (a.observations != b.observations) return a.observations > b.observations;
    return a.id < b.id;
  });
  models.resize(std::min(models.size(), kPopularModels));
  return models;
}

// Plays one policy on a stream.
class Run {
 public:
  Run(const RecordedStream& stream, Policy& policy, std::uint64_t seed, std::size_t checkpoints)
      : stream_(stream),
        policy_(policy),
        seed_(seed),
        checkpoints_(sim::CheckpointRounds(stream.events.size(), checkpoints)),
        visits_(kEventsAtOnce) {}

  ReplayRun Play(const std::function<void(double)>& progress) {
    const std::size_t events = stream_.events.size();
    double seconds = 0;
    for (std::size_t first = 0; first < events; first += kEventsAtOnce) {
      const std::size_t count = std::min(kEventsAtOnce, events - first);
      for (std::size_t i = 0; i < count; ++i) Offer(first + i, visits_[i]);
      const double start = ThreadCpuSeconds();
      for (std::size_t i = 0; i < count; ++i) PlayVisit(first + i, visits_[i]);
      seconds += ThreadCpuSeconds() - start;
      for (std::size_t i = 0; i < count; ++i) Score(first + i, visits_[i], progress);
    }
    result_.times_chance = (reward_ / matched_) / (stream_.chance() / static_cast<double>(events));
    const auto changes = static_cast<double>(result_.changes.size());
    result_.changes_per_1000 = matched_ > 0 ? 1000 * changes / matched_ : 0;
    result_.models = policy_.model_count();
    result_.popular_models = PopularModels(policy_);
    result_.us_per_event = 1e6 * seconds / static_cast<double>(events);
    return std::move(result_);
  }

 private:
  struct Visit {
    std::vector<double> arms;  // row-major
    std::vector<ItemId> items;
    std::size_t first = 0;  // index of the first candidate among the arms
    Decision decision;
    bool change_detected = false;
  };

  void Offer(std::size_t number, Visit& visit) {
    const RecordedStream::Event& event = stream_.events[number];
    order_.assign(stream_.candidates.begin() + static_cast<std::ptrdiff_t>(event.begin),
                  stream_.candidates.begin() + static_cast<std::ptrdiff_t>(event.end));
    const std::uint32_t first = order_.front();
    RandomStream({.seed = seed_, .event = number}, kShufflePurpose)
        .Shuffle(std::span<std::uint32_t>(order_));
    visit.arms.clear();
    visit.items.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == first) visit.first = i;
      const double* const row = stream_.features.data() + order_[i] * stream_.dim;
      visit.arms.insert(visit.arms.end(), row, row + stream_.dim);
      if (!stream_.item_ids.empty()) visit.items.push_back(stream_.item_ids[order_[i]]);
    }
  }

  void PlayVisit(std::size_t number, Visit& visit) {
    const EventKey key{.seed = seed_, .event = number};
    policy_.Choose(stream_.events[number].user,
                   {.features = visit.arms, .dim = stream_.dim, .items = visit.items}, key,
                   visit.decision);
    visit.change_detected = false;
    if (!Counts(visit)) return;
    const double reward = Took(visit) ? stream_.events[number].reward : 0;
    visit.change_detected = policy_.Learn(visit.decision, reward, key).change_detected;
  }

  static bool Took(const Visit& visit) { return visit.decision.arm == visit.first; }
  // A log has no reward for what was not shown.
  bool Counts(const Visit& visit) const { return !stream_.logged || Took(visit); }

  void Score(std::size_t number, const Visit& visit, const std::function<void(double)>& progress) {
    if (Took(visit)) reward_ += stream_.events[number].reward;
    if (Counts(visit)) ++matched_;
    if (visit.change_detected) result_.changes.push_back(number);
    if (number + 1 != checkpoints_[result_.reward_curve.size()]) return;
    result_.reward_curve.push_back(reward_);
    result_.matched_curve.push_back(matched_);
    if (progress) progress(1 / static_cast<double>(checkpoints_.size()));
  }

  const RecordedStream& stream_;
  Policy& policy_;
  std::uint64_t seed_;
  std::vector<std::size_t> checkpoints_;
  std::vector<Visit> visits_;  // of the events played at once
  std::vector<std::uint32_t> order_;
  double reward_ = 0;
  double matched_ = 0;
  ReplayRun result_;
};

}  // namespace

double ReplayRun::mean_reward_error() const {
  return std::sqrt(mean_reward() * (1 - mean_reward()) / matched());
}

ReplayRun PlayStream(const RecordedStream& stream, Policy& policy, std::uint64_t seed,
                     std::size_t checkpoints, const std::function<void(double)>& progress) {
  CODBAND_CHECK(!stream.events.empty());
  return Run(stream, policy, seed, checkpoints).Play(progress);
}

Result<ReplayComparison> CompareOnStream(const RecordedStream& stream,
                                         const sim::RunnerOptions& options) {
  CODBAND_RETURN_IF_ERROR(options.Validate());
  const PolicyContext context{.dim = stream.dim, .friends = options.friends};
  ReplayComparison comparison{
      .checkpoint_events = sim::CheckpointRounds(stream.events.size(), options.checkpoints),
      .checkpoint_chance = {},
      .policies = {}};
  comparison.checkpoint_chance = ChanceAt(stream, comparison.checkpoint_events);
  for (const std::string& spec : options.policies) {
    const auto policy = options.make_policy(spec, context);
    if (!policy.ok()) return policy.status();
    comparison.policies.push_back({.spec = spec, .runs = std::vector<ReplayRun>(options.seeds)});
  }
  const auto play = [&](std::size_t job, const sim::ProgressFunction& progress) -> Status {
    ReplayResults& results = comparison.policies[job / options.seeds];
    const std::size_t seed = job % options.seeds;
    const auto policy = options.make_policy(results.spec, context);
    if (!policy.ok()) return policy.status();
    results.runs[seed] = PlayStream(stream, *policy.value(), options.first_seed + seed,
                                    options.checkpoints, progress);
    return {};
  };
  const std::vector<double> costs(options.policies.size() * options.seeds, 1);
  CODBAND_RETURN_IF_ERROR(
      sim::RunJobs(costs, {.threads = options.threads, .progress = options.progress}, play));
  return comparison;
}

}  // namespace codband::replay
