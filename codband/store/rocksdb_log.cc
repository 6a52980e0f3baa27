#include "codband/store/rocksdb_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codband/base/parse.h"

namespace codband::store {
namespace {

constexpr std::size_t kBlockBytes = 32 << 10;
constexpr std::size_t kHeaderBytes = 7;

enum PieceType : std::uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint32_t LittleEndian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

std::uint32_t MaskedCrc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t value = crc.checksum();
  return ((value >> 15) | (value << 17)) + 0xa282ead8U;
}

struct Piece {
  std::uint8_t type = 0;
  std::string_view bytes;
};

enum class PieceState { kGood, kCut, kDamaged };

// The piece at the front of `block`. kCut: the bytes end before the piece does.
PieceState ReadPiece(std::string_view block, Piece& piece) {
  if (block.size() < kHeaderBytes) return PieceState::kCut;
  const std::size_t length = LittleEndian(block.substr(4, 2));
  piece.type = static_cast<std::uint8_t>(block[6]);
  if (piece.type < kWhole || piece.type > kLast) return PieceState::kDamaged;
  if (kHeaderBytes + length > block.size()) return PieceState::kCut;
  piece.bytes = block.substr(kHeaderBytes, length);
  return MaskedCrc32c(block.substr(6, 1 + length)) == LittleEndian(block.substr(0, 4))
             ? PieceState::kGood
             : PieceState::kDamaged;
}

// The next block of the log; shorter at the end.
rocksdb::Status NextBlock(rocksdb::SequentialFile& file, std::string& block) {
  block.resize(kBlockBytes);
  std::size_t size = 0;
  std::string scratch(kBlockBytes, '\0');
  while (size < kBlockBytes) {
    rocksdb::Slice got;
    const rocksdb::Status status = file.Read(kBlockBytes - size, &got, scratch.data());
    if (!status.ok()) return status;
    if (got.empty()) break;
    std::ranges::copy_n(got.data(), static_cast<std::ptrdiff_t>(got.size()), block.data() + size);
    size += got.size();
  }
  block.resize(size);
  return {};
}

struct LogScan {
  std::uint64_t good_end = 0;                 // end of the last intact batch before any damage
  bool any_batch = false;                     // whether there is such a batch
  bool rest = false;                          // whether bytes follow it
  std::optional<std::uint64_t> batch_behind;  // start of an intact batch after damage
};

// Reassembles batches from their pieces, block after block.
class LogScanner {
 public:
  explicit LogScanner(std::uint64_t last_sequence) : last_sequence_(last_sequence) {}

  // Returns false once later blocks cannot change the result.
  bool Block(std::string_view block, std::uint64_t start) {
    std::size_t at = 0;
    const bool at_end = block.size() < kBlockBytes;
    while (!damaged_) {
      const std::string_view left = block.substr(at);
      if (left.size() < kHeaderBytes) {
        // Too short for a header: zeros up to the end of the block.
        if (at_end && !left.empty()) scan_.rest = true;
        return true;
      }
      Piece piece;
      const PieceState state = ReadPiece(left, piece);
      if (state == PieceState::kCut && at_end) scan_.rest = true;
      if (state != PieceState::kGood || !Follows(piece.type)) {
        damaged_ = true;
        break;
      }
      if (piece.type == kWhole || piece.type == kFirst) {
        if (FirstSequence(piece.bytes) > last_sequence_) {
          scan_.rest = true;
          return false;
        }
      }
      at += kHeaderBytes + piece.bytes.size();
      in_batch_ = piece.type == kFirst || piece.type == kMiddle;
      if (!in_batch_) {
        scan_.good_end = start + at;
        scan_.any_batch = true;
      }
    }
    scan_.rest = true;
    // The damaged piece's length may be wrong, so the next one may start at any byte.
    for (; at + kHeaderBytes < block.size(); ++at) {
      Piece piece;
      if (ReadPiece(block.substr(at), piece) == PieceState::kGood && !piece.bytes.empty() &&
          (piece.type == kWhole || piece.type == kFirst)) {
        scan_.batch_behind = start + at;
        return false;
      }
    }
    return true;
  }

