// codband cluster: who serves what in a cluster, and what an operator does with it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/parse.h"
#include "codband/cli/command.h"
#include "codband/cli/findings_text.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/postgres/postgres_log.h"
#include "codband/server/cluster/cluster_admin.h"
#include "codband/server/cluster/cluster_copy.h"
#include "codband/server/cluster/cluster_findings.h"

namespace codband::cli {
namespace {

struct ClusterFlags {
  std::string action;
  std::vector<std::string> dsns;
  std::string partition;
  std::string to;
  std::string node;
  bool undo = false;
  std::string scratch;
  std::string out;
  std::string from;
  std::string data;
  std::string partitions;
  std::string seed = "1";
  std::string wait = "60";
};

constexpr std::string_view kClusterFooter = R"(
status lists the nodes, who owns which partition, and who follows it as its standby, lacking how many
frames of the log, as the database has it now. It changes nothing.

move puts a partition on a node, where it then stays while that node lives, and waits until the node
has it; '--to any' ends that: it may be on any node again. Requests for it wait for a moment
meanwhile, none is refused.

drain takes all partitions from a node and waits until others have them; the node goes on passing
requests on. It stays without partitions until it is started again, or 'drain --undo'.

doctor checks the database, the nodes, and of every partition the owner, the checkpoint, and every
frame of the log since; with --scratch it makes every partition anew in a folder there and examines it
as 'codband doctor' does. It changes nothing in the cluster.

backup copies a loop into a new directory while nodes serve it: a data directory for each partition,
and what they share. restore puts such a copy into a database without a loop; nodes that start then
go on from there. With --partitions the loop gets another number of partitions than it had.

import makes a loop from a data directory that no server runs on: of one partition, whose node then
goes on bit for bit, or with --partitions of several, as if they had always learned together. export
makes a data directory of a loop, as of now, while nodes serve it.

If restore or import is interrupted, no node serves the loop: run the same command again. Where
partitions are made out of something else --scratch is a directory with room for two copies of
everything; if it is not given, that is where --from or --data is.

Examples:
  codband cluster status --cluster 'host=db1,db2 dbname=codband'
  codband cluster move --cluster 'host=db1,db2 dbname=codband' --partition 3 --to b
  codband cluster drain --cluster 'host=db1,db2 dbname=codband' --node a
  codband cluster doctor --cluster 'host=db1,db2 dbname=codband' --scratch /tmp/examined
  codband cluster backup --cluster 'host=db1,db2 dbname=codband' --out /backups/loop-2026-11-18
  codband cluster restore --cluster 'host=db3 dbname=codband' --from /backups/loop-2026-11-18
  codband cluster import --cluster 'host=db1,db2 dbname=codband' --partitions 16 \
    --data /var/lib/codband
  codband cluster export --cluster 'host=db1,db2 dbname=codband' --out /var/lib/codband-alone

Exit code: 0 done, every partition is served, or all is sound; 1 it is not, or the database does not
answer; 2 wrong flags, or there is no such loop, node or partition.)";

// The flags that belong to an action beside --cluster.
struct Action {
  std::string_view name;
  std::vector<const char*> required;
  std::vector<const char*> optional;
};
const std::vector<Action>& Actions() {
  static const std::vector<Action> actions{
      {"status", {}, {}},
      {"move", {"--partition", "--to"}, {"--wait"}},
      {"drain", {"--node"}, {"--undo", "--wait"}},
      {"doctor", {}, {"--scratch"}},
      {"backup", {"--out"}, {}},
      {"restore", {"--from"}, {"--partitions", "--scratch", "--seed"}},
      {"import", {"--data"}, {"--partitions", "--scratch", "--seed"}},
      {"export", {"--out"}, {"--seed"}},
  };
  return actions;
}

std::string LeaseText(std::int64_t left_ms) {
  return left_ms > 0 ? fmt::format("{:.1f} s", static_cast<double>(left_ms) / 1000) : "over";
}

constexpr std::size_t kStandby = 7;  // characters, as its title has

// Who follows a partition, the one that has most of it, and how many frames it lacks.
std::pair<std::string, std::string> StandbyText(const cluster::PartitionMap& map,
                                                const store::PartitionState& state) {
  std::pair<std::string, std::string> text("-", "-");
  std::uint64_t least = 0;
  for (const store::NodeState& node : map.nodes) {
    if (node.lease_left_ms <= 0 || node.name == state.owner) continue;
    for (const store::Followed& each : node.follows) {
      if (each.partition != state.partition) continue;
      const std::uint64_t lag = map.LagOf(each);
      if (text.first != "-" && lag >= least) continue;
      least = lag;
      text = {node.name, fmt::format("{}", lag)};
    }
  }
  return text;
}

Status PrintStatus(const cluster::PartitionMap& map) {
  std::size_t width = 4;
  for (const auto& node : map.nodes) width = std::max(width, node.name.size());
  fmt::print("{:{}}  {:>6}  {:>10}  {:<8}  address\n", "node", width, "lease", "partitions",
             "version");
  for (const auto& node : map.nodes) {
    const auto has = std::ranges::count_if(map.partitions, [&](const auto& state) {
      return state.owner == node.name && state.lease_left_ms > 0;
    });
    fmt::print("{:{}}  {:>6}  {:>10}  {:<8}  {}{}\n", node.name, width,
               LeaseText(node.lease_left_ms), has, node.version.empty() ? "-" : node.version,
               node.url, node.draining ? "  draining" : "");
  }
  fmt::print("\npartition  {:{}}  {:>6}  {:>6}  {:>10}  {:>10}  {:{}}  {:>6}  wanted on\n", "owner",
             width, "lease", "epoch", "frames", "in the log", "standby", std::max(width, kStandby),
             "lag");
  std::size_t unserved = 0;
  for (const auto& state : map.partitions) {
    const bool served = map.IsOwned(state.partition);
    if (!served) ++unserved;
    const auto [standby, lag] = StandbyText(map, state);
    fmt::print("{:9}  {:{}}  {:>6}  {:6}  {:10}  {:10}  {:{}}  {:>6}  {}\n", state.partition,
               state.owner.empty() ? "-" : state.owner, width,
               state.owner.empty() ? "-" : LeaseText(state.lease_left_ms), state.epoch,
               state.last_sequence, state.last_sequence + 1 - state.first_sequence, standby,
               std::max(width, kStandby), lag, state.wanted.empty() ? "any" : state.wanted);
  }
  if (unserved == 0) return {};
  return {StatusCode::kUnavailable, fmt::format("{} of {} partitions are served by nobody now",
                                                unserved, map.partitions.size())};
}

Status RunStatus(store::PartitionLog& log) {
  const auto map = server::ReadMap(log);
  return map.ok() ? PrintStatus(map.value()) : map.status();
}

Status RunMove(store::PartitionLog& log, const ClusterFlags& flags,
               std::chrono::milliseconds patience) {
  const auto partition = ParseNumber<store::Partition>(flags.partition);
  if (!partition) {
    return Status::InvalidArgument(
        fmt::format("--partition is '{}', expected a number from 0 on", flags.partition));
  }
  const bool any = flags.to == "any";
  CODBAND_RETURN_IF_ERROR(server::MovePartition(log, *partition, any ? "" : flags.to, patience));
  fmt::print("Partition {} {}\n", *partition,
             any ? "may be on any node" : fmt::format("is on '{}'", flags.to));
  return {};
}

Status RunDrain(store::PartitionLog& log, const ClusterFlags& flags,
                std::chrono::milliseconds patience) {
  CODBAND_RETURN_IF_ERROR(flags.undo ? server::EndDrain(log, flags.node)
                                     : server::DrainNode(log, flags.node, patience));
  fmt::print("Node '{}' {}\n", flags.node,
             flags.undo ? "takes partitions again" : "has no partitions");
  return {};
}

Status RunDoctor(store::PartitionLog& log, const ClusterFlags& flags) {
  std::vector<server::Finding> findings;
  for (std::size_t i = 0; i < flags.dsns.size(); ++i) {
    findings.push_back(server::ExamineDatabaseOf(
        flags.dsns[i], flags.dsns.size() == 1 ? "database" : fmt::format("database {}", i + 1)));
  }
  const auto examined = server::ExamineCluster(log, {.scratch = flags.scratch});
  findings.insert(findings.end(), examined.begin(), examined.end());
  fmt::print("{}", FindingsText(findings));
  const auto unsound = std::ranges::find(findings, false, &server::Finding::sound);
  if (unsound == findings.end()) return {};
  return {StatusCode::kCheckFailed, fmt::format("{}: {}", unsound->part, unsound->text)};
}

// These make the loop that they fill, once it is clear with what.
Result<std::string> RunFill(const ClusterFlags& flags, std::uint64_t seed) {
  const auto open = [&](store::Partition partitions) {
    return cluster::OpenPostgresLog({.dsns = flags.dsns, .partitions = partitions});
  };
  server::FillOptions options{.scratch = flags.scratch, .seed = seed};
  if (!flags.partitions.empty()) {
    options.partitions = ParseNumber<store::Partition>(flags.partitions);
    if (!options.partitions) {
      return Status::InvalidArgument(
          fmt::format("--partitions is '{}', expected a number from 1 to {}", flags.partitions,
                      store::kMostPartitions));
    }
  }
  return flags.action == "restore" ? server::RestoreCluster(open, flags.from, options)
                                   : server::ImportData(open, flags.data, options);
}

Status TellCopied(const char* done, const Result<std::string>& what) {
  if (!what.ok()) return what.status();
  fmt::print("{}: {}\n", done, what.value());
  return {};
}

// Of all flags those that the action does not know are refused, and those that it needs are there.
Status CheckFlags(const Command& command, const std::string& name) {
  const auto action = std::ranges::find(Actions(), name, &Action::name);
  if (action == Actions().end()) {
    std::vector<std::string_view> names;
    for (const Action& each : Actions()) names.push_back(each.name);
    return Status::InvalidArgument(
        fmt::format("ACTION is '{}', expected one of {}", name, fmt::join(names, ", ")));
  }
  for (const char* flag : action->required) {
    if (!command.Given(flag)) {
      return Status::InvalidArgument(fmt::format("{} is missing: '{}' needs it", flag, name));
    }
  }
  const auto knows = [&](std::string_view flag) {
    return std::ranges::count(action->required, flag) + std::ranges::count(action->optional, flag) >
           0;
  };
  for (const Action& each : Actions()) {
    for (const auto* list : {&each.required, &each.optional}) {
      for (const char* flag : *list) {
        if (!command.Given(flag) || knows(flag)) continue;
        return Status::InvalidArgument(
            fmt::format("{} is for '{}', not for '{}'", flag, each.name, name));
      }
    }
  }
  return {};
}

Status RunCluster(const Command& command, const ClusterFlags& flags) {
  CODBAND_RETURN_IF_ERROR(CheckFlags(command, flags.action));
  const auto seconds = ParseNumber<std::uint32_t>(flags.wait);
  if (!seconds) {
    return Status::InvalidArgument(
        fmt::format("--wait is '{}', expected a number of seconds", flags.wait));
  }
  const auto seed = ParseNumber<std::uint64_t>(flags.seed);
  if (!seed) {
    return Status::InvalidArgument(
        fmt::format("--seed is '{}', expected a number from 0 on", flags.seed));
  }
  if (flags.dsns.empty()) {
    return Status::InvalidArgument(
        "--cluster is missing, expected the connection string of the cluster's PostgreSQL: "
        "'host=db1 dbname=codband'");
  }
  if (flags.action == "restore") return TellCopied("Restored", RunFill(flags, *seed));
  if (flags.action == "import") return TellCopied("Imported", RunFill(flags, *seed));
  const auto log = cluster::OpenPostgresLog({.dsns = flags.dsns, .create = false});
  if (!log.ok()) return log.status();
  if (flags.action == "backup") {
    return TellCopied("Backed up", server::BackUpCluster(*log.value(), flags.out));
  }
  if (flags.action == "export") {
    return TellCopied("Exported", server::ExportData(*log.value(), flags.out, *seed));
  }
  const std::chrono::seconds patience(*seconds);
  if (flags.action == "status") return RunStatus(*log.value());
  if (flags.action == "move") return RunMove(*log.value(), flags, patience);
  if (flags.action == "drain") return RunDrain(*log.value(), flags, patience);
  return RunDoctor(*log.value(), flags);
}

}  // namespace

void AddClusterCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ClusterFlags>();
  const Command command(app, "cluster", "Look at a cluster, move its partitions, copy it",
                        kClusterFooter);
  command.Option("ACTION", flags->action, "ACTION",
                 "status, move, drain, doctor, backup, restore, import or export",
                 Command::kRequired);
  command.Repeated("--cluster", flags->dsns, "DSN",
                   "The PostgreSQL of the cluster; several in the order in which nodes get them");
  command.Option("--partition", flags->partition, "P", "move: which");
  command.Option("--to", flags->to, "NODE", "move: the node, or 'any'");
  command.Option("--node", flags->node, "NODE", "drain: which");
  command.Switch("--undo", flags->undo, "drain: it takes partitions again");
  command.Option("--wait", flags->wait, "SECONDS", "move, drain: wait so long, 60 unless given");
  command.Option("--scratch", flags->scratch, "DIR",
                 "doctor: make every partition anew there; import, restore: room for copies");
  command.Option("--partitions", flags->partitions, "P",
                 "import, restore: how many the loop gets, if not 1, or as many as it had");
  command.Option("--seed", flags->seed, "SEED",
                 "import, restore, export: that of the server, unless it is 1");
  command.Option("--out", flags->out, "DIR", "backup, export: the new directory");
  command.Option("--from", flags->from, "DIR", "restore: what 'cluster backup' made");
  command.Option("--data", flags->data, "DIR", "import: the data directory");
  command.Run(status, [flags, command] { return RunCluster(command, *flags); });
}

}  // namespace codband::cli
