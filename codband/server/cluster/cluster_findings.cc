#include "codband/server/cluster/cluster_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "codband/base/text.h"
#include "codband/cluster/frame.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/postgres/database_health.h"
#include "codband/cluster/postgres/postgres_log.h"
#include "codband/cluster/replica.h"
#include "codband/cluster/store_replica.h"
#include "codband/engine/partition.h"
#include "codband/server/cluster/cluster_admin.h"
#include "codband/server/cluster/log_calls.h"
#include "codband/server/cluster/pool_keeper.h"
#include "codband/server/cluster/shared_catalogue.h"
#include "codband/server/http/http_client.h"

namespace codband::server {
namespace {

using cluster::PartitionMap;
using store::Partition;

constexpr std::chrono::milliseconds kAskPatience(3000);

std::string Joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

Finding Found(std::string part, const Result<std::string>& result) {
  return {.part = std::move(part),
          .sound = result.ok(),
          .text = result.ok() ? result.value() : result.status().message()};
}

// Keeps nothing: a checkpoint and the frames since are read and decoded, and that is all.
class ReadingReplica final : public cluster::Replica {
 public:
  cluster::Position position() const override { return position_; }
  Status Clear() override {
    position_ = {};
    records = frames = 0;
    return {};
  }
  Status LoadPart(std::string_view part) override {
    auto batch = cluster::DecodeFrame(part);
    if (!batch.ok()) return batch.status();
    records += batch.value().entries().size();
    return {};
  }
  Status FinishLoad(const cluster::Position& position) override {
    position_ = position;
    return {};
  }
  Status Apply(const store::LogFrame& frame) override {
    if (frame.epoch < position_.epoch) {
      return Status::Corruption(fmt::format("frame {} is of epoch {}, but one before it of {}",
                                            frame.sequence, frame.epoch, position_.epoch));
    }
    if (const auto batch = cluster::DecodeFrame(frame.bytes); !batch.ok()) {
      return Status::Corruption(
          fmt::format("frame {} cannot be read: {}", frame.sequence, batch.status().message()));
    }
    ++frames;
    position_ = {.sequence = frame.sequence, .epoch = frame.epoch};
    return {};
  }

  std::uint64_t records = 0;  // of the checkpoint
  std::uint64_t frames = 0;   // since

