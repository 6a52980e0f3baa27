#include "codband/server/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "codband/base/file.h"
#include "codband/server/config/config_keys.h"
#include "codband/server/config/listen_address.h"

namespace codband::server {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string name = testing::TempDir() + "/codband_config_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& text, const std::string& name = "config.toml") const {
    std::string path = directory_ + "/" + name;
    EXPECT_TRUE(WriteFileDurably(path, text).ok());
    return path;
  }

  ServeConfig Read(const std::string& text) const {
    return ReadServeConfig({.file = Write(text)}).value();
  }

  // The message of the failure, with the directory left out.
  std::string Error(const ConfigSources& sources) const {
    const auto config = ReadServeConfig(sources);
    if (config.ok()) return "no error";
    EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
    std::string message = config.status().message();
    const std::size_t at = message.find(directory_);
    if (at != message.npos) message.erase(at, directory_.size() + 1);
    return message;
  }
  std::string FileError(const std::string& text) const { return Error({.file = Write(text)}); }

  std::string directory_;
};

constexpr const char* kEverythingElse = R"(
[server]
data = "/var/lib/codband"
listen = "[::]:9000"
api_key_file = ""
insecure = true
threads = 7
max_connections = 11
max_body_bytes = 2048
max_import_bytes = 4096
request_timeout_seconds = 1.5
idle_timeout_seconds = 2
[http]
max_connections_per_address = 12
allowed_hosts = "rec.example.org,  *.intern "
allowed_origins = "https://shop.example.org"
[tls]
certificate = "/etc/codband/cert.pem"
key = "/etc/codband/key.pem"
[keys]
file = "/etc/codband/keys"
max_failures = 3
[backup]
root = "/var/backups/codband"
[policy]
spec = "linucb:alpha=0.3"
mode = "apprentice"
exploration_floor = 0.25
seed = 99
[features]
dimension = 12
max_columns = 99
crossings = "device:genre, hour:*"
user_from = "user.id"
max_abs = 50
[rewards]
wait_seconds = 90
default = "none"
min = -2
max = 3.5
out_of_range = "clip"
[memory]
users = 123
users_mb = 99
cache_mb = 5
write_buffer_mb = 6
[durability]
sync = false
checkpoint_events = 77
checkpoint_seconds = 0.25
queue = 88
[decision_log]
directory = "logs \"here\""
max_file_mb = 3
max_files = 4
queue = 5
when_full = "drop"
[log]
format = "json"
level = "warning"
)";

TEST_F(ConfigTest, WithoutSourcesTheDefaultsOfTheOptions) {
  const ServeConfig config = ReadServeConfig({}).value();
  EXPECT_EQ(config.server.host, "127.0.0.1");
  EXPECT_EQ(config.server.port, 8080);
  EXPECT_EQ(config.engine.policy, "codband");
  EXPECT_EQ(config.engine.reward_wait_ms, engine::EngineOptions{}.reward_wait_ms);
  EXPECT_EQ(config.engine.default_reward, 0.0);
  EXPECT_FALSE(config.engine.keep_candidates);
  EXPECT_TRUE(config.decision_log.directory.empty());
}

