#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codband/store/rocksdb_store.h"
#include "codband/store/store.h"

namespace codband::store {

// How the tables are laid out in RocksDB: one column family for each, with one memory budget for
// all. RocksDB's own column family "default" stays empty.
struct RocksDbLayout {
  std::shared_ptr<rocksdb::Env> env;  // the files; the database has it, too
  bool system_files = true;           // they are those of the operating system
  rocksdb::DBOptions database;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;  // "default", then by Table
  std::shared_ptr<rocksdb::Cache> cache;                  // write buffers are charged to it
};

// The column family's name: "meta", "log", …. Part of the format.
const char* TableName(Table table);

// `cache_bytes` are for blocks, indices and filters, `write_buffer_bytes` for what is not yet in
// table files: of all tables together.
RocksDbLayout MakeRocksDbLayout(const RocksDbOptions& options);

}  // namespace codband::store
