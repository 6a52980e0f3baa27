#pragma once

// What the preparations of several data sets share; not for users of the library.

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

// The sorted ids of a set and their numbers, counted from 0.
class IdIndex {
 public:
  IdIndex() = default;
  explicit IdIndex(std::vector<std::uint64_t> ids);  // in any order, repeated or not

  std::size_t size() const { return ids_.size(); }
  std::span<const std::uint64_t> ids() const { return ids_; }
  std::uint64_t id(std::size_t number) const { return ids_[number]; }
  // Its number, or size() for an id that is not there.
  std::uint32_t Find(std::uint64_t id) const;

 private:
  std::vector<std::uint64_t> ids_;
};

// Terms that are met one after the other get numbers, and their counts in items are collected.
class TermCounts {
 public:
  void Add(std::uint32_t item, std::string_view term, double count = 1);
  data::SparseMatrix Matrix(std::size_t items) &&;  // takes the counts
  std::size_t terms() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<data::SparseMatrix::Entry> entries_;
};

// TF-IDF, then PCA, then scaling if it is asked for; fills in what the stream says of it. The
// result is row-major.
Result<std::vector<double>> FeaturesOf(TermCounts counts, std::size_t items,
                                       const PrepareOptions& options, PreparedStream& stream);

// tags.tsv: item id, tag, how often it was given, the most frequent of an item first.
Status WriteTags(const IdIndex& items,
                 const std::vector<std::map<std::string, std::size_t>>& tags_of_items,
                 const data::OutputDirectory& out);

// Writes a file of `out` as a whole.
template <typename Writer>
Status WriteOutput(const data::OutputDirectory& out, const std::string& name, Writer write) {
  auto file = out.Open(name);
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
