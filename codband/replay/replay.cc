#include "codband/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/base/parse.h"
#include "codband/base/tsv_lines.h"
#include "codband/policy/registry.h"

namespace codband::replay {
namespace {

// Far from the purposes of policies, which use the same seed and event.
constexpr std::uint64_t kShufflePurpose = 2000;
constexpr std::uint64_t kInterleavePurpose = 2001;

// Clocks cost about as much as a cheap policy, so that many events are timed at once.
constexpr std::size_t kEventsAtOnce = 32;

// By item id: which row of the features.
using ItemRows = std::unordered_map<std::uint64_t, std::uint32_t>;

Status ReadFeatures(const std::filesystem::path& path, RecordedStream& stream, ItemRows& rows) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  TsvLines lines(path.string(), text.value());
  while (lines.Next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    const std::size_t dim = fields.size() - 1;
    if (stream.dim == 0) {
      if (dim < 1 || dim > kMaxFeatures) {
        return lines.Wrong(fmt::format("{} features, expected an item id and 1 to {} features", dim,
                                       kMaxFeatures));
      }
      stream.dim = dim;
    }
    if (dim != stream.dim) {
      return lines.Wrong(
          fmt::format("{} features, expected {} as on the first line", dim, stream.dim));
    }
    const auto id = ParseNumber<std::uint64_t>(fields[0]);
    if (!id) return lines.Wrong("item", fields[0], kWholeNumber);
    if (!rows.emplace(*id, static_cast<std::uint32_t>(rows.size())).second) {
      return lines.Wrong(fmt::format("item {} a second time, expected each item once", *id));
    }
    stream.item_ids.push_back(*id);
    for (std::size_t i = 1; i <= dim; ++i) {
      const auto value = ParseNumber<double>(fields[i]);
      if (!value || !(std::abs(*value) <= kLargestNumber)) {
        return lines.Wrong(fmt::format("feature {}", i), fields[i],
                           fmt::format("a number within ±{:g}", kLargestNumber));
      }
      stream.features.push_back(*value);
    }
  }
  if (rows.empty()) return lines.Empty("a line for each item");
  return {};
}

// Reads the lines of events.tsv, or of log.tsv if the stream is a log.
class EventReader {
 public:
  EventReader(const ItemRows& rows, RecordedStream& stream)
      : rows_(rows), stream_(stream), last_event_(rows.size()) {}

  Status Read(const std::filesystem::path& path) {
    const auto text = ReadFile(path);
    if (!text.ok()) return text.status();
    TsvLines lines(path.string(), text.value());
    while (lines.Next()) CODBAND_RETURN_IF_ERROR(ReadLine(lines));
    if (stream_.events.empty()) return lines.Empty("a line for each event");
    stream_.user_count = users_.size();
    if (stream_.total_reward() > 0) return {};
    return Status::InvalidArgument(
        fmt::format("{}: none of {} events has a click, expected some to compare with",
                    path.string(), stream_.events.size()));
  }

 private:
  Status ReadLine(const TsvLines& lines) {
    const std::vector<std::string_view>& fields = lines.fields();
    const std::size_t expected = stream_.logged ? 5 : 3;
    if (fields.size() != expected) {
      return lines.Wrong(fmt::format("{} fields, expected {}: user id, timestamp, {}item ids",
                                     fields.size(), expected,
                                     stream_.logged ? "item shown, click, " : ""));
    }
    RecordedStream::Event event{.begin = stream_.candidates.size()};
    const auto user = ParseNumber<UserId>(fields[0]);
    if (!user) return lines.Wrong("user", fields[0], kWholeNumber);
    event.user = *user;
    if (!ParseNumber<double>(fields[1])) return lines.Wrong("timestamp", fields[1], "a number");
    if (fields.back().empty()) {
      return lines.Wrong(fmt::format("no candidates, expected at least 1, {}",
                                     stream_.logged ? "the shown one" : "the positive one first"));
    }
    SplitText(fields.back(), ',', items_);
    for (const std::string_view item : items_) CODBAND_RETURN_IF_ERROR(ReadItem(lines, item));
    event.end = stream_.candidates.size();
    if (stream_.logged) {
      if (fields[3] != "0" && fields[3] != "1") return lines.Wrong("click", fields[3], "0 or 1");
      event.reward = fields[3] == "1" ? 1 : 0;
      const auto shown = std::ranges::find(items_, fields[2]);
      if (shown == items_.end()) {
        return lines.Wrong("item shown", fields[2], "one of the candidates");
      }
      std::swap(stream_.candidates[event.begin],
                stream_.candidates[event.begin + static_cast<std::size_t>(shown - items_.begin())]);
    }
    event.number = stream_.events.size();
    stream_.events.push_back(event);
    users_.insert(event.user);
    return {};
  }

