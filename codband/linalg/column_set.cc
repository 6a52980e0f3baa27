#include "codband/linalg/column_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "codband/base/check.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {
namespace {

CODBAND_VECTOR_CLONES std::size_t CountNonZero(std::span<const double> x) {
  std::size_t count = 0;
  for (const double value : x) count += value != 0;
  return count;
}

}  // namespace

ColumnSet ColumnSet::All(std::size_t dim, bool intercept) {
  CODBAND_CHECK(dim > 0 && dim <= kMaxDimension);
  ColumnSet all(intercept);
  all.run_ = static_cast<std::uint16_t>(dim - (intercept ? 1 : 0));
  all.has_intercept_ = intercept;
  return all;
}

ColumnSet::ColumnSet(const ColumnSet& other) : intercept_(other.intercept_) { *this = other; }

ColumnSet& ColumnSet::operator=(const ColumnSet& other) {
  if (this == &other) return *this;
  if (rest_size_ != other.rest_size_) {
    rest_ = other.rest_size_ > 0 ? std::make_unique<std::uint16_t[]>(other.rest_size_) : nullptr;
  }
  std::copy_n(other.rest_.get(), other.rest_size_, rest_.get());
  rest_size_ = other.rest_size_;
  run_ = other.run_;
  intercept_ = other.intercept_;
  has_intercept_ = other.has_intercept_;
  return *this;
}

bool operator==(const ColumnSet& a, const ColumnSet& b) {
  return a.run_ == b.run_ && a.intercept_ == b.intercept_ && a.has_intercept_ == b.has_intercept_ &&
         std::equal(a.rest_.get(), a.rest_.get() + a.rest_size_, b.rest_.get(),
                    b.rest_.get() + b.rest_size_);
}

std::vector<std::uint16_t> ColumnSet::List() const {
  std::vector<std::uint16_t> all;
  all.reserve(size());
  for (std::uint16_t i = 0; i < run_; ++i) all.push_back(i);
  all.insert(all.end(), rest_.get(), rest_.get() + rest_size_);
  if (has_intercept_) all.push_back(kIntercept);
  return all;
}

void ColumnSet::Take(std::span<const std::uint16_t> rising) {
  has_intercept_ = !rising.empty() && rising.back() == kIntercept;
  if (has_intercept_) rising = rising.first(rising.size() - 1);
  run_ = 0;
  while (run_ < rising.size() && rising[run_] == run_) ++run_;
  rising = rising.subspan(run_);
  rest_size_ = static_cast<std::uint16_t>(rising.size());
  rest_ = rising.empty() ? nullptr : std::make_unique<std::uint16_t[]>(rising.size());
  std::ranges::copy(rising, rest_.get());
}

bool ColumnSet::Covers(std::span<const double> x) const {
  if (size() == x.size()) return true;
  std::size_t here = 0;
  for (std::size_t i = 0; i < size(); ++i) here += x[Place(i, x.size())] != 0;
  return here == CountNonZero(x);
}

void ColumnSet::Include(std::span<const double> x, std::vector<std::uint16_t>& places) {
  std::vector<std::uint16_t> columns;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    const bool last = intercept_ && i + 1 == x.size();
    columns.push_back(last ? kIntercept : static_cast<std::uint16_t>(i));
  }
  ColumnSet other(intercept_);
  other.Take(columns);
  Include(other, places);
}

void ColumnSet::Include(const ColumnSet& other, std::vector<std::uint16_t>& places) {
  CODBAND_CHECK(intercept_ == other.intercept_);
  const std::vector<std::uint16_t> before = List();
  std::vector<std::uint16_t> all;
  std::ranges::set_union(before, other.List(), std::back_inserter(all));
  places.clear();
  std::size_t at = 0;
  for (const std::uint16_t column : before) {
    while (all[at] != column) ++at;
    places.push_back(static_cast<std::uint16_t>(at));
  }
  Take(all);
}

void ColumnSet::Gather(std::span<const double> x, std::span<double> out) const {
  CODBAND_DCHECK(out.size() == size());
  for (std::size_t i = 0; i < size(); ++i) out[i] = x[Place(i, x.size())];
}

// As runs of neighbouring columns: most sets are one run, and the intercept.
void ColumnSet::Save(ByteWriter& out) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;
  for (const std::uint16_t column : List()) {
    if (!runs.empty() && runs.back().first + runs.back().second == column) {
      ++runs.back().second;
    } else {
      runs.emplace_back(column, 1);
    }
  }
  out.U32(static_cast<std::uint32_t>(runs.size()));
  for (const auto& [first, count] : runs) {
    out.U32(first);
    out.U32(count);
  }
}

void ColumnSet::Load(ByteReader& in, std::size_t dim) {
  const std::size_t most = dim - (intercept_ && dim > 0 ? 1 : 0);
  std::vector<std::uint16_t> columns;
  std::uint64_t next = 0;
  for (std::uint32_t runs = in.U32("runs of columns"); runs > 0 && in.ok(); --runs) {
    const std::uint32_t first = in.U32("first column of a run");
    const std::uint32_t count = in.U32("columns of a run");
    const bool is_intercept = intercept_ && first == kIntercept && count == 1;
    if (first < next || count == 0 || (!is_intercept && std::uint64_t{first} + count > most)) {
      in.Fail("columns", fmt::format("has a run of {} at {}, of {} features", count, first, dim));
      break;
    }
    next = std::uint64_t{first} + count;
    for (std::uint32_t i = 0; i < count; ++i) {
      columns.push_back(static_cast<std::uint16_t>(first + i));
    }
  }
  Take(columns);
}

}  // namespace codband::linalg
