#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/server/admin/demo.h"
#include "codband/server/api/decision_log.h"
#include "codband/server/cluster/cluster_member.h"
#include "codband/server/cluster/cluster_service.h"
#include "codband/server/config/config.h"
#include "codband/server/http/server.h"
#include "codband/server/keys/key_gate.h"

namespace codband::server {

struct ServingOptions {
  bool demo = false;      // simulated listeners use the server
  bool any_port = false;  // take any free port if the configured one is in use
  LogSink log = {};       // told what an operator should know; may be empty
  ClusterOptions cluster = {};
};

// How `codband serve` ends: its exit codes.
enum class ServeExit {
  kClean = 0,
  kFailed = 1,    // none of the following
  kSettings = 2,  // the command line, a setting, or one that does not fit the data
  kData = 3,      // the data directory cannot be used: in use, not writable, damaged
  kAddress = 4,   // the address cannot be listened on
  kTrouble = 5,   // it stopped while data could not be written, or the last checkpoint failed
  kDatabase = 6,  // the database of the cluster does not answer, or does not let it in
};

// A running server and all that belongs to it: decision log, engine, HTTP, the note in the data
// directory, the demo. What `codband serve` does between its flags and its signals. Not
// thread-safe.
class Serving {
 public:
  // Opens the data directory, creating it if necessary, and listens. Messages say what can be done.
  // If it fails, `*exit` says in which way.
  static Result<std::unique_ptr<Serving>> Start(const ServeConfig& config,
                                                const ServingOptions& options = {},
                                                ServeExit* exit = nullptr);
  ~Serving() { static_cast<void>(Stop()); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Where this machine can reach it: "http://127.0.0.1:8080".
  const std::string& url() const { return url_; }
  // Whether there is something to look at: at once, but for a demo.
  bool warm() const { return demo_ == nullptr || demo_->warm(); }
  // What is served where, and for a demo what to try, for people.
  std::string Greeting() const;
  // What was found and mended at the start: sentences for the operator.
  const std::vector<std::string>& notes() const { return notes_; }
  // Reads certificate and key again, for connections to come. A sentence on how it went; none
  // without TLS.
  std::optional<std::string> ReloadTls();
  // A sentence when the decision log begins to fail or works again; none if nothing has changed.
  std::optional<std::string> DecisionLogNews();

  // Reads the file of keys again if it has changed, or in any case. A sentence if it was read, or
  // could not be; the keys that were read last stay valid then.
  std::optional<std::string> ReloadKeys(KeyGate::When when);

  // Answers what has been read, removes the note, writes the last checkpoint, flushes the decision
  // log. If it stops in trouble the status says why; nothing that was acknowledged is lost. Safe to
  // call twice.
  Status Stop();

 private:
  Serving(const ServeConfig& config, LogSink log) : config_(config), log_sink_(std::move(log)) {}
  // Takes the rights of others away from what may have been made by an older version, or by hand;
  // notes it if there were any.
  void CloseToOthers(const std::filesystem::path& path, Reach reach);
  Status OpenKeys();
  Status OpenDecisionLog();
  Status PrepareData();
  Status OpenEngine();
  // Of a node: the engine comes when it has a partition.
  Status OpenCluster(const ClusterOptions& options);
  void JoinCluster();
  std::function<void(const engine::FinishedDecision&)> OnFinished() const;
  Result<std::unique_ptr<Server>> StartHttp(const ServerOptions& options);
  Status Listen(bool any_port);
  Status WriteNote() const;

  const ServeConfig config_;
  const LogSink log_sink_;
  std::unique_ptr<DecisionLog> log_;        // may be null
  std::unique_ptr<KeyGate> keys_;           // null: no key is required
  std::unique_ptr<engine::Engine> engine_;  // null in a node of a cluster
  std::unique_ptr<ClusterMember> member_;   // null unless it is one
  ClusterService* service_ = nullptr;       // of a node; the server has it
  std::unique_ptr<Server> server_;
  std::unique_ptr<Demo> demo_;  // may be null
  std::string url_;
  std::vector<std::string> notes_;
  bool log_fails_ = false;
};

// Where a demo keeps its data unless told otherwise: out/demo below the current directory if that
// can be written, else a directory of the user's among the temporary files.
std::filesystem::path DemoDirectory();

}  // namespace codband::server
