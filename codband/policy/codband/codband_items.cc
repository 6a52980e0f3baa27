#include <algorithm>
#include <array>

#include "codband/linalg/kernels.h"
#include "codband/policy/codband/codband_policy.h"

namespace codband {
namespace {

// A model with less of a chance is not asked for its favourites.
constexpr double kLeastChance = 0.02;

std::span<const ItemEffects::Share> LikelyModels(const Outlook& outlook,
                                                 std::vector<ItemEffects::Share>& shares) {
  shares.clear();
  for (std::size_t k = 0; k < outlook.pool.size(); ++k) {
    if (outlook.chances[k] < kLeastChance) continue;
    shares.push_back({outlook.IdOf(k), outlook.chances[k]});
  }
  return shares;
}

// The variance of what is expected of x, whose mean is `mean`, without the noise: of the likeliest
// model, and between models.
double VarianceOf(const Outlook& outlook, std::span<const double> x, double mean) {
  double sum = outlook.Posterior(outlook.likeliest).Variance(x);
  for (std::size_t k = 0; k < outlook.chances.size(); ++k) {
    if (outlook.chances[k] < kLeastChance) continue;
    const double off = linalg::Dot(x, outlook.Posterior(k).mean()) - mean;
    sum += outlook.chances[k] * off * off;
  }
  return sum;
}

}  // namespace

bool CoDBand::ForgetItem(ItemId item) {
  if (!items_.ForgetItem(item)) return false;
  restore_point_.End();  // it counts the item
  return true;
}

void CoDBand::LookAtItems(ArmsView arms, const ItemHistory* user, ChooseWorkspace& work,
                          Outlook& outlook) const {
  const auto visits = static_cast<double>(outlook.Posterior(outlook.likeliest).stats().m());
  work.item_means.resize(arms.count());
  work.item_variances.resize(arms.count());
  items_.Rate(arms.items, LikelyModels(outlook, work.shares), user, visits, work.item_slots,
              {.means = work.item_means, .variances = work.item_variances, .scores = work.added});
  outlook.item_means = work.item_means;
  outlook.item_variances = work.item_variances;
}

// The second copy replays what needs the belief in the user and the models.
CoDBand::ItemPart CoDBand::FindItemPart(const Decision& decision, const UserRecord& user,
                                        std::span<const double> x, double reward,
                                        LearnMemo* memo) const {
  if (!item_effects_ || decision.item == kNoItem) return {};
  ItemPart part{.item = items_.Ask(decision.item), .reward = reward};
  std::array<double, 4> found{};
  LearnMemo::Fill(memo, found, [&] {
    ChooseWorkspace& work = ChooseWorkspace::OfThisThread();
    const Outlook outlook = Believe(decision.user, &user, work);
    FeatureVector theta(inner_dim());
    outlook.Mean(theta.values());
    const double mean = linalg::Dot(x, theta);
    const double noise = outlook.Posterior(outlook.likeliest).noise_variance();
    const ItemEffects::Effect effect =
        part.item.Of(LikelyModels(outlook, work.shares), user.items.get());
    const bool telling = hyper_.noise().clicks() || VarianceOf(outlook, x, mean) <= noise;
    found = {effect.mean, effect.own, reward - mean, telling ? 1.0 : 0.0};
  });
  part.effect.mean = found[0];
  part.effect.own = found[1];
  part.residual = found[2];
  part.telling = found[3] != 0;
  return part;
}

// While models are still being found, what they are off by is theirs. Of clicks most is noise at
// any time.
void CoDBand::ObserveItem(const Decision& decision, UserRecord& user, ModelId model,
                          const ItemPart& part) {
  if (!item_effects_ || decision.item == kNoItem) return;
  // In any case: what was taken from the reward is saved with it.
  if (user.items == nullptr) user.items = std::make_unique<ItemHistory>();
  if (!part.telling) return;
  items_.Observe(*user.items, decision.item, model, part.residual, part.reward, part.effect);
}

}  // namespace codband
