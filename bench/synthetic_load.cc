#include "bench/synthetic_load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "codband/base/random.h"

namespace codband {

std::vector<double> UnitVector(std::uint64_t index, std::uint64_t purpose, std::size_t dim) {
  RandomStream random({1, index}, purpose);
  std::vector<double> x(dim);
  random.FillNormal(x);
  const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  for (double& value : x) value /= norm;
  return x;
}

double MeanReward(const std::vector<double>& item, const std::vector<double>& taste) {
  return 5 * std::inner_product(item.begin(), item.end(), taste.begin(), 0.0);
}

std::string ItemName(std::uint64_t item) { return fmt::format("item{:04}", item); }

std::vector<std::uint64_t> Candidates(std::uint64_t first, std::size_t count, std::uint64_t items) {
  constexpr std::uint64_t kStep = 7919;
  std::vector<std::uint64_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = (first + i * kStep) % items;
  return chosen;
}

double ResidentBytes(int pid) {
  std::ifstream in(fmt::format("/proc/{}/statm", pid));
  double pages = 0;
  in >> pages >> pages;
  return in ? pages * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace codband
