// codband keys: the keys of a server.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codband/cli/command.h"
#include "codband/server/config/config.h"
#include "codband/server/keys/key_file.h"

namespace codband::cli {
namespace {

struct KeysFlags {
  std::string action;
  std::string name;
  std::string role;
  std::string file;
  std::string config;
};

constexpr std::string_view kKeysFooter = R"(
ACTION is add, list or remove. Roles:
  rank    rankings and their rewards: for an application
  items   the catalogue
  read    reports about users and models, metrics, the dashboard
  admin   everything, also backups and forgetting users

'add' prints the new key once, on standard output. The file keeps a salted hash of it, from which it
cannot be found again. A server whose setting keys.file names the file reads a change within a second.
To replace a key, add one of another name, let the application use it, then remove the old one: both
are valid meanwhile.

The file is that of --file, else that of the setting keys.file (in the file that --config names, or in
the environment variable CODBAND_KEYS_FILE).

Examples:
  codband keys add shop --role rank --file /etc/codband/keys
  codband keys list --file /etc/codband/keys
  codband keys remove shop --file /etc/codband/keys)";

Result<std::filesystem::path> FileOf(const KeysFlags& flags) {
  if (!flags.file.empty()) return std::filesystem::path(flags.file);
  const auto config =
      server::ReadServeConfig({.file = flags.config, .environment = server::ProcessEnvironment()});
  if (!config.ok()) return config.status();
  if (config.value().keys_file.empty()) {
    return Status::InvalidArgument(
        "--file is missing: name the file of keys, or set keys.file in the configuration");
  }
  return config.value().keys_file;
}

Status List(const std::filesystem::path& file) {
  const auto records = server::ReadKeyFile(file);
  if (!records.ok()) return records.status();
  std::size_t width = 4;
  for (const server::KeyRecord& record : records.value()) {
    width = std::max(width, record.name.size());
  }
  fmt::print("{:{}}  role\n", "name", width);
  for (const server::KeyRecord& record : records.value()) {
    fmt::print("{:{}}  {}\n", record.name, width, server::AccessText(record.role));
  }
  return {};
}

Status Add(const KeysFlags& flags, const std::filesystem::path& file) {
  if (flags.role.empty()) {
    return Status::InvalidArgument("--role is missing, expected rank, items, read or admin");
  }
  const auto role = server::ParseRole(flags.role);
  if (!role.ok()) return role.status();
  const auto key = server::AddKey(file, flags.name, role.value());
  if (!key.ok()) return key.status();
  fmt::print("{}\n", key.value());
  return {};
}

Status RunKeys(const KeysFlags& flags) {
  if (flags.action != "add" && flags.action != "list" && flags.action != "remove") {
    return Status::InvalidArgument(
        fmt::format("ACTION is '{}', expected add, list or remove", flags.action));
  }
  if (flags.name.empty() == (flags.action != "list")) {
    return Status::InvalidArgument(
        flags.name.empty() ? fmt::format("the name of the key to {} is missing", flags.action)
                           : "list takes no name");
  }
  const auto file = FileOf(flags);
  if (!file.ok()) return file.status();
  if (flags.action == "list") return List(file.value());
  if (flags.action == "add") return Add(flags, file.value());
  CODBAND_RETURN_IF_ERROR(server::RemoveKey(file.value(), flags.name));
  fmt::print("Removed {}\n", flags.name);
  return {};
}

}  // namespace

void AddKeysCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<KeysFlags>();
  const Command command(app, "keys", "Add, list and remove the keys of a server", kKeysFooter);
  command.Option("ACTION", flags->action, "ACTION", "add, list or remove", Command::kRequired);
  command.Option("NAME", flags->name, "NAME", "Of the key to add or to remove");
  command.Option("--role", flags->role, "ROLE", "Of the key to add: rank, items, read or admin");
  command.Option("--file", flags->file, "FILE", "The file of keys; created if it does not exist");
  command.Option("--config", flags->config, "FILE", "The configuration whose keys.file is meant");
  command.Run(status, [flags] { return RunKeys(*flags); });
}

}  // namespace codband::cli
