#include "codband/cluster/store_replica.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "codband/cluster/frame.h"

namespace codband::cluster {
namespace {

using store::StoreBatch;
using store::Table;

constexpr std::size_t kPartBytes = std::size_t{4} << 20;

// What is written by bulk writes (Store::WriteBulk), and so is loaded.
bool IsBulk(Table table) {
  return table == Table::kUsers || table == Table::kPeople || table == Table::kCheckpoint ||
         table == Table::kCheckpointCopy;
}

}  // namespace

Result<std::unique_ptr<StoreReplica>> StoreReplica::Open(const std::filesystem::path& directory,
                                                         const store::RocksDbOptions& options) {
  std::unique_ptr<StoreReplica> replica(new StoreReplica(directory, options));
  const Status opened = replica->OpenStore();
  if (opened.code() == StatusCode::kCorruption) {
    CODBAND_RETURN_IF_ERROR(replica->Clear());
  } else if (!opened.ok()) {
    return opened;
  }
  return replica;
}

Status StoreReplica::OpenStore() {
  auto opened = store::OpenRocksDbStore(directory_, options_);
  if (!opened.ok()) return opened.status();
  const auto position = GetPosition(*opened.value());
  if (!position.ok()) return position.status();
  store_ = std::move(opened).value();
  position_ = position.value();
  return {};
}

Status StoreReplica::Clear() {
  store_.reset();
  std::error_code error;
  std::filesystem::remove_all(directory_ / "rocksdb", error);
  if (error) {
    return Status::IoError(
        fmt::format("{}: cannot be removed: {}", directory_.string(), error.message()));
  }
  return OpenStore();
}

// A part is a frame of puts into tables of one kind.
Status StoreReplica::LoadPart(std::string_view part) {
  auto batch = DecodeFrame(part);
  if (!batch.ok()) return batch.status();
  if (batch.value().empty()) return {};
  const bool bulk = IsBulk(batch.value().entries()[0].table);
  return bulk ? store_->WriteBulk(std::move(batch).value()) : store_->Write(batch.value(), false);
}

Status StoreReplica::FinishLoad(const Position& position) {
  StoreBatch batch;
  PutPosition(position, batch);
  CODBAND_RETURN_IF_ERROR(store_->Write(batch, true));
  position_ = position;
  return {};
}

Status StoreReplica::Apply(const store::LogFrame& frame) {
  const auto applied = ApplyFrame(frame, *store_);
  if (!applied.ok()) return applied.status();
  position_ = {.sequence = frame.sequence, .epoch = frame.epoch};
  return {};
}

Result<Checkpoint> ReadCheckpoint(const store::Store& store) {
  const auto position = GetPosition(store);
  if (!position.ok()) return position.status();
  Checkpoint checkpoint{.position = position.value()};
  StoreBatch part;
  std::size_t bytes = 0;
  const auto end_part = [&] {
    if (part.empty()) return;
    checkpoint.parts.push_back(EncodeFrame(part));
    part.Clear();
    bytes = 0;
  };
  for (std::size_t i = 0; i < store::kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    CODBAND_RETURN_IF_ERROR(
        store.Scan(table, {}, {}, [&](std::string_view key, std::string_view value) {
          part.Put(table, std::string(key), std::string(value));
          bytes += key.size() + value.size();
          if (bytes >= kPartBytes) end_part();
          return true;
        }));
    end_part();
  }
  return checkpoint;
}

}  // namespace codband::cluster
