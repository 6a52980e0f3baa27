#include "codband/policy/codband/pool_merger.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "codband/base/check.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/packed.h"
#include "codband/policy/codband/column_groups.h"
#include "codband/policy/codband/parts.h"
#include "codband/policy/codband/prior_learner.h"

namespace codband {
namespace {

// ln Γ(x) for x > 0. std::lgamma writes a global, and so is not for several threads.
double LogGamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

// How much likelier, in nats, the observations of two models must be if they are one: a model that
// was joined by mistake is hard to part again, and one that should have been can still be.
constexpr double kSureOfOne = 5;

// Steps of the prior from nothing.
constexpr int kFirstSteps = 10;

// The sums of all registers but that of `without`, models by their names.
PoolSums AddUp(std::span<const PoolRegister> registers, const ModelAliases& aliases,
               const PoolRegister* without) {
  std::map<ModelId, ModelSums> models;
  std::map<ItemId, ItemSums> items;
  PoolSums all;
  for (const PoolRegister& one : registers) {
    if (&one == without) continue;
    for (const ModelSums& model : one.sums.models) {
      const ModelId id = aliases.Resolve(model.id);
      const auto [entry, is_new] = models.try_emplace(id, model);
      if (is_new) {
        entry->second.id = id;
        continue;
      }
      entry->second.periods += model.periods;
      entry->second.users += model.users;
      entry->second.data.Add(model.data);
    }
    for (const ItemSums& item : one.sums.items) {
      items.try_emplace(item.id, ItemSums{.id = item.id}).first->second.Add(item, aliases);
    }
    all.evidence.Add(one.sums.evidence);
  }
  for (auto& [id, model] : models) all.models.push_back(std::move(model));
  for (auto& [id, item] : items) all.items.push_back(std::move(item));
  return all;
}

// The groups of the register that knows those of the most columns.
const std::string& WidestGroups(std::span<const PoolRegister> registers) {
  const auto count = [](const PoolRegister& one) {
    ColumnGroups groups;
    ByteReader in(one.groups);
    groups.Load(in);
    return groups.size();
  };
  return std::ranges::max_element(registers, {}, count)->groups;
}

// Learns the prior from all models, of `dim` features with the intercept.
class PriorStep {
 public:
  PriorStep(const CoDBandOptions& options, std::size_t dim, std::string_view groups,
            std::span<const ColumnScales::Proposal> columns, bool clicks)
      : learner_(dim, options.intercept, FindPart<bool>("outliers", options.outliers),
                 options.lambda0, options.sigma0),
        clicks_(clicks) {
    ByteReader in(groups);
    learner_.groups().Load(in);
    learner_.Weigh(ColumnScales::Weights(columns, dim - (options.intercept ? 1 : 0)));
  }

  void Take(const ModelPool& pool, linalg::LinearPrior& prior) {
    learner_.Relearn(pool, clicks_, prior);
  }
  // From nothing but the sums: the mean square of rewards and of each feature.
  void Start(const ModelPool& pool, linalg::LinearPrior& prior) {
    const std::size_t dim = prior.dim();
    std::vector<double> squares(dim);
    double rewards = 0;
    double count = 0;
    for (std::size_t k = 0; k < pool.size(); ++k) {
      const linalg::SufficientStats& data = pool.model(k).posterior.stats();
      for (std::size_t j = 0; j < dim; ++j) squares[j] += data.S()[linalg::PackedColumn(dim, j)];
      rewards += data.q();
      count += static_cast<double>(data.m());
    }
    prior = linalg::LinearPrior::Isotropic(dim, 1, 1);
    learner_.groups().Forget();
    for (double& square : squares) square = std::sqrt(std::max(0.0, square) / std::max(1.0, count));
    learner_.Observe(pool, squares, std::sqrt(rewards / std::max(1.0, count)), clicks_, prior);
  }
  std::string Groups() const {
    ByteWriter out;
    learner_.groups().Save(out);
    return out.Take();
  }

