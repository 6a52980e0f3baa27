#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/random.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

struct CoDBandOptions;

// The user whose prior is asked for.
struct Visitor {
  std::optional<std::size_t> own = {};    // index of the model whose n_k counts this user's period
  const Recency* recency = nullptr;       // what the user's period added to that model's recency
  std::span<const ModelId> friends = {};  // the models that the user's friends are on
};

// The prior over the model of a period: the Dirichlet process as a Chinese restaurant process (the
// paper's Eq. 3), a new model with weight α0 and an existing one with n_k. How the n = Σ n_k is
// spread over the existing models is a mixture of experts:
//   popularity   n_k / n: the paper's
//   recency      the share of recent observations (recency.h), at several time constants: a model
//                that is coming up, or that users are leaving, as in a Hawkes process
//   friends      the share of the user's friends who are on k now
// An expert without an opinion follows popularity. The mixture weights are learned from where users
// turn out to be: each such case is credited to the experts in proportion to the chance they gave
// it (one step of expectation-maximisation, each expert starting with one case).
// Not thread-safe for writing.
class ModelPrior {
 public:
  // Which experts there are.
  struct Experts {
    bool popularity = true;
    std::size_t recency = 0;  // at how many of the pool's time constants
    bool friends = false;
  };
  explicit ModelPrior(const Experts& experts);

  bool uses_recency() const { return experts_.recency > 0; }
  bool uses_friends() const { return experts_.friends; }

  // The chance of every model, and last of a new one; they add up to 1. The user's own period does
  // not count. Precondition: out.size() == pool.size() + 1. O(K + friends), no allocation.
  void Weights(const ModelPool& pool, double concentration, const Visitor& visitor,
               std::span<double> out) const;

  // Credits the experts: the user's model is known to be the one at `index`.
  void Learn(const ModelPool& pool, const Visitor& visitor, std::size_t index);

  // The cases credited so far, and those of other partitions (shared_pool.h), which are not saved
  // here.
  static constexpr std::size_t kExperts = 1 + RecencyClock::kRates + 1;
  using Credits = std::array<double, kExperts>;
  Credits OwnCredits() const;
  void SetOwn(const Credits& credits);
  const Credits& others() const { return others_; }
  void SetOthers(const Credits& others) { others_ = others; }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);

 private:
  // Where an expert's credit is.
  static constexpr std::size_t kPopularity = 0;
  static constexpr std::size_t kFirstRate = 1;
  static constexpr std::size_t kFriend = 1 + RecencyClock::kRates;

  bool Uses(std::size_t expert) const { return credits_[expert] > 0; }
  // What an expert gives to model k, unnormalised.
  double Share(const ModelPool& pool, const Visitor& visitor, std::size_t expert,
               std::size_t k) const;

  Experts experts_;
  // What an expert is credited with, here and elsewhere; 0: not used.
  double Credit(std::size_t expert) const { return credits_[expert] + others_[expert]; }

  Credits credits_{};
  Credits others_{};
};

// prior=crp: popularity alone. prior=hawkes: recency at all time constants with popularity beside
// them, or at the given time constant alone. prior=friends: popularity and friends.
ModelPrior MakeCrpPrior(const CoDBandOptions& options);
ModelPrior MakeHawkesPrior(const CoDBandOptions& options);
ModelPrior MakeFriendsPrior(const CoDBandOptions& options);

// Draws an index from chances as above. O(K), no allocation.
std::size_t DrawModel(std::span<const double> weights, RandomStream& random);

// Draws α0 anew given that `periods` periods are on `models` models, with the prior
// α0 ~ Gamma(a, rate b): Escobar & West (1995), §6. Preconditions: models > 0, periods > 0.
double ResampleConcentration(double concentration, std::uint64_t models, std::uint64_t periods,
                             double a, double b, RandomStream& random);

}  // namespace codband
