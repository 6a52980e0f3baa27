#pragma once

// Shared by the preparations of the data sets; internal to replay/.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codband/data/sparse_matrix.h"
#include "codband/replay/prepare.h"

namespace codband::replay {

// Numbers a set of ids from 0, in ascending order.
class IdIndex {
 public:
  IdIndex() = default;
  explicit IdIndex(std::vector<std::uint64_t> ids);  // in any order, repeated or not

  std::size_t size() const { return ids_.size(); }
  std::span<const std::uint64_t> ids() const { return ids_; }
  std::uint64_t id(std::size_t number) const { return ids_[number]; }
  // Its number; size() if there is no such id.
  std::uint32_t Find(std::uint64_t id) const;

 private:
  std::vector<std::uint64_t> ids_;
};

// Numbers terms in order of first appearance and counts them per item.
class TermCounts {
 public:
  void Add(std::uint32_t item, std::string_view term, double count = 1);
  data::SparseMatrix Matrix(std::size_t items) &&;  // takes the counts
  std::size_t terms() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<data::SparseMatrix::Entry> entries_;
};

// TF-IDF, then PCA, then standardisation if requested; fills in what the stream reports about them.
// The result is row-major.
Result<std::vector<double>> FeaturesOf(TermCounts counts, std::size_t items,
                                       const PrepareOptions& options, PreparedStream& stream);

// Writes features.tsv. Row-major, one row per item.
Status WriteFeatures(std::span<const std::uint64_t> item_ids, std::span<const double> features,
                     const data::OutputDirectory& out);

// Writes events.tsv with drawn candidates, and fills in what the stream reports about the events.
Status WriteStreamEvents(std::span<const StreamEvent> events, const PositiveItems& positives,
                         std::span<const std::uint64_t> user_ids,
                         std::span<const std::uint64_t> item_ids, const PrepareOptions& options,
                         const data::OutputDirectory& out, const data::WorkPart& part,
                         PreparedStream& stream);

// Writes tags.tsv; per item, the most frequent tag first.
Status WriteTags(const IdIndex& items,
                 const std::vector<std::map<std::string, std::size_t>>& tags_of_items,
                 const data::OutputDirectory& out);

// Opens a file of `out`, calls `write` with it and closes it.
template <typename Writer>
Status WriteOutput(const data::OutputDirectory& out, std::string_view name, Writer write) {
  auto file = out.Open(std::string(name));
  if (!file.ok()) return file.status();
  CODBAND_RETURN_IF_ERROR(write(file.value()));
  return file.value().Close();
}

Result<PreparedStream> PrepareHetRec(data::DataSet set, const std::filesystem::path& in,
                                     const PrepareOptions& options,
                                     const data::OutputDirectory& out, data::InputLog& log,
                                     const data::WorkHooks& hooks);
Result<PreparedStream> PrepareMovieLens(const std::filesystem::path& in,
                                        const PrepareOptions& options,
                                        const data::OutputDirectory& out, data::InputLog& log,
                                        const data::WorkHooks& hooks);
Result<PreparedStream> PrepareYahoo(const std::filesystem::path& in, const PrepareOptions& options,
                                    const data::OutputDirectory& out, data::InputLog& log,
                                    const data::WorkHooks& hooks);

}  // namespace codband::replay