 private:
  PriorLearner learner_;
  bool clicks_;
};

ModelPool PoolOf(std::span<const ModelSums> models, const linalg::LinearPrior& prior) {
  ModelPool pool(prior);
  pool.BePartition(0);
  pool.Import(models, {}, prior);
  return pool;
}

std::vector<ColumnScales::Proposal> Agree(std::span<const PoolRegister> registers,
                                          const PoolImport* previous) {
  std::vector<std::vector<ColumnScales::Proposal>> proposals;
  for (const PoolRegister& one : registers) proposals.push_back(one.columns);
  return ColumnScales::Agree(proposals, previous == nullptr
                                            ? std::span<const ColumnScales::Proposal>()
                                            : previous->columns);
}

// The evidence that models are one.
class Joiner {
 public:
  Joiner(std::span<const PoolRegister> registers, const linalg::LinearPrior& prior, bool clicks,
         std::vector<ModelSums> models)
      : prior_(prior), nothing_(prior), joint_(prior.dim()) {
    double concentration = 0;
    double rewards = 0;
    double count = 0;
    for (const PoolRegister& one : registers) {
      concentration += one.concentration / static_cast<double>(registers.size());
      alone_.push_back(one.nobody);
    }
    for (ModelSums& sums : models) {
      rewards += sums.data.q();
      count += static_cast<double>(sums.data.m());
      Candidate& candidate = candidates_.emplace_back(Candidate{.sums = std::move(sums)});
      candidate.posterior.emplace(prior);
      candidate.posterior->Assign(prior, candidate.sums.data);
    }
    log_concentration_ = std::log(concentration);
    trust_ = clicks && count > 0 ? RewardNoise::TrustInGaussian(rewards / count) : 1;
  }

  // Joins all that are one, the surest first.
  void Join(ModelAliases& aliases) {
    for (std::size_t b = 1; b < candidates_.size(); ++b) FindBest(b);
    while (true) {
      std::size_t surest = 0;
      for (std::size_t b = 1; b < candidates_.size(); ++b) {
        if (surest == 0 || candidates_[b].evidence > candidates_[surest].evidence) surest = b;
      }
      if (surest == 0 || !(candidates_[surest].evidence > 0)) return;
      Unite(surest, aliases);
    }
  }

 private:
  struct Candidate {
    ModelSums sums;
    std::optional<linalg::GaussianPosterior> posterior = {};
    std::size_t best = 0;  // the older model that it is likeliest to be one with
    double evidence = -std::numeric_limits<double>::infinity();
  };

  bool IsAlone(const Candidate& model) const {
    return std::ranges::find(alone_, model.sums.id) != alone_.end();
  }

  // Of a model with each of those in `older_`. Z(a+b) / Z(a)Z(b) = p(D_b | a) / p(D_b).
  void Compare(std::size_t b) {
    models_.clear();
    for (const std::size_t a : older_) models_.push_back({&*candidates_[a].posterior, false});
    models_.push_back({&nothing_, false});
    densities_.resize(models_.size());
    joint_.LogDensities(candidates_[b].sums.data, models_, densities_);
    for (std::size_t i = 0; i < older_.size(); ++i) {
      const double likelihood = trust_ * (densities_[i] - densities_.back());
      if (!(likelihood > kSureOfOne)) continue;
      const auto n_a = static_cast<double>(candidates_[older_[i]].sums.periods);
      const auto n_b = static_cast<double>(candidates_[b].sums.periods);
      const double evidence =
          likelihood + LogGamma(n_a + n_b) - LogGamma(n_a) - LogGamma(n_b) - log_concentration_;
      if (!(evidence > candidates_[b].evidence)) continue;
      candidates_[b].evidence = evidence;
      candidates_[b].best = older_[i];
    }
  }

