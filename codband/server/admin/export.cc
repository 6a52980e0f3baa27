#include "codband/server/admin/export.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/server/admin/data_directory.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;

Json ModelNumber(ModelId id) { return id == kNoModel ? Json(nullptr) : Json(id); }

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ToJson(const engine::EngineStats& stats) {
  return {{"version", kVersion},  {"policy", stats.policy},
          {"dim", stats.dim},     {"learned", stats.applied_sequence},
          {"users", stats.users}, {"models", stats.models},
          {"items", stats.items}, {"changes", stats.changes}};
}

Json ToJson(const engine::ModelReport& model) {
  return {{"id", model.id},
          {"popularity", model.popularity},
          {"users", model.users},
          {"periods", model.periods},
          {"observations", model.observations},
          {"parameter", model.parameter}};
}

Json ToJson(const engine::UserReport& user) {
  Json changes = Json::array();
  for (const engine::Change& change : user.changes) {
    changes.push_back({{"time_ms", change.time_ms},
                       {"from", ModelNumber(change.from)},
                       {"to", ModelNumber(change.to)}});
  }
  return {{"user", user.user},
          {"model", ModelNumber(user.model)},
          {"model_chance", user.model_chance},
          {"since_ms", user.since_ms},
          {"observations", user.observations},
          {"period_observations", user.period_observations},
          {"changes", std::move(changes)}};
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status CannotWrite(const std::filesystem::path& path) {
  return Status::IoError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

bool Write(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size();
}

Status WriteUnfinished(engine::Engine& engine, const std::filesystem::path& unfinished) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(unfinished.c_str(), "we"));
  if (file == nullptr) return CannotWrite(unfinished);
  bool written = true;
  CODBAND_RETURN_IF_ERROR(
      ExportJson(engine, [&](std::string_view text) { return written = Write(file.get(), text); }));
  if (!written || std::fflush(file.get()) != 0 || fsync(fileno(file.get())) != 0) {
    return CannotWrite(unfinished);
  }
  return {};
}

}  // namespace

Status ExportJson(engine::Engine& engine, const TextSink& sink) {
  if (!sink("{\"meta\": " + Text(ToJson(engine.Stats())) + ",\n\"models\": [")) return {};
  std::vector<engine::ModelReport> models = engine.Models(0);
  std::ranges::sort(models, {}, &engine::ModelReport::id);
  const char* separator = "\n";
  for (const engine::ModelReport& model : models) {
    if (!sink(std::exchange(separator, ",\n") + Text(ToJson(model)))) return {};
  }
  if (!sink("],\n\"users\": [")) return {};
  separator = "\n";
  bool going_on = true;
  CODBAND_RETURN_IF_ERROR(engine.VisitUsers([&](const engine::UserReport& user) {
    return going_on = sink(std::exchange(separator, ",\n") + Text(ToJson(user)));
  }));
  if (going_on) sink("]}\n");
  return {};
}

Status ExportToFile(const std::filesystem::path& data, const std::filesystem::path& file) {
  auto engine = OpenDataForReading(data);
  if (!engine.ok()) return engine.status();
  std::filesystem::path unfinished = file;
  unfinished += fmt::format(".unfinished{}", getpid());
  Status status = WriteUnfinished(*engine.value(), unfinished);
  if (status.ok() && std::rename(unfinished.c_str(), file.c_str()) != 0) status = CannotWrite(file);
  if (!status.ok()) {
    unlink(unfinished.c_str());
    return status;
  }
  return SyncDirectory(file.has_parent_path() ? file.parent_path() : ".");
}

Status ExportTo(const std::filesystem::path& data, std::FILE* out) {
  auto engine = OpenDataForReading(data);
  if (!engine.ok()) return engine.status();
  bool written = true;
  CODBAND_RETURN_IF_ERROR(ExportJson(
      *engine.value(), [&](std::string_view text) { return written = Write(out, text); }));
  if (!written || std::fflush(out) != 0) return CannotWrite("the output");
  return {};
}

}  // namespace codband::server
