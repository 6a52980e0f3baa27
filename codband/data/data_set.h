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

// kNotFound if `in` is not a directory, with what was expected there and where to get the data set.
Status CheckDirectory(DataSet set, const std::filesystem::path& in);

// A message with what was expected and where to get the data set.
Status MissingFile(DataSet set, const std::filesystem::path& in, std::string_view file);

// For a file with the wrong content: adds where to get the data set.
Status WithSource(DataSet set, const Status& status);

}  // namespace codband::data
