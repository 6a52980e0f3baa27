#include "codband/server/keys/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "codband/base/check.h"
#include "codband/base/excerpt.h"
#include "codband/base/file.h"
#include "codband/base/lines.h"

namespace codband::server {
namespace {

constexpr std::string_view kPrefix = "cb_";
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxKeys = 1000;
constexpr std::string_view kHeading =
    "# Keys of a codband server, one a line: name, role, salt, hash. Made by 'codband keys'.\n";

std::string ToHex(std::span<const unsigned char> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool IsHex(std::string_view text, std::size_t bytes) {
  return text.size() == 2 * bytes && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Status CheckKeyName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  };
  if (!name.empty() && name.size() <= kMaxName && std::ranges::all_of(name, allowed)) return {};
  return Status::InvalidArgument(
      fmt::format("'{}' cannot name a key, expected 1 to {} letters, digits, '-' and '.'",
                  Excerpt(name), kMaxName));
}

Result<KeyRecord> ParseRecord(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) break;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(" \t\r")));
    line.remove_prefix(words.back().size());
  }
  if (words.size() != 4) {
    return Status::InvalidArgument(
        fmt::format("has {} words, expected name, role, salt and hash", words.size()));
  }
  CODBAND_RETURN_IF_ERROR(CheckKeyName(words[0]));
  const auto role = ParseRole(words[1]);
  if (!role.ok()) return role.status();
  if (!IsHex(words[2], kSaltBytes) || !IsHex(words[3], kHashBytes)) {
    return Status::InvalidArgument(
        fmt::format("the salt or the hash of '{}' is not what 'codband keys' writes", words[0]));
  }
  return KeyRecord{.name = std::string(words[0]),
                   .role = role.value(),
                   .salt = std::string(words[2]),
                   .hash = std::string(words[3])};
}

std::string FormatKeyFile(const std::vector<KeyRecord>& records) {
  std::string text(kHeading);
  for (const KeyRecord& record : records) {
    text += fmt::format("{} {} {} {}\n", record.name, AccessText(record.role), record.salt,
                        record.hash);
  }
  return text;
}

// Holds off others who change the file, by a lock on a file beside it that stays.
class KeyFileLock {
 public:
  explicit KeyFileLock(const std::filesystem::path& file) {
    std::filesystem::path path = file;
    path += ".lock";
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0 || ::flock(fd_, LOCK_EX) != 0) {
      const int error = errno;
      status_ = Status::IoError(fmt::format(
          "cannot lock {}: {}{}", path.string(), std::strerror(error),
          error == ENOENT ? "; make its directory first, for the user that the server runs as"
                          : ""));
    }
  }
  ~KeyFileLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  KeyFileLock(const KeyFileLock&) = delete;
  KeyFileLock& operator=(const KeyFileLock&) = delete;

  const Status& status() const { return status_; }

 private:
  int fd_ = -1;
  Status status_;
};

}  // namespace

Result<Access> ParseRole(std::string_view name) {
  std::vector<std::string> names;
  for (const Access role : kRoles) {
    names.push_back(AccessText(role));
    if (names.back() == name) return role;
  }
  return Status::InvalidArgument(
      fmt::format("role '{}' is unknown; there are {}", Excerpt(name), fmt::join(names, ", ")));
}

std::string HashKey(std::string_view salt, std::string_view key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned size = 0;
  const void* const made =
      HMAC(EVP_sha256(), salt.data(), static_cast<int>(salt.size()),
           reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data(), &size);
  CODBAND_CHECK(made != nullptr && size == kHashBytes);
  return ToHex({hash.data(), size});
}

std::string RandomHex(std::size_t bytes) {
  std::array<unsigned char, kSecretBytes> random;
  CODBAND_CHECK(bytes <= random.size());
  CODBAND_CHECK(RAND_bytes(random.data(), static_cast<int>(bytes)) == 1);
  return ToHex({random.data(), bytes});
}

KeyRecord MakeKeyRecord(std::string name, Access role, std::string_view key) {
  std::string salt = RandomHex(kSaltBytes);
  std::string hash = HashKey(salt, key);
  return {.name = std::move(name), .role = role, .salt = std::move(salt), .hash = std::move(hash)};
}

