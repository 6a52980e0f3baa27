#include "codband/policy/codband/explained.h"

#include "codband/linalg/kernels.h"

namespace codband {
namespace {

// An observation so many standard deviations off is explained by no Gaussian.
constexpr double kUnexplained = 6;

bool Explains(const linalg::GaussianPosterior& model, const HyperParameters& hyper,
              const LearnStep& step) {
  const double residual = step.reward - linalg::Dot(step.x, model.mean());
  const double allowed = residual * residual / (kUnexplained * kUnexplained);
  const double sure =
      model.noise_variance() + hyper.DepartureVariance() * hyper.SquaredLength(step.x);  // at least
  return allowed <= sure || allowed <= sure + model.Variance(step.x);
}

}  // namespace

bool SomeModelExplains(const ModelPool& pool, const HyperParameters& hyper, const PoolModel& own,
                       const LearnStep& step) {
  if (Explains(own.posterior, hyper, step)) return true;
  for (std::size_t k = 0; k < pool.size(); ++k) {
    if (Explains(pool.model(k).posterior, hyper, step)) return true;
  }
  return false;
}

}  // namespace codband
