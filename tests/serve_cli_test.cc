// The server and the commands that look after its data, run as an operator would.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/file.h"
#include "codband/server/http/http_client.h"
#include "tests/serve_cli_testing.h"

namespace codband {
namespace {

TEST_F(ServeCliTest, PrintedConfigurationIsReadBack) {
  const Outcome printed = Run("serve --print-config");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("\n[rewards]\n"), std::string::npos) << printed.out;
  ASSERT_TRUE(WriteFileDurably(Path("config.toml"), printed.out).ok());
  EXPECT_EQ(Run("serve --print-config --config " + Path("config.toml")).out, printed.out);
  const Outcome changed =
      Run("serve --print-config --listen 127.0.0.1:99 --set memory.users=7 --set "
          "policy.spec=linucb:alpha=0.5,lambda=2");
  EXPECT_NE(changed.out.find("\nlisten = \"127.0.0.1:99\"\n"), std::string::npos);
  EXPECT_NE(changed.out.find("\nusers = 7\n"), std::string::npos);
  EXPECT_NE(changed.out.find("\nspec = \"linucb:alpha=0.5,lambda=2\"\n"), std::string::npos);
}

TEST_F(ServeCliTest, EnvironmentCountsAndTheKeyIsNotPrinted) {
  setenv("CODBAND_SERVER_THREADS", "3", 1);
  setenv("CODBAND_API_KEY", "very-secret-and-long", 1);
  const Outcome outcome = Run("serve --print-config");
  setenv("CODBAND_SERVER_THREDS", "3", 1);
  const Outcome unknown = Run("serve --print-config");
  for (const char* name : {"CODBAND_SERVER_THREADS", "CODBAND_API_KEY", "CODBAND_SERVER_THREDS"}) {
    unsetenv(name);
  }
  EXPECT_NE(outcome.out.find("\nthreads = 3\n"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("very-secret"), std::string::npos);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("did you mean CODBAND_SERVER_THREADS?"), std::string::npos)
      << unknown.err;
}

TEST_F(ServeCliTest, BadInputIsRefusedWithExitCodeTwo) {
  ASSERT_TRUE(WriteFileDurably(Path("bad.toml"), "[rewards]\n\nwait_seconds = -1\n").ok());
  const std::string data = "--data " + Path("x");
  const struct {
    std::string arguments;
    std::string message;
  } cases[] = {
      {"serve", "--data is missing"},
      {"serve " + data + " --config " + Path("bad.toml"),
       "rewards.wait_seconds is -1, expected a number from 1 to 31536000 (" + Path("bad.toml") +
           " line 3)"},
      {"serve " + data + " --config " + Path("none.toml"), "none.toml"},
      {"serve " + data + " --listen nowhere", "server.listen is 'nowhere', expected HOST:PORT"},
      {"serve " + data + " --listen 0.0.0.0:0", "make some with 'codband keys add'"},
      {"serve " + data + " --set memory.users", "expected section.key=value"},
      {"serve " + data + " --set memory.user=1", "did you mean memory.users?"},
      {"serve " + data + " --set policy.spec=oracle-greedy", "needs the true parameters"},
      {"serve " + data + " --name a", "give --cluster too"},
      {"serve " + data + " --cluster dbname=x", "--name is missing"},
      {"serve " + data + " --cluster dbname=x --name 'a b'", "--name = 'a b', expected letters"},
      {"serve " + data + " --cluster 'dbname=x nonsense' --name a",
       "the connection string cannot be read"},
      {"cluster status", "--cluster is missing, expected the connection string"},
      {"cluster start --cluster dbname=x", "ACTION is 'start', expected one of status, move"},
      {"cluster move --cluster dbname=x", "is missing: 'move' needs it"},
      {"backup --data " + Path("x"), "--out is required"},
      {"backup --data " + Path("x") + " --out " + Path("y"), "there is no data"},
      {"backup --data " + Path("x") + " --out " + directory_, "exists, expected the name of a new"},
      {"restore --from " + Path("x") + " --data " + Path("y"), "there is no data"},
      {"restore --from " + Path("x") + " --data " + directory_, "is not empty"},
      {"export --data " + Path("x"), "there is no data"},
      {"doctor --data " + Path("x"), "there is no data"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(Path("x"))) << arguments;
    EXPECT_FALSE(std::filesystem::exists(Path("y"))) << arguments;
  }
}

TEST_F(ServeCliTest, UnwritableDirectoryIsAnError) {
  const Outcome outcome = Run("serve --data /proc/nothing --listen 127.0.0.1:0");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("/proc/nothing"), std::string::npos) << outcome.err;
}

