#include "codband/policy/baselines/random_policy.h"

#include "codband/policy/streams.h"

namespace codband {
namespace {

class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(std::size_t dim) : Policy(dim) {}

  bool Forget(UserId) override { return false; }
  std::size_t model_count() const override { return 0; }
  void DoSaveState(ByteWriter&) const override {}
  void DoLoadState(ByteReader&) override {}

 private:
  Propensity DoChoose(UserId, ArmsView arms, EventKey key, Decision& decision) const override {
    RandomStream random = StreamFor(key, DrawPurpose::kArm);
    decision.arm = static_cast<std::uint32_t>(random.Below(arms.count()));
    return Propensity::Uniform();
  }
  LearnOutcome DoLearn(const Decision&, double, EventKey, LearnMemo*) override { return {}; }
  void DoGrow(std::size_t) override {}
};

}  // namespace

PolicyInfo RandomInfo() {
  return {.name = "random",
          .summary = "every arm with the same chance; the baseline of every comparison",
          .paper = "–"};
}

std::unique_ptr<Policy> MakeRandom(const ParamValues&, const PolicyContext& context) {
  return std::make_unique<RandomPolicy>(context.dim);
}

}  // namespace codband
