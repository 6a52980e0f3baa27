#include "codband/policy/codband/assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/parts.h"
#include "codband/policy/streams.h"

namespace codband {
namespace {

// Of features or rewards that differ by more than doubles can carry, a density may be no number.
// Then the other models decide; if there is none, the prior.
void LeaveOutWhatIsNoNumber(std::span<const double> prior, std::span<double> log_weights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool any = false;
  for (double& weight : log_weights) {
    if (!(weight < kInfinity)) weight = -kInfinity;
    any |= weight > -kInfinity;
  }
  for (std::size_t k = 0; k < log_weights.size() && !any; ++k) log_weights[k] = std::log(prior[k]);
}

}  // namespace

Assignment::Assignment(const CoDBandOptions& options, ModelPool& pool, PeriodLedger& ledger,
                       PagedUserTable<UserRecord>& users)
    : pool_(pool),
      ledger_(ledger),
      users_(users),
      friends_(options.friends),
      a_(options.a),
      b_(options.b),
      likelihood_(FindPart<LikelihoodFactory>("likelihood", options.likelihood)(pool.prior().dim(),
                                                                                options)),
      start_prior_(FindPart<ModelPriorFactory>("prior", options.model_prior)(options)),
      model_prior_(start_prior_),
      concentration_(a_ / b_) {}

Visitor Assignment::MakeVisitor(UserId id, const UserRecord* user, FriendModels& buffer) const {
  Visitor visitor;
  if (user != nullptr && user->has_period()) {
    visitor.own = pool_.IndexOf(user->current.model);
    visitor.recency = user->current.recency.get();
  }
  if (model_prior_.uses_friends() && friends_ != nullptr) {
    std::size_t count = 0;
    std::optional<UserRecord> scratch;
    for (const UserId friend_id : friends_->FriendsOf(id)) {
      const UserRecord* record = users_.Peek(friend_id, scratch);
      if (record == nullptr || !record->has_period()) continue;
      buffer[count++] = record->current.model;
      if (count == buffer.size()) break;
    }
    visitor.friends = {buffer.data(), count};
  }
  return visitor;
}

UserRecord* Assignment::FindNeighbour(UserId id, LearnMemo* memo) {
  UserRecord* user = nullptr;
  double found = 0;
  LearnMemo::Fill(memo, {&found, 1}, [&] {
    try {
      user = users_.Find(id);
      found = user != nullptr ? 1 : 0;
    } catch (const UnreadableRecord&) {
      found = 0;
    }
  });
  return found != 0 && user == nullptr ? users_.Find(id) : user;
}

void Assignment::PriorChances(UserId id, const UserRecord* user, std::vector<double>& out) const {
  FriendModels buffer;
  out.resize(pool_.size() + 1);
  model_prior_.Weights(pool_, concentration_, MakeVisitor(id, user, buffer), out);
}

ModelId Assignment::DrawFirst(UserId id, EventKey key) {
  PriorChances(id, nullptr, prior_chances_);
  RandomStream random = StreamFor(key, DrawPurpose::kFirstModel);
  const std::size_t drawn = DrawModel(prior_chances_, random);
  return drawn < pool_.size() ? pool_.model(drawn).id : kNoModel;
}

// All of the pool's rewards say how frequent clicks are.
double Assignment::LikelihoodExponent() const {
  if (tempered_ == nullptr || !tempered_->clicks()) return 1;
  if (const auto chance = tempered_->PurchaseChance()) return RewardNoise::TrustInGaussian(*chance);
  double clicks = 0;
  double observations = 0;
  for (std::size_t k = 0; k < pool_.size(); ++k) {
    const linalg::SufficientStats& stats = pool_.model(k).posterior.stats();
    clicks += stats.q();
    observations += static_cast<double>(stats.m());
  }
  return RewardNoise::TrustInGaussian(clicks / observations);
}

// Line 1 of Algorithm 2: prior and likelihood both score the user's own model as if D had been
// taken out.
void Assignment::LogPosterior(UserId id, const UserRecord& user, Likelihood& likelihood,
                              std::vector<double>& prior, std::span<double> out) const {
  std::ranges::fill(out, 0.0);
  likelihood.AddLogDensities(pool_, user.current, pool_.IndexOf(user.current.model).value(), out);
  PriorChances(id, &user, prior);
  const double exponent = LikelihoodExponent();
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = exponent * out[k] + std::log(prior[k]);
  }
  LeaveOutWhatIsNoNumber(prior, out);
}

