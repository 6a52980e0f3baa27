#include "codband/policy/baselines/dlinucb.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/kernels.h"
#include "codband/policy/baselines/linucb.h"
#include "codband/policy/common_params.h"
#include "codband/policy/flag_window.h"
#include "codband/policy/scoring.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

struct Slave {
  std::uint32_t born;  // the user's period when it was made
  linalg::GaussianPosterior ridge;
  FlagWindow badness;
};

// All models of one user; never empty.
struct Slaves {
  std::vector<Slave> all;  // oldest first
  std::uint32_t changes = 0;

  void Save(ByteWriter& out) const {
    out.U32(changes);
    out.U64(all.size());
    for (const Slave& slave : all) {
      out.U32(slave.born);
      slave.ridge.Save(out);
      slave.badness.Save(out);
    }
  }

  // Precondition: `all` holds a new slave.
  void Load(ByteReader& in) {
    const Slave fresh = all.front();
    changes = in.U32("number of changes");
    const std::size_t count =
        in.Count("number of slaves", linalg::GaussianPosterior::SavedBytes(fresh.ridge.dim()));
    if (in.ok() && count == 0) in.Fail("number of slaves", "is 0, expected at least 1");
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      if (i > 0) all.push_back(fresh);
      Slave& slave = all[i];
      slave.born = in.U32("period of a slave");
      const bool in_order = i == 0 || slave.born > all[i - 1].born;
      if (!in_order || slave.born > changes) {
        in.Fail("period of a slave",
                fmt::format("is {}, expected to rise to at most {}", slave.born, changes));
      }
      slave.ridge.Load(in);
      slave.badness.Load(in);
    }
  }
};

class DLinUcb final : public Policy {
 public:
  DLinUcb(std::size_t dim, const DLinUcbOptions& options)
      : Policy(dim),
        options_(options),
        epsilon_(options.epsilon > 0 ? options.epsilon
                                     : std::numbers::sqrt2 * options.sigma *
                                           boost::math::erf_inv(1 - options.delta)),
        optimism_(std::sqrt(std::log(static_cast<double>(options.tau)))),
        fresh_{.born = 0,
               .ridge = linalg::GaussianPosterior(dim, options.lambda, 1),
               .badness = FlagWindow(options.tau)} {}

  bool Forget(UserId user) override { return users_.Erase(user); }

  std::size_t model_count() const override {
    std::size_t count = 0;
    users_.ForEach([&](UserId, const Slaves& slaves) { count += slaves.all.size(); });
    return count;
  }

