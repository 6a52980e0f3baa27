#include "codband/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "codband/data/pca.h"
#include "codband/data/prepare_parts.h"
#include "codband/data/tfidf.h"

namespace codband {
namespace {

// 2004, when there was nothing to tag yet at Last.fm: five tags of its data set claim to be older.
constexpr std::int64_t kStartOf2004 = 1'072'915'200'000;

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
     "so on there, packed or not",
     "ydata-fp-td-clicks-v1_0.20090501.gz"},
};

const DataSetFacts& FactsOf(DataSet set) { return kFacts[static_cast<std::size_t>(set)]; }

}  // namespace

std::string_view DataSetName(DataSet set) { return FactsOf(set).name; }

PrepareOptions PrepareOptions::For(DataSet set) {
  PrepareOptions options;
  switch (set) {
    case DataSet::kLastFm:
      options.earliest_time = kStartOf2004;
      break;
    case DataSet::kDelicious:
      break;
    case DataSet::kMovieLens:
      options.max_events = 0;
      options.min_observations = 3000;
      options.order = StreamOrder::kTime;
      options.unit_variance = true;
      options.terms = TermKind::kWords;
      break;
    case DataSet::kYahoo:
      options.candidates = 10;
      options.max_events = 0;
      options.order = StreamOrder::kTime;
      options.groups = 160;
      break;
  }
  return options;
}

std::vector<std::string> PreparedFiles() {
  return {"features.tsv", "events.tsv", "tags.tsv", "origins.tsv", "log.tsv", "meta.json"};
}

Result<PreparedStream> Prepare(DataSet set, const std::filesystem::path& in,
                               const PrepareOptions& options, const OutputDirectory& out,
                               InputLog& log, const WorkHooks& hooks) {
  std::error_code error;
  if (!std::filesystem::is_directory(in, error)) {
    return Status::NotFound(
        fmt::format("{} is not a directory, expected one with the files of {}: {}",
                    in.empty() ? "''" : in.string(), FactsOf(set).title, FactsOf(set).source));
  }
  switch (set) {
    case DataSet::kLastFm:
    case DataSet::kDelicious:
      return PrepareHetRec(set, in, options, out, log, hooks);
    case DataSet::kMovieLens:
      return PrepareMovieLens(in, options, out, log, hooks);
    case DataSet::kYahoo:
      return PrepareYahoo(in, options, out, log, hooks);
  }
  return Status::InvalidArgument("unknown data set");
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

IdIndex::IdIndex(std::vector<std::uint64_t> ids) : ids_(std::move(ids)) {
  std::ranges::sort(ids_);
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
}

std::uint32_t IdIndex::Find(std::uint64_t id) const {
  const auto found = std::ranges::lower_bound(ids_, id);
  const bool there = found != ids_.end() && *found == id;
  return static_cast<std::uint32_t>(there ? found - ids_.begin()
                                          : static_cast<std::ptrdiff_t>(ids_.size()));
}

void TermCounts::Add(std::uint32_t item, std::string_view term, double count) {
  const auto [found, fresh] =
      numbers_.try_emplace(std::string(term), static_cast<std::uint32_t>(numbers_.size()));
  entries_.push_back({.row = item, .column = found->second, .value = count});
}

SparseMatrix TermCounts::Matrix(std::size_t items) && {
  return SparseMatrix::FromEntries(items, numbers_.size(), std::move(entries_));
}

Result<std::vector<double>> FeaturesOf(TermCounts counts, std::size_t items,
                                       const PrepareOptions& options, PreparedStream& stream) {
  stream.items = items;
  stream.terms = counts.terms();
  stream.dim = options.dim;
  const SparseMatrix weights =
      TfIdf(std::move(counts).Matrix(items),
            {.log_tf = options.log_tf, .min_documents = options.min_documents});
  auto pca = Pca(weights, options.dim);
  if (!pca.ok()) return pca.status();
  double variance = 0;
  for (const double value : pca.value().variance) variance += value;
  stream.variance_share = variance / pca.value().total_variance;
  std::vector<double> features = std::move(pca.value().scores);
  if (options.unit_variance) Standardise(features, options.dim);
  return features;
}

Status WriteTags(const IdIndex& items,
                 const std::vector<std::map<std::string, std::size_t>>& tags_of_items,
                 const OutputDirectory& out) {
  return WriteOutput(out, "tags.tsv", [&](OutputFile& file) -> Status {
    std::vector<std::pair<std::string_view, std::size_t>> tags;
    for (std::size_t item = 0; item < items.size(); ++item) {
      tags.assign(tags_of_items[item].begin(), tags_of_items[item].end());
      std::ranges::stable_sort(tags, std::ranges::greater{},
                               [](const auto& tag) { return tag.second; });
      for (const auto& [tag, count] : tags) {
        file.Print("{}\t{}\t{}\n", items.id(item), tag, count);
      }
    }
    return {};
  });
}

}  // namespace codband
