#include "codband/policy/baselines/adts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/packed.h"
#include "codband/policy/common_params.h"
#include "codband/policy/scoring.h"
#include "codband/policy/streams.h"
#include "codband/policy/user_table.h"

namespace codband {
namespace {

constexpr std::size_t kFewestDistances = 6;
constexpr std::size_t kMostDistances = 256;

// vᵀ S v for a packed symmetric S.
double QuadraticForm(std::span<const double> S, std::span<const double> v) {
  double sum = 0;
  for (std::size_t j = 0, at = 0; j < v.size(); ++j) {
    double below = 0;
    sum += S[at++] * v[j] * v[j];
    for (std::size_t i = j + 1; i < v.size(); ++i) below += S[at++] * v[i];
    sum += 2 * below * v[j];
  }
  return sum;
}

struct AdTsUser {
  AdTsUser(const linalg::GaussianPosterior& prior, const AdTsOptions& options)
      : posterior(prior),
        blocks(2 * options.window, linalg::SufficientStats(prior.dim())),
        block(prior.dim()),
        step(options.step) {
    distances.reserve(kMostDistances);
  }

  linalg::GaussianPosterior posterior;  // of the current period
  std::vector<linalg::SufficientStats>
      blocks;                     // two windows of blocks, of which the last `filled` are set,
  std::size_t filled = 0;         // oldest first
  linalg::SufficientStats block;  // the one being filled
  std::vector<double> distances;
  std::uint32_t restarts = 0;
  std::size_t step;

  // Adds an observation; true if it filled a block, and there are two windows to compare.
  bool Observe(std::span<const double> x, double r) {
    posterior.Add(x, r);
    block.Add(x, r);
    if (block.m() < step) return false;
    std::ranges::rotate(blocks, blocks.begin() + 1);
    blocks.back() = block;
    block.Clear();
    filled = std::min(filled + 1, blocks.size());
    return filled == blocks.size();
  }

  void Restart() {
    posterior.Clear();
    filled = 0;
    distances.clear();
    block.Clear();
    ++restarts;
  }

  void Grow(std::size_t dim) {
    posterior.Grow(dim);
    for (linalg::SufficientStats& each : blocks) each.Grow(dim, false);
    block.Grow(dim, false);
  }

  void Save(ByteWriter& out) const {
    out.U32(restarts);
    posterior.Save(out);
    block.Save(out);
    out.U64(filled);
    for (std::size_t i = blocks.size() - filled; i < blocks.size(); ++i) blocks[i].Save(out);
    out.U64(distances.size());
    out.Doubles(distances);
  }

  void Load(ByteReader& in) {
    restarts = in.U32("number of restarts");
    posterior.Load(in);
    block.Load(in);
    filled = in.Count("number of blocks", linalg::SufficientStats::SavedBytes(posterior.dim()));
    if (block.m() >= step || filled > blocks.size()) {
      in.Fail("number of blocks",
              fmt::format("is {} and {} observations, expected at most {} of {}", filled, block.m(),
                          blocks.size(), step));
      filled = 0;
      return;
    }
    std::uint64_t observations = block.m();
    for (std::size_t i = blocks.size() - filled; i < blocks.size(); ++i) {
      blocks[i].Load(in);
      observations += blocks[i].m();
      if (blocks[i].m() != step)
        in.Fail("block", fmt::format("has {} observations", blocks[i].m()));
    }
    const bool all_kept = filled < blocks.size();
    const std::uint64_t known = posterior.stats().m();
    if (known < observations || known % step != block.m() || (all_kept && known > observations)) {
      in.Fail("number of observations", fmt::format("is {}, in blocks {}", known, observations));
    }
    distances.resize(in.Count("number of distances", sizeof(double)));
    in.Doubles("distances", distances);
    const std::uint64_t expected =
        all_kept ? 0 : std::min<std::uint64_t>(kMostDistances, known / step - blocks.size() + 1);
    if (in.ok() && distances.size() != expected) {
      in.Fail("number of distances", fmt::format("is {}, expected {}", distances.size(), expected));
    }
  }
};

class AdTs final : public Policy {
 public:
  AdTs(std::size_t dim, const AdTsOptions& options)
      : Policy(dim),
        options_(options),
        prior_(dim, options.lambda, 1),
        sum_(dim),
        before_(prior_),
        after_(prior_) {
    series_.reserve(kMostDistances);
  }

  bool Forget(UserId user) override { return users_.Erase(user); }
  std::size_t model_count() const override { return users_.size(); }
  void DoSaveState(ByteWriter& out) const override { users_.Save(out); }
  void DoLoadState(ByteReader& in) override {
    users_.Load(in, [&] { return AdTsUser(prior_, options_); });
  }

