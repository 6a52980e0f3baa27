#include "codband/cluster/postgres/postgres_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "codband/cluster/postgres/follows_text.h"

namespace codband::cluster {
namespace {

using store::Claim;
using store::LogFrame;
using store::NodeState;
using store::Partition;
using store::PartitionState;

constexpr std::size_t kAppendLanes = 4;
constexpr std::int64_t kListenMs = 200;
constexpr std::chrono::milliseconds kListenPause(500);

#define CODBAND_LEASE_LEFT \
  "(greatest(-1e15, extract(epoch FROM lease_until - clock_timestamp()) * 1000))::bigint"

// What a notification says: that there is a new blob, or nothing, of owners and nodes.
#define CODBAND_BLOBS "blobs"

// Everybody who watches is told by the transaction itself.
constexpr Statement kAcquire{
    "acquire",
    "WITH taken AS (UPDATE partitions SET epoch = epoch + 1, session = 0, owner = $2, "
    "lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond' "
    "WHERE p = $1::integer AND (owner IS NULL OR lease_until <= clock_timestamp()) RETURNING *), "
    "noted AS (INSERT INTO takeovers (p, epoch, owner, after_sequence) "
    "SELECT p, epoch, owner, last_sequence FROM taken) "
    "SELECT epoch, last_sequence, first_sequence, " CODBAND_LEASE_LEFT
    ", pg_notify('codband_' || current_schema(), '') FROM taken"};
constexpr Statement kOwner{"owner",
                           "SELECT coalesce(owner, '') FROM partitions WHERE p = $1::integer"};
constexpr Statement kRenew{
    "renew",
    "UPDATE partitions SET lease_until = clock_timestamp() + $3::bigint * interval '1 millisecond' "
    "FROM unnest($1::integer[], $2::bigint[]) AS claim(of_p, of_epoch) "
    "WHERE p = of_p AND epoch = of_epoch RETURNING p::bigint"};
constexpr Statement kRelease{
    "release",
    "WITH given AS (UPDATE partitions SET epoch = epoch + 1, session = 0, owner = NULL, "
    "lease_until = '-infinity' WHERE p = $1::integer AND epoch = $2::bigint RETURNING *), "
    "noted AS (INSERT INTO takeovers (p, epoch, owner, after_sequence) "
    "SELECT p, epoch, owner, last_sequence FROM given) "
    "SELECT epoch, pg_notify('codband_' || current_schema(), '') FROM given"};
constexpr Statement kRead{
    "read",
    "SELECT sequence, epoch, frame FROM (SELECT sequence, epoch, frame, "
    "sum(octet_length(frame)) OVER (ORDER BY sequence) - octet_length(frame) AS before "
    "FROM (SELECT * FROM log WHERE p = $1::integer AND sequence >= $2::bigint "
    "ORDER BY sequence LIMIT 2000) AS page) AS summed WHERE before < $3::bigint ORDER BY sequence"};
constexpr Statement kFirst{
    "first", "SELECT first_sequence, last_sequence FROM partitions WHERE p = $1::integer"};
// The row that appends need is held for a moment; the frames are deleted after that, in portions.
constexpr Statement kMoveFirst{
    "move_first",
    "UPDATE partitions SET first_sequence = "
    "greatest(first_sequence, least($3::bigint, last_sequence + 1)) "
    "WHERE p = $1::integer AND epoch = $2::bigint RETURNING first_sequence"};
constexpr Statement kDeleteFrames{
    "delete_frames",
    "WITH old AS (SELECT sequence FROM log WHERE p = $1::integer AND sequence < $2::bigint "
    "ORDER BY sequence LIMIT 5000) "
    "DELETE FROM log USING old WHERE log.p = $1::integer AND log.sequence = old.sequence "
    "RETURNING old.sequence"};
constexpr Statement kPutBlob{
    "put_blob",
    "WITH mine AS (SELECT p FROM partitions WHERE p = $1::integer AND epoch = $2::bigint), "
    "put AS (INSERT INTO blobs (p, name, version, part, bytes) "
    "SELECT p, $3, $4::bigint, $5::integer, $6::bytea FROM mine "
    "ON CONFLICT (p, name, version, part) DO UPDATE SET bytes = excluded.bytes) "
    "SELECT p::bigint, CASE WHEN $5::integer = 0 THEN "
    "pg_notify('codband_' || current_schema(), '" CODBAND_BLOBS "')::text END FROM mine"};
constexpr Statement kGetBlob{
    "get_blob",
    "SELECT bytes FROM blobs WHERE p = $1::integer AND name = $2 AND version = $3::bigint "
    "AND part = $4::integer"};
constexpr Statement kFindBlob{
    "find_blob",
    "SELECT version FROM blobs WHERE p = $1::integer AND name = $2 AND part = 0 "
    "ORDER BY version DESC LIMIT 1"};
constexpr Statement kListBlobs{
    "list_blobs",
    "SELECT name, version, part::bigint, octet_length(bytes)::bigint FROM blobs "
    "WHERE p = $1::integer ORDER BY name COLLATE \"C\", version, part"};
constexpr Statement kDeleteBlobs{
    "delete_blobs",
    "WITH mine AS (SELECT p FROM partitions WHERE p = $1::integer AND epoch = $2::bigint), "
    "gone AS (DELETE FROM blobs USING mine WHERE blobs.p = mine.p AND name = $3 "
    "AND version < $4::bigint) SELECT p::bigint FROM mine"};
constexpr Statement kAppendShared{
    "append_shared",
    "WITH put AS (INSERT INTO shared_log (sequence, frame) SELECT $1::bigint, $2::bytea "
    "WHERE $1::bigint = 1 OR EXISTS (SELECT 1 FROM shared_log WHERE sequence = $1::bigint - 1) "
    "ON CONFLICT DO NOTHING RETURNING sequence) "
    "SELECT sequence, pg_notify('codband_' || current_schema(), '') FROM put"};
constexpr Statement kReadShared{
    "read_shared",
    "SELECT sequence, frame FROM (SELECT sequence, frame, "
    "sum(octet_length(frame)) OVER (ORDER BY sequence) - octet_length(frame) AS before "
    "FROM (SELECT * FROM shared_log WHERE sequence >= $1::bigint ORDER BY sequence LIMIT 2000) "
    "AS page) AS summed WHERE before < $2::bigint ORDER BY sequence"};
constexpr Statement kWant{"want",
                          "WITH wanted AS (UPDATE partitions SET wanted = $2 WHERE p = $1::integer "
                          "RETURNING p) SELECT p::bigint, pg_notify('codband_' || "
                          "current_schema(), '') FROM wanted"};
constexpr Statement kSetDraining{
    "set_draining",
    "WITH drained AS (UPDATE nodes SET draining = $2::boolean WHERE name = $1 RETURNING name) "
    "SELECT name, pg_notify('codband_' || current_schema(), '') FROM drained"};
// A row that was inserted has no xmax.
constexpr Statement kKeepNode{
    "keep_node",
    "WITH kept AS (INSERT INTO nodes (name, instance, url, version, draining, follows, "
    "lease_until) "
    "VALUES ($1, $2, $3, $5, $6::boolean, $7, clock_timestamp() + $4::bigint * interval '1 "
    "millisecond') "
    "ON CONFLICT (name) DO UPDATE SET instance = excluded.instance, url = excluded.url, "
    "draining = excluded.draining OR (nodes.draining AND nodes.instance = excluded.instance), "
    "version = excluded.version, follows = excluded.follows, lease_until = excluded.lease_until "
    "WHERE nodes.instance = excluded.instance OR nodes.lease_until <= clock_timestamp() "
    "RETURNING xmax = 0 AS fresh) "
    "SELECT CASE WHEN fresh THEN pg_notify('codband_' || current_schema(), '')::text END FROM "
    "kept"};
constexpr Statement kRemoveNode{
    "remove_node",
    "WITH gone AS (DELETE FROM nodes WHERE name = $1 AND instance = $2 RETURNING name) "
    "SELECT pg_notify('codband_' || current_schema(), '') FROM gone"};
constexpr Statement kListNodes{"list_nodes",
                               "SELECT name, url, instance, " CODBAND_LEASE_LEFT
                               ", version, draining::integer::bigint, follows FROM nodes "
                               "ORDER BY name"};
constexpr Statement kListPartitions{
    "list_partitions",
    "SELECT p::bigint, epoch, coalesce(owner, ''), last_sequence, first_sequence, "
    "CASE WHEN owner IS NULL THEN 0 ELSE " CODBAND_LEASE_LEFT
    " END, wanted FROM partitions ORDER BY p"};

constexpr const char* kBlobs = CODBAND_BLOBS;

#undef CODBAND_BLOBS
#undef CODBAND_LEASE_LEFT

Argument Number(Partition partition) { return std::uint64_t{partition}; }
Argument Millis(std::int64_t ms) { return std::to_string(ms); }

// Runs one statement on a lane and answers with what `read` makes of its rows, or with why it could
// not be run.
template <typename T>
void Ask(Lane& lane, const Statement& statement, std::vector<Argument> arguments,
         store::PartitionLog::Done<T> done, std::function<T(const Rows&)> read) {
  lane.Submit([&statement, arguments = std::move(arguments), done = std::move(done),
               read = std::move(read)](const Result<Connection*>& connection) {
    if (!connection.ok()) return done(connection.status());
    const Reply reply = connection.value()->Run(statement, arguments);
    done(reply.ok() ? read(reply.rows) : T(reply.ToStatus()));
  });
}

std::function<Status(const Rows&)> FencedIfEmpty(const Claim& claim) {
  return [claim](const Rows& rows) { return rows.empty() ? store::Fenced(claim) : Status(); };
}

Status NoPartition(Partition partition) {
  return Status::InvalidArgument(fmt::format("there is no partition {}", partition));
}

Result<PartitionState> TryAcquire(Connection& connection, Partition partition,
                                  const std::string& node, std::int64_t lease_ms) {
  const Reply taken = connection.Run(kAcquire, {Number(partition), node, Millis(lease_ms)});
  CODBAND_RETURN_IF_ERROR(taken.ToStatus());
  if (!taken.rows.empty()) {
    return PartitionState{.partition = partition,
                          .epoch = taken.rows.Number(0, 0),
                          .owner = node,
                          .last_sequence = taken.rows.Number(0, 1),
                          .first_sequence = taken.rows.Number(0, 2),
                          .lease_left_ms = taken.rows.Int(0, 3)};
  }
  const Reply owner = connection.Run(kOwner, {Number(partition)});
  CODBAND_RETURN_IF_ERROR(owner.ToStatus());
  if (owner.rows.empty()) return NoPartition(partition);
  return Status(StatusCode::kConflict,
                fmt::format("partition {} is held by '{}'", partition, owner.rows.Bytes(0, 0)));
}

Result<std::vector<LogFrame>> ReadFrames(Connection& connection, Partition partition,
                                         std::uint64_t from, std::size_t most_bytes) {
  const Reply read = connection.Run(
      kRead, {Number(partition), from, std::uint64_t{std::max<std::size_t>(most_bytes, 1)}});
  CODBAND_RETURN_IF_ERROR(read.ToStatus());
  std::vector<LogFrame> frames;
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    frames.push_back({.sequence = read.rows.Number(i, 0),
                      .epoch = read.rows.Number(i, 1),
                      .bytes = read.rows.Bytes(i, 2)});
    if (frames.back().sequence != frames.front().sequence + i) {
      return Status::Corruption(fmt::format("partition {}: frame {} is missing from the log",
                                            partition, frames.front().sequence + i));
    }
  }
  if (!frames.empty() && frames.front().sequence == from) return frames;
  const Reply first = connection.Run(kFirst, {Number(partition)});
  CODBAND_RETURN_IF_ERROR(first.ToStatus());
  if (first.rows.empty()) return NoPartition(partition);
  if (first.rows.Number(0, 0) > from) {
    return Status::NotFound(fmt::format("partition {}: frames below {} were truncated", partition,
                                        first.rows.Number(0, 0)));
  }
  // It may have been appended between the two questions: the next read finds it.
  if (frames.empty()) return frames;
  return Status::Corruption(
      fmt::format("partition {}: frame {} is missing from the log", partition, from));
}

Status TruncateFrames(Connection& connection, const Claim& claim, std::uint64_t below) {
  const Reply moved = connection.Run(kMoveFirst, {Number(claim.partition), claim.epoch, below});
  CODBAND_RETURN_IF_ERROR(moved.ToStatus());
  if (moved.rows.empty()) return store::Fenced(claim);
  const std::uint64_t first = moved.rows.Number(0, 0);
  while (true) {
    const Reply deleted = connection.Run(kDeleteFrames, {Number(claim.partition), first});
    CODBAND_RETURN_IF_ERROR(deleted.ToStatus());
    if (deleted.rows.empty()) return {};
  }
}

}  // namespace