TEST_F(ConfigTest, EverySettingReachesItsOption) {
  const ServeConfig config = Read(kEverythingElse);
  EXPECT_EQ(config.data, "/var/lib/codband");
  EXPECT_EQ(config.server.host, "::");
  EXPECT_EQ(config.server.port, 9000);
  EXPECT_TRUE(config.insecure);
  EXPECT_EQ(config.server.threads, 7U);
  EXPECT_EQ(config.server.max_connections, 11U);
  EXPECT_EQ(config.server.max_body_bytes, 2048U);
  EXPECT_EQ(config.server.max_stream_bytes, 4096U);
  EXPECT_EQ(config.server.request_timeout_ms, 1500);
  EXPECT_EQ(config.server.idle_timeout_ms, 2000);
  EXPECT_EQ(config.server.allowed_hosts, (std::vector<std::string>{"rec.example.org", "*.intern"}));
  EXPECT_EQ(config.server.allowed_origins, std::vector<std::string>{"https://shop.example.org"});
  EXPECT_EQ(config.keys_file, "/etc/codband/keys");
  EXPECT_EQ(config.max_key_failures, 3U);
  EXPECT_EQ(config.backup_root, "/var/backups/codband");
  EXPECT_EQ(config.engine.policy, "linucb:alpha=0.3");
  EXPECT_EQ(config.engine.mode, engine::Mode::kApprentice);
  EXPECT_EQ(config.api.mode, "apprentice");
  EXPECT_EQ(config.engine.exploration_floor, 0.25);
  EXPECT_EQ(config.engine.seed, 99U);
  EXPECT_EQ(config.engine.dim, 12U);
  EXPECT_EQ(config.engine.columns.columns, 99U);
  EXPECT_EQ(config.engine.crossings, "device:genre, hour:*");
  EXPECT_EQ(config.api.user_from, "user.id");
  EXPECT_EQ(config.engine.reward_wait_ms, 90'000);
  EXPECT_EQ(config.engine.default_reward, std::nullopt);
  EXPECT_EQ(config.engine.max_abs_feature, 50);
  EXPECT_EQ(config.engine.reward_min, -2);
  EXPECT_EQ(config.engine.reward_max, 3.5);
  EXPECT_TRUE(config.engine.clip_rewards);
  EXPECT_EQ(config.log.format, LogFormat::kJson);
  EXPECT_EQ(config.log.level, LogLevel::kWarning);
  EXPECT_EQ(config.engine.users_in_memory, 123U);
  EXPECT_EQ(config.engine.user_memory_bytes, std::size_t{99} << 20U);
  EXPECT_EQ(config.store.cache_bytes, 5U << 20);
  EXPECT_EQ(config.store.write_buffer_bytes, 6U << 20);
  EXPECT_FALSE(config.engine.sync);
  EXPECT_EQ(config.engine.checkpoint_events, 77U);
  EXPECT_EQ(config.engine.checkpoint_interval_ms, 250);
  EXPECT_EQ(config.engine.max_queue, 88U);
  EXPECT_EQ(config.decision_log.directory, "logs \"here\"");
  EXPECT_EQ(config.decision_log.max_file_bytes, 3U << 20);
  EXPECT_EQ(config.decision_log.max_files, 4U);
  EXPECT_EQ(config.decision_log.queue, 5U);
  EXPECT_TRUE(config.decision_log.drop_when_full);
  EXPECT_TRUE(config.engine.keep_candidates);
}

TEST_F(ConfigTest, PrintedConfigurationsAreReadBackTheSame) {
  for (const ServeConfig& config : {ServeConfig{}, Read(kEverythingElse)}) {
    const std::string printed = PrintServeConfig(config);
    const ServeConfig again = Read(printed);
    for (const ConfigKey& key : ConfigKeys()) {
      EXPECT_EQ(key.get(again), key.get(config)) << key.FullName();
    }
    EXPECT_EQ(PrintServeConfig(again), printed);
  }
}

// A setter that does nothing, or one that sets its neighbour's option, cannot hide.
TEST_F(ConfigTest, EverySettingInTheTestFileDiffersFromItsDefault) {
  const ServeConfig config = Read(kEverythingElse);
  const ServeConfig defaults;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.name != "api_key_file") {
      EXPECT_NE(key.get(config), key.get(defaults)) << key.FullName();
    }
  }
}

TEST_F(ConfigTest, PrintedDefaultsNameEverySettingWithItsRange) {
  const std::string printed = PrintServeConfig({});
  EXPECT_NE(printed.find(
                "\n[rewards]\n# Time that a decision waits for its reward.\n"
                "# Allowed: a number from 1 to 31536000. Default: 600.0.\nwait_seconds = 600.0\n"),
            std::string::npos)
      << printed;
  EXPECT_NE(printed.find("listen = \"127.0.0.1:8080\"\n"), std::string::npos);
  std::set<std::string> names;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(names.insert(key.VariableName()).second) << key.VariableName();
    EXPECT_FALSE(key.AllowedText().empty()) << key.FullName();
  }
}

