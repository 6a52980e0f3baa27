#include "codband/server/config/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "codband/base/check.h"
#include "codband/policy/registry.h"
#include "codband/server/config/http_keys.h"
#include "codband/server/config/listen_address.h"

namespace codband::server {
namespace {

constexpr double kYearSeconds = 31'536'000;
constexpr std::uint64_t kMiB = 1 << 20;

std::int64_t Whole(const ConfigValue& value) { return std::get<std::int64_t>(value); }

// Getters and setters for members that are stored as they are set.
template <auto Part, auto Member>
ConfigValue GetWhole(const ServeConfig& config) {
  return static_cast<std::int64_t>((config.*Part).*Member);
}
template <auto Part, auto Member>
Status SetWhole(ServeConfig& config, const ConfigValue& value) {
  auto& target = (config.*Part).*Member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(Whole(value));
  return {};
}

// Set in MiB, stored in bytes.
template <auto Part, auto Member>
ConfigValue GetMiB(const ServeConfig& config) {
  return static_cast<std::int64_t>((config.*Part).*Member / kMiB);
}
template <auto Part, auto Member>
Status SetMiB(ServeConfig& config, const ConfigValue& value) {
  (config.*Part).*Member = static_cast<std::uint64_t>(Whole(value)) * kMiB;
  return {};
}

// Set in seconds, stored in milliseconds.
template <auto Part, auto Member>
ConfigValue GetSeconds(const ServeConfig& config) {
  return static_cast<double>((config.*Part).*Member) / 1000;
}
template <auto Part, auto Member>
Status SetSeconds(ServeConfig& config, const ConfigValue& value) {
  (config.*Part).*Member = std::llround(std::get<double>(value) * 1000);
  return {};
}

template <auto Member>
ConfigValue GetReal(const ServeConfig& config) {
  return config.engine.*Member;
}
template <auto Member>
Status SetReal(ServeConfig& config, const ConfigValue& value) {
  config.engine.*Member = std::get<double>(value);
  return {};
}

constexpr std::string_view kModes[] = {"online", "apprentice", "logging_only"};

Status SetPolicy(ServeConfig& config, const ConfigValue& value) {
  const std::string& spec = std::get<std::string>(value);
  const auto info = FindPolicy(spec);
  if (!info.ok()) return info.status();
  if (info.value()->knows_truth) {
    return Status::InvalidArgument(fmt::format(
        "policy '{}' needs the true parameters, which only simulations have", info.value()->name));
  }
  const auto parsed = MakePolicy(spec, {.dim = 32});
  if (!parsed.ok()) return parsed.status();
  config.engine.policy = spec;
  return {};
}

Status SetListen(ServeConfig& config, const ConfigValue& value) {
  auto address = ParseListenAddress(std::get<std::string>(value));
  if (!address.ok()) return Status::InvalidArgument("");
  config.server.host = std::move(address.value().host);
  config.server.port = address.value().port;
  return {};
}

std::vector<ConfigKey> ServerKeys() {
  return {
      {.section = "server",
       .name = "data",
       .expected = "a directory",
       .help = "The data directory; created if it does not exist. Empty: --data must be given.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.data.string(); },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.data = std::get<std::string>(value);
         return {};
       }},
      {.section = "server",
       .name = "listen",
       .expected = "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080 (port 0: any free port)",
       .help = "Address to listen on. One that other machines can reach needs keys.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return FormatListenAddress({config.server.host, config.server.port});
       },
       .set = SetListen},
      {.section = "server",
       .name = "api_key_file",
       .expected = "a file",
       .help =
           "File with one key of the role admin, at least 16 characters. Empty: none.\n"
           "The environment variable CODBAND_API_KEY, which holds the key itself, overrides it.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.api_key_file.string(); },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.api_key_file = std::get<std::string>(value);
         return {};
       }},
      {.section = "server",
       .name = "insecure",
       .kind = ConfigKind::kSwitch,
       .help = "Serve other machines although there is no key.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.insecure; },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.insecure = std::get<bool>(value);
         return {};
       }},
      {.section = "server",
       .name = "threads",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = kMaxThreads,
       .help = "Threads that read and answer requests.",
       .get = GetWhole<&ServeConfig::server, &ServerOptions::threads>,
       .set = SetWhole<&ServeConfig::server, &ServerOptions::threads>},
      {.section = "server",
       .name = "max_connections",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1'000'000,
       .help = "Connections open at a time, fewer if the limit of open files (ulimit -n) is too "
               "low. For\n"
               "one more the idlest is closed; if none is idle, it is refused with 503.",
       .get = GetWhole<&ServeConfig::server, &ServerOptions::max_connections>,
       .set = SetWhole<&ServeConfig::server, &ServerOptions::max_connections>},
      {.section = "server",
       .name = "max_body_bytes",
       .kind = ConfigKind::kWhole,
       .min = 1024,
       .max = 1 << 30,
       .help = "Largest body of a request, and longest line of a bulk import.",
       .get = GetWhole<&ServeConfig::server, &ServerOptions::max_body_bytes>,
       .set = SetWhole<&ServeConfig::server, &ServerOptions::max_body_bytes>},
      {.section = "server",
       .name = "max_import_bytes",
       .kind = ConfigKind::kWhole,
       .min = 1024,
       .max = 1LL << 36,
       .help = "Largest body of a bulk import.",
       .get = GetWhole<&ServeConfig::server, &ServerOptions::max_stream_bytes>,
       .set = SetWhole<&ServeConfig::server, &ServerOptions::max_stream_bytes>},
      {.section = "server",
       .name = "request_timeout_seconds",
       .kind = ConfigKind::kReal,
       .min = 0.1,
       .max = 3600,
       .help = "Time from the first byte of a request to its last; an import has it for every MiB.",
       .get = GetSeconds<&ServeConfig::server, &ServerOptions::request_timeout_ms>,
       .set = SetSeconds<&ServeConfig::server, &ServerOptions::request_timeout_ms>},
      {.section = "server",
       .name = "idle_timeout_seconds",
       .kind = ConfigKind::kReal,
       .min = 0.1,
       .max = 86'400,
       .help = "Time that a connection may stay open between requests.",
       .get = GetSeconds<&ServeConfig::server, &ServerOptions::idle_timeout_ms>,
       .set = SetSeconds<&ServeConfig::server, &ServerOptions::idle_timeout_ms>},
  };
}

