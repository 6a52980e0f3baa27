#include "codband/store/rocksdb_tables.h"

#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <array>

#include "codband/store/named_files.h"

#ifdef __SANITIZE_THREAD__
// Debian's RocksDB is not instrumented: its threads hand batches and blocks to each other by atomic
// variables that ThreadSanitizer does not see. Races of our own code are still found.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() { return "race:librocksdb.so\n"; }
#endif

namespace codband::store {
namespace {

constexpr std::array<const char*, kTableCount> kTableNames = {
    "meta",  "log",    "users",      "pending",         "deadlines",
    "items", "people", "checkpoint", "checkpoint_copy", "imported"};

rocksdb::DBOptions DatabaseOptions(std::uint64_t write_buffer_bytes,
                                   const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::DBOptions options;
  options.paranoid_checks = true;
  // Replay ends at the first record that is not intact. CheckLogs lets only a torn tail through, so
  // this recovers the state before it, the same in all column families.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // Not with 7.8: a missing log is reported where there is none (fixed in 7.9).
  options.track_and_verify_wals_in_manifest = false;
  options.write_buffer_manager =
      std::make_shared<rocksdb::WriteBufferManager>(write_buffer_bytes, cache);
  options.max_total_wal_size = 2 * write_buffer_bytes;  // bounds the time of a recovery
  options.max_open_files = 256;
  options.max_background_jobs = 2;
  options.bytes_per_sync = 1 << 20;
  options.max_manifest_file_size = 16 << 20;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  // Recovery from errors is the store's own: it has to cut the log first.
  options.max_bgerror_resume_count = 0;
  return options;
}

rocksdb::CompressionType Compression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  return std::ranges::find(supported, rocksdb::kLZ4Compression) != supported.end()
             ? rocksdb::kLZ4Compression
             : rocksdb::kNoCompression;
}

// Entries are put at one end and deleted at the other.
bool IsQueue(Table table) {
  return table == Table::kLog || table == Table::kPending || table == Table::kDeadlines;
}

// Damage is found for a block at a time: one record in each, so that no other is lost with it.
bool HasRecordsOfTheirOwn(Table table) {
  return table == Table::kUsers || table == Table::kPeople || table == Table::kItems;
}

// Most lookups are for keys that may not exist.
bool NeedsFilter(Table table) {
  return table == Table::kPending || table == Table::kUsers || table == Table::kPeople ||
         table == Table::kImported;
}

rocksdb::ColumnFamilyOptions FamilyOptions(std::uint64_t write_buffer_bytes,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = std::max<std::uint64_t>(write_buffer_bytes / 4, 64 << 10);
  options.arena_block_size = std::min<std::size_t>(options.write_buffer_size / 8, 256 << 10);
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = Compression();
  // WriteBulk adds files to level 0 without a limit, and a delay of one table delays the writes of
  // all: compaction starts at 4 files as usual, the brakes come late.
  options.level0_slowdown_writes_trigger = 64;
  options.level0_stop_writes_trigger = 128;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // Indices and filters in the cache, too, and in small blocks: the filter of a file with a million
  // short records is larger than a part of the cache, and would be read again for every lookup.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

const char* TableName(Table table) { return kTableNames.at(static_cast<std::size_t>(table)); }

RocksDbLayout MakeRocksDbLayout(const RocksDbOptions& options) {
  RocksDbLayout layout;
  const std::uint64_t write_buffer_bytes = options.write_buffer_bytes;
  layout.cache = rocksdb::NewLRUCache(options.cache_bytes + write_buffer_bytes);
  layout.database = DatabaseOptions(write_buffer_bytes, layout.cache);
  layout.system_files = options.env == nullptr;
  rocksdb::Env* const base = layout.system_files ? rocksdb::Env::Default() : options.env;
  layout.env = rocksdb::NewCompositeEnv(std::make_shared<NamedFiles>(base->GetFileSystem()));
  layout.database.env = layout.env.get();
  const rocksdb::ColumnFamilyOptions plain = FamilyOptions(write_buffer_bytes, layout.cache);
  layout.families.emplace_back(rocksdb::kDefaultColumnFamilyName, plain);
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const Table table = static_cast<Table>(i);
    rocksdb::ColumnFamilyOptions family = FamilyOptions(write_buffer_bytes, layout.cache);
    auto* format = family.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
    if (NeedsFilter(table)) format->filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    if (HasRecordsOfTheirOwn(table)) format->block_size = 1;
    if (IsQueue(table)) {
      // A file with so many tombstones in a row, or half of it tombstones, is compacted at once, so
      // that finding the front of a queue stays fast.
      family.table_properties_collector_factories.push_back(
          rocksdb::NewCompactOnDeletionCollectorFactory(1024, 512, 0.5));
    }
    if (table == Table::kDeadlines) {
      // Its front is scanned all the time, over the tombstones in the memtable too.
      family.write_buffer_size = std::min<std::size_t>(family.write_buffer_size, 1 << 20);
    }
    layout.families.emplace_back(TableName(table), family);
  }
  return layout;
}

}  // namespace codband::store
