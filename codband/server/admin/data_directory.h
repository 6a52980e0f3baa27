#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// The address of the server that has a data directory open, kept in DIR/server.json while it runs.
struct ServerNote {
  std::string url;  // "http://127.0.0.1:8080"
  std::int64_t pid = 0;
  std::filesystem::path backups = {};  // where the server makes backups
  std::string fingerprint = {};        // of its certificate (HttpUrl); empty without TLS
};

Status WriteServerNote(const std::filesystem::path& data, const ServerNote& note);
void RemoveServerNote(const std::filesystem::path& data);
// What the note says, even if a crash has left it behind; nothing if there is no note.
std::optional<ServerNote> ReadServerNote(const std::filesystem::path& data);
// The same, if a server answers at that address.
std::optional<ServerNote> FindRunningServer(const std::filesystem::path& data);

// A status of a data directory, with the commands that help if it is kCorruption.
Status WithRepair(const Status& status, const std::filesystem::path& data);

// Opens the store of a data directory. Messages say what can be done.
Result<std::unique_ptr<store::Store>> OpenDataStore(const std::filesystem::path& data,
                                                    const store::RocksDbOptions& options);

// Opens an engine read-only, with the policy of the last checkpoint: nothing is changed, and a
// server may have the directory open.
Result<std::unique_ptr<engine::Engine>> OpenDataForReading(const std::filesystem::path& data);

// Copies a snapshot of the data to `out`, which must not exist: by asking the server if one has the
// directory open, else directly. A server makes the copy where it keeps backups; from there it is
// moved. Group and others get no rights to it. Says how: "by the server at http://…", or "".
Result<std::string> BackUpData(const std::filesystem::path& data, const std::filesystem::path& out);

}  // namespace codband::server
