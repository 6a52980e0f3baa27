// codband export: what was learned, as JSON.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "codband/base/file.h"
#include "codband/base/version.h"
#include "codband/cli/command.h"
#include "codband/server/admin/data_directory.h"

namespace codband::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExportFlags {
  std::string data;
  std::string out;
};

constexpr std::string_view kFooter = R"(
One JSON object: "meta" says what it is, "models" has the parameters of every model of preference in
full precision, "users" where each user is, how sure that is, and when it changed. Times are in
milliseconds since 1970. Models come in the order of their numbers, users in an order that does not
change. Nothing is changed; a server may run on the directory meanwhile.

Examples:
  codband export --data /var/lib/codband --out learned.json
  codband export --data /var/lib/codband | jq '.models[] | {id, users}')";

Json ModelNumber(ModelId id) { return id == kNoModel ? Json(nullptr) : Json(id); }

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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

// Closes on the way out.
class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}
  ~Output() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  std::FILE* get() const { return file_; }
  void Write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), file_); }

 private:
  std::FILE* file_;
};

// A line a model and a line a user: the file may be larger than memory.
Status WriteJson(engine::Engine& engine, Output& out) {
  const engine::EngineStats stats = engine.Stats();
  const Json meta{{"version", kVersion},  {"policy", stats.policy},
                  {"dim", stats.dim},     {"learned", stats.applied_sequence},
                  {"users", stats.users}, {"models", stats.models},
                  {"items", stats.items}, {"changes", stats.changes}};
  out.Write("{\"meta\": " + Text(meta) + ",\n\"models\": [");
  std::vector<engine::ModelReport> models = engine.Models(0);
  std::ranges::sort(models, {}, &engine::ModelReport::id);
  const char* separator = "\n";
  for (const engine::ModelReport& model : models) {
    out.Write(std::exchange(separator, ",\n") + Text(ToJson(model)));
  }
  out.Write("],\n\"users\": [");
  separator = "\n";
  CODBAND_RETURN_IF_ERROR(engine.VisitUsers([&](const engine::UserReport& user) {
    out.Write(std::exchange(separator, ",\n") + Text(ToJson(user)));
    return std::ferror(out.get()) == 0;
  }));
  out.Write("]}\n");
  return {};
}

// Under another name until it is whole and on disk.
Status WriteFile(engine::Engine& engine, const std::filesystem::path& path) {
  std::filesystem::path unfinished = path;
  unfinished += fmt::format(".unfinished{}", getpid());
  const auto failed = [&] {
    return Status::IoError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  };
  const auto write = [&]() -> Status {
    Output out(std::fopen(unfinished.c_str(), "we"));
    if (out.get() == nullptr) return failed();
    CODBAND_RETURN_IF_ERROR(WriteJson(engine, out));
    const bool written = std::ferror(out.get()) == 0 && std::fflush(out.get()) == 0;
    if (!written || fsync(fileno(out.get())) != 0) return failed();
    if (std::rename(unfinished.c_str(), path.c_str()) != 0) return failed();
    return SyncDirectory(path.has_parent_path() ? path.parent_path() : ".");
  };
  Status status = write();
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

Status RunExport(const ExportFlags& flags) {
  auto engine = server::OpenDataForReading(flags.data);
  if (!engine.ok()) return engine.status();
  if (!flags.out.empty()) return WriteFile(*engine.value(), flags.out);
  Output out(stdout);
  return WriteJson(*engine.value(), out);
}

}  // namespace

void AddExportCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ExportFlags>();
  const Command command(app, "export", "Print what was learned as JSON", kFooter);
  command.Option("--data", flags->data, "DIR", "The data directory, or a backup",
                 Command::kRequired);
  command.Option("--out", flags->out, "FILE", "Where the JSON goes (default: standard output)");
  command.Run(status, [flags] { return RunExport(*flags); });
}

}  // namespace codband::cli
