#include "codband/store/table_file.h"

#include <memory>
#include <optional>
#include <string_view>

#include "codband/base/file.h"

namespace codband::store {
namespace {

using rocksdb::IOStatus;

// The end of a file: the kind of checksum (1 byte), where the block of names and the index are (4
// numbers, padded to 40 bytes), the version of the format (4) and kMagic (8).
constexpr std::size_t kFooterBytes = 53;
constexpr std::string_view kMagic = "\xf7\xcf\xf4\x85\xb7\x41\xe2\x88";
constexpr std::string_view kPropertiesName = "rocksdb.properties";
constexpr std::size_t kMaxNamesBytes = 1 << 16;
constexpr std::size_t kCountBytes = 4;

struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A number in groups of 7 bits, the lowest first; takes it off the front.
std::optional<std::uint64_t> TakeNumber(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

std::optional<Place> TakePlace(std::string_view bytes, std::uint64_t size) {
  const auto offset = TakeNumber(bytes);
  const auto count = TakeNumber(bytes);
  if (!offset || !count || *offset > size || *count > size - *offset) return std::nullopt;
  return Place{.offset = *offset, .bytes = *count};
}

std::optional<std::string> ReadAt(rocksdb::FSRandomAccessFile& file, const Place& place) {
  std::string bytes(place.bytes, '\0');
  rocksdb::Slice got;
  const IOStatus status =
      file.Read(place.offset, place.bytes, rocksdb::IOOptions(), &got, bytes.data(), nullptr);
  if (!status.ok() || got.size() != place.bytes) return std::nullopt;
  return got.ToString();
}

// Where the number of restart points of the properties is; none if that cannot be found out.
std::optional<Place> FindRestarts(rocksdb::FSRandomAccessFile& file, std::uint64_t size) {
  if (size < kFooterBytes) return std::nullopt;
  const auto footer = ReadAt(file, {.offset = size - kFooterBytes, .bytes = kFooterBytes});
  if (!footer || !footer->ends_with(kMagic)) return std::nullopt;
  const auto names_place = TakePlace(std::string_view(*footer).substr(1), size);
  if (!names_place || names_place->bytes > kMaxNamesBytes) return std::nullopt;
  const auto names = ReadAt(file, *names_place);
  const std::size_t at = names ? names->find(kPropertiesName) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const auto properties =
      TakePlace(std::string_view(*names).substr(at + kPropertiesName.size()), size);
  if (!properties || properties->bytes < kCountBytes) return std::nullopt;
  return Place{.offset = properties->offset + properties->bytes - kCountBytes,
               .bytes = kCountBytes};
}

// Where they are if their highest bit is set.
std::optional<Place> FindDamage(rocksdb::FileSystem& files, const std::string& path) {
  std::uint64_t size = 0;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  if (!files.GetFileSize(path, rocksdb::IOOptions(), &size, nullptr).ok() ||
      !files.NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr).ok()) {
    return std::nullopt;
  }
  const auto restarts = FindRestarts(*file, size);
  const auto bytes = restarts ? ReadAt(*file, *restarts) : std::nullopt;
  const bool is_damaged = bytes && (static_cast<std::uint8_t>(bytes->back()) & 0x80U) != 0;
  return is_damaged ? restarts : std::nullopt;
}

}  // namespace

IOStatus CheckTableFile(rocksdb::FileSystem& files, const std::string& path) {
  if (!FindDamage(files, path)) return IOStatus::OK();
  return IOStatus::Corruption("the properties of the table file are damaged", path);
}

Status MendTableFile(rocksdb::FileSystem& files, const std::filesystem::path& path) {
  const auto restarts = FindDamage(files, path.string());
  if (!restarts) return {};
  auto content = ReadFile(path);
  if (!content.ok()) return content.status();
  // RocksDB writes all properties from one restart point.
  content.value().replace(restarts->offset, restarts->bytes, std::string_view("\x01\0\0\0", 4));
  return WriteFileDurably(path, content.value());
}

}  // namespace codband::store
