#include "codband/cluster/frame.h"

#include <utility>

#include "codband/base/bytes.h"

namespace codband::cluster {
namespace {

using store::StoreBatch;
using store::Table;

constexpr std::uint8_t kFrameVersion = 1;
constexpr std::string_view kPositionKey = "replica";

}  // namespace

std::string EncodeFrame(const StoreBatch& batch) {
  ByteWriter out;
  out.U8(kFrameVersion);
  out.U64(batch.entries().size());
  for (const StoreBatch::Entry& entry : batch.entries()) {
    out.U8(static_cast<std::uint8_t>(entry.kind));
    out.U8(static_cast<std::uint8_t>(entry.table));
    out.String(entry.key);
    out.String(entry.value);
  }
  return out.Take();
}

Result<StoreBatch> DecodeFrame(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.U8("version") != kFrameVersion) in.Fail("version", "is of a newer program");
  const std::size_t count = in.Count("number of changes", 2 + 2 * 4);
  StoreBatch batch;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint8_t kind = in.U8("kind");
    const std::uint8_t table = in.U8("table");
    if (kind > static_cast<std::uint8_t>(StoreBatch::Kind::kDeleteRange)) {
      in.Fail("kind", "is not known");
    }
    if (table >= store::kTableCount) in.Fail("table", "is not known");
    std::string key = in.String("key");
    std::string value = in.String("value");
    if (!in.ok()) break;
    const auto where = static_cast<Table>(table);
    switch (static_cast<StoreBatch::Kind>(kind)) {
      case StoreBatch::Kind::kPut:
        batch.Put(where, std::move(key), std::move(value));
        break;
      case StoreBatch::Kind::kDelete:
        batch.Delete(where, std::move(key));
        break;
      case StoreBatch::Kind::kDeleteRange:
        batch.DeleteRange(where, std::move(key), std::move(value));
        break;
    }
  }
  in.ExpectEnd();
  if (!in.ok()) {
    return Status::Corruption("a frame of the log cannot be read: " + in.status().message());
  }
  return batch;
}

void PutPosition(const Position& position, StoreBatch& batch) {
  ByteWriter out;
  out.U64(position.sequence);
  out.U64(position.epoch);
  batch.Put(Table::kMeta, std::string(kPositionKey), out.Take());
}

Result<StoreBatch> ApplyFrame(const store::LogFrame& frame, store::Store& store) {
  auto batch = DecodeFrame(frame.bytes);
  if (!batch.ok()) return batch.status();
  PutPosition({.sequence = frame.sequence, .epoch = frame.epoch}, batch.value());
  CODBAND_RETURN_IF_ERROR(store.Write(batch.value(), false));
  return batch;
}

Result<Position> GetPosition(const store::Store& store) {
  std::string bytes;
  const Status found = store.Get(Table::kMeta, kPositionKey, bytes);
  if (found.code() == StatusCode::kNotFound) return Position{};
  CODBAND_RETURN_IF_ERROR(found);
  ByteReader in(bytes);
  Position position;
  position.sequence = in.U64("sequence");
  position.epoch = in.U64("epoch");
  in.ExpectEnd();
  if (!in.ok()) return Status::Corruption("where the store stands: " + in.status().message());
  return position;
}

}  // namespace codband::cluster