std::vector<ConfigKey> LearningKeys() {
  return {
      {.section = "policy",
       .name = "spec",
       .expected = "a policy, such as codband; 'codband policies' lists them",
       .help = "The policy, with its parameters after a colon; 'codband policies' lists them.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.engine.policy; },
       .set = SetPolicy},
      {.section = "policy",
       .name = "mode",
       .kind = ConfigKind::kWord,
       .words = {std::begin(kModes), std::end(kModes)},
       .help = "online: the policy's choice is shown and learned from.\n"
               "apprentice: the first candidate is shown and learned from.\n"
               "logging_only: the first candidate is shown, nothing is learned.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return std::string(kModes[static_cast<std::size_t>(config.engine.mode)]);
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         const auto found = std::ranges::find(kModes, std::get<std::string>(value));
         config.engine.mode = static_cast<engine::Mode>(found - std::begin(kModes));
         return {};
       }},
      {.section = "policy",
       .name = "exploration_floor",
       .kind = ConfigKind::kReal,
       .min = 0,
       .max = 1,
       .help = "Share of decisions that are drawn uniformly from the candidates, so that no\n"
               "propensity in the decision log is 0.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.engine.exploration_floor;
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.exploration_floor = std::get<double>(value);
         return {};
       }},
      {.section = "policy",
       .name = "seed",
       .kind = ConfigKind::kWhole,
       .min = 0,
       .max = 4'294'967'295,
       .help = "Seed of the random draws; a draw depends on the seed and the event id only.",
       .get = GetWhole<&ServeConfig::engine, &engine::EngineOptions::seed>,
       .set = SetWhole<&ServeConfig::engine, &engine::EngineOptions::seed>},
      {.section = "rewards",
       .name = "wait_seconds",
       .kind = ConfigKind::kReal,
       .min = 1,
       .max = kYearSeconds,
       .help = "Time that a decision waits for its reward.",
       .get = GetSeconds<&ServeConfig::engine, &engine::EngineOptions::reward_wait_ms>,
       .set = SetSeconds<&ServeConfig::engine, &engine::EngineOptions::reward_wait_ms>},
      {.section = "rewards",
       .name = "default",
       .kind = ConfigKind::kRealOrWord,
       .min = -1e6,
       .max = 1e6,
       .words = {"none"},
       .help =
           "Reward that is learned if none comes within the wait; \"none\": nothing is learned.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         if (!config.engine.default_reward) return "none";
         return *config.engine.default_reward;
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         const double* number = std::get_if<double>(&value);
         config.engine.default_reward =
             number != nullptr ? std::optional<double>(*number) : std::nullopt;
         return {};
       }},
      {.section = "rewards",
       .name = "min",
       .kind = ConfigKind::kReal,
       .min = -kLargestNumber,
       .max = kLargestNumber,
       .help =
           "Smallest reward. If yours are from 0 to 1, say so: the narrower the range, the less\n"
           "a wrong or hostile reward can do.",
       .get = GetReal<&engine::EngineOptions::reward_min>,
       .set = SetReal<&engine::EngineOptions::reward_min>},
      {.section = "rewards",
       .name = "max",
       .kind = ConfigKind::kReal,
       .min = -kLargestNumber,
       .max = kLargestNumber,
       .help = "Largest reward.",
       .get = GetReal<&engine::EngineOptions::reward_max>,
       .set = SetReal<&engine::EngineOptions::reward_max>},
      {.section = "rewards",
       .name = "out_of_range",
       .kind = ConfigKind::kWord,
       .words = {"refuse", "clip"},
       .help =
           "What happens to rewards out of this range: refuse (400), or clip to its nearer end.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.engine.clip_rewards ? "clip" : "refuse";
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.clip_rewards = std::get<std::string>(value) == "clip";
         return {};
       }},
  };
}