TEST_F(ServeCliTest, HelpOfTheServerAndItsCommandsHasExamples) {
  for (const char* command :
       {"serve", "keys", "backup", "restore", "export", "doctor", "cluster"}) {
    const Outcome outcome = Run(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_NE(outcome.out.find("\nExample"), std::string::npos) << command;
  }
}

TEST_F(ServeCliTest, StartsAnswersAndStopsOnASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Serving server(Path("log"), Arguments());
    EXPECT_EQ(server.Send({.target = "/v1/health/live"}).status, 200U);
    const Json note = Json::parse(ReadFile(Path("data/server.json")).value());
    EXPECT_EQ(note["pid"], server.pid());
    EXPECT_EQ(server::ParseHttpUrl(note["url"].get<std::string>()).value().port, server.url().port);
    EXPECT_EQ(server.Stop(signal), 0) << server.output();
    EXPECT_FALSE(std::filesystem::exists(Path("data/server.json")));
  }
}

TEST_F(ServeCliTest, ASecondServerSaysWhoIsThereAlready) {
  Serving server(Path("log"), Arguments());
  const std::string port = std::to_string(server.url().port);
  const Outcome same_data = Run("serve " + Arguments());
  EXPECT_EQ(same_data.exit_code, 3) << same_data.err;
  EXPECT_NE(same_data.err.find("a server has it: http://127.0.0.1:" + port), std::string::npos)
      << same_data.err;
  const Outcome same_port = Run("serve --data " + Path("other") + " --listen 127.0.0.1:" + port);
  EXPECT_EQ(same_port.exit_code, 4) << same_port.err;
  EXPECT_NE(same_port.err.find("choose another with --listen HOST:PORT"), std::string::npos)
      << same_port.err;
  EXPECT_FALSE(std::filesystem::exists(Path("other/server.json")));
  EXPECT_EQ(server.Send({.target = "/v1/health/live"}).status, 200U);
}

TEST_F(ServeCliTest, AnotherNumberOfFeaturesIsRefused) {
  {
    Serving server(Path("log"), Arguments());
    server.url();
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const Outcome outcome = Run("serve " + Arguments("--set features.dimension=5"));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("0 takes that of the directory"), std::string::npos) << outcome.err;
}

