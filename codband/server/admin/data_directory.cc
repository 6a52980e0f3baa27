#include "codband/server/admin/data_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>

#include "codband/base/clock.h"
#include "codband/base/file.h"
#include "codband/engine/records.h"
#include "codband/server/http/http_client.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kConnectTimeout{2};
constexpr std::chrono::hours kBackupTimeout{24};  // as long as the disk takes

std::filesystem::path NotePath(const std::filesystem::path& data) { return data / "server.json"; }

// The reason in a reply other than 2xx: {"error": {"message": …}}, or its text.
std::string ErrorText(const HttpReply& reply) {
  const Json json = Json::parse(reply.body, nullptr, false);
  const auto text = [&](const char* name) -> std::string {
    const auto pointer = Json::json_pointer(name);
    if (!json.is_object() || !json.contains(pointer) || !json[pointer].is_string()) return {};
    return json[pointer].get<std::string>();
  };
  const std::string message = text("/error/message");
  if (message.empty()) return reply.body.empty() ? "no reason given" : reply.body;
  const std::string field = text("/error/field");
  return field.empty() ? message : field + " " + message;
}

Result<std::unique_ptr<HttpClient>> ConnectTo(const ServerNote& server) {
  auto url = ParseHttpUrl(server.url);
  if (!url.ok()) return url.status();
  url.value().fingerprint = server.fingerprint;
  return HttpClient::Connect(url.value(), kConnectTimeout);
}

Status AskForBackup(const ServerNote& server, const std::string& name) {
  auto client = ConnectTo(server);
  if (!client.ok()) return client.status();
  HttpRequest request{
      .method = "POST", .target = "/v1/backup", .body = Json{{"name", name}}.dump()};
  if (const char* key = std::getenv("CODBAND_API_KEY")) request.headers = {{"X-API-Key", key}};
  const auto reply = client.value()->Send(request, kBackupTimeout);
  if (!reply.ok()) return reply.status();
  const unsigned status = reply.value().status;
  if (status / 100 == 2) return {};
  const std::string text = fmt::format(
      "the server at {} refused ({}): {}{}", server.url, status, ErrorText(reply.value()),
      status == 401 || status == 403
          ? "; put a key with the role admin into the environment variable CODBAND_API_KEY"
          : "");
  return status / 100 == 4 ? Status::InvalidArgument(text) : Status::IoError(text);
}

// Moves a directory, to another file system if need be.
Status MoveDirectory(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::filesystem::path parent = to.parent_path();
  CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(parent));
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error == std::errc::cross_device_link) {
    CODBAND_RETURN_IF_ERROR(CopyTreeDurably(from, to));
    std::filesystem::remove_all(from, error);
  }
  if (error) {
    return Status::IoError(fmt::format("cannot move {} to {}: {}; the copy is complete where it is",
                                       from.string(), to.string(), error.message()));
  }
  return SyncDirectory(parent);
}

// Has the server make a copy among its backups, under a name that nobody else takes.
Status BackUpByServer(const ServerNote& server, const std::filesystem::path& out) {
  const std::string name = fmt::format("command-{}-{}", UnixMillis(), ::getpid());
  CODBAND_RETURN_IF_ERROR(AskForBackup(server, name));
  return MoveDirectory(server.backups / name, out);
}

}  // namespace

Status WriteServerNote(const std::filesystem::path& data, const ServerNote& note) {
  Json json{{"url", note.url}, {"pid", note.pid}, {"backups", note.backups.string()}};
  if (!note.fingerprint.empty()) json["fingerprint"] = note.fingerprint;
  return WriteFileDurably(NotePath(data), json.dump() + "\n", FileAccess::kPrivate);
}

void RemoveServerNote(const std::filesystem::path& data) {
  std::error_code ignored;
  std::filesystem::remove(NotePath(data), ignored);
}

