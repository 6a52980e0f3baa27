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

#include "codband/data/prepare.h"
#include "codband/data/sparse_matrix.h"

namespace codband {

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
  SparseMatrix Matrix(std::size_t items) &&;  // takes the counts
  std::size_t terms() const { return numbers_.size(); }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<SparseMatrix::Entry> entries_;
};

// TF-IDF, then PCA, then scaling if it is asked for; fills in what the stream says of it. The
// result is row-major.
Result<std::vector<double>> FeaturesOf(TermCounts counts, std::size_t items,
                                       const PrepareOptions& options, PreparedStream& stream);

// tags.tsv: item id, tag, how often it was given, the most frequent of an item first.
Status WriteTags(const IdIndex& items,
                 const std::vector<std::map<std::string, std::size_t>>& tags_of_items,
                 const OutputDirectory& out);

// Writes a file of `out` as a whole.
template <typename Writer>
Status WriteOutput(const OutputDirectory& out, const std::string& name, Writer write) {
  auto file = out.Open(name);
  if (!file.ok()) return file.status();
  CODBAND_RETURN_IF_ERROR(write(file.value()));
  return file.value().Close();
}

// A message with what was expected and where the data set can be had.
Status MissingFile(DataSet set, const std::filesystem::path& in, std::string_view file);

// The same with where the data set can be had, for a file that does not hold what it should.
Status WithSource(DataSet set, const Status& status);

Result<PreparedStream> PrepareHetRec(DataSet set, const std::filesystem::path& in,
                                     const PrepareOptions& options, const OutputDirectory& out,
                                     InputLog& log, const WorkHooks& hooks);
Result<PreparedStream> PrepareMovieLens(const std::filesystem::path& in,
                                        const PrepareOptions& options, const OutputDirectory& out,
                                        InputLog& log, const WorkHooks& hooks);
Result<PreparedStream> PrepareYahoo(const std::filesystem::path& in, const PrepareOptions& options,
                                    const OutputDirectory& out, InputLog& log,
                                    const WorkHooks& hooks);

}  // namespace codband