 private:
  cluster::Position position_;
};

Status AskNode(const std::string& text) {
  const auto url = ParseHttpUrl(text);
  if (!url.ok()) return url.status();
  auto client = HttpClient::Connect(url.value(), kAskPatience);
  if (!client.ok()) return client.status();
  const auto reply = client.value()->Send({.target = "/v1/health/live"}, kAskPatience);
  if (!reply.ok()) return reply.status();
  if (reply.value().status == 200) return {};
  return {StatusCode::kUnavailable, fmt::format("status {}", reply.value().status)};
}

Result<std::string> LookAtNodes(const PartitionMap& map, bool ask) {
  std::vector<std::string> living;
  std::vector<std::string> dead;
  std::vector<std::string> wrong;
  std::set<std::string> versions;
  std::map<std::string, std::string> urls;
  for (const store::NodeState& node : map.nodes) {
    if (node.lease_left_ms <= 0) {
      dead.push_back(node.name);
      continue;
    }
    living.push_back(node.draining ? node.name + " (draining)" : node.name);
    versions.insert(node.version.empty() ? "an older version" : node.version);
    if (const auto [same, fresh] = urls.emplace(node.url, node.name); !fresh) {
      wrong.push_back(
          fmt::format("'{}' and '{}' have the same address {}: give one of them "
                      "--node-url",
                      same->second, node.name, node.url));
    }
    if (!ask) continue;
    if (const Status answered = AskNode(node.url); !answered.ok()) {
      wrong.push_back(
          fmt::format("'{}' does not answer at {}: {}", node.name, node.url, answered.message()));
    }
  }
  std::string text = living.empty() ? "none is alive" : "alive: " + Joined(living);
  if (!dead.empty()) text += "; gone without saying so: " + Joined(dead);
  if (versions.size() > 1) {
    text += "; of different versions: " + Joined({versions.begin(), versions.end()});
  }
  if (!wrong.empty()) text += "; " + fmt::format("{}", fmt::join(wrong, "; "));
  if (living.empty() || !wrong.empty()) return Status(StatusCode::kUnavailable, text);
  return text;
}

// Parts of blobs that no complete newest version needs.
std::size_t CountLeftOver(const std::vector<store::BlobPart>& parts) {
  std::map<std::string, std::uint64_t> newest;
  for (const store::BlobPart& part : parts) {
    if (part.id.part == 0) newest[part.id.name] = std::max(newest[part.id.name], part.id.version);
  }
  return static_cast<std::size_t>(std::ranges::count_if(parts, [&](const store::BlobPart& part) {
    const auto found = newest.find(part.id.name);
    return found == newest.end() || found->second != part.id.version;
  }));
}

Result<std::string> LookAtPartition(store::PartitionLog& log, const PartitionMap& map,
                                    const store::PartitionState& state) {
  ReadingReplica replica;
  const Status read = cluster::CatchUpAndWait(log, state.partition, replica, state.last_sequence);
  const auto blobs = ListBlobs(log, state.partition);
  std::string text;
  if (state.lease_left_ms > 0) {
    text = fmt::format("on '{}', epoch {}", state.owner, state.epoch);
  } else {
    text = state.owner.empty() ? "served by nobody"
                               : fmt::format("the lease of '{}' is over", state.owner);
  }
  text += fmt::format(", {} frames, {} of them since the checkpoint of {} records",
                      GroupThousands(state.last_sequence), GroupThousands(replica.frames),
                      GroupThousands(replica.records));
  bool sound = state.lease_left_ms > 0;
  if (const store::NodeState* const node = map.FindNode(state.wanted);
      !state.wanted.empty() && (node == nullptr || node->lease_left_ms <= 0 || node->draining)) {
    sound = false;
    text += fmt::format("; wanted on '{}', which {}: move it elsewhere, or to any", state.wanted,
                        node != nullptr && node->draining ? "is draining" : "is not alive");
  }
  if (blobs.ok() && CountLeftOver(blobs.value()) > 0) {
    // The next checkpoint deletes them.
    text += fmt::format("; {} parts of blobs are left over", CountLeftOver(blobs.value()));
  }
  for (const Status& status : {read, blobs.status()}) {
    if (status.ok()) continue;
    sound = false;
    text += "; " + status.message();
  }
  if (sound) return text;
  return Status(StatusCode::kCheckFailed, text);
}

Result<std::string> LookAtCatalogue(store::PartitionLog& log) {
  std::uint64_t next = 1;
  std::uint64_t changes = 0;
  LoopIdentity identity;
  features::ColumnSpace columns;
  while (true) {
    const auto page = ReadSharedPage(log, next);
    if (!page.ok()) return page.status();
    if (page.value().empty()) break;
    for (const store::LogFrame& frame : page.value()) {
      if (next++ == 1) {
        const auto decoded = LoopIdentity::Decode(frame.bytes);
        if (!decoded.ok()) return decoded.status();
        identity = decoded.value();
        continue;
      }
      const auto decoded = engine::DecodeChanges(frame.bytes);
      if (!decoded.ok()) {
        return Status::Corruption(
            fmt::format("frame {}: {}", frame.sequence, decoded.status().message()));
      }
      changes += decoded.value().size();
      const Status fits = TakeColumns(decoded.value(), columns);
      if (!fits.ok()) {
        return Status::Corruption(fmt::format("frame {}: {}", frame.sequence, fits.message()));
      }
    }
  }
  if (next == 1) return std::string("none yet");
  return fmt::format("{}, {} changes in {} frames",
                     identity.dim == 0 ? fmt::format("{} columns", columns.size())
                                       : fmt::format("{} features", identity.dim),
                     GroupThousands(changes), GroupThousands(next - 1));
}

// Which registers the pool of a partition has, beside which there are.
Result<std::string> LookAtPool(store::PartitionLog& log, Partition partitions) {
  std::map<Partition, std::uint64_t> registers;
  RegisterShelf shelf;
  for (Partition partition = 0; partition < partitions; ++partition) {
    const auto version = FindVersion(log, partition, PoolKeeper::kRegister);
    if (!version.ok()) return version.status();
    if (version.value() == 0) continue;
    const auto bytes = GetBlob(log, partition, PoolKeeper::kRegister, version.value());
    if (WasReplaced(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    auto blob = RegisterBlob::Decode(bytes.value());
    const Status put =
        blob.ok() ? shelf.Put(std::move(blob.value().bytes)).status() : blob.status();
    if (!put.ok()) {
      return Status::Corruption(
          fmt::format("the register of partition {}: {}", partition, put.message()));
    }
    registers[partition] = version.value();
  }
  if (registers.empty()) return std::string("nothing was published yet");
  std::size_t behind = 0;
  for (Partition partition = 0; partition < partitions; ++partition) {
    const std::string name = PoolKeeper::PoolName(partition);
    const auto version = FindVersion(log, PoolKeeper::kMerger, name);
    if (!version.ok()) return version.status();
    if (version.value() == 0) {
      ++behind;
      continue;
    }
    const auto bytes = GetBlob(log, PoolKeeper::kMerger, name, version.value());
    if (WasReplaced(bytes.status())) continue;
    if (!bytes.ok()) return bytes.status();
    auto blob = PoolBlob::Decode(bytes.value());
    if (!blob.ok()) return blob.status();
    behind += std::ranges::any_of(registers, [&](const auto& each) {
      return blob.value().registers[each.first] < each.second;
    });
  }
  return fmt::format("registers of {} partitions; the pools of {} of {} have the newest ones",
                     registers.size(), partitions - behind, partitions);
}

// Makes the partition anew, and looks at what it is then.
std::vector<Finding> Rebuild(store::PartitionLog& log, const store::PartitionState& state,
                             const std::filesystem::path& directory) {
  const auto make = [&]() -> Status {
    auto replica = cluster::StoreReplica::Open(directory);
    if (!replica.ok()) return replica.status();
    return cluster::CatchUpAndWait(log, state.partition, *replica.value(), state.last_sequence);
  };
  const std::string part = fmt::format("partition {} made anew", state.partition);
  if (state.last_sequence == 0) return {{.part = part, .text = "nothing is in it yet"}};
  if (const Status made = make(); !made.ok()) return {Found(part, made)};
  auto findings = ExamineData(directory);
  if (!findings.ok()) return {Found(part, findings.status())};
  for (Finding& finding : findings.value()) {
    finding.part = fmt::format("{}: {}", part, finding.part);
  }
  return std::move(findings).value();
}

}  // namespace

Finding ExamineDatabaseOf(const std::string& dsn, const std::string& part) {
  const auto health = cluster::ExamineDatabase(dsn, cluster::PostgresOptions().loop);
  if (!health.ok()) return Found(part, health.status());
  const cluster::DatabaseHealth& is = health.value();
  std::string text = fmt::format("PostgreSQL {}, {:.1f} MiB", is.version,
                                 static_cast<double>(is.loop_bytes) / (1 << 20));
  bool sound = true;
  if (is.standbys.empty()) {
    text += "; no synchronous standby: what was acknowledged is on the disk of one machine";
  } else if (is.synchronous > 0) {
    text += fmt::format("; {} synchronous standby, of '{}'", is.synchronous, is.standbys);
  } else if (is.hidden > 0) {
    text += fmt::format("; standbys '{}', of which this user may not see more", is.standbys);
  } else {
    sound = false;
    text +=
        fmt::format("; none of the standbys '{}' is connected: writes wait for one", is.standbys);
  }
  for (const auto& [name, on] :
       {std::pair("fsync", is.fsync), std::pair("full_page_writes", is.full_page_writes)}) {
    if (on) continue;
    sound = false;
    text += fmt::format("; {} is off: a crash of its machine can lose what was acknowledged", name);
  }
  return {.part = part, .sound = sound, .text = std::move(text)};
}

std::vector<Finding> ExamineCluster(store::PartitionLog& log,
                                    const ClusterExamination& examination) {
  const auto map = ReadMap(log);
  if (!map.ok()) return {Found("partitions", map.status())};
  std::vector<Finding> findings;
  findings.push_back(Found("nodes", LookAtNodes(map.value(), examination.ask_nodes)));
  for (const store::PartitionState& state : map.value().partitions) {
    findings.push_back(Found(fmt::format("partition {}", state.partition),
                             LookAtPartition(log, map.value(), state)));
  }
  const auto partitions = static_cast<Partition>(map.value().partitions.size());
  if (partitions > 1) {
    findings.push_back(Found("catalogue", LookAtCatalogue(log)));
    findings.push_back(Found("pool", LookAtPool(log, partitions)));
  }
  if (examination.scratch.empty()) return findings;
  for (const store::PartitionState& state : map.value().partitions) {
    const auto rebuilt =
        Rebuild(log, state, examination.scratch / fmt::format("partition-{}", state.partition));
    findings.insert(findings.end(), rebuilt.begin(), rebuilt.end());
  }
  return findings;
}

}  // namespace codband::server
