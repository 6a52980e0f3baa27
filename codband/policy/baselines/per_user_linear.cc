#include "codband/policy/baselines/per_user_linear.h"

#include "codband/linalg/kernels.h"

namespace codband {

const linalg::GaussianPosterior& PerUserLinear::PosteriorOf(UserId user) const {
  const linalg::GaussianPosterior* posterior = users_.Find(user);
  return posterior == nullptr ? prior_ : *posterior;
}

LearnOutcome PerUserLinear::DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) {
  linalg::GaussianPosterior& posterior = users_.FindOrMake(decision.user, [&] { return prior_; });
  const double expected = linalg::Dot(decision.features, posterior.mean());
  posterior.Add(decision.features, items_.Learn(decision, expected, reward));
  return {};
}

void PerUserLinear::DoGrow(std::size_t dim) {
  prior_.Grow(dim);
  users_.ForEach([&](UserId, linalg::GaussianPosterior& posterior) { posterior.Grow(dim); });
}

void PerUserLinear::DoLoadState(ByteReader& in) {
  users_.Load(in, [&] { return prior_; });
  items_.Load(in);
}

}  // namespace codband
