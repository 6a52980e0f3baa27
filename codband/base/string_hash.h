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

using StringViewSet = std::unordered_set<std::string_view, StringHash>;

}  // namespace codband