TEST_F(ServeCliTest, BackupRestoreExportAndDoctorAgree) {
  std::string while_running;
  {
    Serving server(Path("log"), Arguments());
    Use(server);
    const Outcome backup = Run("backup --data " + Path("data") + " --out " + Path("live"));
    ASSERT_EQ(backup.exit_code, 0) << backup.err;
    EXPECT_NE(backup.out.find("by the server at http://"), std::string::npos) << backup.out;
    const Outcome doctor = Run("doctor --data " + Path("data"));
    EXPECT_EQ(doctor.exit_code, 0) << doctor.out << doctor.err;
    EXPECT_NE(doctor.out.find("runs at http://"), std::string::npos) << doctor.out;
    while_running = Exported(Path("data"));
    EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
  }
  const Outcome backup = Run("backup --data " + Path("data") + " --out " + Path("stopped"));
  ASSERT_EQ(backup.exit_code, 0) << backup.err;
  EXPECT_EQ(backup.out.find("by the server"), std::string::npos) << backup.out;
  ASSERT_EQ(Run("backup --data " + Path("data") + " --out " + Path("stopped")).exit_code, 2);

  const Json json = Json::parse(while_running);
  EXPECT_EQ(json["meta"]["dim"], 4);
  EXPECT_EQ(json["meta"]["learned"], 30);
  EXPECT_EQ(json["meta"]["items"], 6);
  ASSERT_EQ(json["users"].size(), 3U);
  EXPECT_EQ(json["users"][0]["observations"], 10);
  ASSERT_GE(json["models"].size(), 1U);
  EXPECT_EQ(json["models"][0]["parameter"].size(), 4U);
  for (const char* data : {"data", "live", "stopped"}) {
    EXPECT_EQ(Exported(Path(data)), while_running) << data;
  }

  for (const char* from : {"live", "stopped"}) {
    const std::string to = Path(std::string("restored-") + from);
    const Outcome restore = Run("restore --from " + Path(from) + " --data " + to);
    ASSERT_EQ(restore.exit_code, 0) << restore.err;
    EXPECT_EQ(Exported(to), while_running) << from;
    EXPECT_EQ(Run("restore --from " + Path(from) + " --data " + to).exit_code, 2);
    const Outcome doctor = Run("doctor --data " + to);
    EXPECT_EQ(doctor.exit_code, 0) << doctor.out;
    EXPECT_NE(doctor.out.find("none runs on it"), std::string::npos) << doctor.out;
  }
  Serving server(Path("log"), "--data " + Path("restored-live") + " --listen 127.0.0.1:0");
  EXPECT_EQ(server.Send({.target = "/v1/users/u1"}).status, 200U);
  EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
  EXPECT_EQ(Exported(Path("live")), while_running);  // the backup is as it was
}

// Every file and directory below the path, and the path, that others have rights to.
std::string OpenToOthers(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  std::string found;
  const auto look = [&](const fs::path& file) {
    if ((fs::symlink_status(file).permissions() & kOthers) != fs::perms::none) {
      found += file.string() + "\n";
    }
  };
  look(path);
  for (const auto& entry : fs::recursive_directory_iterator(path)) look(entry.path());
  return found;
}

TEST_F(ServeCliTest, DataLogsAndBackupsAreForTheirOwnerAlone) {
  const std::string log = "--set decision_log.directory=" + Path("decisions");
  {
    Serving server(Path("log"), Arguments(log));
    Use(server);
    const server::HttpReply backup =
        server.Send({.method = "POST", .target = "/v1/backup", .body = R"({"name":"monday"})"});
    EXPECT_EQ(backup.status, 201U) << backup.body;
    EXPECT_EQ(Run("backup --data " + Path("data") + " --out " + Path("live")).exit_code, 0);
    EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
    EXPECT_EQ(server.output().find("rights"), std::string::npos) << server.output();
  }
  EXPECT_EQ(Run("backup --data " + Path("data") + " --out " + Path("deep/stopped")).exit_code, 0);
  EXPECT_EQ(Run("restore --from " + Path("live") + " --data " + Path("restored")).exit_code, 0);
  EXPECT_EQ(Run("doctor --data " + Path("data/backups/monday")).exit_code, 0);
  for (const char* name : {"data", "decisions", "live", "deep", "restored"}) {
    EXPECT_EQ(OpenToOthers(Path(name)), "") << name;
  }
  // What an older version has left open is closed, and the operator told.
  ASSERT_EQ(std::system(("chmod -R go+rX " + Path("data") + " " + Path("decisions")).c_str()), 0);
  Serving server(Path("log"), Arguments(log));
  server.url();
  ASSERT_TRUE(server.WaitFor(Path("decisions") + " was open to other users")) << server.output();
  EXPECT_TRUE(server.WaitFor(Path("data") + " was open to other users"));
  EXPECT_EQ(OpenToOthers(Path("data/rocksdb")) + OpenToOthers(Path("decisions")), "");
  EXPECT_EQ(server.Stop(SIGTERM), 0);
}

