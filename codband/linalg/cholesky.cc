#include "codband/linalg/cholesky.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/lanes.h"
#include "codband/linalg/panel_factor.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {
namespace {

// A downdate divides errors by 1 - xᵀA⁻¹x; below this, fewer than ten accurate digits would remain.
constexpr double kDowndateGuard = 1e-6;

// Up to this dimension a factor fits into the nearest cache, and columns of the inverse are
// computed one at a time.
constexpr std::size_t kNarrow = 64;

using StackVector = std::array<double, kMaxDimension>;

// Σ v[i]², sequentially: the same order in the scalar and in the four-lane kernel.
double SumOfSquares(std::span<const double> v) {
  double sum = 0;
  for (const double value : v) sum += value * value;
  return sum;
}

// Blocked substitution: several right-hand sides at a time, in `kWide` times four lanes, and
// `count` columns of the factor at a time. Each entry is loaded and stored once for all of them,
// and the columns are subtracted in order.
constexpr std::size_t kWide = 2;

template <std::size_t count>
inline __attribute__((always_inline)) void SolveColumns(const double* lower,
                                                        const double* inverse_diagonal,
                                                        std::size_t d, std::size_t first, Lanes* x,
                                                        Lanes* sums) {
  const double* columns[count];  // by row
  for (std::size_t k = 0; k < count; ++k) {
    columns[k] = lower + PackedColumn(d, first + k) - (first + k);
  }
  Lanes solved[count][kWide];
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t w = 0; w < kWide; ++w) {
      Lanes rest = x[(first + k) * kWide + w];
      for (std::size_t j = 0; j < k; ++j) rest -= solved[j][w] * columns[j][first + k];
      solved[k][w] = rest * inverse_diagonal[first + k];
      x[(first + k) * kWide + w] = solved[k][w];
      sums[w] += solved[k][w] * solved[k][w];
    }
  }
  for (std::size_t i = first + count; i < d; ++i) {
    for (std::size_t w = 0; w < kWide; ++w) {
      Lanes rest = x[i * kWide + w];
      for (std::size_t k = 0; k < count; ++k) rest -= solved[k][w] * columns[k][i];
      x[i * kWide + w] = rest;
    }
  }
}

// x ← L⁻¹x for all of these right-hand sides, which are 0 before row `first`; adds the squares of
// their lengths to `sums`.
inline __attribute__((always_inline)) void SolveLowerTogether(const double* lower,
                                                              const double* inverse_diagonal,
                                                              std::size_t d, std::size_t first,
                                                              Lanes* x, Lanes* sums) {
  constexpr std::size_t kColumns = 4;
  std::size_t j = first;
  for (; j + kColumns <= d; j += kColumns) {
    SolveColumns<kColumns>(lower, inverse_diagonal, d, j, x, sums);
  }
  for (; j < d; ++j) SolveColumns<1>(lower, inverse_diagonal, d, j, x, sums);
}

// As many unit vectors as are `used`, from the `first`, to x.
inline void SetUnits(std::size_t first, std::size_t used, std::size_t d, double* x) {
  constexpr std::size_t kTogether = kWide * kLanes;
  std::fill(x + first * kTogether, x + d * kTogether, 0.0);
  for (std::size_t lane = 0; lane < used; ++lane) x[(first + lane) * kTogether + lane] = 1;
}

// Subtracts L_ij x_i for all i > j from x_j, for `count` lanes of right-hand sides; a row has
// `stride` lanes.
template <std::size_t count>
inline __attribute__((always_inline)) void SubtractRows(const double* column, std::size_t d,
                                                        std::size_t j, std::size_t stride,
                                                        Lanes* x) {
  Lanes rest[count];
  for (std::size_t w = 0; w < count; ++w) rest[w] = x[j * stride + w];
  for (std::size_t i = j + 1; i < d; ++i) {
    for (std::size_t w = 0; w < count; ++w) rest[w] -= column[i] * x[i * stride + w];
  }
  for (std::size_t w = 0; w < count; ++w) x[j * stride + w] = rest[w];
}

constexpr std::size_t kPanelRows = 2 * kLanes;  // at a time

