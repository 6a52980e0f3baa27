#include "codband/policy/codband/hyper_parameters.h"

#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/parts.h"

namespace codband {
namespace {

// With this chance on one model a user is taken to be there.
constexpr double kSure = 0.9;

// How much closer users of one model are than models, as a ratio of variances, before it is known.
constexpr double kCloser = 10;

}  // namespace

HyperParameters::HyperParameters(std::size_t dim, const CoDBandOptions& options)
    : features_(dim),
      learned_(FindPart<bool>("hyper", options.hyper)),
      start_{.prior = linalg::LinearPrior::Isotropic(dim + (options.intercept ? 1 : 0),
                                                     options.lambda, options.sigma * options.sigma),
             .change_rate = ChangeRate(options.hazard, learned_)},
      prior_(start_.prior),
      learner_(prior_.dim(), options.intercept, options.lambda0, options.sigma0),
      change_rate_(start_.change_rate) {}

void HyperParameters::Observe(ModelPool& pool, std::span<const double> x, double r) {
  noise_.Watch(r);
  change_rate_.Observe();
  if (learned_ && learner_.Observe(pool, x, r, noise_.clicks(), prior_)) pool.SetPrior(prior_);
}

// Counts only where it is known which model the user is on, and where it is more than the user's.
void HyperParameters::WeighDeparture(const ModelPool& pool, UserRecord& user, double sure,
                                     std::span<const double> x, double r) {
  const linalg::SufficientStats& data = user.current.data;
  if (data.m() == 0 || sure < kSure) return;
  const linalg::GaussianPosterior& model =
      pool.model(pool.IndexOf(user.current.model).value()).posterior;
  if (2 * data.m() > model.stats().m()) return;
  const DepartureEvidence evidence = DepartureEvidence::Of(model, data, features_, x, r);
  user.departure_evidence.Add(evidence);
  departure_evidence_.Add(evidence);
}

double HyperParameters::DepartureVariance() const {
  return departure_evidence_.Variance(prior_.noise_variance,
                                      1 / (kCloser * prior_.precision.front()));
}

void HyperParameters::Forget(ModelPool& pool, const UserRecord& user) {
  departure_evidence_.Remove(user.departure_evidence);
  if (pool.size() == 0) {
    prior_ = start_.prior;
    change_rate_ = start_.change_rate;
    noise_ = RewardNoise();
    departure_evidence_ = {};
  }
  if (!learned_) return;
  learner_.Relearn(pool, noise_.clicks(), prior_);
  pool.SetPrior(prior_);
}

void HyperParameters::Save(ByteWriter& out) const {
  out.U8(noise_.clicks() ? 1 : 0);
  change_rate_.Save(out);
  departure_evidence_.Save(out);
  learner_.Save(out);
  out.Double(prior_.noise_variance);
  out.Doubles(prior_.precision);
  out.Doubles(prior_.mean);
}

void HyperParameters::Load(ByteReader& in) {
  noise_.set_clicks(in.U8("clicks") != 0);
  change_rate_.Load(in);
  departure_evidence_.Load(in);
  learner_.Load(in);
  linalg::LinearPrior prior = prior_;
  prior.noise_variance = in.Double("noise variance");
  in.Doubles("prior precision", prior.precision);
  in.Doubles("prior mean", prior.mean);
  if (!(prior.noise_variance > 0)) in.Fail("noise variance", "is not positive");
  for (const double precision : prior.precision) {
    if (!(precision > 0)) in.Fail("prior precision", "is not positive");
  }
  if (in.ok()) prior_ = prior;
}

}  // namespace codband
