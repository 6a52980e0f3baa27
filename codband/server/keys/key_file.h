#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/route.h"

namespace codband::server {

// One key as it is stored: what is needed to recognise it, and nothing to make it from.
//
// Keys are "cb_NAME_SECRET" with 256 random bits as the secret, so they are not guessed, and a fast
// hash with a salt is enough where a password would need a slow one: the check of a request costs a
// microsecond. The name leads to the one record that a key is compared with.
struct KeyRecord {
  std::string name;             // 1 to 64 letters, digits, '-' and '.'
  Access role = Access::kRank;  // one of kRoles
  std::string salt;             // 32 hex digits
  std::string hash;             // HashKey(salt, key)
};

// The role of this name. kInvalidArgument lists the roles.
Result<Access> ParseRole(std::string_view name);

// As many random bytes, 32 at most, from the system's entropy, as hex digits.
std::string RandomHex(std::size_t bytes);

// HMAC-SHA-256 of the key, with the salt as its key: 64 hex digits.
std::string HashKey(std::string_view salt, std::string_view key);
// A record of a key with a salt of its own. Any text can be a key.
KeyRecord MakeKeyRecord(std::string name, Access role, std::string_view key);
// Whether it is the key of the record. Takes the same time wherever they differ.
bool IsKeyOf(const KeyRecord& record, std::string_view key);
// The name in "cb_NAME_SECRET"; empty for other texts.
std::string_view NameInKey(std::string_view key);

// A file of keys: a line "NAME ROLE SALT HASH" for each, empty lines, and comments after '#'.
// kInvalidArgument names the line that is wrong.
Result<std::vector<KeyRecord>> ParseKeyFile(std::string_view text);

// Reads the file. kInvalidArgument also if others than its owner may write to it: they could let
// themselves in.
Result<std::vector<KeyRecord>> ReadKeyFile(const std::filesystem::path& file);

// Makes a key with this name and role, adds its record to the file, which is made if it does not
// exist (0600), and returns the key: it cannot be read from the file later. kConflict if the name
// is taken. Callers that change a file at the same time wait for each other.
Result<std::string> AddKey(const std::filesystem::path& file, std::string_view name, Access role);
// kNotFound if there is no key of this name.
Status RemoveKey(const std::filesystem::path& file, std::string_view name);

}  // namespace codband::server