TEST_F(ConfigTest, CommandLineComesBeforeEnvironmentBeforeFileBeforeDefault) {
  ConfigSources sources{.file = Write("[server]\nthreads = 3\nmax_connections = 30\n"
                                      "max_body_bytes = 3000\n")};
  sources.environment = {"HOME=/", "CODBAND_SERVER_THREADS=4", "CODBAND_SERVER_MAX_CONNECTIONS=40"};
  sources.flags = {{"--set", "server.threads", "5"}};
  const ServeConfig config = ReadServeConfig(sources).value();
  EXPECT_EQ(config.server.threads, 5U);
  EXPECT_EQ(config.server.max_connections, 40U);
  EXPECT_EQ(config.server.max_body_bytes, 3000U);
  EXPECT_EQ(config.server.idle_timeout_ms, ServerOptions{}.idle_timeout_ms);
}

TEST_F(ConfigTest, VariablesAreReadByTheTypeOfTheirSetting) {
  const ServeConfig config =
      ReadServeConfig(
          {.environment = {"CODBAND_DURABILITY_SYNC=false", "CODBAND_REWARDS_DEFAULT=none",
                           "CODBAND_POLICY_EXPLORATION_FLOOR=0.5", "CODBAND_SERVER_DATA=123",
                           "CODBAND_POLICY_MODE=logging_only"}})
          .value();
  EXPECT_FALSE(config.engine.sync);
  EXPECT_EQ(config.engine.default_reward, std::nullopt);
  EXPECT_EQ(config.engine.exploration_floor, 0.5);
  EXPECT_EQ(config.data, "123");
  EXPECT_EQ(config.engine.mode, engine::Mode::kLoggingOnly);
}

TEST_F(ConfigTest, ValuesOutOfRangeAreNamedWithTheirPlace) {
  EXPECT_EQ(
      FileError("\n\n[rewards]\n# a comment\nwait_seconds = -1\n"),
      "rewards.wait_seconds is -1, expected a number from 1 to 31536000 (config.toml line 5)");
  EXPECT_EQ(FileError("[server]\nthreads = 257\n"),
            "server.threads is 257, expected a whole number from 1 to 256 (config.toml line 2)");
  EXPECT_EQ(FileError("[policy]\nexploration_floor = nan\n"),
            "policy.exploration_floor is nan, expected a number from 0 to 1 (config.toml line 2)");
  EXPECT_EQ(FileError("[policy]\nmode = \"offline\"\n"),
            "policy.mode is the string 'offline', expected one of online, apprentice, logging_only "
            "(config.toml line 2)");
  EXPECT_EQ(FileError("[server]\nlisten = \"8080\"\n"),
            "server.listen is the string '8080', expected HOST:PORT, such as 127.0.0.1:8080 or "
            "[::1]:8080 (port 0: any free port) (config.toml line 2)");
  EXPECT_EQ(Error({.environment = {"CODBAND_MEMORY_USERS=0"}}),
            "memory.users is 0, expected a whole number from 1 to 1000000000 (environment variable "
            "CODBAND_MEMORY_USERS)");
  EXPECT_EQ(Error({.flags = {{"--listen", "server.listen", "localhost:65536"}}})
                .rfind("server.listen is 'localhost:65536', expected HOST:PORT", 0),
            0U);
}

TEST_F(ConfigTest, WrongTypesAreNamed) {
  EXPECT_EQ(
      FileError("[server]\nthreads = \"two\"\n"),
      "server.threads is the string 'two', expected a whole number from 1 to 256 (config.toml "
      "line 2)");
  EXPECT_EQ(
      FileError("[server]\nthreads = 2.0\n").rfind("server.threads is 2, expected a whole", 0), 0U);
  EXPECT_EQ(FileError("[durability]\nsync = 1\n"),
            "durability.sync is 1, expected true or false (config.toml line 2)");
  EXPECT_EQ(FileError("[rewards]\ndefault = \"0\"\n"),
            "rewards.default is the string '0', expected a number from -1000000 to 1000000 or "
            "\"none\" (config.toml line 2)");
  EXPECT_EQ(FileError("[server]\nlisten = [\"127.0.0.1:80\"]\n")
                .rfind("server.listen is an array, expected HOST:PORT", 0),
            0U);
  EXPECT_EQ(
      FileError("[server.listen]\nport = 1\n").rfind("server.listen is a section, expected", 0),
      0U);
  EXPECT_EQ(FileError("server = 3\n"),
            "server is 3, expected a section [server] (config.toml line 1)");
  EXPECT_EQ(Error({.environment = {"CODBAND_SERVER_THREADS=two"}}),
            "server.threads is 'two', expected a whole number from 1 to 256 (environment variable "
            "CODBAND_SERVER_THREADS)");
}

