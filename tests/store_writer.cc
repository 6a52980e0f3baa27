// Writes to a store until it is killed, for the crash test: one thread writes small batches,
// another makes bulk writes. Prints what has been acknowledged: "w <number>" or "b <number>".

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "codband/base/parse.h"
#include "codband/store/rocksdb_store.h"

namespace codband {
namespace {

constexpr int kUsers = 200;

std::uint64_t Number(const store::Store& store, store::Table table, std::string_view key) {
  std::string value;
  const Status status = store.Get(table, key, value);
  return status.ok() ? ParseNumber<std::uint64_t>(value).value_or(0) : 0;
}

bool Say(std::string_view what, std::uint64_t number) {
  const std::string line = fmt::format("{} {}\n", what, number);
  return ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

void WriteBatches(store::Store& store, bool sync) {
  for (std::uint64_t i = Number(store, store::Table::kItems, "last") + 1;; ++i) {
    store::StoreBatch batch;
    batch.Put(store::Table::kLog, fmt::format("{:08}", i), std::string(i * 7919 % 3000, 'v'));
    batch.Put(store::Table::kItems, "last", fmt::format("{}", i));
    if (!store.Write(batch, sync).ok() || !Say("w", i)) return;
  }
}

void WriteBulks(store::Store& store) {
  for (std::uint64_t i = Number(store, store::Table::kMeta, "generation") + 1;; ++i) {
    store::StoreBatch batch;
    const std::string value = fmt::format("{}", i);
    for (int k = 0; k < kUsers; ++k) batch.Put(store::Table::kUsers, fmt::format("{}", k), value);
    batch.Put(store::Table::kMeta, "generation", value);
    if (!store.WriteBulk(std::move(batch)).ok() || !Say("b", i)) return;
  }
}

int Main(const std::string& directory, bool sync) {
  // A small buffer, so that logs and table files change often.
  auto store = store::OpenRocksDbStore(directory, {.write_buffer_bytes = 256 << 10});
  if (!store.ok()) {
    fmt::print(stderr, "{}\n", store.status().ToString());
    return 1;
  }
  std::thread bulks([&] { WriteBulks(*store.value()); });
  WriteBatches(*store.value(), sync);
  bulks.join();
  return 0;
}

}  // namespace
}  // namespace codband

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return codband::Main(argv[1], std::string_view(argv[2]) == "sync");
}
