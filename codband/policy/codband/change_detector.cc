#include "codband/policy/codband/change_detector.h"

#include <algorithm>

#include "codband/policy/codband/assignment.h"
#include "codband/policy/codband/bayes_detector.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/likelihood.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/window_detector.h"
#include "codband/policy/streams.h"

namespace codband {

void ChancesScratch::Prepare(std::size_t models_dim, const CoDBandOptions& options) {
  if (dim == models_dim) return;
  likelihood = MakeJointLikelihood(models_dim, options);
  dim = models_dim;
}

bool ChangeDetector::Reassign(const LearnStep& step) {
  RandomStream random = StreamFor(step.key, DrawPurpose::kModel);
  context_.assignment.Resample(step.id, step.user, random, step.memo);
  return false;
}

void ChangeDetector::ModelChances(UserId, const UserRecord& user, bool, ChancesScratch&,
                                  std::span<double> chances) const {
  std::ranges::fill(chances, 0.0);
  chances[context_.pool.IndexOf(user.current.model).value()] = 1;
}

void SaveEmptyFilterState(ByteWriter& out) { FilterState(false, 0).Save(out); }

void LoadEmptyFilterState(ByteReader& in, const RecordLayout& layout) {
  FilterState(false, 0).Load(in, layout);
}

namespace {

struct NoState final : DetectorState {
  std::size_t MemoryBytes() const override { return sizeof(*this) + kHeapBlock; }
  void Save(ByteWriter& out) const override { SaveEmptyFilterState(out); }
  void Load(ByteReader& in, const RecordLayout& layout) override {
    LoadEmptyFilterState(in, layout);
  }
};

class NoDetector final : public ChangeDetector {
 public:
  explicit NoDetector(const DetectorContext& context)
      : ChangeDetector(context), has_window_test_(context.likelihood.memory() > 0) {}

  std::unique_ptr<DetectorState> NewState() const override {
    if (!has_window_test_) return std::make_unique<NoState>();
    const WindowDetectorOptions& options = context().options.window_detector;
    return std::make_unique<WindowTestState>(context().pool.prior().dim(), options.ridge,
                                             options.tau);
  }

  void Observe(const LearnStep& step) override {
    if (has_window_test_) WindowTestState::Of(step.user).own_regression.Add(step.x, step.reward);
  }

 private:
  // With likelihood=product format 3 has the state of the window test in every record, and in it
  // the user's own regression, although nothing asks for it without the test.
  bool has_window_test_;
};

}  // namespace

std::unique_ptr<ChangeDetector> MakeNoDetector(const DetectorContext& context) {
  return std::make_unique<NoDetector>(context);
}

}  // namespace codband
