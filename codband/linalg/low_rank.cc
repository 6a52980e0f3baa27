#include "codband/linalg/low_rank.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {
namespace {

// Of a column of which no more than this is left beyond other columns, rounding is left.
constexpr double kNothing = 1e-14;
// Rows, and lanes of columns, that are computed at a time: as many sums as fit into registers.
constexpr std::size_t kRowsTogether = 4;
constexpr std::size_t kBlockLanes = 2;
constexpr std::size_t kBlock = kBlockLanes * kLanes;

std::size_t InWholeBlocks(std::size_t columns) { return (columns + kBlock - 1) / kBlock * kBlock; }

// sums[r] += Σ_j scale(r, j) · from[j], j = 0 … count - 1, rows of `from` being `stride` lanes
// apart.
template <typename Scale>
inline __attribute__((always_inline)) void AddRows(std::size_t count, const Lanes* from,
                                                   std::size_t stride, const Scale& scale,
                                                   Lanes (&sums)[kRowsTogether][kBlockLanes]) {
  for (std::size_t j = 0; j < count; ++j, from += stride) {
    for (std::size_t row = 0; row < kRowsTogether; ++row) {
      const double by = scale(row, j);
      for (std::size_t w = 0; w < kBlockLanes; ++w) sums[row][w] += by * from[w];
    }
  }
}

// out = half · L: `half` is a lower triangle, packed, L and out are by rows of `stride` and `width`
// numbers.
CODBAND_VECTOR_CLONES void MultiplyLower(const double* half, const double* directions,
                                         std::size_t columns, std::size_t stride, std::size_t width,
                                         double* out) {
  for (std::size_t first = 0; first < columns; first += kRowsTogether) {
    const std::size_t rows = std::min(kRowsTogether, columns - first);
    for (std::size_t block = 0; block < width; block += kBlock) {
      const Lanes* from = AsLanes(directions + block);
      Lanes sums[kRowsTogether][kBlockLanes] = {};
      const double* column = half + first;  // by row of the triangle
      for (std::size_t j = 0; j < first; ++j) {
        for (std::size_t r = 0; r < kRowsTogether; ++r) {
          const double scale = column[r];  // beyond the last row: another column's, not used
          for (std::size_t w = 0; w < kBlockLanes; ++w) sums[r][w] += scale * from[w];
        }
        column += columns - 1 - j;
        from += stride / kLanes;
      }
      for (std::size_t j = 0; j < rows; ++j) {  // on the diagonal
        for (std::size_t r = j; r < rows; ++r) {
          for (std::size_t w = 0; w < kBlockLanes; ++w) sums[r][w] += column[r] * from[w];
        }
        column += columns - 1 - (first + j);
        from += stride / kLanes;
      }
      for (std::size_t r = 0; r < rows; ++r) {
        Lanes* const to = AsLanes(out + (first + r) * width + block);
        for (std::size_t w = 0; w < kBlockLanes; ++w) to[w] = sums[r][w];
      }
    }
  }
}

// out = Lᵀ · other: `rows` rows, in whole blocks, of as many numbers as those of `other`, `width`.
CODBAND_VECTOR_CLONES void MultiplyTransposed(const double* directions, const double* other,
                                              std::size_t columns, std::size_t stride,
                                              std::size_t rows, std::size_t width, double* out) {
  for (std::size_t first = 0; first < rows; first += kRowsTogether) {
    for (std::size_t block = 0; block < width; block += kBlock) {
      Lanes sums[kRowsTogether][kBlockLanes] = {};
      AddRows(
          columns, AsLanes(other + block), width / kLanes,
          [&](std::size_t r, std::size_t i) { return directions[i * stride + first + r]; }, sums);
      for (std::size_t r = 0; r < kRowsTogether; ++r) {
        Lanes* const to = AsLanes(out + (first + r) * width + block);
        for (std::size_t w = 0; w < kBlockLanes; ++w) to[w] = sums[r][w];
      }
    }
  }
}

// a += scale · WᵀW: W has `rank` rows of `width` numbers, a is packed, of `dim` rows.
CODBAND_VECTOR_CLONES void AddOuters(double scale, const double* outer, std::size_t rank,
                                     std::size_t width, std::size_t dim, double* packed) {
  for (std::size_t first = 0; first < dim; first += kRowsTogether) {
    const std::size_t columns = std::min(kRowsTogether, dim - first);
    for (std::size_t block = first / kBlock * kBlock; block < dim; block += kBlock) {
      Lanes sums[kRowsTogether][kBlockLanes] = {};
      AddRows(
          rank, AsLanes(outer + block), width / kLanes,
          [&](std::size_t r, std::size_t l) { return outer[l * width + first + r]; }, sums);
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t j = first + c;
        double* const column = packed + PackedColumn(dim, j) - j;
        const std::size_t end = std::min(block + kBlock, dim);
        for (std::size_t i = std::max(block, j); i < end; ++i) {
          column[i] += scale * sums[c][(i - block) / kLanes][(i - block) % kLanes];
        }
      }
    }
  }
}

