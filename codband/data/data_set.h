#pragma once

#include <filesystem>
#include <string_view>

#include "codband/base/status.h"

namespace codband::data {

// The public data sets that can be read.
enum class DataSet { kLastFm, kDelicious, kMovieLens, kYahoo };
inline constexpr DataSet kDataSets[] = {DataSet::kLastFm, DataSet::kDelicious, DataSet::kMovieLens,
                                        DataSet::kYahoo};

std::string_view DataSetName(DataSet set);  // "lastfm"

// kNotFound with what was expected there and where the data set can be had, if `in` is no
// directory.
Status CheckDirectory(DataSet set, const std::filesystem::path& in);

// A message with what was expected and where the data set can be had.
Status MissingFile(DataSet set, const std::filesystem::path& in, std::string_view file);

// The same with where the data set can be had, for a file that does not hold what it should.
Status WithSource(DataSet set, const Status& status);

}  // namespace codband::data
