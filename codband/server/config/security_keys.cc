// The settings of keys and backups: what an operator sets to limit what a client can do.
#include "codband/server/config/config_keys.h"

namespace codband::server {

std::vector<ConfigKey> SecurityKeys() {
  return {
      {.section = "backup",
       .name = "root",
       .expected = "a directory",
       .help = "Directory in which POST /v1/backup makes its copies; created if it does not exist.\n"
               "Empty: the directory backups in the data directory.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.backup_root.string(); },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.backup_root = std::get<std::string>(value);
         return {};
       }},
  };
}

}  // namespace codband::server