TEST_F(ConfigTest, HostsAndOriginsAreCheckedAtOnce) {
  EXPECT_EQ(FileError("[http]\nallowed_hosts = \"a, b:80\"\n"),
            "http.allowed_hosts is the string 'a, b:80': 'b:80' is not the name of a host, without "
            "a port (config.toml line 2)");
  EXPECT_EQ(FileError("[http]\nallowed_origins = \"*\"\n"),
            "http.allowed_origins is the string '*': '*' is not an origin, such as "
            "https://example.org, without a path (config.toml line 2)");
}

TEST_F(ConfigTest, PoliciesAreCheckedAtOnce) {
  EXPECT_EQ(
      FileError("[policy]\nspec = \"nosuch\"\n")
          .rfind("policy.spec is the string 'nosuch': policy 'nosuch' is unknown; there are", 0),
      0U);
  EXPECT_NE(FileError("[policy]\nspec = \"linucb:alpha=x\"\n").find("alpha = 'x'"),
            std::string::npos);
  EXPECT_NE(FileError("[policy]\nspec = \"oracle-greedy\"\n").find("needs the true parameters"),
            std::string::npos);
}

TEST_F(ConfigTest, UnknownNamesAreRefusedWithTheNearestKnown) {
  EXPECT_EQ(FileError("[server]\nlisen = \"x\"\n"),
            "server.lisen is unknown (config.toml line 2); did you mean server.listen?");
  EXPECT_EQ(FileError("[server]\nwait_seconds = 3\n"),
            "server.wait_seconds is unknown (config.toml line 2); did you mean "
            "rewards.wait_seconds?");
  EXPECT_EQ(FileError("[rewrads]\nwait_seconds = 3\n"),
            "section [rewrads] is unknown (config.toml line 1); did you mean [rewards]?");
  EXPECT_EQ(FileError("listen = \"x\"\n"),
            "listen is unknown (config.toml line 1); did you mean server.listen?");
  EXPECT_NE(FileError("[zzzzzzzzz]\n").find(", expected one of [server], [http], [tls], [keys]"),
            std::string::npos);
  EXPECT_EQ(Error({.environment = {"CODBAND_SERVER_LISTN=x"}}),
            "environment variable CODBAND_SERVER_LISTN is unknown; did you mean "
            "CODBAND_SERVER_LISTEN?");
  EXPECT_EQ(Error({.environment = {"CODBAND_APIKEY=x"}}),
            "environment variable CODBAND_APIKEY is unknown; did you mean CODBAND_API_KEY?");
  EXPECT_EQ(Error({.flags = {{"--set", "policy.sped", "x"}}}),
            "policy.sped is unknown (--set); did you mean policy.spec?");
  EXPECT_EQ(Error({.flags = {{"--set", "rewards.wait", "3"}}}),
            "rewards.wait is unknown (--set); did you mean rewards.wait_seconds?");
}

TEST_F(ConfigTest, VariablesOfOthersArePassedOver) {
  EXPECT_TRUE(ReadServeConfig({.environment = {"CODBAND_PORT_8080_TCP=x", "CODBAND_SERVICE_HOST=x",
                                               "CODBAND_UPDATE_GOLDEN=1", "CODBANDX=1", "PATH=/"}})
                  .ok());
}

TEST_F(ConfigTest, KeysWithoutEndAreRefused) {
  std::string deep = "a";
  for (int i = 0; i < 300'000; ++i) deep += ".a";
  const std::string expected = "config.toml line 2 has 300000 dots, expected at most 1000";
  EXPECT_EQ(FileError("\n" + deep + " = 1\n"), expected);
  EXPECT_EQ(FileError("\n[" + deep + "]\n"), expected);
}

TEST_F(ConfigTest, BrokenFilesAreRefusedWithTheirLine) {
  EXPECT_EQ(FileError("[server]\nthreads = = 2\n").rfind("config.toml line 2: ", 0), 0U);
  EXPECT_EQ(FileError("[server]\nthreads = 2\nthreads = 3\n").rfind("config.toml line 3: ", 0), 0U);
  const auto missing = ReadServeConfig({.file = directory_ + "/none.toml"});
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("none.toml"), std::string::npos);
}

