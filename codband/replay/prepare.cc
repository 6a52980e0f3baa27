#include "codband/replay/prepare.h"

#include <algorithm>

#include "codband/data/pca.h"
#include "codband/data/tfidf.h"
#include "codband/replay/prepare_parts.h"
#include "codband/replay/stream_format.h"

namespace codband::replay {
namespace {

// Last.fm had no tags before 2004; five tags of its data set claim to be older.
constexpr std::int64_t kStartOf2004 = 1'072'915'200'000;

}  // namespace

PrepareOptions PrepareOptions::For(data::DataSet set) {
  PrepareOptions options;
  switch (set) {
    case data::DataSet::kLastFm:
      options.earliest_time = kStartOf2004;
      break;
    case data::DataSet::kDelicious:
      break;
    case data::DataSet::kMovieLens:
      options.max_events = 0;
      options.min_observations = 3000;
      options.order = StreamOrder::kTime;
      options.unit_variance = true;
      options.terms = TermKind::kWords;
      break;
    case data::DataSet::kYahoo:
      options.candidates = 10;
      options.max_events = 0;
      options.order = StreamOrder::kTime;
      options.groups = 160;
      break;
  }
  return options;
}

std::vector<std::string> PreparedFiles() {
  std::vector<std::string> names;
  for (const std::string_view name : kStreamFiles) names.emplace_back(name);
  names.emplace_back(kMetaFile);
  return names;
}

Result<PreparedStream> Prepare(data::DataSet set, const std::filesystem::path& in,
                               const PrepareOptions& options, const data::OutputDirectory& out,
                               data::InputLog& log, const data::WorkHooks& hooks) {
  CODBAND_RETURN_IF_ERROR(data::CheckDirectory(set, in));
  switch (set) {
    case data::DataSet::kLastFm:
    case data::DataSet::kDelicious:
      return PrepareHetRec(set, in, options, out, log, hooks);
    case data::DataSet::kMovieLens:
      return PrepareMovieLens(in, options, out, log, hooks);
    case data::DataSet::kYahoo:
      return PrepareYahoo(in, options, out, log, hooks);
  }
  return Status::InvalidArgument("unknown data set");
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

data::SparseMatrix TermCounts::Matrix(std::size_t items) && {
  return data::SparseMatrix::FromEntries(items, numbers_.size(), std::move(entries_));
}

Result<std::vector<double>> FeaturesOf(TermCounts counts, std::size_t items,
                                       const PrepareOptions& options, PreparedStream& stream) {
  stream.items = items;
  stream.terms = counts.terms();
  stream.dim = options.dim;
  const data::SparseMatrix weights =
      data::TfIdf(std::move(counts).Matrix(items),
                  {.log_tf = options.log_tf, .min_documents = options.min_documents});
  auto pca = data::Pca(weights, options.dim);
  if (!pca.ok()) return pca.status();
  double variance = 0;
  for (const double value : pca.value().variance) variance += value;
  stream.variance_share = variance / pca.value().total_variance;
  std::vector<double> features = std::move(pca.value().scores);
  if (options.unit_variance) data::Standardise(features, options.dim);
  return features;
}

Status WriteFeatures(std::span<const std::uint64_t> item_ids, std::span<const double> features,
                     const data::OutputDirectory& out) {
  return WriteOutput(out, kFeaturesFile, [&](data::OutputFile& file) -> Status {
    const std::size_t dim = features.size() / item_ids.size();
    for (std::size_t item = 0; item < item_ids.size(); ++item) {
      WriteItem(item_ids[item], features.subspan(item * dim, dim), file);
    }
    return {};
  });
}

Status WriteStreamEvents(std::span<const StreamEvent> events, const PositiveItems& positives,
                         std::span<const std::uint64_t> user_ids,
                         std::span<const std::uint64_t> item_ids, const PrepareOptions& options,
                         const data::OutputDirectory& out, const data::WorkPart& part,
                         PreparedStream& stream) {
  stream.events = events.size();
  stream.chance = static_cast<double>(events.size()) / static_cast<double>(options.candidates);
  return WriteOutput(out, kEventsFile, [&](data::OutputFile& file) {
    return WriteEvents(events, positives, user_ids, item_ids,
                       {.candidates = options.candidates, .seed = options.seed}, file, part);
  });
}

Status WriteTags(const IdIndex& items,
                 const std::vector<std::map<std::string, std::size_t>>& tags_of_items,
                 const data::OutputDirectory& out) {
  return WriteOutput(out, kTagsFile, [&](data::OutputFile& file) -> Status {
    std::vector<std::pair<std::string_view, std::size_t>> tags;
    for (std::size_t item = 0; item < items.size(); ++item) {
      tags.assign(tags_of_items[item].begin(), tags_of_items[item].end());
      std::ranges::stable_sort(tags, std::ranges::greater{},
                               [](const auto& tag) { return tag.second; });
      for (const auto& [tag, count] : tags) {
        WriteTag(items.id(item), tag, count, file);
      }
    }
    return {};
  });
}

}  // namespace codband::replay