void Assignment::Posterior(UserId id, const UserRecord& user, Likelihood& likelihood,
                           std::vector<double>& prior, std::span<double> out) const {
  LogPosterior(id, user, likelihood, prior, out);
  const double largest = std::ranges::max(out);
  double sum = 0;
  for (double& chance : out) {
    chance = std::exp(chance - largest);
    sum += chance;
  }
  for (double& chance : out) chance /= sum;
}

bool Assignment::HasLeft(UserId id, const UserRecord& user, std::size_t model, double hazard) {
  pool_.RefreshVarianceShares();
  chances_.resize(pool_.size() + 1);
  Posterior(id, user, *likelihood_, prior_chances_, chances_);
  const double stayed = chances_[model] / prior_chances_[model];
  return hazard * (1 - chances_[model]) > stayed;
}

std::span<double> Assignment::Resample(UserId id, UserRecord& user, RandomStream& random,
                                       LearnMemo* memo) {
  Period& period = user.current;
  const std::size_t own = pool_.IndexOf(period.model).value();
  // Line 1; the pool itself changes on a move only.
  chances_.resize(pool_.size() + 1);
  pool_.RefreshCovariances();  // part of the state: not only where the likelihood is computed
  LearnMemo::Fill(memo, chances_, [&] {
    pool_.RefreshVarianceShares();
    LogPosterior(id, user, *likelihood_, prior_chances_, chances_);
  });
  // Line 5.
  const std::size_t drawn = random.CategoricalFromLog(chances_);
  const bool is_new = drawn == pool_.size();

  // Lines 2-4 and 6. A user alone on a model who draws a new one would get the same model under
  // another name.
  const bool alone = pool_.model(own).periods == 1;
  if (drawn != own && !(is_new && alone)) {
    if (is_new) chances_.push_back(0);  // the new model gets the chance of a new one
    ledger_.Move(user, is_new ? pool_.Create() : pool_.model(drawn).id);
    if (alone) chances_.erase(chances_.begin() + static_cast<std::ptrdiff_t>(own));
  }
  return chances_;
}

void Assignment::CountObservation(Period& period) {
  if (period.recency == nullptr) return;
  Recency one;
  one.Add(pool_.clock(), 1);
  period.recency->Add(pool_.clock(), one);
  pool_.AddRecency(period.model, one);
}

void Assignment::LearnPrior(UserId id, const UserRecord& user) {
  FriendModels buffer;
  model_prior_.Learn(pool_, MakeVisitor(id, &user, buffer),
                     pool_.IndexOf(user.current.model).value());
}

void Assignment::ResampleConcentration(EventKey key) {
  RandomStream random = StreamFor(key, DrawPurpose::kConcentration);
  // A part of the customers of a restaurant sits as if it were all of them: of a partition its own
  // periods, among which no taste goes by two names.
  concentration_ = codband::ResampleConcentration(concentration_, pool_.own_size(),
                                                  pool_.own_periods(), a_, b_, random);
}

void Assignment::Forget(UserId id) {
  young_users_.Forget(id);
  if (pool_.size() > 0) return;
  model_prior_ = start_prior_;
  concentration_ = a_ / b_;
}

void Assignment::LoadConcentration(ByteReader& in) {
  concentration_ = in.Double("concentration");
  if (!(concentration_ > 0)) {
    in.Fail("concentration", fmt::format("is {}, expected > 0", concentration_));
  }
}

void Assignment::Save(ByteWriter& out) const {
  model_prior_.Save(out);
  young_users_.Save(out);
}

void Assignment::Load(ByteReader& in) {
  model_prior_.Load(in);
  young_users_.Load(in);
}

}  // namespace codband
