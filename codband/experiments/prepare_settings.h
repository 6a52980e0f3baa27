#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/replay/prepare.h"

namespace codband::experiments {

// One setting of `codband prepare`: the list is the only place that knows how it is called, read
// and written. meta.json calls it by its flag without the leading dashes, with underscores.
struct PrepareSetting {
  const char* flag;
  const char* value;  // as --help calls it
  const char* help;
  unsigned sets;  // bit i: data set number i has it
  Status (*parse)(std::string_view flag, std::string_view text, replay::PrepareOptions& options);
  nlohmann::ordered_json (*json)(const replay::PrepareOptions& options);
};

std::span<const PrepareSetting> PrepareSettings();

// "lastfm", …; kInvalidArgument lists the data sets there are.
Result<data::DataSet> ParseDataSet(std::string_view text);

// The data set's defaults, changed as the texts say: one for each setting, none where it was not
// given. kInvalidArgument names the flag, the value and what was expected, or the data sets that
// have the setting.
Result<replay::PrepareOptions> ParsePrepare(data::DataSet set,
                                            std::span<const std::optional<std::string>> texts);

// Every setting that the data set has.
nlohmann::ordered_json PrepareJson(data::DataSet set, const replay::PrepareOptions& options);

}  // namespace codband::experiments
