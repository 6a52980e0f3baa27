#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codband/base/status.h"
#include "codband/server/http/http_error.h"
#include "codband/server/http/reply.h"

namespace codband::server {

// How far a bulk import came before its error.
struct ImportProgress {
  std::optional<std::uint64_t> line = {};  // at fault, from 1; none: no line in particular
  std::uint64_t imported = 0;              // items that are in the catalogue nevertheless
};

// The message without absolute paths, each replaced by "<path>": where a server keeps its files is
// no concern of its clients. A path ends before a quote, a bracket, a comma, a semicolon or ": "; a
// blank belongs to it if a slash follows.
std::string WithoutPaths(std::string_view message);

// Make the reply {"error": {"code", "field", "message", …}}, with Retry-After where a retry helps.
// Messages of faults of the server (5xx) are shown without paths.
void SetApiError(Reply& reply, const HttpError& error,
                 const std::optional<ImportProgress>& progress = {});
// By the table of http_error.h. Precondition: not ok.
void SetApiError(Reply& reply, const Status& status);

}  // namespace codband::server
