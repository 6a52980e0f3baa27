#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/admin/logger.h"
#include "codband/server/api/api.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/http/server.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// All settings of a server. Defaults are those of the option structs.
struct ServeConfig {
  std::filesystem::path data;  // the data directory; empty: not given
  engine::EngineOptions engine;
  ServerOptions server;
  ApiOptions api;
  store::RocksDbOptions store;
  DecisionLogOptions decision_log;
  LoggerOptions log;
  std::filesystem::path api_key_file;          // the file that api_key was read from, if any
  std::string api_key;                         // a key with the role admin; empty: none
  std::filesystem::path keys_file;             // of other keys; empty: none
  std::size_t max_key_failures = 10;           // see KeyGateOptions
  bool insecure = false;                       // serve other machines without a key
  std::filesystem::path backup_root;           // empty: "backups" in the data directory
  std::map<std::string, std::string> origins;  // where a setting was set, if it was, by its name
};

// One setting of the command line: its flag, what it sets, and the value.
struct ConfigFlag {
  std::string flag;   // "--listen", for messages
  std::string key;    // "server.listen"
  std::string value;  // as typed
};

// Where settings come from. Each source overrides those before it, and all override defaults.
struct ConfigSources {
  std::filesystem::path file = {};            // TOML; empty: none
  std::vector<std::string> environment = {};  // "CODBAND_SERVER_LISTEN=0.0.0.0:8080"; other names
                                              // are ignored
  std::vector<ConfigFlag> flags = {};
};

// The environment of this process.
std::vector<std::string> ProcessEnvironment();

// Merges the settings and reads the API key: from the variable CODBAND_API_KEY, else from
// server.api_key_file. kInvalidArgument for a key or section that does not exist (the nearest one
// is suggested), a value of the wrong type or out of range, a file that is not TOML. The message
// names the setting, its value, what is allowed and where it was set:
//   rewards.wait_seconds is -1, expected a number from 1 to 31536000 (config.toml line 12)
// kNotFound if a file does not exist.
Result<ServeConfig> ReadServeConfig(const ConfigSources& sources);

// A complete TOML file: every setting, with a comment on its meaning, allowed values and default.
// Reading it gives the same configuration. It never contains the API key.
std::string PrintServeConfig(const ServeConfig& config);

// Where POST /v1/backup writes, an absolute path.
std::filesystem::path BackupRoot(const ServeConfig& config);

// Whether requests need a key.
inline bool RequiresKeys(const ServeConfig& config) {
  return !config.api_key.empty() || !config.keys_file.empty();
}

// kInvalidArgument if other machines could use the server without a key, unless `insecure`.
Status CheckExposure(const ServeConfig& config);

}  // namespace codband::server
