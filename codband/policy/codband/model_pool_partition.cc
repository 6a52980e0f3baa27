// What a partition's pool shares with others (shared_pool.h).
#include <algorithm>
#include <cmath>

#include "codband/base/check.h"
#include "codband/policy/codband/model_pool.h"

namespace codband {
namespace {

// How much ln|Λ| of a model grows before others are told: of a model with d features and n
// observations that is 0.4 n / d more of them. While it is young each is news.
constexpr double kNews = 0.4;

}  // namespace

void ModelPool::BePartition(std::uint32_t partition) {
  CODBAND_CHECK(models_.empty() && !is_partition());
  partition_ = partition;
  next_id_ = std::max(next_id_, FirstId(partition));
  restructured_ = true;  // the others have not heard of it
}

std::size_t ModelPool::own_size() const {
  if (!is_partition()) return size();
  return static_cast<std::size_t>(std::ranges::count_if(
      models_, [](const PoolModel& model) { return model.own_periods() > 0; }));
}

std::uint64_t ModelPool::own_periods() const {
  if (!is_partition()) return total_periods();
  std::uint64_t periods = 0;
  for (const PoolModel& model : models_) periods += model.own_periods();
  return periods;
}

std::size_t ModelPool::OwnShare(std::size_t steps) const {
  if (!is_partition()) return steps;
  const std::uint64_t all = observations();
  return all == 0 ? 0 : static_cast<std::size_t>(steps * own_observations() / all);
}

std::uint64_t ModelPool::own_observations() const {
  std::uint64_t sum = 0;
  for (const PoolModel& model : models_) sum += model.own_data().m();
  return sum;
}

std::vector<ModelSums> ModelPool::OwnSums() const {
  std::vector<ModelSums> sums;
  for (const PoolModel& model : models_) {
    if (model.own_periods() == 0) continue;
    sums.push_back({.id = model.id,
                    .periods = model.own_periods(),
                    .users = model.own_users(),
                    .data = model.own_data()});
  }
  return sums;
}

bool ModelPool::HasNews() const {
  CODBAND_CHECK(is_partition());
  return restructured_ || std::ranges::any_of(models_, [](const PoolModel& model) {
           return std::abs(model.posterior.log_determinant() - model.own->published) > kNews;
         });
}

void ModelPool::MarkPublished() {
  restructured_ = false;
  for (PoolModel& model : models_) model.own->published = model.posterior.log_determinant();
}

// Own sums go where the names of their models lead.
void ModelPool::JoinOwn(const ModelAliases& aliases) {
  aliases_ = {};  // until all are there models are called by their old names
  for (const ModelAliases::Alias& alias : aliases.entries()) {
    const auto from = IndexOf(alias.from);
    if (!from) continue;
    const PoolModel joined = std::move(models_[*from]);
    models_.erase(models_.begin() + static_cast<std::ptrdiff_t>(*from));
    PoolModel& to = IndexOf(alias.to) ? Get(alias.to) : Insert(alias.to);
    to.periods += joined.own_periods();
    to.users += joined.own_users();
    to.own->data.Add(joined.own->data);
    to.recency.Add(clock_, joined.recency);
    restructured_ = true;
  }
  aliases_ = aliases;
}

void ModelPool::Import(std::span<const ModelSums> others, const ModelAliases& aliases,
                       const linalg::LinearPrior& prior) {
  CODBAND_CHECK(is_partition());
  prior_.SetPrior(prior);
  if (!(aliases == aliases_)) JoinOwn(aliases);
  for (PoolModel& model : models_) {
    model.periods = model.own_periods();
    model.users = model.own_users();
    model.own->others_periods = model.own->others_users = 0;
  }
  std::size_t at = 0;  // models and others are in the same order
  for (const ModelSums& other : others) {
    while (at < models_.size() && models_[at].id < other.id) ++at;
    if (at == models_.size() || models_[at].id != other.id) Insert(other.id);
    PoolModel& model = models_[at];
    model.own->others_periods = other.periods;
    model.own->others_users = other.users;
    model.periods += other.periods;
    model.users += other.users;
  }
  std::erase_if(models_, [](const PoolModel& model) { return model.periods == 0; });
  total_periods_ = 0;
  auto next = others.begin();
  for (PoolModel& model : models_) {
    const double before = model.posterior.log_determinant();
    linalg::SufficientStats sum = model.own->data;
    while (next != others.end() && next->id < model.id) ++next;
    if (next != others.end() && next->id == model.id) sum.Add(next->data);
    model.posterior.Assign(prior, sum);
    model.covariance.Forget();
    model.own->published += model.posterior.log_determinant() - before;
    total_periods_ += model.periods;
  }
}

void ModelPool::Hold(std::span<const ModelSums> own, const linalg::LinearPrior& prior,
                     std::optional<std::uint32_t> partition, std::uint64_t counter) {
  prior_.SetPrior(prior);
  models_.clear();
  aliases_ = {};
  total_periods_ = 0;
  partition_ = partition;
  next_id_ = FirstId(partition.value_or(0)) + counter;
  restructured_ = true;
  for (const ModelSums& sums : own) {
    PoolModel& model = Insert(sums.id);
    model.periods = sums.periods;
    model.users = sums.users;
    model.posterior.Assign(prior, sums.data);
    model.covariance.Forget();
    if (model.own) model.own->data = sums.data;
    total_periods_ += sums.periods;
  }
}

void ModelPool::SavePartition(ByteWriter& out) const {
  out.U32(partition());
  aliases_.Save(out);
  for (const PoolModel& model : models_) {
    out.U64(model.own->others_periods);
    out.U64(model.own->others_users);
    model.own->data.Save(out);
  }
}

void ModelPool::LoadPartition(ByteReader& in) {
  partition_ = in.U32("partition");
  aliases_.Load(in);
  for (PoolModel& model : models_) {
    OwnPart own{.data = linalg::SufficientStats(prior_.dim())};
    own.others_periods = in.U64("periods of others");
    own.others_users = in.U64("users of others");
    own.data.Load(in);
    if (own.others_periods > model.periods || own.others_users > model.users) {
      in.Fail("periods of others", "are more than all");
      return;
    }
    model.own = std::move(own);
  }
  restructured_ = true;  // what others have heard of is not known
}

}  // namespace codband
