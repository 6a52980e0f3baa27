#include "codband/policy/baselines/oracle_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codband/base/check.h"
#include "codband/linalg/kernels.h"
#include "codband/linalg/packed.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

// One user's probabilities of having each of the parameters; 0 for those not listed.
struct Beliefs {
  std::vector<double> chances;

  void Save(ByteWriter& out) const {
    out.U64(chances.size());
    out.Doubles(chances);
  }
  void Load(ByteReader& in) {
    chances.resize(in.Count("number of chances", sizeof(double)));
    in.Doubles("chances", chances);
    double sum = 0;
    for (const double chance : chances) {
      sum += chance;
      if (!(chance >= 0)) in.Fail("chances", fmt::format("hold {}, expected ≥ 0", chance));
    }
    if (!(std::abs(sum - 1) < 1e-6)) {
      in.Fail("chances", fmt::format("add up to {}, expected 1", sum));
    }
  }
};

class OracleFilter final : public Policy {
 public:
  OracleFilter(std::size_t dim, double sigma, const GroundTruth& truth)
      : Policy(dim), sigma_(sigma), truth_(truth) {}

  bool Forget(UserId user) override { return users_.Erase(user); }
  std::size_t model_count() const override { return truth_.model_count(); }
  void DoSaveState(ByteWriter& out) const override { users_.Save(out); }
  void DoLoadState(ByteReader& in) override {
    users_.Load(in, [] { return Beliefs{}; });
    users_.ForEach([&](UserId user, const Beliefs& beliefs) {
      if (beliefs.chances.size() > truth_.model_count()) {
        in.Fail("number of chances", fmt::format("of user {} is {}, there are {} parameters", user,
                                                 beliefs.chances.size(), truth_.model_count()));
      }
    });
  }

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    std::array<double, linalg::kMaxDimension> buffer{};
    const std::span<double> theta(buffer.data(), dim());
    const Beliefs* beliefs = users_.Find(user);
    const std::size_t known = beliefs == nullptr ? truth_.model_count() : beliefs->chances.size();
    std::size_t likeliest = 0;
    double top = 0;
    for (std::size_t k = 0; k < known; ++k) {
      const double chance =
          beliefs == nullptr ? 1 / static_cast<double>(known) : beliefs->chances[k];
      linalg::Axpy(chance, truth_.parameter(k), theta.first(truth_.parameter(k).size()));
      if (chance > top) {
        top = chance;
        likeliest = k;
      }
    }
    decision.arm = BestArm(theta, arms);
    decision.model = likeliest;
    decision.mean = decision.score = linalg::Dot(arms.arm(decision.arm), theta);
    return Propensity::Certain();
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) override {
    const std::size_t models = truth_.model_count();
    std::vector<double>& chances = users_
                                       .FindOrMake(decision.user,
                                                   [&] {
                                                     return Beliefs{std::vector<double>(
                                                         models, 1 / static_cast<double>(models))};
                                                   })
                                       .chances;
    chances.resize(models, 0.0);
    const double hazard = models > 1 ? truth_.hazard() : 0;
    const double to_each = models > 1 ? hazard / static_cast<double>(models - 1) : 0;
    // Densities relative to the largest, so that not all of them underflow.
    const auto residual_of = [&](std::size_t k) {
      const std::span<const double> theta = truth_.parameter(k);
      const std::span<const double> x(decision.features);
      return (reward - linalg::Dot(x.first(theta.size()), theta)) / sigma_;
    };
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < models; ++k) {
      const double residual = residual_of(k);
      smallest = std::min(smallest, residual * residual);
    }
    double sum = 0;
    for (std::size_t k = 0; k < models; ++k) {
      const double residual = residual_of(k);
      const double moved = (1 - hazard) * chances[k] + to_each * (1 - chances[k]);
      chances[k] = moved * std::exp(-0.5 * (residual * residual - smallest));
      sum += chances[k];
    }
    if (sum > 0) {
      for (double& chance : chances) chance /= sum;
    } else {
      // With hazard 0 a reward may be impossible under every parameter that is left: restart.
      std::ranges::fill(chances, 1 / static_cast<double>(models));
    }
    return {};
  }

  // The true parameters have no features but those that they always had.
  void DoGrow(std::size_t) override {}

  double sigma_;
  const GroundTruth& truth_;
  UserTable<Beliefs> users_;
};

}  // namespace

PolicyInfo OracleFilterInfo() {
  return {.name = "oracle-filter",
          .summary = "yardstick: told the parameters and how often users change, not who has which",
          .paper = "ours",
          .shares_between_users = true,
          .knows_truth = true,
          .params = {SigmaParam()}};
}

std::unique_ptr<Policy> MakeOracleFilter(const ParamValues& params, const PolicyContext& context) {
  CODBAND_CHECK(context.truth != nullptr);
  return std::make_unique<OracleFilter>(context.dim, params.Number("sigma"), *context.truth);
}

}  // namespace codband
