#include "codband/policy/codband/hyper_parameters.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/parts.h"

namespace codband {
namespace {

// With this chance on one model a user is taken to be there.
constexpr double kSure = 0.9;

// What a closed period counts for where only the number of a user's observations matters.
constexpr std::uint64_t kPerPeriod = 16;

// Fixed-point iterations after a user has left: each leaves a fraction of what was known of them.
constexpr int kRelearnings = 10;

// How much closer users of one model are than models, as a ratio of variances, before it is known.
constexpr double kCloser = 10;

// The square of a vector that is all but zero.
constexpr double kLeastSquare = 1e-24;

// How much larger τ² is than those users say who count: who departs most is not sure to be on their
// model, and does not count.
constexpr double kUncounted = 2;

}  // namespace

HyperParameters::HyperParameters(std::size_t dim, const CoDBandOptions& options)
    : features_(dim),
      intercept_(options.intercept),
      learned_(FindPart<bool>("hyper", options.hyper)),
      start_{.prior = linalg::LinearPrior::Isotropic(dim + (options.intercept ? 1 : 0),
                                                     options.lambda, options.sigma * options.sigma),
             .change_rate = ChangeRate(options.hazard, learned_)},
      prior_(start_.prior),
      scales_(dim, JudgedColumns()),
      limited_(FindPart<bool>("outliers", options.outliers)),
      damped_(learned_ && FindPart<bool>("lengths", options.lengths)),
      learner_(prior_.dim(), options.intercept, limited_, options.lambda0, options.sigma0),
      change_rate_(start_.change_rate) {
  if (!limited_) noise_.BeStrict();
}

ColumnScales::Judged HyperParameters::JudgedColumns() const {
  using enum ColumnScales::Judged;
  if (!learned_) return kNothing;
  return intercept_ ? kSizesAndCentres : kSizes;
}

std::uint64_t HyperParameters::Seen(const UserRecord& user) {
  return kPerPeriod * user.past.closed_count() + user.current.data.m();
}

double HyperParameters::Precision(const linalg::LinearPrior& prior) const {
  if (learner_.groups().common() > 0) return learner_.groups().common();
  return prior.precision.front() * (scales_.weights().empty() ? 1 : scales_.weights().front());
}

bool HyperParameters::ObserveColumns(ModelPool& pool, const UserRecord& user,
                                     std::span<const double> features) {
  const double lambda = Precision(prior_);
  if (!scales_.Observe(features, ObservationLimits::Counts(Seen(user)))) return false;
  learner_.Weigh(scales_.weights());
  for (std::size_t j = 0; j < features_; ++j) {
    prior_.precision[j] = learner_.groups().Factor(j) * lambda;
    if (!scales_.weights().empty()) prior_.precision[j] /= scales_.weights()[j];
  }
  pool.SetPrior(prior_);
  return true;
}

double HyperParameters::SquaredLength(std::span<const double> x) const {
  if (scales_.weights().empty()) return linalg::Dot(x, x);
  const std::span<const double> rest = x.subspan(features_);
  return linalg::WeightedSquare(x.first(features_), scales_.weights()) + linalg::Dot(rest, rest);
}

double HyperParameters::LengthFactor(std::span<const double> features) const {
  const double square = scales_.weights().empty()
                            ? linalg::Dot(features, features)
                            : linalg::WeightedSquare(features, scales_.weights());
  if (!(square > kLeastSquare)) return 1;
  return 1 / std::sqrt(std::sqrt(square));
}

bool HyperParameters::LimitInfluence(const ModelPool& pool, UserRecord& user, std::span<double> x,
                                     double& r) {
  if (noise_.Watch(r, user.other_rewards, pool.users()) &&
      user.other_rewards < std::numeric_limits<std::uint32_t>::max()) {
    ++user.other_rewards;
  }
  if (DampsLengths()) {
    const double factor = LengthFactor(x.first(features_));
    for (double& value : x.first(features_)) value *= factor;
  }
  if (!limited_) return false;
  const std::uint64_t seen = Seen(user);
  const bool beyond = limits_.Limit(x, features_, r, seen, scales_.weights());
  if (!beyond && ObservationLimits::Counts(seen)) noise_.WatchSize(r);
  return beyond;
}

void HyperParameters::Observe(ModelPool& pool, std::span<const double> x, double r) {
  change_rate_.Observe();
  if (!learned_ || prior_is_imported_) return;
  if (learner_.Observe(pool, x, r, Click(), prior_)) pool.SetPrior(prior_);
}

// Counts only where it is known which model the user is on, and where it is more than the user's.
void HyperParameters::WeighDeparture(const ModelPool& pool, UserRecord& user, double sure,
                                     std::span<const double> x, double r, LearnMemo* memo) {
  const linalg::SufficientStats& data = user.current.data;
  if (data.m() == 0 || sure < kSure) return;
  const linalg::GaussianPosterior& model =
      pool.model(pool.IndexOf(user.current.model).value()).posterior;
  if (2 * data.m() > model.stats().m()) return;
  std::array<double, 2> found{};
  LearnMemo::Fill(memo, found, [&] {
    const auto of = DepartureEvidence::Of(model, data, features_, x, r, scales_.weights());
    found = {of.products, of.squares};
  });
  const DepartureEvidence evidence{.products = found[0], .squares = found[1]};
  if (!evidence.Counts()) return;
  user.departure_evidence.Add(evidence);
  departure_evidence_.Add(evidence);
}

double HyperParameters::DepartureVariance() const {
  DepartureEvidence all = departure_evidence_;
  all.Add(others_departures_);
  return kUncounted * all.Variance(prior_.noise_variance, 1 / (kCloser * Precision(prior_)));
}

void HyperParameters::Forget(ModelPool& pool, const UserRecord& user) {
  departure_evidence_.Remove(user.departure_evidence);
  noise_.Forget(user.other_rewards);
  change_rate_.Forget(user.observations(), user.detector->verdicts());
  if (pool.size() == 0) {
    prior_ = start_.prior;
    change_rate_ = start_.change_rate;
    noise_ = RewardNoise();
    if (!limited_) noise_.BeStrict();
    departure_evidence_ = {};
    const bool partition = scales_.is_partition();
    scales_ = ColumnScales(features_, JudgedColumns());
    if (partition) scales_.BePartition();
    learner_.Weigh({});
  }
  if (!learned_) return;
  learner_.Forget(pool, user.observations());
  for (int i = 0; i < kRelearnings; ++i) {
    learner_.Relearn(pool, Click(), prior_);
    pool.SetPrior(prior_);
  }
}

HyperEvidence HyperParameters::OwnEvidence() const {
  return {
      .rewards = noise_.own(), .changes = change_rate_.own(), .departures = departure_evidence_};
}

void HyperParameters::BePartition(const HyperEvidence& own) {
  noise_.SetOwn(own.rewards);
  change_rate_.SetOwn(own.changes);
  departure_evidence_ = own.departures;
  const std::vector<ColumnScales::Proposal> columns = scales_.Propose();
  scales_.BePartition();
  scales_.Adopt(columns);
}

void HyperParameters::BeWhole(const ModelPool& pool, const HyperEvidence& all,
                              std::span<const HyperParameters* const> partitions) {
  noise_.SetElsewhere({});
  noise_.SetOwn(all.rewards);
  change_rate_.SetOthers({});
  change_rate_.SetOwn(all.changes);
  departure_evidence_ = all.departures;
  others_departures_ = {};
  std::vector<const ColumnScales*> scales;
  for (const HyperParameters* partition : partitions) scales.push_back(&partition->scales_);
  scales_.BeWhole(scales);
  learner_.Weigh(scales_.weights());
  learner_.GoOn(pool, std::max<std::uint64_t>(1, pool.observations()));
  prior_is_imported_ = false;
}

void HyperParameters::Import(const HyperEvidence& others, const Common& common) {
  noise_.SetElsewhere(others.rewards);
  change_rate_.SetOthers(others.changes);
  others_departures_ = others.departures;
  scales_.Adopt(common.columns);
  learner_.Weigh(scales_.weights());
  if (!learned_) return;
  ByteReader groups(common.groups);
  LoadGroups(groups);
  linalg::LinearPrior prior = common.prior;
  GrowPrior(prior, features_);  // columns that the pool does not have yet
  prior_ = std::move(prior);
  prior_is_imported_ = true;
}

void HyperParameters::SavePartition(ByteWriter& out) const {
  HyperEvidence{.rewards = noise_.elsewhere(),
                .changes = change_rate_.others(),
                .departures = others_departures_}
      .Save(out);
  out.Double(change_rate_.relief());
  out.U8(prior_is_imported_ ? 1 : 0);
  ColumnScales::SaveProposals(scales_.Agreed(), out);
}

void HyperParameters::LoadPartition(ByteReader& in) {
  HyperEvidence others;
  others.Load(in);
  noise_.SetElsewhere(others.rewards);
  change_rate_.SetOthers(others.changes, in.Double("relief of others"));
  others_departures_ = others.departures;
  prior_is_imported_ = in.U8("whether the prior is the pool's") != 0;
  scales_.BePartition();
  scales_.Adopt(ColumnScales::LoadProposals(in));
  learner_.Weigh(scales_.weights());
}

// The new ones are like all features of weight 1 and of their group.
void HyperParameters::GrowPrior(linalg::LinearPrior& prior, std::size_t dim) const {
  const std::size_t before = prior.dim() - (intercept_ ? 1 : 0);
  prior.Grow(dim + (intercept_ ? 1 : 0), intercept_, Precision(prior));
  for (std::size_t j = before; j < dim; ++j) prior.precision[j] *= learner_.groups().Factor(j);
}

void HyperParameters::Grow(std::size_t dim) {
  start_.prior.Grow(dim + (intercept_ ? 1 : 0), intercept_, start_.prior.precision.front());
  GrowPrior(prior_, dim);
  scales_.Grow(dim);
  learner_.Weigh(scales_.weights());
  learner_.Grow(prior_.dim());
  features_ = dim;
}

void HyperParameters::Save(ByteWriter& out) const {
  noise_.SaveVerdict(out);
  change_rate_.Save(out);
  departure_evidence_.Save(out);
  learner_.Save(out);
  out.Double(prior_.noise_variance);
  out.Doubles(prior_.precision);
  out.Doubles(prior_.mean);
}

void HyperParameters::Load(ByteReader& in, std::size_t dim) {
  noise_.LoadVerdict(in);
  change_rate_.Load(in);
  departure_evidence_.Load(in);
  learner_.Load(in);
  if (dim == 0 || dim > features_) {
    in.Fail("number of features", fmt::format("is {}, expected 1 to {}", dim, features_));
    return;
  }
  linalg::LinearPrior prior = linalg::LinearPrior::Isotropic(dim + (intercept_ ? 1 : 0), 1, 1);
  prior.noise_variance = in.Double("noise variance");
  in.Doubles("prior precision", prior.precision);
  in.Doubles("prior mean", prior.mean);
  if (!(prior.noise_variance > 0)) in.Fail("noise variance", "is not positive");
  for (const double precision : prior.precision) {
    if (!(precision > 0)) in.Fail("prior precision", "is not positive");
  }
  if (!in.ok()) return;
  GrowPrior(prior, features_);
  prior_ = prior;
}

void HyperParameters::SaveLimits(ByteWriter& out) const {
  noise_.SaveCounts(out);
  limits_.Save(out);
}

void HyperParameters::LoadScales(ByteReader& in) {
  scales_.Load(in);
  learner_.Weigh(scales_.weights());
}

void HyperParameters::LoadLimits(ByteReader& in) {
  noise_.LoadCounts(in);
  limits_.Load(in);
}

}  // namespace codband