PostgresCluster::PostgresCluster(Connection::Options options, LogSink log)
    : watch_(options),
      options_([&] {
        options.watch = &watch_;
        return std::move(options);
      }()),
      log_(std::move(log)),
      channel_("codband_" + options_.schema),
      leases_(options_, log_),
      bulk_(options_, {}) {
  for (std::size_t i = 0; i < kAppendLanes; ++i) {
    appends_.push_back(std::make_unique<AppendLane>(options_, i == 0 ? log_ : LogSink()));
  }
}

PostgresCluster::~PostgresCluster() {
  stop_ = true;
  if (listener_.joinable()) listener_.join();
}

void PostgresCluster::Acquire(Partition partition, std::string node, std::int64_t lease_ms,
                              Done<Result<PartitionState>> done) {
  leases_.Submit([partition, node = std::move(node), lease_ms,
                  done = std::move(done)](const Result<Connection*>& connection) {
    if (!connection.ok()) return done(connection.status());
    done(TryAcquire(*connection.value(), partition, node, lease_ms));
  });
}

void PostgresCluster::Renew(std::vector<Claim> claims, std::int64_t lease_ms,
                            Done<Result<std::vector<Claim>>> done) {
  std::string partitions = "{";
  std::string epochs = "{";
  for (const Claim& claim : claims) {
    const std::string_view comma = partitions.size() > 1 ? "," : "";
    partitions += fmt::format("{}{}", comma, claim.partition);
    epochs += fmt::format("{}{}", comma, claim.epoch);
  }
  Ask<Result<std::vector<Claim>>>(
      leases_, kRenew, {partitions + "}", epochs + "}", Millis(lease_ms)}, std::move(done),
      [claims = std::move(claims)](const Rows& rows) {
        std::vector<Claim> over = claims;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          std::erase_if(over,
                        [&](const Claim& claim) { return claim.partition == rows.Number(i, 0); });
        }
        return Result<std::vector<Claim>>(std::move(over));
      });
}