TEST_F(ConfigTest, ApiKeyComesFromTheEnvironmentElseFromItsFileAndIsNeverPrinted) {
  const std::string file = Write("key-of-file-that-is-long\r\n", "key");
  const std::string toml = Write("[server]\napi_key_file = \"" + file + "\"\n");
  const ServeConfig from_file = ReadServeConfig({.file = toml}).value();
  EXPECT_EQ(from_file.api_key, "key-of-file-that-is-long");
  const ServeConfig from_environment =
      ReadServeConfig({.file = toml, .environment = {"CODBAND_API_KEY=key-of-environment"}})
          .value();
  EXPECT_EQ(from_environment.api_key, "key-of-environment");
  for (const ServeConfig& config : {from_file, from_environment}) {
    EXPECT_EQ(PrintServeConfig(config).find("key-of-"), std::string::npos);
  }
}

TEST_F(ConfigTest, UnusableApiKeysAreRefusedWithoutShowingThem) {
  EXPECT_EQ(Error({.environment = {"CODBAND_API_KEY="}}),
            "the API key is empty, expected visible ASCII characters without spaces (environment "
            "variable CODBAND_API_KEY)");
  const std::string message = Error({.environment = {"CODBAND_API_KEY=secret word"}});
  const std::string shorter = Error({.environment = {"CODBAND_API_KEY=fifteen-letters"}});
  EXPECT_NE(shorter.find("has 15 characters, expected at least 16"), std::string::npos) << shorter;
  EXPECT_EQ(shorter.find("fifteen"), std::string::npos) << shorter;
  EXPECT_EQ(Error({.environment = {"CODBAND_API_KEY=sixteen-letters!"}}), "no error");
  EXPECT_NE(message.find("that are not allowed in a header"), std::string::npos) << message;
  EXPECT_EQ(message.find("secret"), std::string::npos) << message;
  EXPECT_NE(
      FileError("[server]\napi_key_file = \"" + Write("\n", "empty") + "\"\n").find("is empty"),
      std::string::npos);
  EXPECT_EQ(
      ReadServeConfig({.flags = {{"--set", "server.api_key_file", "/nosuch"}}}).status().code(),
      StatusCode::kNotFound);
}

TEST_F(ConfigTest, OtherMachinesAreLetInWithAKeyOrOnRequestOnly) {
  ServeConfig config;
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) {
    config.server.host = host;
    EXPECT_TRUE(CheckExposure(config).ok()) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "example.org", "1127.0.0.1"}) {
    config.server.host = host;
    EXPECT_EQ(CheckExposure(config).code(), StatusCode::kInvalidArgument) << host;
  }
  EXPECT_NE(CheckExposure(config).message().find("CODBAND_API_KEY"), std::string::npos);
  EXPECT_NE(CheckExposure(config).message().find("codband keys add"), std::string::npos);
  config.insecure = true;
  EXPECT_TRUE(CheckExposure(config).ok());
  config.insecure = false;
  config.api_key = "k";
  EXPECT_TRUE(CheckExposure(config).ok());
  config.api_key = "";
  config.keys_file = "keys";
  EXPECT_TRUE(CheckExposure(config).ok());
}

TEST_F(ConfigTest, ListenAddressesAreSplitAndPutTogether) {
  for (const char* text : {"127.0.0.1:8080", "[::1]:0", "localhost:65535"}) {
    EXPECT_EQ(FormatListenAddress(ParseListenAddress(text).value()), text);
  }
  EXPECT_EQ(ParseListenAddress("[::1]:80").value().host, "::1");
  for (const char* text :
       {"", ":80", "host", "host:", "host:-1", "host:65536", "::1:80", "[]:80", "host:80 "}) {
    EXPECT_FALSE(ParseListenAddress(text).ok()) << text;
  }
}

}  // namespace
}  // namespace codband::server