  Status ReadItem(const TsvLines& lines, std::string_view item) {
    const auto id = ParseNumber<std::uint64_t>(item);
    if (!id) return lines.Wrong("item", item, kWholeNumber);
    const auto row = rows_.find(*id);
    if (row == rows_.end()) {
      return lines.Wrong(fmt::format("item {} is unknown, expected one of features.tsv", *id));
    }
    const std::size_t event = stream_.events.size() + 1;
    if (std::exchange(last_event_[row->second], event) == event) {
      return lines.Wrong(fmt::format("item {} a second time, expected each candidate once", *id));
    }
    stream_.candidates.push_back(row->second);
    return {};
  }

  const ItemRows& rows_;
  RecordedStream& stream_;
  std::vector<std::size_t> last_event_;  // of each item: where it was a candidate, from 1
  std::vector<std::string_view> items_;
  std::unordered_set<UserId> users_;
};

Result<RecordedStream> ReadFiles(const std::filesystem::path& directory, bool logged) {
  RecordedStream stream;
  stream.logged = logged;
  ItemRows rows;
  CODBAND_RETURN_IF_ERROR(ReadFeatures(directory / "features.tsv", stream, rows));
  CODBAND_RETURN_IF_ERROR(
      EventReader(rows, stream).Read(directory / (logged ? "log.tsv" : "events.tsv")));
  return stream;
}

// What random choice has on average after so many events each, ascending.
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

// Plays one policy through a stream.
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
    std::size_t first = 0;     // where among the arms the first candidate is
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
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == first) visit.first = i;
      const double* const row = stream_.features.data() + order_[i] * stream_.dim;
      visit.arms.insert(visit.arms.end(), row, row + stream_.dim);
    }
  }

  void PlayVisit(std::size_t number, Visit& visit) {
    const EventKey key{.seed = seed_, .event = number};
    policy_.Choose(stream_.events[number].user, {.features = visit.arms, .dim = stream_.dim}, key,
                   visit.decision);
    visit.change_detected = false;
    if (!Counts(visit)) return;
    const double reward = Took(visit) ? stream_.events[number].reward : 0;
    visit.change_detected = policy_.Learn(visit.decision, reward, key).change_detected;
  }

  static bool Took(const Visit& visit) { return visit.decision.arm == visit.first; }
  // A log says nothing of what was not shown.
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

double RecordedStream::total_reward() const {
  double sum = 0;
  for (const Event& event : events) sum += event.reward;
  return sum;
}

double RecordedStream::chance() const {
  if (logged) return total_reward();
  double sum = 0;
  for (const Event& event : events) {
    sum += event.reward / static_cast<double>(event.candidate_count());
  }
  return sum;
}

double ReplayRun::mean_reward_error() const {
  return std::sqrt(mean_reward() * (1 - mean_reward()) / matched());
}

Result<RecordedStream> ReadStream(const std::filesystem::path& directory) {
  return ReadFiles(directory, /*logged=*/false);
}

Result<RecordedStream> ReadLog(const std::filesystem::path& directory) {
  return ReadFiles(directory, /*logged=*/true);
}

void InterleaveUsers(RecordedStream& stream) {
  // A random order of the users' turns; each turn takes its user's next event.
  std::vector<UserId> turns;
  std::unordered_map<UserId, std::vector<RecordedStream::Event>> of_user;
  for (const RecordedStream::Event& event : stream.events) {
    turns.push_back(event.user);
    of_user[event.user].push_back(event);
  }
  RandomStream({.seed = 0, .event = 0}, kInterleavePurpose).Shuffle(std::span(turns));
  std::unordered_map<UserId, std::size_t> next;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    stream.events[i] = of_user[turns[i]][next[turns[i]]++];
  }
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
    const auto policy = MakePolicy(spec, context);
    if (!policy.ok()) return policy.status();
    comparison.policies.push_back({.spec = spec, .runs = std::vector<ReplayRun>(options.seeds)});
  }
  const auto play = [&](std::size_t job, const sim::ProgressFunction& progress) -> Status {
    ReplayResults& results = comparison.policies[job / options.seeds];
    const std::size_t seed = job % options.seeds;
    const auto policy = MakePolicy(results.spec, context);
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