  LogScan Finish() {
    if (in_batch_) scan_.rest = true;
    return scan_;
  }

 private:
  bool Follows(std::uint8_t type) const { return (type == kMiddle || type == kLast) == in_batch_; }

  const std::uint64_t last_sequence_;
  LogScan scan_;
  bool in_batch_ = false;
  bool damaged_ = false;
};

Status Failed(std::string_view action, const std::filesystem::path& path,
              const rocksdb::Status& status) {
  return Status::IoError(fmt::format("cannot {} {}: {}", action, path.string(), status.ToString()));
}

// std::nullopt if the file is gone: a running process may delete it.
Result<std::optional<LogScan>> ScanLog(rocksdb::Env& env, const std::filesystem::path& path,
                                       std::uint64_t last_sequence) {
  std::unique_ptr<rocksdb::SequentialFile> file;
  const rocksdb::Status opened = env.NewSequentialFile(path, &file, rocksdb::EnvOptions());
  if (opened.IsPathNotFound()) return std::optional<LogScan>();
  if (!opened.ok()) return Failed("open", path, opened);
  LogScanner scanner(last_sequence);
  std::string block;
  std::uint64_t start = 0;
  do {
    const rocksdb::Status read = NextBlock(*file, block);
    if (!read.ok()) return Failed("read", path, read);
    if (!scanner.Block(block, start)) break;
    start += block.size();
  } while (block.size() == kBlockBytes);
  return std::optional<LogScan>(scanner.Finish());
}

// The log files in the order of writing.
Result<std::vector<std::filesystem::path>> ListLogs(rocksdb::Env& env,
                                                    const std::filesystem::path& directory) {
  std::vector<std::pair<std::uint64_t, std::filesystem::path>> logs;
  std::vector<std::string> names;
  const rocksdb::Status listed = env.GetChildren(directory, &names);
  if (!listed.ok()) return Failed("list", directory, listed);
  for (const std::string& name : names) {
    const std::filesystem::path file(name);
    const auto number = ParseNumber<std::uint64_t>(file.stem().string());
    if (number && file.extension() == ".log") logs.emplace_back(*number, directory / file);
  }
  std::ranges::sort(logs);
  std::vector<std::filesystem::path> paths;
  for (auto& [number, path] : logs) paths.push_back(std::move(path));
  return paths;
}

// Truncates the log and syncs it.
Status CutLog(rocksdb::Env& env, const std::filesystem::path& path, std::uint64_t size) {
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::EnvOptions options;
  options.use_mmap_writes = false;
  const rocksdb::Status opened = env.ReopenWritableFile(path, &file, options);
  if (!opened.ok()) return Failed("open", path, opened);
  const rocksdb::Status cut = file->Truncate(size);
  if (!cut.ok()) return Failed("cut", path, cut);
  const rocksdb::Status synced = file->Fsync();
  if (!synced.ok()) return Failed("sync", path, synced);
  const rocksdb::Status closed = file->Close();
  return closed.ok() ? Status() : Failed("close", path, closed);
}

// Whether a running process has deleted the log, or emptied it before that (NamedFiles), since it
// was read up to there. A log whose end is torn goes on behind what is intact.
bool IsGone(rocksdb::Env& env, const std::filesystem::path& path, std::uint64_t good_end) {
  std::uint64_t bytes = 0;
  const rocksdb::Status status = env.GetFileSize(path, &bytes);
  return status.ok() ? bytes <= good_end : status.IsPathNotFound() || status.IsNotFound();
}

}  // namespace

std::uint64_t FirstSequence(std::string_view batch) {
  if (batch.size() < 8) return 0;
  return LittleEndian(batch.substr(0, 4)) |
         static_cast<std::uint64_t>(LittleEndian(batch.substr(4, 4))) << 32;
}