void PostgresCluster::Release(Claim claim, Done<Status> done) {
  Ask<Status>(leases_, kRelease, {Number(claim.partition), claim.epoch}, std::move(done),
              FencedIfEmpty(claim));
}

void PostgresCluster::Append(Claim claim, std::uint64_t sequence, std::string frame,
                             Done<Status> done) {
  appends_[claim.partition % kAppendLanes]->Submit(
      {.claim = claim, .sequence = sequence, .frame = std::move(frame), .done = std::move(done)});
}

void PostgresCluster::Read(Partition partition, std::uint64_t from, std::size_t most_bytes,
                           Done<Result<std::vector<LogFrame>>> done) {
  bulk_.Submit(
      [partition, from, most_bytes, done = std::move(done)](const Result<Connection*>& connection) {
        if (!connection.ok()) return done(connection.status());
        done(ReadFrames(*connection.value(), partition, from, most_bytes));
      });
}

void PostgresCluster::Truncate(Claim claim, std::uint64_t below, Done<Status> done) {
  bulk_.Submit([claim, below, done = std::move(done)](const Result<Connection*>& connection) {
    if (!connection.ok()) return done(connection.status());
    done(TruncateFrames(*connection.value(), claim, below));
  });
}

void PostgresCluster::PutBlob(Claim claim, store::BlobId id, std::string bytes, Done<Status> done) {
  Ask<Status>(bulk_, kPutBlob,
              {Number(claim.partition), claim.epoch, id.name, id.version, Number(id.part),
               Argument::Bytes(std::move(bytes))},
              std::move(done), FencedIfEmpty(claim));
}

