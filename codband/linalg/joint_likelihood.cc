#include "codband/linalg/joint_likelihood.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/linalg/vector_clones.h"

namespace codband {

JointLikelihood::JointLikelihood(std::size_t dim)
    : dim_(dim), matrix_(PackedSize(dim) * kLanes), information_(dim * kLanes) {}

void JointLikelihood::LogDensities(const SufficientStats& data, std::span<const Model> models,
                                   std::span<double> out) {
  CODBAND_DCHECK(models.size() == out.size());
  for (std::size_t first = 0; first < models.size(); first += kLanes) {
    const auto group = models.subspan(first, std::min(kLanes, models.size() - first));
    FactorLanes(data, group);
    for (std::size_t lane = 0; lane < group.size(); ++lane) {
      // The model as it is and the model with or without D: one of the two is the prior of D.
      const GaussianPosterior& model = *group[lane].posterior;
      const double sign = group[lane].contains_data ? 1 : -1;
      const double log_determinants = sign * (model.log_determinant() - log_determinant_[lane]);
      const double explained = sign * (model.explained() - explained_[lane]);
      const double noise = model.noise_variance();
      out[first + lane] =
          -0.5 * (static_cast<double>(data.m()) * std::log(2 * std::numbers::pi * noise) +
                  log_determinants + data.q() / noise - explained);
    }
  }
}

// Factors, lane by lane, the precision of each model with `data` added or taken out.
CODBAND_VECTOR_CLONES void JointLikelihood::FactorLanes(const SufficientStats& data,
                                                        std::span<const Model> models) {
  Lanes noise_inverse = {};
  Lanes sign = {};
  const double* S[kLanes];
  const double* c[kLanes];
  const double* precision[kLanes];
  const double* prior_information[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    // Lanes without a model of their own repeat the last one.
    const Model& model = models[std::min(lane, models.size() - 1)];
    CODBAND_DCHECK(model.posterior->dim() == dim_);
    noise_inverse[lane] = 1 / model.posterior->noise_variance();
    sign[lane] = model.contains_data ? -1 : 1;
    S[lane] = model.posterior->stats().S().data();
    c[lane] = model.posterior->stats().c().data();
    precision[lane] = model.posterior->prior_precision().data();
    prior_information[lane] = model.posterior->prior_information().data();
  }
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
  const std::size_t d = dim_;  // a local: stores to the matrix cannot change it
  for (std::size_t j = 0; j < d; ++j) {
    Lanes* const __restrict column = matrix + PackedColumn(d, j);
    // No pivot of P + (a sum of outer products) is below its P_jj; only rounding can say less.
    const Lanes least = {precision[0][j], precision[1][j], precision[2][j], precision[3][j]};
    const Lanes pivot = column[0] > least ? column[0] : least;
    Lanes root;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      root[lane] = std::sqrt(pivot[lane]);
      determinant[lane].Multiply(pivot[lane]);
    }
    const Lanes inverse = 1.0 / root;
    for (std::size_t i = 1; i < d - j; ++i) column[i] *= inverse;
    const Lanes solved = information[j] * inverse;
    explained += solved * solved;
    for (std::size_t k = j + 1; k < d; ++k) {
      const Lanes scale = column[k - j];
      information[k] -= solved * scale;
      Lanes* const __restrict target = matrix + PackedColumn(d, k);
      const Lanes* const source = column + (k - j);
      for (std::size_t i = 0; i < d - k; ++i) target[i] -= scale * source[i];
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    log_determinant_[lane] = determinant[lane].Log();
    explained_[lane] = explained[lane];
  }
}

}  // namespace codband
