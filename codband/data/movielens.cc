#include "codband/data/movielens.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "codband/base/text.h"
#include "codband/data/data_set.h"
#include "codband/data/text.h"

namespace codband::data {
namespace {

constexpr double kMostStars = 5;

std::vector<std::string> SplitGenres(std::string_view text) {
  std::vector<std::string> genres;
  if (text.empty() || text == "(no genres listed)") return genres;
  std::vector<std::string_view> parts;
  SplitText(text, "|", parts);
  for (const std::string_view part : parts) genres.push_back(ToUtf8(part));
  return genres;
}

}  // namespace

Result<MovieLensReader> MovieLensReader::Open(const std::filesystem::path& in) {
  std::error_code error;
  const bool dat = std::filesystem::exists(in / "ratings.dat", error) &&
                   !std::filesystem::exists(in / "ratings.csv", error);
  MovieLensReader reader(in, !dat);
  for (const std::string name : {"ratings", "movies", "tags"}) {
    if (dat && name == "tags") continue;
    const std::filesystem::path file = reader.FileOf(name);
    if (!std::filesystem::exists(file, error)) {
      return MissingFile(DataSet::kMovieLens, in, file.filename().string());
    }
  }
  return reader;
}

TableFormat MovieLensReader::FormatOf(std::vector<std::string> columns,
                                      std::size_t text_column) const {
  return {.separator = csv_ ? Separator::kComma : Separator::kDoubleColon,
          .columns = std::move(columns),
          .header = csv_,
          .text_column = text_column};
}

Status MovieLensReader::ReadMovies(InputLog& log, const WorkPart& part,
                                   const Handler<Movie>& handle) const {
  return ReadTable(FileOf("movies"), FormatOf({"movieId", "title", "genres"}, 1), log, part,
                   [&](TableRow& row) {
                     const Movie movie{.id = row.Number<std::uint32_t>(0),
                                       .title = ToUtf8(row[1]),
                                       .genres = SplitGenres(row[2])};
                     if (row.ok()) handle(movie, row);
                   });
}

Status MovieLensReader::ReadRatings(InputLog& log, const WorkPart& part,
                                    const Handler<Rating>& handle) const {
  return ReadTable(FileOf("ratings"), FormatOf({"userId", "movieId", "rating", "timestamp"}, 0),
                   log, part, [&](TableRow& row) {
                     const Rating rating{.user = row.Number<std::uint32_t>(0),
                                         .movie = row.Number<std::uint32_t>(1),
                                         .stars = row.Number<double>(2),
                                         .time = row.Number<std::int64_t>(3)};
                     if (row.ok() && !(rating.stars >= 0 && rating.stars <= kMostStars)) {
                       row.RejectField(2, fmt::format("a number from 0 to {}", kMostStars));
                     }
                     if (row.ok()) handle(rating, row);
                   });
}

Status MovieLensReader::ReadTags(InputLog& log, const WorkPart& part,
                                 const Handler<MovieTag>& handle) const {
  std::error_code error;
  if (!std::filesystem::exists(FileOf("tags"), error)) return {};
  return ReadTable(
      FileOf("tags"), FormatOf({"userId", "movieId", "tag", "timestamp"}, 2), log, part,
      [&](TableRow& row) {
        row.Number<std::uint32_t>(0);
        const MovieTag tag{.movie = row.Number<std::uint32_t>(1), .tag = ToUtf8(row[2])};
        row.Number<std::int64_t>(3);
        if (row.ok()) handle(tag, row);
      },
      /*may_be_empty=*/true);
}

}  // namespace codband::data
