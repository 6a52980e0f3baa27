#include "codband/cluster/postgres/schema.h"

#include <fmt/format.h>

#include <array>

namespace codband::cluster {
namespace {

// Each brings the tables from one version to the next; never change one that was released.
// Frames and blobs are not compressed: they are short-lived, or compressed already.
constexpr std::array<std::string_view, kSchemaVersion> kMigrations{R"(
CREATE TABLE partitions (
  p integer PRIMARY KEY,
  epoch bigint NOT NULL DEFAULT 0,
  session bigint NOT NULL DEFAULT 0,
  owner text,
  last_sequence bigint NOT NULL DEFAULT 0,
  first_sequence bigint NOT NULL DEFAULT 1,
  lease_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 20);
CREATE TABLE takeovers (
  p integer NOT NULL,
  epoch bigint NOT NULL,
  owner text,
  after_sequence bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  questions bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (p, epoch)
);
CREATE TABLE log (
  p integer NOT NULL,
  sequence bigint NOT NULL,
  epoch bigint NOT NULL,
  frame bytea NOT NULL,
  PRIMARY KEY (p, sequence)
) PARTITION BY LIST (p);
ALTER TABLE log ALTER COLUMN frame SET STORAGE EXTERNAL;
CREATE TABLE blobs (
  p integer NOT NULL,
  name text NOT NULL,
  version bigint NOT NULL,
  part integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (p, name, version, part)
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE nodes (
  name text PRIMARY KEY,
  instance text NOT NULL,
  url text NOT NULL,
  lease_until timestamptz NOT NULL
);
DO $$
DECLARE
  here about%ROWTYPE;
BEGIN
  SELECT * INTO here FROM about;
  FOR i IN 0 .. here.partitions - 1 LOOP
    IF i % here.clusters = here.cluster THEN
      INSERT INTO partitions (p) VALUES (i);
      EXECUTE format('CREATE TABLE log_%s PARTITION OF log FOR VALUES IN (%s)', i, i);
    END IF;
  END LOOP;
END $$;
)",
                                                                   R"(
CREATE TABLE shared_log (sequence bigint PRIMARY KEY, frame bytea NOT NULL);
ALTER TABLE shared_log ALTER COLUMN frame SET STORAGE EXTERNAL;
ALTER TABLE partitions ADD COLUMN wanted text NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN version text NOT NULL DEFAULT '',
  ADD COLUMN draining boolean NOT NULL DEFAULT false;
)",
                                                                   R"(
ALTER TABLE nodes ADD COLUMN follows text NOT NULL DEFAULT '';
)"};

constexpr Statement kHasLoop{
    "has_loop", "SELECT 1::bigint FROM pg_tables WHERE schemaname = $1 AND tablename = 'about'"};
constexpr Statement kReadLoop{"read_loop",
                              "SELECT version, id::text, partitions::bigint, cluster::bigint, "
                              "clusters::bigint FROM about"};

Result<LoopRow> ReadLoop(Connection& connection, const std::string& schema) {
  const Reply has = connection.Run(kHasLoop, {schema});
  CODBAND_RETURN_IF_ERROR(has.ToStatus());
  if (has.rows.empty()) return LoopRow{};
  const Reply read = connection.Run(kReadLoop, {});
  CODBAND_RETURN_IF_ERROR(read.ToStatus());
  if (read.rows.empty()) return Status::Corruption("cluster: the table 'about' is empty");
  return LoopRow{.version = read.rows.Number(0, 0),
                 .id = read.rows.Bytes(0, 1),
                 .partitions = static_cast<store::Partition>(read.rows.Number(0, 2)),
                 .cluster = read.rows.Number(0, 3),
                 .clusters = read.rows.Number(0, 4)};
}

Status CheckLoop(const LoopRow& found, const LoopRow& wanted, const std::string& schema) {
  if (found.version > kSchemaVersion) {
    return Status::InvalidArgument(fmt::format(
        "cluster: the tables of the loop '{}' have version {}, this program knows versions up to "
        "{}: start a newer codband",
        schema, found.version, kSchemaVersion));
  }
  if (wanted.partitions != 0 && found.partitions != wanted.partitions) {
    return Status::InvalidArgument(
        fmt::format("partitions: is {}, but the loop '{}' was made with {}, for good",
                    wanted.partitions, schema, found.partitions));
  }
  if (wanted.cluster > 0 && found.id != wanted.id) {
    return Status::InvalidArgument(fmt::format(
        "cluster: connection string {} leads to another loop than the first one (both '{}')",
        wanted.cluster + 1, schema));
  }
  if (found.cluster != wanted.cluster || found.clusters != wanted.clusters) {
    return Status::InvalidArgument(fmt::format(
        "cluster: connection string {} of {} leads to what was number {} of {} when the loop '{}' "
        "was made; give all of them in their order",
        wanted.cluster + 1, wanted.clusters, found.cluster + 1, found.clusters, schema));
  }
  return {};
}

}  // namespace

