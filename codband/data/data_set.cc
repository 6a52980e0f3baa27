#include "codband/data/data_set.h"

#include <fmt/format.h>

#include <string>
#include <system_error>

namespace codband::data {
namespace {

struct DataSetFacts {
  std::string_view name;
  std::string_view title;
  std::string_view source;  // where to get it
  std::string_view marker;  // a file that no other data set has
};

constexpr DataSetFacts kFacts[] = {
    {"lastfm", "HetRec 2011 Last.fm",
     "unpack hetrec2011-lastfm-2k.zip, which the GroupLens site offers on its page 'HetRec 2011'",
     "user_artists.dat"},
    {"delicious", "HetRec 2011 Delicious",
     "unpack hetrec2011-delicious-2k.zip, which the GroupLens site offers on its page 'HetRec "
     "2011'",
     "user_taggedbookmarks-timestamps.dat"},
    {"movielens", "MovieLens",
     "unpack one of the archives ml-20m, ml-25m, ml-32m, ml-latest, ml-latest-small, ml-10m or "
     "ml-1m, which the GroupLens site offers on its page 'MovieLens'",
     "ratings.csv"},
    {"yahoo", "Yahoo! Front Page Today Module (R6A)",
     "ask for R6A at Yahoo! Webscope, and put its files ydata-fp-td-clicks-v1_0.20090501.gz and "
     "so on there, compressed or not",
     "ydata-fp-td-clicks-v1_0.20090501.gz"},
};

const DataSetFacts& FactsOf(DataSet set) { return kFacts[static_cast<std::size_t>(set)]; }

}  // namespace

std::string_view DataSetName(DataSet set) { return FactsOf(set).name; }

Status CheckDirectory(DataSet set, const std::filesystem::path& in) {
  std::error_code error;
  if (!std::filesystem::is_directory(in, error)) {
    return Status::NotFound(
        fmt::format("{} is not a directory, expected one with the files of {}: {}",
                    in.empty() ? "''" : in.string(), FactsOf(set).title, FactsOf(set).source));
  }
  return {};
}

Status MissingFile(DataSet set, const std::filesystem::path& in, std::string_view file) {
  std::string message =
      fmt::format("{} is missing, expected the files of {} in {}: {}", (in / file).string(),
                  FactsOf(set).title, in.string(), FactsOf(set).source);
  std::error_code error;
  for (const DataSet other : kDataSets) {
    if (other != set && std::filesystem::exists(in / FactsOf(other).marker, error)) {
      message += fmt::format(". The directory looks like {}: 'codband prepare {}' reads it",
                             FactsOf(other).title, FactsOf(other).name);
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(in, error)) {
    if (!std::filesystem::exists(entry.path() / FactsOf(set).marker, error)) continue;
    message += fmt::format(". They seem to be in {}", entry.path().string());
    break;
  }
  return Status::NotFound(message);
}

Status WithSource(DataSet set, const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument) return status;
  return Status::InvalidArgument(fmt::format("{}. For the files of {}: {}", status.message(),
                                             FactsOf(set).title, FactsOf(set).source));
}

}  // namespace codband::data
