#include "codband/sim/replay.h"

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
#include "codband/policy/registry.h"

namespace codband {
namespace {

// Far from the purposes of policies, which use the same seed and event.
constexpr std::uint64_t kShufflePurpose = 2000;

// Clocks cost about as much as a cheap policy, so that many events are timed at once.
constexpr std::size_t kEventsAtOnce = 32;

// By item id: which row of the features.
using ItemRows = std::unordered_map<std::uint64_t, std::uint32_t>;

void Split(std::string_view text, char separator, std::vector<std::string_view>& parts) {
  parts.clear();
  std::size_t end = text.find(separator);
  while (end != text.npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
    end = text.find(separator);
  }
  parts.push_back(text);
}

// The lines of a file, split at tabs. Borrows the text.
class TsvLines {
 public:
  TsvLines(std::string path, std::string_view text) : path_(std::move(path)), rest_(text) {}

  // Moves on to the next line; false at the end.
  bool Next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    Split(line, '\t', fields_);
    ++number_;
    return true;
  }

  const std::vector<std::string_view>& fields() const { return fields_; }

  Status Wrong(std::string_view problem) const {
    return Status::InvalidArgument(fmt::format("{}, line {}: {}", path_, number_, problem));
  }
  // For a text that is not what was expected; only its beginning, should the file be no text at
  // all.
  Status Wrong(std::string_view what, std::string_view text, std::string_view expected) const {
    return Wrong(fmt::format("{} = '{:.40}', expected {}", what, text, expected));
  }
  // For a file that ended too early.
  Status Empty(std::string_view expected) const {
    return Status::InvalidArgument(fmt::format("{} is empty, expected {}", path_, expected));
  }

 private:
  std::string path_;
  std::string_view rest_;
  std::size_t number_ = 0;
  std::vector<std::string_view> fields_;
};

constexpr std::string_view kWholeNumber = "a whole number from 0 to 2^64 - 1";

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

Status ReadEvents(const std::filesystem::path& path, const ItemRows& rows, RecordedStream& stream) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  TsvLines lines(path.string(), text.value());
  std::unordered_set<UserId> users;
  std::vector<std::string_view> items;
  std::vector<std::size_t> last_line(rows.size());  // of each item: where it was a candidate
  while (lines.Next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    if (fields.size() != 3) {
      return lines.Wrong(
          fmt::format("{} fields, expected 3: user id, timestamp, item ids", fields.size()));
    }
    const auto user = ParseNumber<UserId>(fields[0]);
    if (!user) return lines.Wrong("user", fields[0], kWholeNumber);
    if (!ParseNumber<double>(fields[1])) return lines.Wrong("timestamp", fields[1], "a number");
    if (fields[2].empty()) {
      return lines.Wrong("no candidates, expected at least 1, the positive one first");
    }
    const std::size_t begin = stream.candidates.size();
    Split(fields[2], ',', items);
    for (const std::string_view item : items) {
      const auto id = ParseNumber<std::uint64_t>(item);
      if (!id) return lines.Wrong("item", item, kWholeNumber);
      const auto row = rows.find(*id);
      if (row == rows.end()) {
        return lines.Wrong(fmt::format("item {} is unknown, expected one of features.tsv", *id));
      }
      if (std::exchange(last_line[row->second], stream.events.size() + 1) ==
          stream.events.size() + 1) {
        return lines.Wrong(fmt::format("item {} a second time, expected each candidate once", *id));
      }
      stream.candidates.push_back(row->second);
    }
    stream.events.push_back({.user = *user, .begin = begin, .end = stream.candidates.size()});
    users.insert(*user);
  }
  if (stream.events.empty()) return lines.Empty("a line for each event");
  stream.user_count = users.size();
  return {};
}

