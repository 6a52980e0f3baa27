#pragma once

#include <string>

#include "codband/replay/prepare.h"

namespace codband::experiments {

// meta.json of a prepared stream: every setting, what was read and left out, what came of it.
std::string MetaJson(data::DataSet set, const replay::PrepareOptions& options,
                     const replay::PreparedStream& stream, const data::InputLog& log);

// For people: what was written to the directory `out`, and the command that plays it.
std::string PrepareSummary(const replay::PreparedStream& stream, const std::string& out);

// For people: how many lines were malformed, with examples; empty if none were.
std::string MalformedText(const data::InputLog& log);

}  // namespace codband::experiments
