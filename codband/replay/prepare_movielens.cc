// MovieLens as a stream: docs/data.md.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codband/data/movielens.h"
#include "codband/replay/prepare_parts.h"
#include "codband/replay/stream_format.h"

namespace codband::replay {
namespace {

// Movies and the terms of their titles, genres and tags.
struct MovieTexts {
  IdIndex movies;
  TermCounts counts;
  std::vector<std::map<std::string, std::size_t>> tags;
};

Result<MovieTexts> ReadTexts(const data::MovieLensReader& reader, const PrepareOptions& options,
                             data::InputLog& log, const data::WorkPart& part) {
  MovieTexts texts;
  std::vector<data::Movie> movies;
  std::unordered_map<std::uint32_t, std::size_t> known;
  CODBAND_RETURN_IF_ERROR(
      reader.ReadMovies(log, part, [&](const data::Movie& movie, data::TableRow& row) {
        if (!known.try_emplace(movie.id, movies.size()).second) {
          row.Reject(fmt::format("movie {} a second time, expected each once", movie.id));
        } else {
          movies.push_back(movie);
        }
      }));
  std::vector<std::uint64_t> ids;
  for (const data::Movie& movie : movies) ids.push_back(movie.id);
  texts.movies = IdIndex(std::move(ids));
  texts.tags.resize(texts.movies.size());
  // A prefix keeps whole genres and tags apart from the words of titles.
  const auto add = [&](std::uint32_t number, const std::string& text) {
    if (options.terms == TermKind::kTags) {
      texts.counts.Add(number, "tag " + data::NormaliseTag(text));
      return;
    }
    for (const std::string& word : data::Tokenise(text, options.tokens))
      texts.counts.Add(number, word);
  };
  for (const data::Movie& movie : movies) {
    const std::uint32_t number = texts.movies.Find(movie.id);
    for (const std::string& word : data::Tokenise(movie.title, options.tokens)) {
      texts.counts.Add(number, word);
    }
    for (const std::string& genre : movie.genres) {
      add(number, genre);
      ++texts.tags[number][data::NormaliseTag(genre)];
    }
  }
  CODBAND_RETURN_IF_ERROR(
      reader.ReadTags(log, part, [&](const data::MovieTag& tag, data::TableRow& row) {
        const std::uint32_t number = texts.movies.Find(tag.movie);
        if (number == texts.movies.size()) {
          row.RejectField(1, "one of the movies");
          return;
        }
        add(number, tag.tag);
        const std::string normal = data::NormaliseTag(tag.tag);
        if (!normal.empty()) ++texts.tags[number][normal];
      }));
  return texts;
}

// Users with enough ratings, and how many they have together.
struct ActiveUsers {
  IdIndex ids;
  std::size_t ratings = 0;
};

Result<ActiveUsers> SelectUsers(const data::MovieLensReader& reader, std::size_t min_observations,
                                data::InputLog& log, const data::WorkPart& part) {
  std::unordered_map<std::uint32_t, std::size_t> count;
  const Status read = reader.ReadRatings(
      log, part, [&](const data::Rating& rating, data::TableRow&) { ++count[rating.user]; });
  if (!read.ok()) return data::WithSource(data::DataSet::kMovieLens, read);
  std::vector<std::uint64_t> users;
  std::size_t ratings = 0;
  std::size_t most = 0;
  for (const auto& [user, observations] : count) {
    most = std::max(most, observations);
    if (observations < min_observations) continue;
    users.push_back(user);
    ratings += observations;
  }
  if (users.empty()) {
    return Status::InvalidArgument(
        fmt::format("--min-observations = {}: no user has so many, expected at most {}",
                    min_observations, most));
  }
  return ActiveUsers{.ids = IdIndex(std::move(users)), .ratings = ratings};
}

// The positive ratings of the users. A second pass over the file, so that only those of users with
// enough are held in memory.
Result<std::vector<StreamEvent>> ReadEvents(const data::MovieLensReader& reader,
                                            const ActiveUsers& users, const IdIndex& movies,
                                            const PrepareOptions& options, data::InputLog& log,
                                            const data::WorkPart& part) {
  std::vector<StreamEvent> events;
  events.reserve(users.ratings);
  const Status read =
      reader.ReadRatings(log, part, [&](const data::Rating& rating, data::TableRow& row) {
        const std::uint32_t movie = movies.Find(rating.movie);
        if (movie == movies.size()) {
          row.RejectField(1, "one of the movies");
          return;
        }
        const std::uint32_t user = users.ids.Find(rating.user);
        if (user == users.ids.size() || rating.stars < options.positive_rating) return;
        events.push_back({.user = user, .source = user, .item = movie, .time = rating.time});
      });
  if (!read.ok()) return data::WithSource(data::DataSet::kMovieLens, read);
  if (events.empty()) {
    return Status::InvalidArgument(
        fmt::format("--positive-rating = {}: there is no such rating", options.positive_rating));
  }
  return events;
}

}  // namespace

Result<PreparedStream> PrepareMovieLens(const std::filesystem::path& in,
                                        const PrepareOptions& options,
                                        const data::OutputDirectory& out, data::InputLog& log,
                                        const data::WorkHooks& hooks) {
  const auto reader = data::MovieLensReader::Open(in);
  if (!reader.ok()) return reader.status();
  auto texts =
      ReadTexts(reader.value(), options, log, data::WorkPart(hooks, 0, 0.05, "movies and tags"));
  if (!texts.ok()) return data::WithSource(data::DataSet::kMovieLens, texts.status());
  const IdIndex& movies = texts.value().movies;

  const auto active = SelectUsers(reader.value(), options.min_observations, log,
                                  data::WorkPart(hooks, 0.05, 0.3, "ratings, first pass"));
  if (!active.ok()) return active.status();
  const IdIndex& users = active.value().ids;
  auto read = ReadEvents(reader.value(), active.value(), movies, options, log,
                         data::WorkPart(hooks, 0.3, 0.55, "ratings, second pass"));
  if (!read.ok()) return read.status();
  std::vector<StreamEvent> events = std::move(read).value();

  PreparedStream stream;
  CODBAND_RETURN_IF_ERROR(data::WorkPart(hooks, 0.55, 0.7, "principal components").Report(0));
  const auto features = FeaturesOf(std::move(texts.value().counts), movies.size(), options, stream);
  if (!features.ok()) return features.status();

  CODBAND_RETURN_IF_ERROR(data::WorkPart(hooks, 0.7, 0.75, "order of events").Report(0));
  const PositiveItems positives(users.size(), events);
  stream.possible_events = events.size();
  DrawEvents(options.max_events, options.seed, events);
  OrderEvents(options.order, options.seed, /*renumber=*/false, events);
  std::vector<bool> seen(users.size());
  for (const StreamEvent& event : events) seen[event.user] = true;
  stream.users = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), true));
  stream.sources = users.size();

  CODBAND_RETURN_IF_ERROR(WriteFeatures(movies.ids(), features.value(), out));
  CODBAND_RETURN_IF_ERROR(WriteStreamEvents(events, positives, users.ids(), movies.ids(), options,
                                            out, data::WorkPart(hooks, 0.75, 1, "events"), stream));
  CODBAND_RETURN_IF_ERROR(WriteTags(movies, texts.value().tags, out));
  return stream;
}

}  // namespace codband::replay