// Entries of MᵀM, M packed, in a square of so many columns from `first` and rows from `row` on
// take the place of those of M. Those on and above the diagonal of M are read one by one.
constexpr std::size_t kSquare = 3;
inline __attribute__((always_inline)) void MultiplyColumns(double* packed, std::size_t d,
                                                           std::size_t first, std::size_t row) {
  const std::size_t below = std::min(row + kSquare, d);
  double* columns[kSquare];       // by row, of the square
  const double* others[kSquare];  // those that are as far right as it is down
  for (std::size_t k = 0; k < kSquare; ++k) {
    const std::size_t j = std::min(first + k, d - 1);
    const std::size_t i = std::min(row + k, d - 1);
    columns[k] = packed + PackedColumn(d, j) - j;
    others[k] = packed + PackedColumn(d, i) - i;
  }
  Lanes sums[kSquare][kSquare] = {};
  std::size_t l = below;
  for (; l + kLanes <= d; l += kLanes) {
    for (std::size_t i = 0; i < kSquare; ++i) {
      const Lanes other = *AsLanes(others[i] + l);
      for (std::size_t j = 0; j < kSquare; ++j) sums[i][j] += other * *AsLanes(columns[j] + l);
    }
  }
  double entries[kSquare][kSquare];
  for (std::size_t i = 0; i < kSquare; ++i) {
    for (std::size_t j = 0; j < kSquare; ++j) {
      entries[i][j] = (sums[i][j][0] + sums[i][j][1]) + (sums[i][j][2] + sums[i][j][3]);
      for (std::size_t rest = l; rest < d; ++rest) {
        entries[i][j] += others[i][rest] * columns[j][rest];
      }
      for (std::size_t above = row + i; above < below; ++above) {
        if (above >= first + j) entries[i][j] += others[i][above] * columns[j][above];
      }
    }
  }
  for (std::size_t i = row; i < below; ++i) {
    for (std::size_t j = first; j < first + kSquare && j <= i; ++j) {
      columns[j - first][i] = entries[i - row][j - first];
    }
  }
}

}  // namespace

CholeskyFactor::CholeskyFactor(std::size_t dim, double diagonal)
    : lower_(PackedSize(dim), 0.0), inverse_diagonal_(dim) {
  CODBAND_CHECK(dim > 0 && dim <= kMaxDimension && diagonal > 0);
  for (std::size_t j = 0; j < dim; ++j) lower_[PackedColumn(dim, j)] = std::sqrt(diagonal);
  RefreshDiagonal();
}

void CholeskyFactor::RefreshDiagonal() {
  LogProduct determinant;
  for (std::size_t j = 0; j < dim(); ++j) {
    const double pivot = Column(j)[0];
    inverse_diagonal_[j] = 1 / pivot;
    determinant.Multiply(pivot);
  }
  log_determinant_ = 2 * determinant.Log();
}

bool CholeskyFactor::Factorize(std::span<const double> diagonal, double scale,
                               std::span<const double> S) {
  CODBAND_DCHECK(S.size() == lower_.size() && diagonal.size() == dim() && scale > 0);
  if (!AllWithin(S, std::numeric_limits<double>::max())) return false;
  std::array<std::uint16_t, kMaxDimension> places;
  std::array<double, kMaxDimension> least;
  std::size_t count = 0;  // of columns that occur in S
  for (std::size_t j = 0; j < dim(); ++j) {
    if (S[PackedColumn(dim(), j)] == 0) continue;
    least[count] = diagonal[j];
    places[count++] = static_cast<std::uint16_t>(j);
  }
  std::size_t to = 0;
  for (std::size_t j = 0; j < count; ++j) {
    const double* const column = S.data() + PackedColumn(dim(), places[j]) - places[j];
    for (std::size_t i = j; i < count; ++i) lower_[to++] = scale * column[places[i]];
  }
  FactorizeFirst({least.data(), count});
  SpreadFirst({places.data(), count}, diagonal);
  RefreshDiagonal();
  return true;
}

// The factor of the matrix whose packed entries come first in lower_, with these added to its
// diagonal.
CODBAND_VECTOR_CLONES void CholeskyFactor::FactorizeFirst(std::span<const double> diagonal) {
  const std::size_t d = diagonal.size();
  double* const lower = lower_.data();
  for (std::size_t j = 0; j < d; ++j) lower[PackedColumn(d, j)] += diagonal[j];
  for (std::size_t j = 0; j < d; ++j) {
    if (j % kPanel == 0) SubtractFromPanel<OneProblem, kPanelRows>(lower, d, j);
    SubtractInPanel<OneProblem>(lower, d, j);
    const std::span<double> column(lower + PackedColumn(d, j), d - j);
    // Exactly, what is left of the diagonal is at least diagonal[j]. Where it is far less, rounding
    // errors are all that is left of the column; kept, they would grow with every column after it.
    const bool lost = !(column[0] >= 0.5 * diagonal[j]);
    const double pivot = std::sqrt(lost ? diagonal[j] : std::max(column[0], diagonal[j]));
    column[0] = pivot;
    for (std::size_t i = 1; i < column.size(); ++i) column[i] = lost ? 0 : column[i] / pivot;
  }
}

