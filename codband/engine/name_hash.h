#pragma once

#include <optional>
#include <string_view>

#include "codband/base/sip_hash.h"
#include "codband/policy/policy.h"

namespace codband::engine {

// Ids of users and items for policies are hashes of their names, so that no table of names is
// needed. That any two of a million users share an id has a chance of 3 in 100 million.
//
// With the secret of a data directory nobody else can make up a name with the id of another.
// Directories of before have none: there such names can be made up, and are refused where they are
// noticed.
class NameHash {
 public:
  NameHash() = default;  // of directories of before
  explicit NameHash(const SipKey& secret) : secret_(secret) {}

  bool keyed() const { return secret_.has_value(); }
  SipKey secret() const { return secret_.value_or(SipKey()); }

  UserId User(std::string_view name) const;  // never 0, never kNobody
  ItemId Item(std::string_view id) const;    // never kNoItem

 private:
  std::optional<SipKey> secret_;
};

// Without a secret.
UserId HashUser(std::string_view user);

}  // namespace codband::engine
