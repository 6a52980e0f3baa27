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

// A server that has a data directory open. While it runs, DIR/server.json says so.
struct ServerNote {
  std::string url;  // "http://127.0.0.1:8080"
  std::int64_t pid = 0;
};

Status WriteServerNote(const std::filesystem::path& data, const ServerNote& note);
void RemoveServerNote(const std::filesystem::path& data);
// What the note says, also when a crash left it behind; none if there is none.
std::optional<ServerNote> ReadServerNote(const std::filesystem::path& data);
// The server that answers at the address in the note; none if there is no note or no answer.
std::optional<ServerNote> FindRunningServer(const std::filesystem::path& data);

// Opens the store of a data directory. Messages say what can be done.
Result<std::unique_ptr<store::Store>> OpenDataStore(const std::filesystem::path& data,
                                                    const store::RocksDbOptions& options);

// Opens the engine on what is there, with the policy that it was made with, for looking: nothing is
// changed, and a server may have the directory open.
Result<std::unique_ptr<engine::Engine>> OpenDataForReading(const std::filesystem::path& data);

// Copies the data of this moment to `out`, which must not exist: through the server if one has the
// directory open, else by itself. Says which: "by the server at http://…", or nothing.
Result<std::string> BackUpData(const std::filesystem::path& data, const std::filesystem::path& out);

}  // namespace codband::server
