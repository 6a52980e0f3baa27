#include "codband/engine/name_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace codband::engine {
namespace {

std::uint64_t HashOf(const std::optional<SipKey>& secret, std::string_view name) {
  return secret ? SipHash(*secret, name) : XXH3_64bits(name.data(), name.size());
}

}  // namespace

UserId NameHash::User(std::string_view name) const {
  const std::uint64_t hash = HashOf(secret_, name);
  if (hash == kNobody) return hash - 1;  // whoever has no name
  return hash == 0 ? 1 : hash;           // as data directories have it since format 1
}

ItemId NameHash::Item(std::string_view id) const {
  const std::uint64_t hash = HashOf(secret_, id);
  return hash == kNoItem ? 1 : hash;
}

UserId HashUser(std::string_view user) { return NameHash().User(user); }

}  // namespace codband::engine
