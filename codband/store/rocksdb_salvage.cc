#include "codband/store/rocksdb_salvage.h"

#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "codband/store/rocksdb_open.h"

namespace codband::store {
namespace {

using MakeIterator = std::function<std::unique_ptr<rocksdb::Iterator>()>;

constexpr std::size_t kLongestKey = 600;  // more than any id is long

std::string After(const std::string& key) { return key + '\0'; }

// The last key at which a seek fails, given that it fails at `from`. A damaged block fails for all
// keys from the one before it up to its last one, or a shorter one that stands for that in the
// index: byte by byte, the largest that still fails.
std::string LastDamaged(const MakeIterator& make, const std::string& from) {
  const auto it = make();
  const auto fails = [&](const std::string& key) {
    it->Seek(key);
    return IsDamage(it->status());
  };
  // A file that cannot be opened at all fails everywhere.
  const std::string end(kLongestKey, '\xff');
  if (fails(end)) return end;
  const std::string endless(12, '\xff');
  std::string last;
  while (last.size() < kLongestKey) {
    if (last >= from && fails(last) && !fails(After(last))) return last;
    int low = 0, high = 255;  // the byte is in [low, high]
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fails(std::max(last + static_cast<char>(middle), from))) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    last += static_cast<char>(low);
    // Up to, but without, a shorter key that stands for the end of the block.
    if (last.ends_with(endless)) return last + std::string(kLongestKey - last.size() - 1, '\xff');
  }
  return last;
}

// Visits in order what can be read of the keys from `from` on, and tells of the ranges that cannot.
rocksdb::Status Walk(const MakeIterator& make, const std::string& from,
                     const std::function<bool(rocksdb::Iterator&)>& visit,
                     const std::function<void(Store::Lost)>& damaged) {
  std::string start = from;
  while (true) {
    const auto it = make();
    std::string next = start;
    for (it->Seek(start); it->Valid(); it->Next()) {
      next = After(it->key().ToString());
      if (!visit(*it)) return {};
    }
    if (!IsDamage(it->status())) return it->status();
    Store::Lost lost{.from = next, .up_to = {}, .reason = it->status().ToString()};
    lost.up_to = LastDamaged(make, next);
    if (lost.up_to < next) lost.up_to = next;  // always onward
    start = After(lost.up_to);
    const bool to_the_end = lost.up_to.size() == kLongestKey;
    damaged(std::move(lost));
    if (to_the_end) return {};
  }
}

// The keys in the range that the table's files hold, each file read for itself.
std::set<std::string> KeysInFiles(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                                  const rocksdb::Options& options, const Store::Lost& range) {
  std::set<std::string> keys;
  rocksdb::ColumnFamilyMetaData files;
  db.GetColumnFamilyMetaData(&family, &files);
  for (const auto& level : files.levels) {
    for (const auto& file : level.files) {
      if (file.largestkey < range.from || file.smallestkey > range.up_to) continue;
      rocksdb::SstFileReader reader(options);
      if (!reader.Open(file.db_path + file.name).ok()) continue;
      const MakeIterator make = [&] {
        return std::unique_ptr<rocksdb::Iterator>(reader.NewIterator(rocksdb::ReadOptions()));
      };
      // What cannot be read in this file either is not a key that is known.
      static_cast<void>(Walk(
          make, range.from,
          [&](rocksdb::Iterator& it) {
            const std::string key = it.key().ToString();
            if (key > range.up_to) return false;
            keys.insert(key);
            return true;
          },
          [](const Store::Lost&) {}));
    }
  }
  return keys;
}

}  // namespace

bool IsDamage(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsPathNotFound() || status.IsNotFound();
}

Status ScanPastDamage(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                      const rocksdb::Options& options, const Store::Visit& visit,
                      std::vector<Store::Lost>& lost) {
  const auto view = [](const rocksdb::Slice& slice) {
    return std::string_view(slice.data(), slice.size());
  };
  rocksdb::ReadOptions reading;
  reading.fill_cache = false;
  const MakeIterator make = [&] {
    return std::unique_ptr<rocksdb::Iterator>(db.NewIterator(reading, &family));
  };
  bool goes_on = true;
  std::vector<Store::Lost> ranges;
  const rocksdb::Status walked = Walk(
      make, {},
      [&](rocksdb::Iterator& it) {
        goes_on = visit(view(it.key()), view(it.value()));
        return goes_on;
      },
      [&](Store::Lost range) { ranges.push_back(std::move(range)); });
  for (Store::Lost& range : ranges) {
    for (const std::string& key : KeysInFiles(db, family, options, range)) {
      std::string value;
      const rocksdb::Status found = db.Get(reading, &family, key, &value);
      if (IsDamage(found) && !found.IsNotFound()) range.keys.push_back(key);
      if (found.ok() && goes_on) goes_on = visit(key, value);
    }
    lost.push_back(std::move(range));
  }
  return FromRocksDb(walked, "read from", db.GetName());
}

}  // namespace codband::store