void PostgresCluster::GetBlob(Partition partition, store::BlobId id,
                              Done<Result<std::string>> done) {
  Ask<Result<std::string>>(
      bulk_, kGetBlob, {Number(partition), id.name, id.version, Number(id.part)}, std::move(done),
      [partition, id](const Rows& rows) -> Result<std::string> {
        if (!rows.empty()) return rows.Bytes(0, 0);
        return Status::NotFound(
            fmt::format("partition {}: there is no part {} of version {} of '{}'", partition,
                        id.part, id.version, id.name));
      });
}

void PostgresCluster::FindBlob(Partition partition, std::string name,
                               Done<Result<std::uint64_t>> done) {
  Ask<Result<std::uint64_t>>(
      bulk_, kFindBlob, {Number(partition), name}, std::move(done),
      [partition, name](const Rows& rows) -> Result<std::uint64_t> {
        if (!rows.empty()) return rows.Number(0, 0);
        return Status::NotFound(fmt::format("partition {}: there is no '{}'", partition, name));
      });
}

void PostgresCluster::ListBlobs(Partition partition,
                                Done<Result<std::vector<store::BlobPart>>> done) {
  Ask<Result<std::vector<store::BlobPart>>>(
      bulk_, kListBlobs, {Number(partition)}, std::move(done), [](const Rows& rows) {
        std::vector<store::BlobPart> parts;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          parts.push_back({.id = {.name = rows.Bytes(i, 0),
                                  .version = rows.Number(i, 1),
                                  .part = static_cast<std::uint32_t>(rows.Number(i, 2))},
                           .bytes = rows.Number(i, 3)});
        }
        return Result<std::vector<store::BlobPart>>(std::move(parts));
      });
}

