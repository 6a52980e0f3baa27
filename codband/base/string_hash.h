#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_set>

namespace codband {

// A hash of strings for tables whose keys come from outside. Its secret is drawn when the program
// starts, so that nobody can prepare keys that collide and make a table slow (hash flooding). Never
// for what is stored, or what a result depends on.
struct StringHash {
  using is_transparent = void;
  // Not noexcept: then libstdc++ keeps the hash with each entry, and a lookup need not hash the
  // entries that it passes.
  std::size_t operator()(std::string_view text) const;
};

// A text with its hash, to look it up in several tables.
struct HashedText {
  explicit HashedText(std::string_view given) : text(given), hash(StringHash()(given)) {}

  std::string_view text;
  std::size_t hash;
};

// Of tables in which such texts are looked up.
struct HashedTextHash : StringHash {
  using StringHash::operator();
  std::size_t operator()(const HashedText& text) const { return text.hash; }
};
struct HashedTextEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  bool operator()(const HashedText& a, std::string_view b) const { return a.text == b; }
  bool operator()(std::string_view a, const HashedText& b) const { return a == b.text; }
};

using StringViewSet = std::unordered_set<std::string_view, StringHash>;

}  // namespace codband
