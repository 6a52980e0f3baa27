#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/http/server.h"
#include "codband/store/rocksdb_store.h"

namespace codband::server {

// All that can be set about a server. What a default is stands with the options themselves.
struct ServeConfig {
  std::filesystem::path data;  // the data directory; empty: not said
  engine::EngineOptions engine;
  ServerOptions server;
  store::RocksDbOptions store;
  DecisionLogOptions decision_log;
  std::filesystem::path api_key_file;  // where server.api_key came from, if from a file
  bool insecure = false;               // listen to other machines without asking for a key
};

// One setting of the command line: which flag said it, what it sets, and to what.
struct ConfigFlag {
  std::string flag;   // "--listen", for messages
  std::string key;    // "server.listen"
  std::string value;  // as typed
};

// Where settings come from. Each overrules those before it; defaults come first of all.
struct ConfigSources {
  std::filesystem::path file = {};            // TOML; empty: none
  std::vector<std::string> environment = {};  // "CODBAND_SERVER_LISTEN=0.0.0.0:8080"; other names
                                              // are passed over
  std::vector<ConfigFlag> flags = {};
};

// The variables of this process.
std::vector<std::string> ProcessEnvironment();

// Puts the settings together and reads the API key: from the variable CODBAND_API_KEY, else from
// server.api_key_file. kInvalidArgument for a key or section that does not exist (the nearest that
// does is suggested), a value of the wrong type or out of its range, a file that is no TOML; names
// the setting, its value, what is allowed and where it was set:
//   rewards.wait_seconds is -1, expected a number from 1 to 31536000 (config.toml line 12)
// kNotFound if a file is not there.
Result<ServeConfig> ReadServeConfig(const ConfigSources& sources);

// A complete TOML file with every setting, each under a comment on what it is, its default and what
// is allowed. Reading it gives the same configuration. An API key is never part of it.
std::string PrintServeConfig(const ServeConfig& config);

// "0.0.0.0:8080", "[::1]:8080", "localhost:0".
struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};
Result<ListenAddress> ParseListenAddress(std::string_view text);
std::string FormatListenAddress(const ListenAddress& address);

// Whether only this machine can reach the host.
bool IsLoopback(std::string_view host);

// Refuses to let other machines in without an API key, unless that was asked for in so many words.
Status CheckExposure(const ServeConfig& config);

}  // namespace codband::server
