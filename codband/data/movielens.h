#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/hooks.h"
#include "codband/data/table_reader.h"

namespace codband::data {

struct Movie {
  std::uint32_t id;
  std::string title;                // UTF-8
  std::vector<std::string> genres;  // none for "(no genres listed)"
};

struct Rating {
  std::uint32_t user;
  std::uint32_t movie;
  double stars;
  std::int64_t time;  // seconds since 1970
};

struct MovieTag {
  std::uint32_t movie;
  std::string tag;  // UTF-8
};

// Streams the files of a MovieLens data set: CSV (20M, 25M, 32M, latest) or with "::" between
// fields (1M, 10M). Memory does not grow with the files. Malformed rows are skipped and counted; a
// handler may reject a row. Not thread-safe.
class MovieLensReader {
 public:
  // kNotFound says which file is missing.
  static Result<MovieLensReader> Open(const std::filesystem::path& in);

  template <typename T>
  using Handler = std::function<void(const T& value, TableRow& row)>;

  Status ReadMovies(InputLog& log, const WorkPart& part, const Handler<Movie>& handle) const;
  Status ReadRatings(InputLog& log, const WorkPart& part, const Handler<Rating>& handle) const;
  // Nothing for 1M, which has no tags.
  Status ReadTags(InputLog& log, const WorkPart& part, const Handler<MovieTag>& handle) const;

 private:
  MovieLensReader(std::filesystem::path in, bool csv) : in_(std::move(in)), csv_(csv) {}

  std::filesystem::path FileOf(const std::string& name) const {
    return in_ / (name + (csv_ ? ".csv" : ".dat"));
  }
  TableFormat FormatOf(std::vector<std::string> columns, std::size_t text_column) const;

  std::filesystem::path in_;
  bool csv_;
};

}  // namespace codband::data
