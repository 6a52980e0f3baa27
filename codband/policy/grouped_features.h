#pragma once

#include <cstdint>
#include <span>

namespace codband {

// The capability of a policy to learn how much groups of features matter; found by dynamic_cast.
// Without being told, it takes all features to matter alike.
class GroupedFeatures {
 public:
  virtual ~GroupedFeatures() = default;

  // The group of each of the first features, a number from 0 on, also of those that are about to
  // come by Policy::Grow. Features of one group (the words of one name) are taken to matter about
  // as much as each other. Groups keep their numbers from one call to the next; part of the state.
  // Exclusive access, like learning. Precondition: numbers are less than groups.size().
  virtual void SetGroups(std::span<const std::uint32_t> groups) = 0;
};

}  // namespace codband