// Factors a symmetric matrix of `rank` rows, of which the lower triangle is read by rows, in place,
// and takes x to C⁻¹x. Returns ln|A|; nothing if a pivot is below `least`.
CODBAND_VECTOR_CLONES std::optional<double> FactorAndSolve(std::size_t rank, double least,
                                                           std::span<double> matrix,
                                                           std::span<double> x) {
  LogProduct determinant;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::span<double> row = matrix.subspan(i * rank, i + 1);
    for (std::size_t j = 0; j <= i; ++j) {
      const std::span<const double> other = matrix.subspan(j * rank, j + 1);
      const double rest = row[j] - Dot(row.first(j), other.first(j));
      if (j < i) {
        row[j] = rest / other[j];
        continue;
      }
      if (!(rest >= least)) return std::nullopt;
      row[j] = std::sqrt(rest);
      determinant.Multiply(rest);
    }
    x[i] = (x[i] - Dot(row.first(i), x.first(i))) / row[i];
  }
  return determinant.Log();
}

}  // namespace

void LowRank::Decompose(const SufficientStats& data, std::size_t dim) {
  dim_ = dim;
  columns_ = data.dim();
  observations_ = static_cast<double>(data.m());
  const std::size_t most = std::min<std::uint64_t>(columns_, data.m());
  stride_ = InWholeBlocks(most);
  places_.resize(columns_);
  left_.resize(columns_);
  directions_.assign(columns_ * stride_, 0.0);
  rewards_.clear();
  for (std::size_t i = 0; i < columns_; ++i) {
    places_[i] = static_cast<std::uint16_t>(data.Place(i, dim));
    left_[i] = data.S()[PackedColumn(columns_, i)];
  }
  const auto entry = [&](std::size_t i, std::size_t j) {
    return data.S()[PackedColumn(columns_, std::min(i, j)) + std::max(i, j) - std::min(i, j)];
  };
  double explained = 0;
  for (rank_ = 0; rank_ < most; ++rank_) {
    std::size_t pivot = 0;
    double share = 0;  // of what a column was
    for (std::size_t i = 0; i < columns_; ++i) {
      if (left_[i] > share * entry(i, i)) {
        share = left_[i] / entry(i, i);
        pivot = i;
      }
    }
    if (!(share > kNothing)) break;
    const double root = std::sqrt(left_[pivot]);
    const std::span<const double> row(directions_.data() + pivot * stride_, rank_);
    for (std::size_t i = 0; i < columns_; ++i) {
      if (!(left_[i] > 0)) continue;  // a pivot before
      double* const other = directions_.data() + i * stride_;
      other[rank_] = (entry(i, pivot) - Dot(row, {other, rank_})) / root;
      left_[i] -= other[rank_] * other[rank_];
    }
    left_[pivot] = 0;
    rewards_.push_back((data.c()[pivot] - Dot(row, rewards_)) / root);
    explained += rewards_.back() * rewards_.back();
  }
  width_ = InWholeBlocks(rank_);
  rest_ = std::max(0.0, data.q() - explained);
}

void LowRank::FindProduct(const Covariance& covariance) {
  // A few more, which are read with the last rows and not used.
  half_.resize(PackedSize(columns_) + kRowsTogether);
  double* to = half_.data();
  for (std::size_t j = 0; j < columns_; ++j) {
    const double* const column =
        covariance.packed().data() + PackedColumn(dim_, places_[j]) - places_[j];
    *to++ = 0.5 * column[places_[j]];
    for (std::size_t i = j + 1; i < columns_; ++i) *to++ = column[places_[i]];
  }
  MultiplyLower(half_.data(), directions_.data(), columns_, stride_, width_, product_.data());
}

void LowRank::FindProduct(std::span<const double> prior_precision) {
  for (std::size_t i = 0; i < columns_; ++i) {
    const double half = 0.5 / prior_precision[places_[i]];
    for (std::size_t j = 0; j < width_; ++j) {
      product_[i * width_ + j] = half * directions_[i * stride_ + j];
    }
  }
}