TEST_F(ServeCliTest, BackupsOfTheServerStayBelowTheirRoot) {
  Serving server(Path("log"), Arguments("--set backup.root=" + Path("backups")));
  const auto backup = [&](const std::string& name) {
    return server.Send(
        {.method = "POST", .target = "/v1/backup", .body = Json{{"name", name}}.dump()});
  };
  EXPECT_EQ(backup("monday").status, 201U);
  EXPECT_EQ(backup("monday").status, 409U);
  for (const std::string& name :
       {Path("evil"), std::string("../evil"), std::string("/dev/shm/evil"), std::string("..")}) {
    EXPECT_EQ(backup(name).status, 400U) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(Path("evil")));
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/evil"));
  // The command of the operator takes any path, and leaves nothing behind among the backups.
  EXPECT_EQ(Run("backup --data " + Path("data") + " --out " + Path("copy/")).exit_code, 0);
  EXPECT_EQ(Run("doctor --data " + Path("copy")).exit_code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("backups")), {}), 1);
}

TEST_F(ServeCliTest, ADirectoryInUseIsNotRestoredFrom) {
  Serving server(Path("log"), Arguments());
  Use(server);
  const std::string restore = "restore --from " + Path("data") + " --data " + Path("to");
  const Outcome live = Run(restore);
  EXPECT_EQ(live.exit_code, 1) << live.err;
  EXPECT_NE(live.err.find("is in use by another process"), std::string::npos) << live.err;
  EXPECT_FALSE(std::filesystem::exists(Path("to")));
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  EXPECT_EQ(Run(restore).exit_code, 0);
}