Result<LoopRow> FindSchema(Connection& connection, const std::string& schema,
                           const LoopRow& wanted) {
  auto found = ReadLoop(connection, schema);
  if (!found.ok()) return found;
  if (found.value().version == 0) {
    return Status::NotFound(fmt::format("cluster: there is no loop '{}' in this database", schema));
  }
  CODBAND_RETURN_IF_ERROR(CheckLoop(found.value(), wanted, schema));
  if (found.value().version == kSchemaVersion) return found;
  return Status::InvalidArgument(fmt::format(
      "cluster: the tables of the loop '{}' have version {}, expected {}: the next node "
      "that starts brings them up to date",
      schema, found.value().version, kSchemaVersion));
}

Result<LoopRow> PrepareSchema(Connection& connection, const std::string& schema,
                              const LoopRow& wanted) {
  auto found = ReadLoop(connection, schema);
  if (!found.ok()) return found;
  if (found.value().version != 0) {
    CODBAND_RETURN_IF_ERROR(CheckLoop(found.value(), wanted, schema));
    if (found.value().version == kSchemaVersion) return found;
  }
  // One transaction; of several nodes that start at once the first does it, and the others find it
  // done. `about` is made before everything else, since the migrations read it.
  std::string script = fmt::format(
      "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('codband {0}', 0)); "
      "CREATE SCHEMA IF NOT EXISTS {0}; SET LOCAL search_path = {0}; "
      "CREATE TABLE IF NOT EXISTS about (one boolean PRIMARY KEY DEFAULT true CHECK (one), "
      "version bigint NOT NULL, id text NOT NULL, partitions integer NOT NULL, "
      "cluster integer NOT NULL, clusters integer NOT NULL, "
      "created timestamptz NOT NULL DEFAULT clock_timestamp()); "
      "INSERT INTO about (version, id, partitions, cluster, clusters) "
      "VALUES (0, '{1}', {2}, {3}, {4}) ON CONFLICT DO NOTHING;",
      schema, wanted.id, wanted.partitions == 0 ? wanted.new_partitions : wanted.partitions,
      wanted.cluster, wanted.clusters);
  for (std::uint64_t version = found.value().version; version < kSchemaVersion; ++version) {
    // Another node may have done it between our look and the lock: then nothing is left to do.
    script += fmt::format(
        "DO $guard$ BEGIN IF (SELECT version FROM about) = {0} THEN EXECUTE "
        "$migration${1}$migration$;"
        " UPDATE about SET version = {2}; END IF; END $guard$;",
        version, kMigrations[version], version + 1);
  }
  script += "COMMIT";
  const Reply made = connection.RunScript(script);
  if (!made.ok()) {
    static_cast<void>(connection.RunScript("ROLLBACK"));
    return Status(
        made.ToStatus().code(),
        fmt::format("cluster: cannot make the tables of the loop '{}': {}", schema, made.problem));
  }
  found = ReadLoop(connection, schema);
  if (!found.ok()) return found;
  CODBAND_RETURN_IF_ERROR(CheckLoop(found.value(), wanted, schema));
  return found;
}

}  // namespace codband::cluster