  void DoSaveState(ByteWriter& out) const override { users_.Save(out); }
  void DoLoadState(ByteReader& in) override {
    users_.Load(in, [&] { return MakeSlaves(); });
    users_.ForEach([&](UserId, const Slaves& slaves) {
      if (slaves.all.size() <= options_.slaves) return;
      in.Fail("number of slaves",
              fmt::format("is {}, expected at most {}", slaves.all.size(), options_.slaves));
    });
  }

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey, Decision& decision) const override {
    const Slaves* slaves = users_.Find(user);
    const Slave* best = &fresh_;
    if (slaves != nullptr) {
      decision.period = slaves->changes;
      double smallest = std::numeric_limits<double>::infinity();
      for (const Slave& slave : slaves->all) {
        const double bound = Badness(slave) - optimism_ * Confidence(slave);
        if (bound < smallest) {
          smallest = bound;
          best = &slave;
        }
      }
    }
    decision.model = user;
    return ChooseByUpperBound(best->ridge, options_.alpha, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey, LearnMemo*) override {
    Slaves& slaves = users_.FindOrMake(decision.user, [&] { return MakeSlaves(); });
    for (Slave& slave : slaves.all) {
      if (slave.born > decision.period) break;  // later ones are younger still
      Show(slave, decision.features, reward);
    }

    bool any_admissible = false;
    for (const Slave& slave : slaves.all) {
      any_admissible |= Badness(slave) <= options_.delta0 + Confidence(slave);
    }
    std::erase_if(slaves.all, [&](const Slave& slave) {
      return Badness(slave) > options_.delta1 + Confidence(slave);
    });
    // With δ0 > δ1 a slave may be admissible and yet discarded.
    if (any_admissible && !slaves.all.empty()) return {};
    ++slaves.changes;
    if (slaves.all.size() == options_.slaves) {
      slaves.all.erase(std::ranges::max_element(slaves.all, {}, &DLinUcb::Badness));
    }
    slaves.all.push_back(fresh_);
    slaves.all.back().born = slaves.changes;
    return {.change_detected = true};
  }

  void DoGrow(std::size_t dim) override {
    fresh_.ridge.Grow(dim);
    users_.ForEach([&](UserId, Slaves& slaves) {
      for (Slave& slave : slaves.all) slave.ridge.Grow(dim);
    });
  }

  void Show(Slave& slave, std::span<const double> x, double reward) const {
    const double error = std::abs(linalg::Dot(x, slave.ridge.mean()) - reward);
    const bool bad = error > epsilon_ &&  // avoids computing the width where it does not matter
                     error > options_.alpha * std::sqrt(slave.ridge.Variance(x)) + epsilon_;
    if (!bad) slave.ridge.Add(x, reward);
    slave.badness.Push(bad);
  }

  // ê
  static double Badness(const Slave& slave) {
    if (slave.badness.size() == 0) return 0;
    return static_cast<double>(slave.badness.raised()) / static_cast<double>(slave.badness.size());
  }

  // B
  double Confidence(const Slave& slave) const {
    const auto n = static_cast<double>(std::max<std::size_t>(slave.badness.size(), 1));
    return std::sqrt(std::log(1 / options_.delta2) / (2 * n));
  }

  Slaves MakeSlaves() const { return {.all = {fresh_}}; }

  DLinUcbOptions options_;
  double epsilon_;
  double optimism_;
  Slave fresh_;
  UserTable<Slaves> users_;
};

}  // namespace

PolicyInfo DLinUcbInfo() {
  const DLinUcbOptions defaults;
  return {
      .name = "dlinucb",
      .summary =
          "several linear models per user, replaced when their prediction errors are too large",
      .paper = "Wu, Iyer & Wang, SIGIR 2018",
      .detects_changes = true,
      .params = {
          AlphaParam(defaults.alpha), LambdaParam(defaults.lambda), SigmaParam(),
          NumberParam("delta", "probability that the noise exceeds ε", 1e-9, 1, defaults.delta),
          NumberParam("epsilon", "error that noise explains; 0 stands for √2 σ erf⁻¹(1 - delta)", 0,
                      1e6, defaults.epsilon),
          WholeParam("tau", "how many recent observations a model is judged by", 100000,
                     defaults.tau),
          WholeParam("slaves", "how many models a user may have; the worst gives way to a new one",
                     1000, defaults.slaves),
          NumberParam("delta0", "share of bad observations above which a model is in doubt", 0, 1,
                      defaults.delta0),
          NumberParam("delta1", "share of bad observations above which a model is discarded", 0, 1,
                      defaults.delta1),
          NumberParam("delta2", "probability that the bound on bad observations fails", 1e-9, 1,
                      defaults.delta2)}};
}

std::unique_ptr<Policy> MakeDLinUcb(std::size_t dim, const DLinUcbOptions& options) {
  return std::make_unique<DLinUcb>(dim, options);
}

std::unique_ptr<Policy> MakeDLinUcb(const ParamValues& params, const PolicyContext& context) {
  return MakeDLinUcb(context.dim, {.alpha = params.Number("alpha"),
                                   .lambda = params.Number("lambda"),
                                   .sigma = params.Number("sigma"),
                                   .delta = params.Number("delta"),
                                   .epsilon = params.Number("epsilon"),
                                   .tau = params.Integer("tau"),
                                   .slaves = params.Integer("slaves"),
                                   .delta0 = params.Number("delta0"),
                                   .delta1 = params.Number("delta1"),
                                   .delta2 = params.Number("delta2")});
}

}  // namespace codband