std::optional<ServerNote> ReadServerNote(const std::filesystem::path& data) {
  const auto text = ReadFile(NotePath(data));
  if (!text.ok()) return std::nullopt;
  const Json json = Json::parse(text.value(), nullptr, false);
  if (!json.is_object() || !json.contains("url") || !json["url"].is_string()) return std::nullopt;
  const auto pid = json.find("pid");
  const auto text_of = [&json](const char* name) {
    const auto member = json.find(name);
    return member != json.end() && member->is_string() ? member->get<std::string>() : "";
  };
  return ServerNote{
      .url = json["url"],
      .pid = pid != json.end() && pid->is_number_integer() ? pid->get<std::int64_t>() : 0,
      .backups = text_of("backups"),
      .fingerprint = text_of("fingerprint")};
}

std::optional<ServerNote> FindRunningServer(const std::filesystem::path& data) {
  auto note = ReadServerNote(data);
  if (!note) return std::nullopt;
  auto client = ConnectTo(*note);
  if (!client.ok()) return std::nullopt;
  const auto reply = client.value()->Send({.target = "/v1/health/live"}, kConnectTimeout);
  return reply.ok() && reply.value().status == 200 ? note : std::nullopt;
}

Status WithRepair(const Status& status, const std::filesystem::path& data) {
  if (status.code() != StatusCode::kCorruption) return status;
  return Status::Corruption(fmt::format(
      "{}; 'codband doctor --data {} --repair' tells what a repair would drop, and with --yes "
      "repairs it; 'codband restore' restores a backup",
      status.message(), data.string()));
}

Result<std::unique_ptr<store::Store>> OpenDataStore(const std::filesystem::path& data,
                                                    const store::RocksDbOptions& options) {
  auto store = store::OpenRocksDbStore(data, options);
  if (store.ok()) return store;
  std::string message = store.status().message();
  switch (store.status().code()) {
    case StatusCode::kUnavailable: {
      const auto note = ReadServerNote(data);
      message += note ? fmt::format("; a server has it: {} (process {})", note->url, note->pid)
                      : "; only one process at a time can use a data directory";
      break;
    }
    case StatusCode::kCorruption:
      return WithRepair(store.status(), data);
    case StatusCode::kNotFound:
      message += "; 'codband serve --data DIR' creates a data directory";
      break;
    default:
      break;
  }
  return Status(store.status().code(), std::move(message));
}

Result<std::unique_ptr<engine::Engine>> OpenDataForReading(const std::filesystem::path& data) {
  auto store = OpenDataStore(data, {.create = false, .read_only = true});
  if (!store.ok()) return store.status();
  engine::EngineOptions options;
  options.read_only = true;
  auto checkpoint = engine::CheckpointRecord::Get(*store.value());
  if (checkpoint.ok()) {
    options.policy = std::move(checkpoint).value().spec;
  } else if (checkpoint.status().code() != StatusCode::kNotFound) {
    return checkpoint.status();
  }
  return engine::Engine::Open(std::move(store).value(), options);
}

Result<std::string> BackUpData(const std::filesystem::path& data,
                               const std::filesystem::path& out) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::absolute(out, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (error || out.empty()) {
    return Status::InvalidArgument(
        fmt::format("'{}' is not the name of a directory", out.string()));
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(target, error))) {
    return Status::InvalidArgument(
        fmt::format("{} exists, expected the name of a new directory", target.string()));
  }
  // The lock of the store tells whether a server runs; the note may be left over from a crash.
  auto store = OpenDataStore(data, {.create = false});
  if (store.ok()) {
    CODBAND_RETURN_IF_ERROR(EnsurePrivateDirectory(target.parent_path()));
    CODBAND_RETURN_IF_ERROR(store.value()->Backup(target));
    return std::string();
  }
  const auto note = ReadServerNote(data);
  if (store.status().code() != StatusCode::kUnavailable || !note) return store.status();
  CODBAND_RETURN_IF_ERROR(BackUpByServer(*note, target));
  return fmt::format("by the server at {}", note->url);
}

}  // namespace codband::server