// The packed entries that come first in lower_ are of these columns; all others have their diagonal
// and nothing else. From the last one, which never moves to where another still is.
void CholeskyFactor::SpreadFirst(std::span<const std::uint16_t> places,
                                 std::span<const double> diagonal) {
  if (places.size() == dim()) return;
  std::size_t from = PackedSize(places.size());
  std::size_t to = lower_.size();
  std::size_t column = places.size();  // those before it are still where they were
  for (std::size_t j = dim(); j-- > 0;) {
    const bool occurs = column > 0 && places[column - 1] == j;
    if (occurs) --column;
    std::size_t row = places.size();
    for (std::size_t i = dim(); i-- > j;) {
      const bool both = occurs && row > column && places[row - 1] == i;
      if (both) {
        --row;
        lower_[--to] = lower_[--from];
      } else {
        lower_[--to] = i == j ? std::sqrt(diagonal[j]) : 0;
      }
    }
  }
}

void CholeskyFactor::Resize(std::size_t dim) {
  CODBAND_CHECK(dim <= kMaxDimension);
  lower_.resize(PackedSize(dim));
  inverse_diagonal_.resize(dim);
}

void CholeskyFactor::Grow(std::span<const double> diagonal, bool intercept) {
  const std::size_t before = dim();
  const std::size_t after = diagonal.size();
  CODBAND_CHECK(after >= before && after <= kMaxDimension);
  const std::size_t kept = before - (intercept ? 1 : 0);  // columns that stay where they are
  const auto place = [&](std::size_t i) { return i < kept ? i : i + (after - before); };
  std::vector<double> lower(PackedSize(after), 0.0);
  for (std::size_t j = 0; j < before; ++j) {
    const std::size_t to = PackedColumn(after, place(j)) - place(j);
    for (std::size_t i = j; i < before; ++i) lower[to + place(i)] = Column(j)[i - j];
  }
  for (std::size_t j = kept; j < kept + (after - before); ++j) {
    CODBAND_CHECK(diagonal[j] > 0);
    lower[PackedColumn(after, j)] = std::sqrt(diagonal[j]);
  }
  lower_ = std::move(lower);
  inverse_diagonal_.resize(after);
  RefreshDiagonal();
}

CODBAND_VECTOR_CLONES void CholeskyFactor::Update(std::span<const double> x) {
  CODBAND_DCHECK(x.size() == dim());
  StackVector rest;
  std::copy(x.begin(), x.end(), rest.begin());
  for (std::size_t j = 0; j < dim(); ++j) {
    if (rest[j] == 0) continue;  // a rotation by nothing
    const std::span<double> column = Column(j);
    double* __restrict lower = column.data();
    double* __restrict v = rest.data() + j;
    const double radius = std::sqrt(lower[0] * lower[0] + v[0] * v[0]);
    const double cosine = lower[0] / radius;
    const double sine = v[0] / radius;
    lower[0] = radius;
    for (std::size_t i = 1; i < column.size(); ++i) {
      const double old = lower[i];
      lower[i] = cosine * old + sine * v[i];
      v[i] = cosine * v[i] - sine * old;
    }
  }
  RefreshDiagonal();
}

CODBAND_VECTOR_CLONES bool CholeskyFactor::Downdate(std::span<const double> x) {
  CODBAND_DCHECK(x.size() == dim());
  // The rotations that turn (p, sqrt(1 - pᵀp)), p = L⁻¹x, into a unit vector also downdate L by x
  // (Golub & Van Loan, §6.5.4); unlike hyperbolic rotations they do not amplify rounding errors.
  StackVector p;
  std::copy(x.begin(), x.end(), p.begin());
  SolveLower({p.data(), dim()});
  const double left = 1 - SumOfSquares({p.data(), dim()});
  if (!(left > kDowndateGuard)) return false;

  StackVector carry{};
  double tail = std::sqrt(left);
  for (std::size_t j = dim(); j-- > 0;) {
    const double radius = std::sqrt(tail * tail + p[j] * p[j]);
    const double cosine = tail / radius;
    const double sine = p[j] / radius;
    tail = radius;
    const std::span<double> column = Column(j);
    double* __restrict lower = column.data();
    double* __restrict v = carry.data() + j;
    for (std::size_t i = 0; i < column.size(); ++i) {
      const double old = lower[i];
      lower[i] = cosine * old - sine * v[i];
      v[i] = cosine * v[i] + sine * old;
    }
  }
  RefreshDiagonal();
  return true;
}