void PostgresCluster::DeleteBlobs(Claim claim, std::string name, std::uint64_t below,
                                  Done<Status> done) {
  Ask<Status>(bulk_, kDeleteBlobs, {Number(claim.partition), claim.epoch, std::move(name), below},
              std::move(done), FencedIfEmpty(claim));
}

void PostgresCluster::AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) {
  Ask<Status>(
      bulk_, kAppendShared, {sequence, Argument::Bytes(std::move(frame))}, std::move(done),
      [sequence](const Rows& rows) {
        if (!rows.empty()) return Status();
        return Status(
            StatusCode::kConflict,
            fmt::format("frame {} of the shared log is another one, or cannot come yet", sequence));
      });
}

void PostgresCluster::ReadShared(std::uint64_t from, std::size_t most_bytes,
                                 Done<Result<std::vector<LogFrame>>> done) {
  Ask<Result<std::vector<LogFrame>>>(
      bulk_, kReadShared, {from, std::uint64_t{std::max<std::size_t>(most_bytes, 1)}},
      std::move(done), [from](const Rows& rows) -> Result<std::vector<LogFrame>> {
        std::vector<LogFrame> frames;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          frames.push_back({.sequence = rows.Number(i, 0), .bytes = rows.Bytes(i, 1)});
          if (frames.back().sequence == from + i) continue;
          return Status::Corruption(fmt::format("frame {} of the shared log is missing", from + i));
        }
        return frames;
      });
}

void PostgresCluster::Want(Partition partition, std::string node, Done<Status> done) {
  Ask<Status>(leases_, kWant, {Number(partition), std::move(node)}, std::move(done),
              [partition](const Rows& rows) {
                if (!rows.empty()) return Status();
                return Status::NotFound(fmt::format("there is no partition {}", partition));
              });
}

