#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <string>
#include <vector>

#include "codband/store/store.h"

namespace codband::store {

// Whether the status says that bytes on disk are not what was written, or are not there.
bool IsDamage(const rocksdb::Status& status);

// Visits the records of a table in no particular order, as far as they can be read, and adds what
// cannot to `lost`. A damaged block hides the records around it that are in other files: these are
// looked up one by one. `options` are those of the table. kIoError if the disk fails.
Status ScanPastDamage(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                      const rocksdb::Options& options, const Store::Visit& visit,
                      std::vector<Store::Lost>& lost);

}  // namespace codband::store
