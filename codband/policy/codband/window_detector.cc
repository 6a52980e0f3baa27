#include "codband/policy/codband/window_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/hyper_parameters.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {

void WindowTestState::PeriodClosed() {
  own_regression.Clear();
  badness.Clear();
}

void WindowTestState::Grow(std::size_t dim, bool intercept) {
  own_regression.Grow(linalg::LinearPrior::Isotropic(dim, own_regression.prior_precision()[0], 1),
                      intercept);
}

std::string WindowTestState::Fault(const Period& period) const {
  const std::uint64_t m = period.data.m();
  const std::size_t recent = period.recent != nullptr ? period.recent->size() : 0;
  const std::size_t expected =
      period.recent != nullptr ? std::min<std::uint64_t>(period.recent->capacity(), m) : 0;
  if (own_regression.stats().m() == m && badness.size() <= m && recent == expected) return {};
  return fmt::format("the current period has {} observations, {} flags and {} recent ones", m,
                     badness.size(), recent);
}

void WindowTestState::SaveBesidePeriod(const Period& period, ByteWriter& out) const {
  own_regression.Save(out);
  (period.recent != nullptr ? *period.recent : RecentObservations(own_regression.dim(), 0))
      .Save(out);
  badness.Save(out);
}

void WindowTestState::LoadBesidePeriod(Period& period, ByteReader& in, const RecordLayout& layout) {
  const std::size_t now = dim();
  const bool intercept = period.data.columns().intercept();
  if (layout.dim == 0) return in.Fail("features of a record", "are 0");
  own_regression = linalg::GaussianPosterior(layout.dim, own_regression.prior_precision()[0], 1);
  own_regression.Load(in);
  Grow(now, intercept);
  const std::size_t capacity = period.recent != nullptr ? period.recent->capacity() : 0;
  RecentObservations recent(layout.dim, capacity);
  recent.Load(in);
  recent.Grow(now, intercept);
  if (period.recent != nullptr) *period.recent = std::move(recent);
  badness.Load(in);
}

WindowTest::WindowTest(const WindowDetectorOptions& options)
    : options_(options), epsilon_(std::numbers::sqrt2 * boost::math::erf_inv(1 - options.delta)) {}

double WindowTest::Alpha(const linalg::SufficientStats& data, double sigma) const {
  if (options_.fixed_alpha) return options_.alpha;
  const auto d = static_cast<double>(data.dim());
  const auto m = static_cast<double>(data.m());
  return sigma * std::sqrt(d * std::log1p(m / (d * options_.ridge)) +
                           2 * std::log(1 / options_.delta1)) +
         std::sqrt(options_.ridge);
}

bool WindowTest::IsBad(const WindowTestState& state, std::span<const double> x, double r,
                       double sigma) const {
  const linalg::GaussianPosterior& own = state.own_regression;
  const double error = std::abs(linalg::Dot(x, own.mean()) - r);
  if (error <= epsilon_ * sigma) return false;  // whatever the width
  return error > Alpha(own.stats(), sigma) * std::sqrt(own.Variance(x)) + epsilon_ * sigma;
}

bool WindowTest::Fires(const WindowTestState& state) const {
  if (state.badness.size() == 0) return false;
  const auto window = static_cast<double>(state.badness.size());
  const double mean = static_cast<double>(state.badness.raised()) / window;
  return mean > options_.delta1 + std::sqrt(std::log(1 / options_.delta2) / (2 * window));
}

namespace {

class WindowDetector final : public ChangeDetector {
 public:
  explicit WindowDetector(const DetectorContext& context)
      : ChangeDetector(context), test_(context.options.window_detector) {}

  std::unique_ptr<DetectorState> NewState() const override {
    const WindowDetectorOptions& options = context().options.window_detector;
    return std::make_unique<WindowTestState>(context().pool.prior().dim(), options.ridge,
                                             options.tau);
  }

  void Observe(const LearnStep& step) override {
    WindowTestState& state = WindowTestState::Of(step.user);
    const double sigma = std::sqrt(context().hyper.prior().noise_variance);
    state.badness.Push(test_.IsBad(state, step.x, step.reward, sigma));
    state.own_regression.Add(step.x, step.reward);
  }

  bool Alarm(const UserRecord& user) const override {
    return test_.Fires(WindowTestState::Of(user));
  }

 private:
  WindowTest test_;
};

}  // namespace

std::unique_ptr<ChangeDetector> MakeWindowDetector(const DetectorContext& context) {
  return std::make_unique<WindowDetector>(context);
}

}  // namespace codband
