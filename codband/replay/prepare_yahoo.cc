// The Yahoo! Today Module click log as a stream: docs/data.md.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "codband/data/kmeans.h"
#include "codband/data/yahoo.h"
#include "codband/replay/prepare_parts.h"
#include "codband/replay/stream_format.h"

namespace codband::replay {
namespace {

// Without the constant feature.
constexpr std::size_t kUserFeatures = data::kYahooFeatures - 1;
constexpr std::size_t kRestarts = 3;

std::span<const double> UserPoint(const data::YahooVisit& visit) {
  return std::span(visit.user).first(kUserFeatures);
}

// The result of the first pass over the log.
struct LogFacts {
  std::map<std::uint32_t, data::YahooFeatures> articles;  // with the features they have first
  std::vector<double> user_points;  // of a uniform sample of visits, row-major
};

Result<LogFacts> ScanLog(const std::vector<std::filesystem::path>& files,
                         const PrepareOptions& options, data::InputLog& log,
                         const data::WorkPart& part, PreparedStream& stream) {
  LogFacts facts;
  RandomStream random = DrawStream(options.seed, StreamDraw::kUserSample);
  CODBAND_RETURN_IF_ERROR(
      data::ReadYahooVisits(files, log, part, [&](const data::YahooVisit& visit) {
        bool changed = false;
        for (const data::YahooVisit::Article& article : visit.articles) {
          const auto [known, fresh] = facts.articles.try_emplace(article.id, article.features);
          changed = changed || known->second != article.features;
        }
        stream.changed_articles += changed ? 1 : 0;
        // Reservoir sampling (Vitter's algorithm R).
        const std::size_t place =
            stream.visits < options.user_sample ? stream.visits : random.Below(stream.visits + 1);
        if (place < options.user_sample) {
          facts.user_points.resize(std::max(facts.user_points.size(), (place + 1) * kUserFeatures));
          std::ranges::copy(
              UserPoint(visit),
              facts.user_points.begin() + static_cast<std::ptrdiff_t>(place * kUserFeatures));
        }
        ++stream.visits;
        stream.clicks += visit.click ? 1 : 0;
        return stream.visits != options.max_events;
      }));
  return facts;
}

// The displayed article and others drawn uniformly from the pool, in the order of the line.
void DrawCandidates(const data::YahooVisit& visit, std::size_t count, RandomStream random,
                    std::vector<std::uint64_t>& candidates) {
  candidates.clear();
  if (count == 0 || count >= visit.articles.size()) {
    for (const data::YahooVisit::Article& article : visit.articles)
      candidates.push_back(article.id);
    return;
  }
  std::size_t left = visit.articles.size() - 1;
  std::size_t wanted = count - 1;
  for (const data::YahooVisit::Article& article : visit.articles) {
    if (article.id == visit.displayed) {
      candidates.push_back(article.id);
    } else if (random.Below(left--) < wanted) {
      candidates.push_back(article.id);
      --wanted;
    }
  }
}

// The second pass.
Status WriteLog(const std::vector<std::filesystem::path>& files, const PrepareOptions& options,
                std::span<const double> centres, data::OutputFile& log_file,
                data::OutputFile& events_file, data::InputLog& log, const data::WorkPart& part,
                PreparedStream& stream) {
  std::vector<std::uint64_t> candidates;
  std::set<std::uint32_t> users;
  stream.group_sizes.assign(options.groups, 0);
  std::size_t number = 0;
  CODBAND_RETURN_IF_ERROR(
      data::ReadYahooVisits(files, log, part, [&](const data::YahooVisit& visit) {
        DrawCandidates(visit, options.candidates,
                       DrawStream(options.seed, StreamDraw::kCandidates, number), candidates);
        const std::uint32_t user = data::NearestCentre(UserPoint(visit), centres);
        ++stream.group_sizes[user];
        WriteLogged(user, visit.time, visit.displayed, visit.click, candidates, log_file);
        if (visit.click) {
          ++stream.events;
          users.insert(user);
          stream.chance += 1 / static_cast<double>(candidates.size());
          const auto displayed = std::ranges::find(candidates, visit.displayed);
          std::rotate(candidates.begin(), displayed, displayed + 1);
          WriteEvent(user, visit.time, candidates, events_file);
        }
        return ++number != options.max_events;
      }));
  stream.users = users.size();
  return {};
}

}  // namespace

Result<PreparedStream> PrepareYahoo(const std::filesystem::path& in, const PrepareOptions& options,
                                    const data::OutputDirectory& out, data::InputLog& log,
                                    const data::WorkHooks& hooks) {
  auto files = data::FindYahooFiles(in);
  if (!files.ok()) return files.status();
  if (options.days > 0 && files.value().size() > options.days) files.value().resize(options.days);
  PreparedStream stream{.dim = data::kYahooFeatures};
  const auto facts = ScanLog(files.value(), options, log,
                             data::WorkPart(hooks, 0, 0.4, "first pass over the log"), stream);
  if (!facts.ok()) return data::WithSource(data::DataSet::kYahoo, facts.status());
  CODBAND_RETURN_IF_ERROR(data::WorkPart(hooks, 0.4, 0.5, "groups of users").Report(0));
  const auto clusters =
      data::KMeans(facts.value().user_points, kUserFeatures,
                   {.clusters = options.groups, .restarts = kRestarts, .seed = options.seed});
  if (!clusters.ok()) {
    return Status::InvalidArgument(fmt::format("--groups: {}", clusters.status().message()));
  }

  stream.items = facts.value().articles.size();
  stream.possible_events = stream.clicks;
  std::vector<std::uint64_t> ids;
  std::vector<double> features;
  for (const auto& [id, values] : facts.value().articles) {
    ids.push_back(id);
    features.insert(features.end(), values.begin(), values.end());
  }
  CODBAND_RETURN_IF_ERROR(WriteFeatures(ids, features, out));
  CODBAND_RETURN_IF_ERROR(WriteOutput(out, kLogFile, [&](data::OutputFile& log_file) {
    return WriteOutput(out, kEventsFile, [&](data::OutputFile& events_file) {
      return WriteLog(files.value(), options, clusters.value().centres, log_file, events_file, log,
                      data::WorkPart(hooks, 0.5, 1, "second pass over the log"), stream);
    });
  }));
  if (stream.events == 0) {
    return Status::InvalidArgument(fmt::format("none of {} visits has a click", stream.visits));
  }
  CODBAND_RETURN_IF_ERROR(
      WriteOutput(out, kTagsFile, [](data::OutputFile&) -> Status { return {}; }));
  return stream;
}

}  // namespace codband::replay
