// The settings of keys and backups: what an operator sets to limit what a client can do.
#include "codband/server/config/config_keys.h"

namespace codband::server {

std::vector<ConfigKey> SecurityKeys() {
  return {
      {.section = "keys",
       .name = "file",
       .expected = "a file",
       .help =
           "File with the keys that requests need, and their roles; 'codband keys' changes it.\n"
           "A change counts within a second, without a restart. Empty: none.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.keys_file.string(); },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.keys_file = std::get<std::string>(value);
         return {};
       }},
      {.section = "keys",
       .name = "max_failures",
       .kind = ConfigKind::kWhole,
       .min = 0,
       .max = 1e6,
       .help = "Wrong keys that an address may send before it has to wait: 1 s, then 2 s, 4 s, up\n"
               "to 5 minutes, answered with 429. 0: never, for a server behind a proxy, where all\n"
               "clients have one address and the proxy limits them.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return static_cast<std::int64_t>(config.max_key_failures);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.max_key_failures = static_cast<std::size_t>(std::get<std::int64_t>(value));
         return {};
       }},
      {.section = "backup",
       .name = "root",
       .expected = "a directory",
       .help =
           "Directory in which POST /v1/backup makes its copies; created if it does not exist.\n"
           "Empty: the directory backups in the data directory.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.backup_root.string(); },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.backup_root = std::get<std::string>(value);
         return {};
       }},
  };
}

}  // namespace codband::server
