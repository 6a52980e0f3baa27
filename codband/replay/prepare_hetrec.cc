// Last.fm and Delicious as streams: docs/data.md.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "codband/base/check.h"
#include "codband/data/hetrec.h"
#include "codband/data/spectral_clustering.h"
#include "codband/replay/prepare_parts.h"
#include "codband/replay/stream_format.h"

namespace codband::replay {
namespace {

std::int64_t Median(std::vector<std::int64_t>& values) {
  CODBAND_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  const std::int64_t below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

// The time of a positive: when the user first tagged the item; if they did not, the median time of
// all their tags; for users without tags, the median over all users.
class EventTimes {
 public:
  EventTimes(const data::SocialTagging& data, const IdIndex& users, const IdIndex& items,
             std::int64_t earliest) {
    std::vector<std::vector<std::int64_t>> of_user(users.size());
    std::vector<std::int64_t> all;
    for (const data::SocialTagging::Assignment& a : data.assignments) {
      if (a.time < earliest) {
        ++unusable_;
        continue;
      }
      all.push_back(a.time);
      const std::uint32_t user = users.Find(a.user);
      if (user == users.size()) continue;
      of_user[user].push_back(a.time);
      const auto [first, fresh] = first_.try_emplace(Key(user, items.Find(a.item)), a.time);
      first->second = std::min(first->second, a.time);
    }
    const std::int64_t overall = all.empty() ? 0 : Median(all);
    for (std::vector<std::int64_t>& times : of_user) {
      median_.push_back(times.empty() ? overall : Median(times));
    }
  }

  std::int64_t Of(std::uint32_t user, std::uint32_t item) const {
    const auto found = first_.find(Key(user, item));
    return found == first_.end() ? median_[user] : found->second;
  }
  std::size_t unusable() const { return unusable_; }

 private:
  static std::uint64_t Key(std::uint32_t user, std::uint32_t item) {
    return std::uint64_t{user} << 32 | item;
  }

  std::unordered_map<std::uint64_t, std::int64_t> first_;
  std::vector<std::int64_t> median_;
  std::size_t unusable_ = 0;
};

// The users of the largest connected component of the friendship graph, and their groups.
struct UserGroups {
  IdIndex users;
  data::Clusters clusters;
};

Result<UserGroups> GroupUsers(const data::SocialTagging& data, const PrepareOptions& options) {
  std::vector<std::uint64_t> everyone;
  for (const auto& [a, b] : data.friends) {
    everyone.push_back(a);
    everyone.push_back(b);
  }
  const IdIndex all(std::move(everyone));
  data::Graph graph{.nodes = all.size(), .edges = {}};
  for (const auto& [a, b] : data.friends) graph.edges.emplace_back(all.Find(a), all.Find(b));
  std::vector<std::uint64_t> members;
  for (const std::uint32_t node : data::LargestComponent(graph)) members.push_back(all.id(node));
  UserGroups groups{.users = IdIndex(std::move(members)), .clusters = {}};
  data::Graph connected{.nodes = groups.users.size(), .edges = {}};
  for (const auto& [a, b] : data.friends) {
    const std::uint32_t from = groups.users.Find(a);
    if (from < groups.users.size()) connected.edges.emplace_back(from, groups.users.Find(b));
  }
  auto clusters = data::SpectralClusters(connected, {.clusters = options.groups,
                                                     .regularisation = options.graph_regularisation,
                                                     .normalise_rows = options.normalise_rows,
                                                     .kmeans = {.seed = options.seed}});
  if (!clusters.ok()) return clusters.status();
  groups.clusters = std::move(clusters).value();
  return groups;
}

// Cuts the events of each group, ordered by time, into parts of equal size (the first ones are one
// larger if the division has a remainder); each part is a user.
void SplitGroups(const data::Clusters& groups, std::size_t parts,
                 std::vector<StreamEvent>& events) {
  const auto group = [&](const StreamEvent& event) { return groups.label[event.source]; };
  std::ranges::sort(events, {}, [&](const StreamEvent& event) {
    return std::tuple(group(event), event.time, event.source, event.item);
  });
  std::size_t begin = 0;
  std::uint32_t user = 0;
  while (begin < events.size()) {
    std::size_t end = begin;
    while (end < events.size() && group(events[end]) == group(events[begin])) ++end;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t size =
          (end - begin) / (parts - part) + ((end - begin) % (parts - part) != 0 ? 1 : 0);
      for (std::size_t i = 0; i < size; ++i) events[begin + i].user = user;
      if (size > 0) ++user;
      begin += size;
    }
  }
}

// The items that have tags, with their terms and tags.
struct TaggedItems {
  IdIndex ids;
  TermCounts counts;
  std::vector<std::map<std::string, std::size_t>> tags;
};

TaggedItems CollectTags(const data::SocialTagging& data, const PrepareOptions& options) {
  std::vector<std::uint64_t> ids;
  for (const data::SocialTagging::Assignment& a : data.assignments) ids.push_back(a.item);
  TaggedItems items{.ids = IdIndex(std::move(ids)), .counts = {}, .tags = {}};
  items.tags.resize(items.ids.size());
  for (const data::SocialTagging::Assignment& a : data.assignments) {
    const std::uint32_t item = items.ids.Find(a.item);
    const std::string& text = data.tags.at(a.tag);
    if (options.terms == TermKind::kTags) {
      items.counts.Add(item, fmt::format("{}", a.tag));
    } else {
      for (const std::string& word : data::Tokenise(text, options.tokens)) {
        items.counts.Add(item, word);
      }
    }
    ++items.tags[item][data::NormaliseTag(text)];
  }
  return items;
}

// The positives of the users, as events that do not have their user yet.
std::vector<StreamEvent> CollectEvents(const data::SocialTagging& data, const IdIndex& users,
                                       const IdIndex& items, const EventTimes& times) {
  std::vector<StreamEvent> events;
  for (const auto& [user_id, item_id] : data.positives) {
    const std::uint32_t user = users.Find(user_id);
    const std::uint32_t item = items.Find(item_id);
    if (user == users.size() || item == items.size()) continue;
    events.push_back({.user = 0, .source = user, .item = item, .time = times.Of(user, item)});
  }
  return events;
}

// origins.tsv: the user in the data set and their group.
Status WriteOrigins(std::span<const StreamEvent> events, const UserGroups& groups,
                    const data::OutputDirectory& out) {
  return WriteOutput(out, kOriginsFile, [&](data::OutputFile& file) -> Status {
    for (const StreamEvent& event : events) {
      WriteOrigin(groups.users.id(event.source), groups.clusters.label[event.source], file);
    }
    return {};
  });
}

}  // namespace

Result<PreparedStream> PrepareHetRec(data::DataSet set, const std::filesystem::path& in,
                                     const PrepareOptions& options,
                                     const data::OutputDirectory& out, data::InputLog& log,
                                     const data::WorkHooks& hooks) {
  auto read = data::ReadSocialTagging(set, in, log, data::WorkPart(hooks, 0, 0.1, "reading"));
  if (!read.ok()) return data::WithSource(set, read.status());
  const data::SocialTagging& data = read.value();

  TaggedItems items = CollectTags(data, options);
  PreparedStream stream;
  CODBAND_RETURN_IF_ERROR(data::WorkPart(hooks, 0.1, 0.7, "principal components").Report(0));
  const auto features = FeaturesOf(std::move(items.counts), items.ids.size(), options, stream);
  if (!features.ok()) return features.status();

  CODBAND_RETURN_IF_ERROR(data::WorkPart(hooks, 0.7, 0.8, "groups of users").Report(0));
  const auto groups = GroupUsers(data, options);
  if (!groups.ok()) return groups.status();
  const IdIndex& users = groups.value().users;
  const data::Clusters& clusters = groups.value().clusters;

  const EventTimes times(data, users, items.ids, options.earliest_time);
  std::vector<StreamEvent> events = CollectEvents(data, users, items.ids, times);
  const PositiveItems positives(users.size(), events);
  std::erase_if(events, [&](const StreamEvent& event) {
    return positives.of(event.source).size() < options.min_observations;
  });
  if (events.empty()) {
    return Status::InvalidArgument(
        fmt::format("no user among friends has {} tagged items with a positive reward or more",
                    options.min_observations));
  }
  stream.possible_events = events.size();
  DrawEvents(options.max_events, options.seed, events);
  SplitGroups(clusters, options.parts, events);
  OrderEvents(options.order, options.seed, /*renumber=*/true, events);

  stream.sources = users.size();
  stream.group_sizes = clusters.sizes;
  stream.unusable_times = times.unusable();
  std::uint32_t last_user = 0;
  for (const StreamEvent& event : events) last_user = std::max(last_user, event.user);
  std::vector<std::uint64_t> user_ids(last_user + 1);  // policies see numbers from 0
  std::iota(user_ids.begin(), user_ids.end(), std::uint64_t{0});
  stream.users = user_ids.size();

  CODBAND_RETURN_IF_ERROR(WriteFeatures(items.ids.ids(), features.value(), out));
  CODBAND_RETURN_IF_ERROR(WriteStreamEvents(events, positives, user_ids, items.ids.ids(), options,
                                            out, data::WorkPart(hooks, 0.8, 1, "events"), stream));
  CODBAND_RETURN_IF_ERROR(WriteOrigins(events, groups.value(), out));
  CODBAND_RETURN_IF_ERROR(WriteTags(items.ids, items.tags, out));
  return stream;
}

}  // namespace codband::replay