std::vector<ConfigKey> ResourceKeys() {
  return {
      {.section = "memory",
       .name = "users",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1e9,
       .help = "Users held in memory (an LRU cache); others are read from disk when they return.",
       .get = GetWhole<&ServeConfig::engine, &engine::EngineOptions::users_in_memory>,
       .set = SetWhole<&ServeConfig::engine, &engine::EngineOptions::users_in_memory>},
      {.section = "memory",
       .name = "users_mb",
       .kind = ConfigKind::kWhole,
       .min = 16,
       .max = 1 << 20,
       .help = "Memory for these users in MiB, however many columns they have met; those who have\n"
               "not been seen for longest leave it.",
       .get = GetMiB<&ServeConfig::engine, &engine::EngineOptions::user_memory_bytes>,
       .set = SetMiB<&ServeConfig::engine, &engine::EngineOptions::user_memory_bytes>},
      {.section = "memory",
       .name = "cache_mb",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1 << 20,
       .help = "Size of the store's read cache in MiB.",
       .get = GetMiB<&ServeConfig::store, &store::RocksDbOptions::cache_bytes>,
       .set = SetMiB<&ServeConfig::store, &store::RocksDbOptions::cache_bytes>},
      {.section = "memory",
       .name = "write_buffer_mb",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1 << 20,
       .help = "Size of the store's write buffers in MiB, all tables together.",
       .get = GetMiB<&ServeConfig::store, &store::RocksDbOptions::write_buffer_bytes>,
       .set = SetMiB<&ServeConfig::store, &store::RocksDbOptions::write_buffer_bytes>},
      {.section = "durability",
       .name = "sync",
       .kind = ConfigKind::kSwitch,
       .help = "fsync before a request is acknowledged. false: a crash of the program loses\n"
               "nothing, a power failure may lose the last moments.",
       .get = [](const ServeConfig& config) -> ConfigValue { return config.engine.sync; },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.engine.sync = std::get<bool>(value);
         return {};
       }},
      {.section = "durability",
       .name = "checkpoint_events",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1e9,
       .help =
           "Log entries after which a checkpoint is written. A start replays those after the last.",
       .get = GetWhole<&ServeConfig::engine, &engine::EngineOptions::checkpoint_events>,
       .set = SetWhole<&ServeConfig::engine, &engine::EngineOptions::checkpoint_events>},
      {.section = "durability",
       .name = "checkpoint_seconds",
       .kind = ConfigKind::kReal,
       .min = 0.1,
       .max = 86'400,
       .help = "Time after which a checkpoint is written.",
       .get = GetSeconds<&ServeConfig::engine, &engine::EngineOptions::checkpoint_interval_ms>,
       .set = SetSeconds<&ServeConfig::engine, &engine::EngineOptions::checkpoint_interval_ms>},
      {.section = "durability",
       .name = "queue",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1e7,
       .help = "Requests that may wait for a group commit; more are refused with 503.",
       .get = GetWhole<&ServeConfig::engine, &engine::EngineOptions::max_queue>,
       .set = SetWhole<&ServeConfig::engine, &engine::EngineOptions::max_queue>},
  };
}