Status CheckLogs(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory) {
  const auto logs = ListLogs(env, rocksdb_directory);
  if (!logs.ok()) return logs.status();
  std::optional<std::pair<std::filesystem::path, std::uint64_t>> torn;
  for (const auto& path : logs.value()) {
    const auto result = ScanLog(env, path, std::numeric_limits<std::uint64_t>::max());
    if (!result.ok()) return result.status();
    if (!result.value()) continue;
    const LogScan& scan = *result.value();
    if (scan.batch_behind) {
      return Status::Corruption(
          fmt::format("{} is damaged at byte {}: whole records follow at byte {}", path.string(),
                      scan.good_end, *scan.batch_behind));
    }
    if (torn && scan.any_batch && !IsGone(env, torn->first, torn->second)) {
      return Status::Corruption(fmt::format("{} is damaged at byte {}: whole records follow in {}",
                                            torn->first.string(), torn->second, path.string()));
    }
    if (scan.rest) torn = {path, scan.good_end};
  }
  return {};
}

Status CutLogs(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory,
               std::uint64_t last_sequence) {
  const auto logs = ListLogs(env, rocksdb_directory);
  if (!logs.ok()) return logs.status();
  for (const auto& path : logs.value()) {
    const auto result = ScanLog(env, path, last_sequence);
    if (!result.ok()) return result.status();
    if (!result.value() || !result.value()->rest) continue;
    if (result.value()->batch_behind) return CheckLogs(env, rocksdb_directory);
    CODBAND_RETURN_IF_ERROR(CutLog(env, path, result.value()->good_end));
  }
  return {};
}

Status VisitBatches(rocksdb::Env& env, const std::filesystem::path& directory,
                    const std::function<Status(const std::string& bytes)>& visit) {
  const auto logs = ListLogs(env, directory);
  if (!logs.ok()) return logs.status();
  for (const auto& path : logs.value()) {
    std::unique_ptr<rocksdb::SequentialFile> file;
    const rocksdb::Status opened = env.NewSequentialFile(path, &file, rocksdb::EnvOptions());
    if (!opened.ok()) return Failed("open", path, opened);
    std::string block, batch;
    do {
      const rocksdb::Status read = NextBlock(*file, block);
      if (!read.ok()) return Failed("read", path, read);
      Piece piece;
      for (std::size_t at = 0; at + kHeaderBytes <= block.size();) {
        if (ReadPiece(std::string_view(block).substr(at), piece) != PieceState::kGood) {
          ++at;  // the next one may start at any byte
          batch.clear();
          continue;
        }
        at += kHeaderBytes + piece.bytes.size();
        const bool starts = piece.type == kWhole || piece.type == kFirst;
        if (!starts && batch.empty()) continue;  // its beginning is damaged
        if (starts) batch.clear();
        batch += piece.bytes;
        if (piece.type != kWhole && piece.type != kLast) continue;
        CODBAND_RETURN_IF_ERROR(visit(batch));
        batch.clear();
      }
    } while (block.size() == kBlockBytes);
  }
  return {};
}

Result<IntactPart> FindIntactPart(rocksdb::Env& env, const std::filesystem::path& file) {
  const auto scan = ScanLog(env, file, std::numeric_limits<std::uint64_t>::max());
  if (!scan.ok()) return scan.status();
  if (!scan.value()) return Status::NotFound(fmt::format("{} is missing", file.string()));
  return IntactPart{.bytes = scan.value()->good_end,
                    .is_all = !scan.value()->rest,
                    .is_torn = scan.value()->rest && !scan.value()->batch_behind};
}

Result<std::uint64_t> LogBytes(rocksdb::Env& env, const std::filesystem::path& rocksdb_directory) {
  const auto logs = ListLogs(env, rocksdb_directory);
  if (!logs.ok()) return logs.status();
  std::uint64_t bytes = 0;
  for (const auto& path : logs.value()) {
    std::uint64_t size = 0;  // RocksDB may delete a log meanwhile
    if (env.GetFileSize(path, &size).ok()) bytes += size;
  }
  return bytes;
}

}  // namespace codband::store