void LowRank::AddToIdentity(double scale) {
  matrix_.resize(rank_ * rank_);
  for (std::size_t i = 0; i < rank_; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      matrix_[i * rank_ + j] = scale * (inner_[i * width_ + j] + inner_[j * width_ + i]);
    }
    matrix_[i * rank_ + i] += 1;
  }
}

std::optional<double> LowRank::LogDensity(const GaussianPosterior& model,
                                          const Covariance* covariance, bool contains_data) {
  CODBAND_DCHECK(model.dim() == dim_);
  const double noise = model.noise_variance();
  // Without the data, a model of the data alone is the prior.
  const std::uint64_t others =
      model.stats().m() - (contains_data ? static_cast<std::uint64_t>(observations_) : 0);
  const bool is_prior = others == 0;
  const bool removes = contains_data && !is_prior;
  product_.resize(columns_ * width_);
  inner_.resize(width_ * width_);
  if (is_prior) {
    FindProduct(model.prior_precision());
  } else {
    FindProduct(*covariance);
  }
  MultiplyTransposed(directions_.data(), product_.data(), columns_, stride_, width_, width_,
                     inner_.data());
  AddToIdentity((removes ? -1 : 1) / noise);
  residual_.assign(rewards_.begin(), rewards_.end());
  for (std::size_t i = 0; i < columns_; ++i) {
    const std::size_t place = places_[i];
    const double mean = is_prior ? model.prior_information()[place] / model.prior_precision()[place]
                                 : model.mean()[place];
    Axpy(-mean, {directions_.data() + i * stride_, rank_}, residual_);
  }
  const auto determinant =
      FactorAndSolve(rank_, removes ? Covariance::kLeastLeft : 0, matrix_, residual_);
  if (!determinant) return std::nullopt;
  const double squares = (rest_ + Dot(residual_, residual_)) / noise;
  const double density = -0.5 * (observations_ * std::log(2 * std::numbers::pi * noise) +
                                 (removes ? -1 : 1) * *determinant + squares);
  return std::isfinite(density) ? std::optional(density) : std::nullopt;
}

void LowRank::ReadDirection(std::size_t i, double scale, std::span<double> x) const {
  std::ranges::fill(x, 0.0);
  for (std::size_t j = 0; j < columns_; ++j) x[places_[j]] = scale * directions_[j * stride_ + i];
}

// With T = ΣL and I ± LᵀΣL/σ² = CCᵀ, the new covariance is Σ ∓ W Wᵀ/σ², W = T C⁻ᵀ.
void LowRank::Change(Covariance& covariance, double noise_variance, int sign) {
  CODBAND_DCHECK(covariance.known());
  const std::size_t width = InWholeBlocks(dim_);
  const std::span<const double> packed = covariance.packed();
  rows_.resize(columns_ * width);
  outer_.resize(width_ * width);
  product_.resize(columns_ * width_);
  inner_.resize(width_ * width_);
  for (std::size_t j = 0; j < columns_; ++j) {
    double* const row = rows_.data() + j * width;
    const std::size_t place = places_[j];
    for (std::size_t i = 0; i < place; ++i) row[i] = packed[PackedColumn(dim_, i) + place - i];
    std::copy_n(packed.data() + PackedColumn(dim_, place), dim_ - place, row + place);
    std::fill(row + dim_, row + width, 0.0);
  }
  MultiplyTransposed(directions_.data(), rows_.data(), columns_, stride_, width_, width,
                     outer_.data());
  for (std::size_t i = 0; i < columns_; ++i) {
    for (std::size_t l = 0; l < width_; ++l) {
      product_[i * width_ + l] = 0.5 * outer_[l * width + places_[i]];
    }
  }
  MultiplyTransposed(directions_.data(), product_.data(), columns_, stride_, width_, width_,
                     inner_.data());
  AddToIdentity(sign / noise_variance);
  residual_.assign(rank_, 0.0);
  if (!FactorAndSolve(rank_, sign > 0 ? 0 : Covariance::kLeastLeft, matrix_, residual_)) {
    return covariance.Forget();
  }
  for (std::size_t l = 0; l < rank_; ++l) {
    const std::span<double> row(outer_.data() + l * width, width);
    for (std::size_t k = 0; k < l; ++k) {
      Axpy(-matrix_[l * rank_ + k], {outer_.data() + k * width, width}, row);
    }
    const double inverse = 1 / matrix_[l * rank_ + l];
    for (double& value : row) value *= inverse;
  }
  covariance.Change(rank_, [&](std::span<double> entries) {
    AddOuters(-sign / noise_variance, outer_.data(), rank_, width, dim_, entries.data());
  });
}

}  // namespace codband::linalg