std::vector<ConfigKey> DecisionLogKeys() {
  return {
      {.section = "decision_log",
       .name = "directory",
       .expected = "a directory",
       .help = "Directory for the decision log (DSJSON, for off-policy evaluation).\n"
               "Empty: no decision log.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.decision_log.directory.string();
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.decision_log.directory = std::get<std::string>(value);
         return {};
       }},
      {.section = "decision_log",
       .name = "max_file_mb",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1 << 20,
       .help = "Size in MiB after which a new file is started.",
       .get = GetMiB<&ServeConfig::decision_log, &DecisionLogOptions::max_file_bytes>,
       .set = SetMiB<&ServeConfig::decision_log, &DecisionLogOptions::max_file_bytes>},
      {.section = "decision_log",
       .name = "max_files",
       .kind = ConfigKind::kWhole,
       .min = 0,
       .max = 1e6,
       .help = "Files to keep; the oldest are removed. 0: all are kept.",
       .get = GetWhole<&ServeConfig::decision_log, &DecisionLogOptions::max_files>,
       .set = SetWhole<&ServeConfig::decision_log, &DecisionLogOptions::max_files>},
      {.section = "decision_log",
       .name = "queue",
       .kind = ConfigKind::kWhole,
       .min = 1,
       .max = 1e7,
       .help = "Decisions that may wait to be written.",
       .get = GetWhole<&ServeConfig::decision_log, &DecisionLogOptions::queue>,
       .set = SetWhole<&ServeConfig::decision_log, &DecisionLogOptions::queue>},
      {.section = "decision_log",
       .name = "when_full",
       .kind = ConfigKind::kWord,
       .words = {"block", "drop"},
       .help = "What to do when the queue is full: block (backpressure), or drop and count.",
       .get = [](const ServeConfig& config) -> ConfigValue {
         return config.decision_log.drop_when_full ? "drop" : "block";
       },
       .set = [](ServeConfig& config, const ConfigValue& value) -> Status {
         config.decision_log.drop_when_full = std::get<std::string>(value) == "drop";
         return {};
       }},
  };
}

}  // namespace

std::string ConfigKey::FullName() const { return fmt::format("{}.{}", section, name); }

std::string ConfigKey::VariableName() const {
  std::string variable = fmt::format("CODBAND_{}_{}", section, name);
  std::ranges::transform(variable, variable.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return variable;
}

std::string ConfigKey::AllowedText() const {
  // Wide enough for every limit in the table to be printed without an exponent.
  const auto range = [this] { return fmt::format("from {:.12g} to {:.12g}", min, max); };
  switch (kind) {
    case ConfigKind::kText:
      return std::string(expected);
    case ConfigKind::kSwitch:
      return "true or false";
    case ConfigKind::kWhole:
      return fmt::format("a whole number {}", range());
    case ConfigKind::kReal:
      return fmt::format("a number {}", range());
    case ConfigKind::kRealOrWord:
      return fmt::format("a number {} or \"{}\"", range(), fmt::join(words, "\" or \""));
    case ConfigKind::kWord:
      return fmt::format("one of {}", fmt::join(words, ", "));
  }
  CODBAND_CHECK(false);
}

const std::vector<ConfigKey>& ConfigKeys() {
  static const std::vector<ConfigKey> keys = [] {
    std::vector<ConfigKey> all;
    for (auto part : {ServerKeys(), HttpKeys(), SecurityKeys(), FeatureKeys(), LearningKeys(),
                      ResourceKeys(), DecisionLogKeys(), LogKeys()}) {
      std::ranges::move(part, std::back_inserter(all));
    }
    return all;
  }();
  return keys;
}

}  // namespace codband::server
