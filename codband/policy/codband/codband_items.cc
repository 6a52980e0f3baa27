#include <algorithm>

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
  const std::span<const ItemEffects::Share> shares = LikelyModels(outlook, work.shares);
  const auto visits = static_cast<double>(outlook.Posterior(outlook.likeliest).stats().m());
  const std::size_t count = arms.count();
  work.item_effects.resize(count);
  work.item_means.resize(count);
  work.item_variances.resize(count);
  items_.Of(arms.items, shares, user, work.item_effects);
  const auto known = std::ranges::count_if(work.item_effects, &ItemEffects::Effect::known);
  const double offered = items_.ShareOffered(static_cast<std::size_t>(known));
  // Of all that are unknown it is the same.
  double worth_of_unknown = -1;
  for (std::size_t i = 0; i < count; ++i) {
    const ItemEffects::Effect& effect = work.item_effects[i];
    work.item_means[i] = effect.mean;
    work.item_variances[i] = effect.variance;
    double worth = worth_of_unknown;
    if (effect.known || arms.items[i] == kNoItem || worth < 0) {
      worth = items_.WorthOfTrying(effect, visits, offered);
      if (!effect.known && arms.items[i] != kNoItem) worth_of_unknown = worth;
    }
    work.added[i] = effect.mean + worth;
  }
  outlook.item_means = work.item_means;
  outlook.item_variances = work.item_variances;
}

CoDBand::ItemPart CoDBand::FindItemPart(const Decision& decision, const UserRecord& user,
                                        std::span<const double> x, double reward) const {
  if (!item_effects_ || decision.item == kNoItem) return {};
  ChooseWorkspace& work = ChooseWorkspace::OfThisThread();
  const Outlook outlook = Believe(decision.user, &user, work);
  FeatureVector theta(inner_dim());
  outlook.Mean(theta.values());
  const double mean = linalg::Dot(x, theta);
  const double noise = outlook.Posterior(outlook.likeliest).noise_variance();
  return {.effect = items_.Of(decision.item, LikelyModels(outlook, work.shares), user.items.get()),
          .residual = reward - mean,
          .reward = reward,
          .telling = hyper_.noise().clicks() || VarianceOf(outlook, x, mean) <= noise};
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
