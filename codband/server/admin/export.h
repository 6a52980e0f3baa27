#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string_view>

#include "codband/base/status.h"
#include "codband/engine/engine.h"

namespace codband::server {

// Takes the next part of a text; false if it cannot be written: then no more is passed.
using TextSink = std::function<bool(std::string_view text)>;

// What an engine has learned, as one JSON object with a line for each model and each user: "meta"
// (what it is), "models" (with parameters, by id), "users". Never holds all of it in memory.
Status ExportJson(engine::Engine& engine, const TextSink& sink);

// The same of a data directory, which is not changed and may be in use. Written beside `file` and
// renamed once it is complete and synced: `file` is complete or as it was before.
Status ExportToFile(const std::filesystem::path& data, const std::filesystem::path& file);
Status ExportTo(const std::filesystem::path& data, std::FILE* out);

}  // namespace codband::server