 private:
  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override {
    const AdTsUser* found = users_.Find(user);
    decision.model = user;
    decision.period = found == nullptr ? 0 : found->restarts;
    RandomStream random = StreamFor(key, DrawPurpose::kParameter);
    return ChooseByThompsonSampling(found == nullptr ? prior_ : found->posterior, options_.v,
                                    random, arms, decision);
  }

  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key, LearnMemo*) override {
    AdTsUser& user = users_.FindOrMake(decision.user, [&] { return AdTsUser(prior_, options_); });
    if (decision.period < user.restarts) return {};
    if (!user.Observe(decision.features, reward)) return {};

    Fit(std::span(user.blocks).first(options_.window), before_);
    Fit(std::span(user.blocks).last(options_.window), after_);
    if (user.distances.size() == kMostDistances) user.distances.erase(user.distances.begin());
    user.distances.push_back(AdTsDistance(before_, after_));
    if (user.distances.size() < kFewestDistances) return {};

    series_.assign(user.distances.begin(), user.distances.end());
    RandomStream random = StreamFor(key, DrawPurpose::kPermutation);
    if (!CusumDetects(series_, options_.permutations, options_.level, random)) return {};
    user.Restart();
    return {.change_detected = true};
  }

  void DoGrow(std::size_t dim) override {
    for (linalg::GaussianPosterior* each : {&prior_, &before_, &after_}) each->Grow(dim);
    sum_.Grow(dim, false);
    users_.ForEach([&](UserId, AdTsUser& user) { user.Grow(dim); });
  }

  void Fit(std::span<const linalg::SufficientStats> window, linalg::GaussianPosterior& fit) {
    sum_.Clear();
    for (const linalg::SufficientStats& block : window) sum_.Add(block);
    fit.Clear();
    fit.Add(sum_);
  }

  AdTsOptions options_;
  linalg::GaussianPosterior prior_;
  UserTable<AdTsUser> users_;
  // Scratch of DoLearn.
  linalg::SufficientStats sum_;
  linalg::GaussianPosterior before_;
  linalg::GaussianPosterior after_;
  std::vector<double> series_;
};

}  // namespace

double AdTsDistance(const linalg::GaussianPosterior& before,
                    const linalg::GaussianPosterior& after) {
  std::array<double, linalg::kMaxDimension> buffer{};
  const std::span<double> difference(buffer.data(), before.dim());
  double squares = 0;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    difference[i] = before.mean()[i] - after.mean()[i];
    squares += difference[i] * difference[i];
  }
  return before.prior_precision()[0] * squares +
         0.5 * (QuadraticForm(before.stats().S(), difference) +
                QuadraticForm(after.stats().S(), difference));
}

double CusumRange(std::span<const double> series, double mean) {
  double sum = 0;
  double low = 0;
  double high = 0;
  for (const double value : series) {
    sum += value - mean;
    low = std::min(low, sum);
    high = std::max(high, sum);
  }
  return high - low;
}

bool CusumDetects(std::span<double> series, std::size_t permutations, double level,
                  RandomStream& random) {
  const double mean =
      std::accumulate(series.begin(), series.end(), 0.0) / static_cast<double>(series.size());
  const double range = CusumRange(series, mean) * (1 - 1e-9);
  const double most = (1 - level) * static_cast<double>(permutations);
  std::size_t reached = 0;
  for (std::size_t p = 0; p < permutations; ++p) {
    random.Shuffle(series);
    reached += CusumRange(series, mean) >= range;
    if (static_cast<double>(reached) >= most) return false;
  }
  return true;
}

PolicyInfo AdTsInfo() {
  const AdTsOptions defaults;
  ParamInfo v = DrawScaleParam(defaults.v);
  v.help += " (1 for setting 1)";
  return {
      .name = "adts",
      .summary = "Thompson sampling per user, started afresh when two windows differ",
      .paper = "Hariri, Mobasher & Burke, IJCAI 2015",
      .detects_changes = true,
      .params = {v, LambdaParam(defaults.lambda),
                 WholeParam("step", "observations between two tests", 100000, defaults.step),
                 WholeParam("window", "length of each of the two windows, in steps", 1000,
                            defaults.window),
                 WholeParam("permutations", "random permutations that a series is compared with",
                            1e6, defaults.permutations),
                 NumberParam("level", "quantile of the permutations above which it is a change", 0,
                             0.999999, defaults.level)}};
}

std::unique_ptr<Policy> MakeAdTs(std::size_t dim, const AdTsOptions& options) {
  return std::make_unique<AdTs>(dim, options);
}

std::unique_ptr<Policy> MakeAdTs(const ParamValues& params, const PolicyContext& context) {
  return MakeAdTs(context.dim, {.v = params.Number("v"),
                                .lambda = params.Number("lambda"),
                                .step = params.Integer("step"),
                                .window = params.Integer("window"),
                                .permutations = params.Integer("permutations"),
                                .level = params.Number("level")});
}

}  // namespace codband