// Four columns at a time, so that what is left of x is read and written once for all of them; each
// entry has the columns subtracted in rising order.
CODBAND_VECTOR_CLONES void CholeskyFactor::SolveLower(std::span<double> x) const {
  CODBAND_DCHECK(x.size() == dim());
  constexpr std::size_t kTogether = 4;
  const std::size_t d = dim();
  double* const rest = x.data();
  std::size_t j = 0;
  for (; j + kTogether <= d; j += kTogether) {
    if (rest[j] == 0 && rest[j + 1] == 0 && rest[j + 2] == 0 && rest[j + 3] == 0) continue;
    const double* columns[kTogether];  // by row
    double solved[kTogether];
    for (std::size_t k = 0; k < kTogether; ++k) {
      columns[k] = lower_.data() + PackedColumn(d, j + k) - (j + k);
      double value = rest[j + k];
      for (std::size_t l = 0; l < k; ++l) value -= solved[l] * columns[l][j + k];
      solved[k] = value * inverse_diagonal_[j + k];
      rest[j + k] = solved[k];
    }
    std::size_t i = j + kTogether;
    for (; i + kLanes <= d; i += kLanes) {
      Lanes values = *AsLanes(rest + i);
      for (std::size_t k = 0; k < kTogether; ++k) values -= solved[k] * *AsLanes(columns[k] + i);
      *AsLanes(rest + i) = values;
    }
    // At most three, one by one: as a loop they would be checked for overlap, which takes longer.
    const auto subtract = [&](std::size_t row) {
      double value = rest[row];
      for (std::size_t k = 0; k < kTogether; ++k) value -= solved[k] * columns[k][row];
      rest[row] = value;
    };
    if (i < d) subtract(i);
    if (i + 1 < d) subtract(i + 1);
    if (i + 2 < d) subtract(i + 2);
  }
  for (; j < d; ++j) {
    rest[j] *= inverse_diagonal_[j];
    const double* const column = lower_.data() + PackedColumn(d, j) - j;
    if (j + 1 < d) rest[j + 1] -= rest[j] * column[j + 1];
    if (j + 2 < d) rest[j + 2] -= rest[j] * column[j + 2];
  }
}

CODBAND_VECTOR_CLONES void CholeskyFactor::SolveTransposed(std::span<double> x) const {
  CODBAND_DCHECK(x.size() == dim());
  for (std::size_t j = dim(); j-- > 0;) {
    x[j] = (x[j] - Dot(Column(j).subspan(1), x.subspan(j + 1))) * inverse_diagonal_[j];
  }
}

double CholeskyFactor::InverseQuadratic(std::span<const double> x) const {
  CODBAND_DCHECK(x.size() == dim());
  StackVector solved;
  std::copy(x.begin(), x.end(), solved.begin());
  SolveLower({solved.data(), dim()});
  return SumOfSquares({solved.data(), dim()});
}

CODBAND_VECTOR_CLONES void CholeskyFactor::InverseQuadratics(
    std::span<const double> rows, std::span<double> out, const DiagonalQuadratics& diagonal) const {
  constexpr std::size_t kTogether = kWide * kLanes;
  const std::size_t d = dim();
  const std::size_t columns = out.empty() ? d : rows.size() / out.size();
  CODBAND_DCHECK(rows.size() == out.size() * columns && (columns == d || columns + 1 == d));
  alignas(kCacheLine) std::array<double, kMaxDimension * kTogether> buffer;
  Lanes* const x = AsLanes(buffer.data());
  for (std::size_t first = 0; first < out.size(); first += kTogether) {
    const std::size_t used = std::min(kTogether, out.size() - first);
    LoadTransposed<kTogether>(rows.data() + first * columns, used, columns, buffer.data());
    if (columns < d) std::fill_n(buffer.begin() + columns * kTogether, kTogether, 1.0);
    Lanes sums[kWide] = {};
    for (std::size_t i = 0; i < columns && !diagonal.out.empty(); ++i) {
      for (std::size_t w = 0; w < kWide; ++w) {
        sums[w] += x[i * kWide + w] * x[i * kWide + w] / diagonal.entries[i];
      }
    }
    for (std::size_t lane = 0; lane < used && !diagonal.out.empty(); ++lane) {
      diagonal.out[first + lane] = sums[lane / kLanes][lane % kLanes];
    }
    for (Lanes& sum : sums) sum = Lanes{};
    SolveLowerTogether(lower_.data(), inverse_diagonal_.data(), d, 0, x, sums);
    for (std::size_t lane = 0; lane < used; ++lane) {
      out[first + lane] = sums[lane / kLanes][lane % kLanes];
    }
  }
}