bool IsKeyOf(const KeyRecord& record, std::string_view key) {
  const std::string hash = HashKey(record.salt, key);
  return hash.size() == record.hash.size() &&
         CRYPTO_memcmp(hash.data(), record.hash.data(), hash.size()) == 0;
}

std::string_view NameInKey(std::string_view key) {
  constexpr std::size_t kAfterName = 1 + 2 * kSecretBytes;  // an underscore and the secret
  if (!key.starts_with(kPrefix) || key.size() <= kPrefix.size() + kAfterName) return {};
  key.remove_prefix(kPrefix.size());
  return key[key.size() - kAfterName] == '_' ? key.substr(0, key.size() - kAfterName)
                                             : std::string_view{};
}

Result<std::vector<KeyRecord>> ParseKeyFile(std::string_view text) {
  std::vector<KeyRecord> records;
  TextLines lines(text);
  while (lines.Next()) {
    const std::string_view line = lines.line().substr(0, lines.line().find('#'));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    auto record = ParseRecord(line);
    Status status = record.status();
    if (record.ok() && std::ranges::count(records, record.value().name, &KeyRecord::name) > 0) {
      status = Status::InvalidArgument(fmt::format("'{}' is there twice", record.value().name));
    }
    if (status.ok() && records.size() == kMaxKeys) {
      status = Status::InvalidArgument(fmt::format("has more than {} keys", kMaxKeys));
    }
    if (!status.ok()) {
      return Status::InvalidArgument(fmt::format("line {}: {}", lines.number(), status.message()));
    }
    records.push_back(std::move(record).value());
  }
  return records;
}

Result<std::vector<KeyRecord>> ReadKeyFile(const std::filesystem::path& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) == 0 && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Status::InvalidArgument(
        fmt::format("{} can be written by others than its owner, who could add keys: chmod 600 it",
                    file.string()));
  }
  const auto text = ReadFile(file);
  if (!text.ok()) return text.status();
  auto records = ParseKeyFile(text.value());
  if (records.ok()) return records;
  return Status::InvalidArgument(fmt::format("{} {}", file.string(), records.status().message()));
}

Result<std::string> AddKey(const std::filesystem::path& file, std::string_view name, Access role) {
  CODBAND_RETURN_IF_ERROR(CheckKeyName(name));
  const KeyFileLock lock(file);
  CODBAND_RETURN_IF_ERROR(lock.status());
  auto existing = ReadKeyFile(file);
  if (!existing.ok() && existing.status().code() != StatusCode::kNotFound) return existing.status();
  std::vector<KeyRecord> records;
  if (existing.ok()) records = std::move(existing).value();
  if (std::ranges::count(records, name, &KeyRecord::name) > 0) {
    return Status(StatusCode::kConflict,
                  fmt::format("{} has a key '{}' already; to replace it, add one of another name, "
                              "and remove this one when nobody uses it any more",
                              file.string(), name));
  }
  if (records.size() == kMaxKeys) {
    return Status(StatusCode::kConflict,
                  fmt::format("{} has {} keys, as many as it may have", file.string(), kMaxKeys));
  }
  std::string key = fmt::format("{}{}_{}", kPrefix, name, RandomHex(kSecretBytes));
  records.push_back(MakeKeyRecord(std::string(name), role, key));
  CODBAND_RETURN_IF_ERROR(WriteFileDurably(file, FormatKeyFile(records), FileAccess::kPrivate));
  return key;
}

Status RemoveKey(const std::filesystem::path& file, std::string_view name) {
  const KeyFileLock lock(file);
  CODBAND_RETURN_IF_ERROR(lock.status());
  auto records = ReadKeyFile(file);
  if (!records.ok()) return records.status();
  if (std::erase_if(records.value(),
                    [&](const KeyRecord& record) { return record.name == name; }) == 0) {
    return Status::NotFound(fmt::format("{} has no key '{}'", file.string(), Excerpt(name)));
  }
  return WriteFileDurably(file, FormatKeyFile(records.value()), FileAccess::kPrivate);
}

}  // namespace codband::server