void PostgresCluster::SetDraining(std::string node, bool draining, Done<Status> done) {
  Ask<Status>(leases_, kSetDraining, {node, draining ? "true" : "false"}, std::move(done),
              [node](const Rows& rows) {
                if (!rows.empty()) return Status();
                return Status::NotFound(fmt::format("there is no node '{}'", node));
              });
}

void PostgresCluster::KeepNode(NodeState node, std::int64_t lease_ms, Done<Status> done) {
  Ask<Status>(leases_, kKeepNode,
              {node.name, node.instance, node.url, Millis(lease_ms), node.version,
               node.draining ? "true" : "false", FollowsText(node)},
              std::move(done), [name = node.name](const Rows& rows) {
                if (!rows.empty()) return Status();
                return Status(
                    StatusCode::kConflict,
                    fmt::format("the name '{}' is held by another node that is alive", name));
              });
}

void PostgresCluster::RemoveNode(std::string name, std::string instance, Done<Status> done) {
  Ask<Status>(leases_, kRemoveNode, {std::move(name), std::move(instance)}, std::move(done),
              [](const Rows&) { return Status(); });
}

void PostgresCluster::ListNodes(Done<Result<std::vector<NodeState>>> done) {
  Ask<Result<std::vector<NodeState>>>(leases_, kListNodes, {}, std::move(done),
                                      [](const Rows& rows) {
                                        std::vector<NodeState> nodes;
                                        for (std::size_t i = 0; i < rows.size(); ++i) {
                                          nodes.push_back({.name = rows.Bytes(i, 0),
                                                           .url = rows.Bytes(i, 1),
                                                           .instance = rows.Bytes(i, 2),
                                                           .lease_left_ms = rows.Int(i, 3),
                                                           .version = rows.Bytes(i, 4),
                                                           .draining = rows.Int(i, 5) != 0});
                                          ReadFollows(rows.Bytes(i, 6), nodes.back());
                                        }
                                        return Result<std::vector<NodeState>>(std::move(nodes));
                                      });
}

void PostgresCluster::ListPartitions(Done<Result<std::vector<PartitionState>>> done) {
  Ask<Result<std::vector<PartitionState>>>(
      leases_, kListPartitions, {}, std::move(done), [](const Rows& rows) {
        std::vector<PartitionState> states;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          states.push_back({.partition = static_cast<Partition>(rows.Number(i, 0)),
                            .epoch = rows.Number(i, 1),
                            .owner = rows.Bytes(i, 2),
                            .last_sequence = rows.Number(i, 3),
                            .first_sequence = rows.Number(i, 4),
                            .lease_left_ms = rows.Int(i, 5),
                            .wanted = rows.Bytes(i, 6)});
        }
        return Result<std::vector<PartitionState>>(std::move(states));
      });
}

void PostgresCluster::Watch(std::function<void()> changed) {
  listener_ = std::thread([this, changed = std::move(changed)] { Listen(changed); });
}

// Owners, nodes and blobs alone: a notification at every append would make all commits of the
// database wait for one another.
void PostgresCluster::Listen(const std::function<void()>& changed) {
  LastingConnection lasting(options_, stop_, {});
  const Connection* listening = nullptr;
  while (!stop_) {
    const auto connection = lasting.Get();
    if (!connection.ok()) {
      std::this_thread::sleep_for(kListenPause);
      continue;
    }
    if (connection.value() != listening) {
      if (!connection.value()->RunScript("LISTEN " + channel_).ok()) continue;
      listening = connection.value();
      changed();  // what happened before
      if (blobs_changed_) blobs_changed_();
    }
    const std::set<std::string> came = connection.value()->AwaitNotifications(kListenMs);
    if (stop_) return;
    if (came.contains(kBlobs) && blobs_changed_) blobs_changed_();
    if (came.size() > came.count(kBlobs)) changed();
    if (connection.value()->lost()) listening = nullptr;
  }
}

}  // namespace codband::cluster
