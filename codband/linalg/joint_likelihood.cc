#include "codband/linalg/joint_likelihood.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/panel_factor.h"
#include "codband/linalg/vector_clones.h"

namespace codband::linalg {
namespace {

constexpr std::size_t kRows = 3;  // of a panel at a time

// What FactorLanes reads of the models, side by side.
struct LaneInput {
  Lanes noise_inverse = {};
  Lanes sign = {};
  const double* S[kLanes];
  const double* c[kLanes];
  const double* precision[kLanes];
  const double* prior_information[kLanes];
};

inline __attribute__((always_inline)) void ReadLanes(std::span<const JointLikelihood::Model> models,
                                                     LaneInput& in) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    // Unused lanes repeat the last model.
    const JointLikelihood::Model& model = models[std::min(lane, models.size() - 1)];
    in.noise_inverse[lane] = 1 / model.posterior->noise_variance();
    in.sign[lane] = model.contains_data ? -1 : 1;
    in.S[lane] = model.posterior->stats().S().data();
    in.c[lane] = model.posterior->stats().c().data();
    in.precision[lane] = model.posterior->prior_precision().data();
    in.prior_information[lane] = model.posterior->prior_information().data();
  }
}

}  // namespace

JointLikelihood::JointLikelihood(std::size_t dim)
    : dim_(dim), all_columns_(dim), matrix_(PackedSize(dim) * kLanes), information_(dim * kLanes) {}

const SufficientStats& JointLikelihood::OverAllColumns(const SufficientStats& data) {
  if (data.dim() == dim_) return data;
  all_columns_.Assign(data);
  return all_columns_;
}

// Leaves in dense_ the models that cannot be scored that way.
void JointLikelihood::FindByDirections(const SufficientStats& data, std::span<const Model> models,
                                       std::span<double> out) {
  dense_.clear();
  dense_places_.clear();
  const auto is_candidate = [&](const Model& model) {
    return (model.covariance != nullptr && model.covariance->known()) ||
           model.posterior->stats().m() == (model.contains_data ? data.m() : 0);
  };
  bool pays = dim_ > Covariance::kNarrow && std::ranges::any_of(models, is_candidate);
  if (pays) {
    low_rank_.Decompose(data, dim_);
    pays = low_rank_.Pays();
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (pays && is_candidate(models[i])) {
      const auto density =
          low_rank_.LogDensity(*models[i].posterior, models[i].covariance, models[i].contains_data);
      if (density) {
        out[i] = *density;
        continue;
      }
    }
    dense_.push_back(models[i]);
    dense_places_.push_back(i);
  }
}

void JointLikelihood::LogDensities(const SufficientStats& given, std::span<const Model> models,
                                   std::span<double> out) {
  CODBAND_DCHECK(models.size() == out.size());
  FindByDirections(given, models, out);
  if (dense_.empty()) return;
  const SufficientStats& data = OverAllColumns(given);
  const std::span<const Model> rest(dense_);
  for (std::size_t first = 0; first < rest.size(); first += kLanes) {
    const auto group = rest.subspan(first, std::min(kLanes, rest.size() - first));
    FactorLanes(data, group);
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
      // The model as it is and the model with or without D: one of the two is the prior of D.
      const GaussianPosterior& model = *group[lane].posterior;
      CODBAND_DCHECK(model.dim() == dim_);
      const double sign = group[lane].contains_data ? 1 : -1;
      const double log_determinants = sign * (model.log_determinant() - log_determinant_[lane]);
      const double explained = sign * (model.explained() - explained_[lane]);
      const double noise = model.noise_variance();
      out[dense_places_[first + lane]] =
          -0.5 * (static_cast<double>(data.m()) * std::log(2 * std::numbers::pi * noise) +
                  log_determinants + data.q() / noise - explained);
    }
  }
}

void JointLikelihood::Means(const SufficientStats& given, std::span<const Model> models,
                            std::span<double> out) {
  CODBAND_DCHECK(models.size() * dim_ == out.size());
  const SufficientStats& data = OverAllColumns(given);
  for (std::size_t first = 0; first < models.size(); first += kLanes) {
    const auto group = models.subspan(first, std::min(kLanes, models.size() - first));
    FactorLanes(data, group);
    // Lᵀμ = L⁻¹b, from the last row up.
    Lanes* const mean = AsLanes(information_.data());
    for (std::size_t k = dim_; k-- > 0;) {
      const Lanes* const column = AsLanes(matrix_.data()) + PackedColumn(dim_, k);
      for (std::size_t below = 1; below < dim_ - k; ++below) {
        mean[k] -= column[below] * mean[k + below];
      }
      mean[k] /= column[0];
    }
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
      CODBAND_DCHECK(!group[lane].contains_data);
      const std::span<double> row = out.subspan((first + lane) * dim_, dim_);
      for (std::size_t k = 0; k < dim_; ++k) row[k] = mean[k][lane];
    }
  }
}

// Factors, lane by lane, the precision of each model with `data` added or removed.
CODBAND_VECTOR_CLONES void JointLikelihood::FactorLanes(const SufficientStats& data,
                                                        std::span<const Model> models) {
  LaneInput in;
  ReadLanes(models, in);
  const auto& [noise_inverse, sign, S, c, precision, prior_information] = in;
  Lanes* const matrix = AsLanes(matrix_.data());
  Lanes* const information = AsLanes(information_.data());
  for (std::size_t i = 0; i < PackedSize(dim_); ++i) {
    const Lanes sum = {S[0][i], S[1][i], S[2][i], S[3][i]};
    matrix[i] = (sum + sign * data.S()[i]) * noise_inverse;
  }
  for (std::size_t i = 0; i < dim_; ++i) {
    const Lanes sum = {c[0][i], c[1][i], c[2][i], c[3][i]};
    const Lanes prior = {prior_information[0][i], prior_information[1][i], prior_information[2][i],
                         prior_information[3][i]};
    information[i] = prior + (sum + sign * data.c()[i]) * noise_inverse;
    const Lanes diagonal = {precision[0][i], precision[1][i], precision[2][i], precision[3][i]};
    matrix[PackedColumn(dim_, i)] += diagonal;
  }

  LogProduct determinant[kLanes];
  Lanes explained = {};
  const std::size_t d = dim_;  // a local, which cannot alias the matrix
  for (std::size_t k = 0; k < d; ++k) {
    Lanes* const column = matrix + PackedColumn(d, k);
    if (k % kPanel == 0) SubtractFromPanel<ProblemsInLanes, kRows>(matrix, d, k);
    SubtractInPanel<ProblemsInLanes>(matrix, d, k);
    Lanes rest = information[k];
    const Lanes* scale = matrix + k;
    for (std::size_t j = 0; j < k; ++j) {
      rest -= information[j] * *scale;
      scale += d - 1 - j;
    }
    // A pivot of P + (a sum of outer products) is below its P_jj only by rounding.
    const Lanes least = {precision[0][k], precision[1][k], precision[2][k], precision[3][k]};
    const Lanes pivot = column[0] > least ? column[0] : least;
    Lanes root;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      root[lane] = std::sqrt(pivot[lane]);
      determinant[lane].Multiply(pivot[lane]);
    }
    column[0] = root;
    const Lanes inverse = 1.0 / root;
    for (std::size_t below = 1; below < d - k; ++below) column[below] *= inverse;
    information[k] = rest * inverse;
    explained += information[k] * information[k];
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    log_determinant_[lane] = determinant[lane].Log();
    explained_[lane] = explained[lane];
  }
}

}  // namespace codband::linalg