CODBAND_VECTOR_CLONES void CholeskyFactor::SolveTransposedColumns(std::span<double> x) const {
  const std::size_t d = dim();
  const std::size_t lanes = x.size() / d / kLanes;  // in a row
  CODBAND_DCHECK(x.size() == d * lanes * kLanes);
  Lanes* const rows = AsLanes(x.data());
  for (std::size_t j = d; j-- > 0;) {
    const double* const column = Column(j).data() - j;  // by row
    std::size_t first = 0;
    for (; first + kWide <= lanes; first += kWide) {
      SubtractRows<kWide>(column, d, j, lanes, rows + first);
    }
    for (; first < lanes; ++first) SubtractRows<1>(column, d, j, lanes, rows + first);
    for (std::size_t lane = 0; lane < lanes; ++lane) rows[j * lanes + lane] *= inverse_diagonal_[j];
  }
}

// In place: A⁻¹ = MᵀM, M = L⁻¹. An entry needs those of its two columns from its row on, which are
// not overwritten before, since rows rise.
CODBAND_VECTOR_CLONES void CholeskyFactor::InvertWide(std::span<double> packed) const {
  constexpr std::size_t kTogether = kWide * kLanes;
  const std::size_t d = dim();
  alignas(kCacheLine) std::array<double, kMaxDimension * kTogether> buffer;
  Lanes* const x = AsLanes(buffer.data());
  for (std::size_t first = 0; first < d; first += kTogether) {
    const std::size_t used = std::min(kTogether, d - first);
    SetUnits(first, used, d, buffer.data());
    Lanes sums[kWide] = {};
    SolveLowerTogether(lower_.data(), inverse_diagonal_.data(), d, first, x, sums);
    for (std::size_t lane = 0; lane < used; ++lane) {
      const std::size_t column = PackedColumn(d, first + lane) - (first + lane);
      for (std::size_t i = first + lane; i < d; ++i) {
        packed[column + i] = buffer[i * kTogether + lane];
      }
    }
  }
  for (std::size_t first = 0; first < d; first += kSquare) {
    for (std::size_t row = first; row < d; row += kSquare) {
      MultiplyColumns(packed.data(), d, first, row);
    }
  }
}

void CholeskyFactor::Invert(std::span<double> packed) const {
  CODBAND_DCHECK(packed.size() == lower_.size());
  if (dim() > kNarrow) return InvertWide(packed);
  StackVector buffer;
  const std::span<double> column(buffer.data(), dim());
  for (std::size_t j = 0; j < dim(); ++j) {
    std::ranges::fill(column, 0.0);
    column[j] = 1;
    SolveLower(column);
    SolveTransposed(column);
    std::copy(column.begin() + static_cast<std::ptrdiff_t>(j), column.end(),
              packed.begin() + static_cast<std::ptrdiff_t>(PackedColumn(dim(), j)));
  }
}

// (A⁻¹)_jj is the square of the length of L⁻¹e_j.
CODBAND_VECTOR_CLONES double CholeskyFactor::InverseTrace(std::span<const double> scale) const {
  constexpr std::size_t kTogether = kWide * kLanes;
  const std::size_t d = dim();
  alignas(kCacheLine) std::array<double, kMaxDimension * kTogether> buffer;
  Lanes* const x = AsLanes(buffer.data());
  double trace = 0;
  for (std::size_t first = 0; first < d; first += kTogether) {
    const std::size_t used = std::min(kTogether, d - first);
    SetUnits(first, used, d, buffer.data());
    Lanes sums[kWide] = {};
    SolveLowerTogether(lower_.data(), inverse_diagonal_.data(), d, first, x, sums);
    for (std::size_t lane = 0; lane < used; ++lane) {
      trace += scale[first + lane] * sums[lane / kLanes][lane % kLanes];
    }
  }
  return trace;
}

void CholeskyFactor::Save(ByteWriter& out) const { out.Doubles(lower_); }

void CholeskyFactor::Load(ByteReader& in) {
  in.Doubles("Cholesky factor", lower_);
  for (std::size_t j = 0; j < dim(); ++j) {
    if (Column(j)[0] > 0) continue;
    in.Fail("Cholesky factor", fmt::format("has pivot {} = {}, expected > 0", j, Column(j)[0]));
    Column(j)[0] = 1;
  }
  RefreshDiagonal();
}

}  // namespace codband::linalg
