#include "codband/cluster/postgres/database_health.h"

#include <atomic>

#include "codband/cluster/postgres/connection.h"

namespace codband::cluster {
namespace {

constexpr Statement kHealth{
    "health",
    "SELECT current_setting('server_version'), "
    "(current_setting('fsync')::boolean)::integer::bigint, "
    "(current_setting('full_page_writes')::boolean)::integer::bigint, "
    "current_setting('synchronous_standby_names'), "
    "(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' "
    "AND sync_state IN ('sync', 'quorum')), "
    "(SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL), "
    "(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')), "
    "(SELECT id FROM about)"};

}  // namespace

Result<DatabaseHealth> ExamineDatabase(const std::string& dsn, const std::string& loop) {
  const std::atomic<bool> never{false};
  const auto connection = Connection::Open({.dsn = dsn, .schema = loop}, never);
  if (!connection.ok()) return connection.status();
  const Reply reply = connection.value()->Run(kHealth, {});
  CODBAND_RETURN_IF_ERROR(reply.ToStatus());
  return DatabaseHealth{.version = reply.rows.Bytes(0, 0),
                        .loop_id = reply.rows.Bytes(0, 7),
                        .fsync = reply.rows.Int(0, 1) != 0,
                        .full_page_writes = reply.rows.Int(0, 2) != 0,
                        .standbys = reply.rows.Bytes(0, 3),
                        .synchronous = reply.rows.Number(0, 4),
                        .hidden = reply.rows.Number(0, 5),
                        .loop_bytes = reply.rows.Number(0, 6)};
}

}  // namespace codband::cluster
