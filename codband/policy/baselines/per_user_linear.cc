#include "codband/policy/baselines/per_user_linear.h"

namespace codband {

const linalg::GaussianPosterior& PerUserLinear::PosteriorOf(UserId user) const {
  const linalg::GaussianPosterior* posterior = users_.Find(user);
  return posterior == nullptr ? prior_ : *posterior;
}

LearnOutcome PerUserLinear::DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) {
  users_.FindOrMake(decision.user, [&] { return prior_; }).Add(decision.features, reward);
  return {};
}

void PerUserLinear::DoGrow(std::size_t dim) {
  prior_.Grow(dim);
  users_.ForEach([&](UserId, linalg::GaussianPosterior& posterior) { posterior.Grow(dim); });
}

void PerUserLinear::DoLoadState(ByteReader& in) {
  users_.Load(in, [&] { return prior_; });
}

}  // namespace codband