// Plays one policy through a stream.
class Run {
 public:
  Run(const RecordedStream& stream, Policy& policy, std::uint64_t seed, std::size_t checkpoints)
      : stream_(stream),
        policy_(policy),
        seed_(seed),
        checkpoints_(CheckpointRounds(stream.events.size(), checkpoints)),
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
    result_.times_chance = reward_ / stream_.chance();
    result_.changes_per_1000 = 1000 * changes_ / static_cast<double>(events);
    result_.models = policy_.model_count();
    result_.us_per_event = 1e6 * seconds / static_cast<double>(events);
    return std::move(result_);
  }

 private:
  struct Visit {
    std::vector<double> arms;  // row-major
    std::size_t positive = 0;  // among the arms
    Decision decision;
    bool change_detected = false;
  };

  void Offer(std::size_t number, Visit& visit) {
    const RecordedStream::Event& event = stream_.events[number];
    order_.assign(stream_.candidates.begin() + static_cast<std::ptrdiff_t>(event.begin),
                  stream_.candidates.begin() + static_cast<std::ptrdiff_t>(event.end));
    const std::uint32_t positive = order_.front();
    RandomStream({.seed = seed_, .event = number}, kShufflePurpose)
        .Shuffle(std::span<std::uint32_t>(order_));
    visit.arms.clear();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == positive) visit.positive = i;
      const double* const row = stream_.features.data() + order_[i] * stream_.dim;
      visit.arms.insert(visit.arms.end(), row, row + stream_.dim);
    }
  }

  void PlayVisit(std::size_t number, Visit& visit) {
    const EventKey key{.seed = seed_, .event = number};
    policy_.Choose(stream_.events[number].user, {.features = visit.arms, .dim = stream_.dim}, key,
                   visit.decision);
    const double reward = visit.decision.arm == visit.positive ? 1 : 0;
    visit.change_detected = policy_.Learn(visit.decision, reward, key).change_detected;
  }

  void Score(std::size_t number, const Visit& visit, const std::function<void(double)>& progress) {
    if (visit.decision.arm == visit.positive) ++reward_;
    if (visit.change_detected) ++changes_;
    if (number + 1 != checkpoints_[result_.reward_curve.size()]) return;
    result_.reward_curve.push_back(reward_);
    if (progress) progress(1 / static_cast<double>(checkpoints_.size()));
  }

  const RecordedStream& stream_;
  Policy& policy_;
  std::uint64_t seed_;
  std::vector<std::size_t> checkpoints_;
  std::vector<Visit> visits_;  // of the events played at once
  std::vector<std::uint32_t> order_;
  double reward_ = 0;
  double changes_ = 0;
  ReplayRun result_;
};

}  // namespace

double RecordedStream::chance() const {
  double sum = 0;
  for (const Event& event : events) sum += 1 / static_cast<double>(event.candidate_count());
  return sum;
}

Result<RecordedStream> ReadStream(const std::filesystem::path& directory) {
  RecordedStream stream;
  ItemRows rows;
  CODBAND_RETURN_IF_ERROR(ReadFeatures(directory / "features.tsv", stream, rows));
  CODBAND_RETURN_IF_ERROR(ReadEvents(directory / "events.tsv", rows, stream));
  return stream;
}

ReplayRun PlayStream(const RecordedStream& stream, Policy& policy, std::uint64_t seed,
                     std::size_t checkpoints, const std::function<void(double)>& progress) {
  CODBAND_CHECK(!stream.events.empty());
  return Run(stream, policy, seed, checkpoints).Play(progress);
}

Result<ReplayComparison> CompareOnStream(const RecordedStream& stream,
                                         const RunnerOptions& options) {
  CODBAND_RETURN_IF_ERROR(options.Validate());
  const PolicyContext context{.dim = stream.dim, .friends = options.friends};
  ReplayComparison comparison{
      .checkpoint_events = CheckpointRounds(stream.events.size(), options.checkpoints),
      .policies = {}};
  for (const std::string& spec : options.policies) {
    const auto policy = MakePolicy(spec, context);
    if (!policy.ok()) return policy.status();
    comparison.policies.push_back({.spec = spec, .runs = std::vector<ReplayRun>(options.seeds)});
  }
  PlayRuns(1, options, [&](const RunIndex& index, const auto& progress) {
    const auto policy = MakePolicy(options.policies[index.policy], context);
    comparison.policies[index.policy].runs[index.seed] = PlayStream(
        stream, *policy.value(), options.first_seed + index.seed, options.checkpoints, progress);
  });
  return comparison;
}

}  // namespace codband