TEST_F(ServeCliTest, ExportToAFileIsTheSameText) {
  {
    Serving server(Path("log"), Arguments());
    Use(server);
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const Outcome outcome = Run("export --data " + Path("data") + " --out " + Path("out.json"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(ReadFile(Path("out.json")).value(), Exported(Path("data")));
  EXPECT_NE(Run("export --data " + Path("data") + " --out /proc/nothing").exit_code, 0);
}

TEST_F(ServeCliTest, BackupOfAServerWithAKeyNeedsTheKey) {
  Serving server(Path("log"), Arguments(), "CODBAND_API_KEY=sesame-sesame-sesame");
  server.url();
  const std::string backup = "backup --data " + Path("data") + " --out " + Path("copy");
  const Outcome without = Run(backup);
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("X-API-Key is missing; put a key"), std::string::npos) << without.err;
  EXPECT_NE(without.err.find("CODBAND_API_KEY"), std::string::npos) << without.err;
  setenv("CODBAND_API_KEY", "sesame-sesame-sesame", 1);
  const Outcome with = Run(backup);
  unsetenv("CODBAND_API_KEY");
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_TRUE(std::filesystem::exists(Path("copy")));
}

TEST_F(ServeCliTest, KeysAreAddedAndRemovedWhileTheServerRuns) {
  const std::string file = " --file " + Path("keys");
  const Outcome added = Run("keys add shop --role rank" + file);
  ASSERT_EQ(added.exit_code, 0) << added.err;
  const std::string shop = added.out.substr(0, added.out.find('\n'));
  EXPECT_EQ(ReadFile(Path("keys")).value().find(shop.substr(shop.size() - 64)), std::string::npos);
  Serving server(Path("log"), Arguments("--set keys.file=" + Path("keys")));
  const auto status = [&](const std::string& key, const std::string& target) {
    return server.Send({.target = target, .headers = {{"Authorization", "Bearer " + key}}}).status;
  };
  EXPECT_EQ(server.Send({.target = "/v1/models"}).status, 401U);
  EXPECT_EQ(status(shop, "/openapi.json"), 200U);
  EXPECT_EQ(status(shop, "/v1/models"), 403U);

  const Outcome admin = Run("keys add boss --role admin" + file);
  const std::string boss = admin.out.substr(0, admin.out.find('\n'));
  ASSERT_TRUE(server.WaitFor("keys.file: read again, 2 keys")) << server.output();
  EXPECT_EQ(status(boss, "/v1/models"), 200U);
  EXPECT_EQ(status(shop, "/openapi.json"), 200U);
  const Outcome list = Run("keys list" + file);
  EXPECT_NE(list.out.find("shop  rank\nboss  admin\n"), std::string::npos) << list.out;

  EXPECT_EQ(Run("keys remove shop" + file).exit_code, 0);
  ASSERT_TRUE(server.WaitFor("keys.file: read again, 1 keys")) << server.output();
  EXPECT_EQ(status(shop, "/openapi.json"), 401U);

  // A backup of the command line needs a key with the role admin.
  const std::string backup = "backup --data " + Path("data") + " --out " + Path("copy");
  EXPECT_EQ(Run(backup).exit_code, 2);
  setenv("CODBAND_API_KEY", boss.c_str(), 1);
  const Outcome copied = Run(backup);
  unsetenv("CODBAND_API_KEY");
  EXPECT_EQ(copied.exit_code, 0) << copied.err;

  // SIGHUP reads the file again, and does not stop a server without a terminal.
  ASSERT_TRUE(WriteFileDurably(Path("keys"), "nonsense\n").ok());
  ASSERT_TRUE(server.WaitFor("stay valid")) << server.output();
  kill(server.pid(), SIGHUP);
  EXPECT_EQ(status(boss, "/v1/models"), 200U);
  EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
}

TEST_F(ServeCliTest, KeysThatCannotBeAreRefused) {
  const std::string file = " --file " + Path("keys");
  const struct {
    std::string arguments;
    std::string message;
  } cases[] = {
      {"keys", "ACTION is required"},
      {"keys show" + file, "ACTION is 'show', expected add, list or remove"},
      {"keys add" + file, "the name of the key to add is missing"},
      {"keys add shop" + file, "--role is missing"},
      {"keys add shop --role chief" + file, "role 'chief' is unknown; there are rank, items, read"},
      {"keys add a/b --role rank" + file, "'a/b' cannot name a key"},
      {"keys add shop --role rank", "--file is missing"},
      {"keys remove shop" + file, "keys"},
      {"keys list shop" + file, "list takes no name"},
      {"serve " + Arguments("--set keys.file=" + Path("keys")),
       "codband keys add NAME --role admin"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(Path("keys"))) << arguments;
  }
  ASSERT_EQ(Run("keys add shop --role rank" + file).exit_code, 0);
  EXPECT_EQ(Run("keys add shop --role rank" + file).exit_code, 2) << "the name is taken";
  setenv("CODBAND_API_KEY", "x", 1);
  const Outcome weak = Run("serve " + Arguments());
  unsetenv("CODBAND_API_KEY");
  EXPECT_EQ(weak.exit_code, 2);
  EXPECT_NE(weak.err.find("expected at least 16"), std::string::npos) << weak.err;
}

TEST_F(ServeCliTest, AKilledServerLosesNothingAndLeavesNoLock) {
  std::string before;
  {
    Serving server(Path("log"), Arguments());
    Use(server);
    before = Exported(Path("data"));
    EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);
  }
  const Outcome doctor = Run("doctor --data " + Path("data"));
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out;
  EXPECT_NE(doctor.out.find("did not shut down cleanly"), std::string::npos) << doctor.out;
  EXPECT_EQ(Exported(Path("data")), before);
  const Outcome backup = Run("backup --data " + Path("data") + " --out " + Path("copy"));
  EXPECT_EQ(backup.exit_code, 0) << backup.err;
  EXPECT_EQ(backup.out.find("by the server"), std::string::npos) << backup.out;
  EXPECT_EQ(Exported(Path("copy")), before);
}

TEST_F(ServeCliTest, DataOfAnotherPolicyIsReadWithThatPolicyFromTheStart) {
  Serving server(Path("log"), Arguments("--set policy.spec=linucb:alpha=0.5"));
  Use(server);
  EXPECT_EQ(server.Stop(SIGKILL), -SIGKILL);  // before any checkpoint is due
  const Json json = Json::parse(Exported(Path("data")));
  EXPECT_EQ(json["meta"]["policy"].get<std::string>().rfind("linucb:alpha=0.5", 0), 0U) << json;
  EXPECT_EQ(json["meta"]["learned"], 30);
  const Outcome doctor = Run("doctor --data " + Path("data"));
  EXPECT_EQ(doctor.exit_code, 0) << doctor.out << doctor.err;
  EXPECT_NE(doctor.out.find("policy linucb"), std::string::npos) << doctor.out;
}

TEST_F(ServeCliTest, DamageIsFoundAndNotRestored) {
  {
    Serving server(Path("log"), Arguments());
    Use(server);
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Path("data"))) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20);
    file.put('\x5a');
    file.put('\x5a');
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  const Outcome doctor = Run("doctor --data " + Path("data"));
  EXPECT_EQ(doctor.exit_code, 1) << doctor.out << doctor.err;
  EXPECT_NE(doctor.out.find("NO"), std::string::npos) << doctor.out;
  EXPECT_NE(doctor.err.find("is not sound"), std::string::npos) << doctor.err;
  const Outcome restore = Run("restore --from " + Path("data") + " --data " + Path("to"));
  EXPECT_EQ(restore.exit_code, 1) << restore.out;
  EXPECT_FALSE(std::filesystem::exists(Path("to")));

  // A repair says what it would drop, does it when told, and then the server starts.
  EXPECT_NE(doctor.err.find("--repair"), std::string::npos) << doctor.err;
  EXPECT_EQ(Run("doctor --yes --data " + Path("data")).exit_code, 2);
  const Outcome plan = Run("doctor --repair --data " + Path("data"));
  EXPECT_EQ(plan.exit_code, 1) << plan.out << plan.err;
  EXPECT_NE(plan.out.find("would drop: "), std::string::npos) << plan.out;
  EXPECT_NE(plan.err.find("--yes"), std::string::npos) << plan.err;
  EXPECT_EQ(Run("doctor --data " + Path("data")).exit_code, 1) << "nothing has changed";
  const Outcome repair = Run("doctor --repair --yes --data " + Path("data"));
  EXPECT_EQ(repair.exit_code, 0) << repair.out << repair.err;
  EXPECT_NE(repair.out.find("dropped: "), std::string::npos) << repair.out;
  EXPECT_TRUE(std::filesystem::exists(Path("data") + "/rocksdb.damaged"));
  Serving server(Path("log"), Arguments());
  EXPECT_EQ(server.Send({.target = "/v1/health/ready"}).status, 200) << server.output();
  EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
  const Outcome sound = Run("doctor --data " + Path("data"));
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.err;
}

TEST_F(ServeCliTest, DecisionLogHoldsFinishedDecisions) {
  {
    Serving server(Path("log"), Arguments("--set decision_log.directory=" + Path("decisions")));
    Use(server);
    EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
  }
  std::size_t lines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(Path("decisions"))) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line); ++lines) {
      const Json json = Json::parse(line);
      EXPECT_EQ(json["c"]["_multi"].size(), 6U);
      EXPECT_EQ(json["a"].size(), 6U);
      EXPECT_EQ(json["a"][0], json["_label_Action"]);
      EXPECT_EQ(json["p"][0], json["_label_probability"]);
      EXPECT_GT(json["p"][5].get<double>(), 0);
    }
  }
  EXPECT_EQ(lines, 30U);
}

TEST_F(ServeCliTest, DemoCanBeStoppedBeforeItIsWarm) {
  Serving server(Path("log"), "--demo --data " + Path("demo") + " --listen 127.0.0.1:0");
  while (!std::filesystem::exists(Path("demo/server.json"))) usleep(2000);
  EXPECT_EQ(server.Stop(SIGTERM), 0) << server.output();
  EXPECT_NE(server.output().find("/v1/rank"), std::string::npos) << server.output();
}

}  // namespace
}  // namespace codband