  void FindBest(std::size_t b) {
    candidates_[b].evidence = -std::numeric_limits<double>::infinity();
    older_.clear();
    for (std::size_t a = 0; a < b; ++a) {
      if (!IsAlone(candidates_[a])) older_.push_back(a);
    }
    if (!IsAlone(candidates_[b])) Compare(b);
  }
  void Consider(std::size_t a, std::size_t b) {
    if (IsAlone(candidates_[a]) || IsAlone(candidates_[b])) return;
    older_ = {a};
    Compare(b);
  }

  void Unite(std::size_t b, ModelAliases& aliases) {
    const std::size_t a = candidates_[b].best;
    Candidate& to = candidates_[a];
    aliases.Join(to.sums.id, candidates_[b].sums.id);
    to.sums.periods += candidates_[b].sums.periods;
    to.sums.users += candidates_[b].sums.users;
    to.sums.data.Add(candidates_[b].sums.data);
    to.posterior->Assign(prior_, to.sums.data);
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(b));
    // What was compared with either is compared anew.
    for (std::size_t i = 1; i < candidates_.size(); ++i) {
      Candidate& other = candidates_[i];
      const bool lost = other.best == a || other.best == b;
      if (other.best > b) --other.best;
      if (lost || i == a) {
        FindBest(i);
      } else if (i > a) {
        Consider(a, i);
      }
    }
  }

  linalg::LinearPrior prior_;
  linalg::GaussianPosterior nothing_;
  std::vector<Candidate> candidates_;
  std::vector<ModelId> alone_;
  // Scratch.
  linalg::JointLikelihood joint_;
  std::vector<std::size_t> older_;
  std::vector<linalg::JointLikelihood::Model> models_;
  std::vector<double> densities_;
  double log_concentration_;
  double trust_;
};

}  // namespace

std::vector<PoolImport> MergePool(const CoDBandOptions& options,
                                  std::span<const PoolRegister> registers,
                                  const PoolImport* previous) {
  CODBAND_CHECK(!registers.empty());
  PoolImport pool{.version = previous == nullptr ? 1 : previous->version + 1};
  if (previous != nullptr) pool.aliases = previous->aliases;
  for (const PoolRegister& one : registers) {
    pool.vector.emplace_back(one.partition, one.version);
    pool.erasures += one.erasures;
  }
  pool.columns = Agree(registers, previous);
  const PoolSums all = AddUp(registers, pool.aliases, nullptr);
  RewardNoise noise;
  if (!FindPart<bool>("outliers", options.outliers)) noise.BeStrict();
  noise.SetElsewhere(all.evidence.rewards);

  pool.prior = registers.front().prior;
  pool.groups = WidestGroups(registers);
  if (FindPart<bool>("hyper", options.hyper) && !all.models.empty()) {
    PriorStep step(options, pool.prior.dim(), pool.groups, pool.columns, noise.clicks());
    const bool anew = previous == nullptr || previous->erasures != pool.erasures ||
                      previous->prior.dim() != pool.prior.dim();
    if (!anew) pool.prior = previous->prior;
    ModelPool models = PoolOf(all.models, pool.prior);
    if (anew) {
      step.Start(models, pool.prior);
      models.SetPrior(pool.prior);
    }
    for (int i = 0; i < (anew ? kFirstSteps : 1); ++i) {
      step.Take(models, pool.prior);
      models.SetPrior(pool.prior);
    }
    pool.groups = step.Groups();
  }
  Joiner(registers, pool.prior, noise.clicks(), all.models).Join(pool.aliases);

  return GiveOut(pool, registers);
}

std::vector<PoolImport> GiveOut(const PoolImport& pool, std::span<const PoolRegister> registers) {
  std::vector<PoolImport> imports;
  for (const PoolRegister& one : registers) {
    imports.push_back(pool);
    imports.back().partition = one.partition;
    imports.back().others = AddUp(registers, pool.aliases, &one);
  }
  return imports;
}

}  // namespace codband
