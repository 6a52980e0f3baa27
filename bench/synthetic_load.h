#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace codband {

// The users and items of the load benchmarks: items are random unit vectors, users have one of a
// few tastes, which are unit vectors too. Everything is a function of its arguments.

// A random unit vector; `purpose` keeps items and tastes apart.
std::vector<double> UnitVector(std::uint64_t index, std::uint64_t purpose, std::size_t dim);

// The mean reward of an item for a taste: about as large as one.
double MeanReward(const std::vector<double>& item, const std::vector<double>& taste);

std::string ItemName(std::uint64_t item);

// `count` different items of `items`, starting at `first`. Precondition: items is no multiple of
// 7919, the prime that is the step.
std::vector<std::uint64_t> Candidates(std::uint64_t first, std::size_t count, std::uint64_t items);

// Resident memory of a process; 0 if it cannot be read.
double ResidentBytes(int pid);

}  // namespace codband
