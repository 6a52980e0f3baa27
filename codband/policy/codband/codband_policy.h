#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codband/policy/codband/assignment.h"
#include "codband/policy/codband/change_detector.h"
#include "codband/policy/codband/choose_workspace.h"
#include "codband/policy/codband/codband.h"
#include "codband/policy/codband/exploration.h"
#include "codband/policy/codband/feature_vector.h"
#include "codband/policy/codband/hyper_parameters.h"
#include "codband/policy/codband/model_pool.h"
#include "codband/policy/codband/outlook.h"
#include "codband/policy/codband/period_ledger.h"
#include "codband/policy/codband/pool_register.h"
#include "codband/policy/codband/restore_point.h"
#include "codband/policy/codband/thompson_integral.h"
#include "codband/policy/codband/user_record.h"
#include "codband/policy/grouped_features.h"
#include "codband/policy/item_effects.h"
#include "codband/policy/learn_memo.h"
#include "codband/policy/paged_user_table.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/shared_pool.h"

namespace codband {

// The policy of codband.h. Choosing and learning are in codband.cc, ranking in codband_rank.cc,
// what is saved, loaded, forgotten and described in codband_state.cc, what is shared with other
// partitions in codband_shared.cc, how one becomes partitions and back in codband_parts.cc.
class CoDBand final : public Policy, public PagedUsers, public GroupedFeatures, public SharedPool {
 public:
  CoDBand(std::size_t dim, const CoDBandOptions& options);

  bool Forget(UserId user) override;
  bool ForgetItem(ItemId item) override;
  std::size_t model_count() const override { return pool_.size(); }

  std::vector<ModelDescription> DescribeModels() const override;
  std::optional<UserDescription> DescribeUser(UserId user) const override;
  std::optional<ItemDescription> DescribeItem(ItemId item) const override {
    return items_.Describe(item);
  }
  double ItemEffectOn(ModelId model, ItemId item) const override {
    return items_.Ask(item).MeanOn(model);
  }

  double FeatureWeight(std::span<const double> features) const override;

  void SetGroups(std::span<const std::uint32_t> groups) override { hyper_.SetGroups(groups); }

  PagedUsers* paged_users() override { return this; }
  void SetArchive(const UserArchive* archive) override { users_.SetArchive(archive); }
  void SaveShared(ByteWriter& out) const override;
  void LoadShared(ByteReader& in) override;
  void SaveChangedUsers(const SaveUser& save) const override { users_.SaveChanged(save); }
  void MarkUsersSaved() override { users_.MarkSaved(); }
  void EvictUsers(const UserRoom& room) override { users_.Evict(room); }
  std::size_t users_in_memory() const override { return users_.size(); }
  std::size_t bytes_in_memory() const override { return users_.bytes(); }
  Status CheckUsers(const std::function<Status(const VisitRecord&)>& all) const override;

  // Recency is counted in observations of one partition: with prior=hawkes nothing is shared.
  SharedPool* shared_pool() override;
  void SetPartition(std::uint32_t partition) override;
  bool HasNews() const override { return pool_.HasNews(); }
  std::string Publish(std::uint64_t version) override;
  Result<Merged> Merge(std::span<const std::string> registers,
                       std::string_view previous) const override;
  std::size_t FeaturesOf(std::string_view pool) const override;
  Status Import(std::string_view pool) override;
  std::uint64_t pool_version() const override { return pool_version_; }
  Result<std::vector<Part>> Split(std::uint32_t partitions, const PartitionOf& partition_of,
                                  const VisitUsers& users) const override;
  Result<std::unique_ptr<SharedPool::Joining>> Join(std::vector<Joined> partitions) const override;

 private:
  class Joining;  // codband_parts.cc

  Propensity DoChoose(UserId user, ArmsView arms, EventKey key, Decision& decision) const override;
  void DoRank(UserId user, ArmsView arms, EventKey key, Ranking& ranking) const override;
  LearnOutcome DoLearn(const Decision& decision, double reward, EventKey key,
                       LearnMemo* memo) override;
  void DoGrow(std::size_t dim) override;
  void DoSaveState(ByteWriter& out) const override;
  void DoLoadState(ByteReader& in) override;

  // The number of features as the models see them.
  std::size_t inner_dim() const { return pool_.prior().dim(); }
  // The arms as the models see them: themselves, unless columns are centred or lengths damped; then
  // in the workspace.
  ArmsView See(ArmsView arms, ChooseWorkspace& work) const;
  FeatureVector See(std::span<const double> features) const;  // of an observation
  FeatureVector Extend(std::span<const double> features) const;
  void Extend(std::span<const double> features, std::span<double> x) const;
  double Score(std::span<const double> arm, std::span<const double> theta) const;

  UserRecord NewUser() const;
  void StartPeriod(UserRecord& user, const Decision& decision, EventKey key);

  Outlook LookAt(UserId user, ArmsView arms, ChooseWorkspace& work) const;
  // Without the arms. `user` is nullptr for one without a record. `renew`: as in ModelChances.
  Outlook Believe(UserId id, const UserRecord* user, ChooseWorkspace& work,
                  bool renew = false) const;
  // What is expected of the parameter and the arms, for the outlook.
  void FindMeans(ArmsView arms, ChooseWorkspace& work, Outlook& outlook) const;
  // What trying each arm is worth comes to what it is compared by.
  void AddWorth(UserId user, const UserRecord* record, ArmsView arms, ChooseWorkspace& work,
                Outlook& outlook) const;
  // What is not known of the arms, of which the outlook gets the variances.
  Uncertainty FindVariances(ArmsView arms, ChooseWorkspace& work, Outlook& outlook) const;
  // `user`: what items brought them; nullptr: none were shown.
  void LookAtItems(ArmsView arms, const ItemHistory* user, ChooseWorkspace& work,
                   Outlook& outlook) const;

  // What of a reward is the item's, and what is left of it without the features.
  struct ItemPart {
    ItemEffects::Asked item = {};
    ItemEffects::Effect effect = {};  // its mean, and of that what is the user's own
    double residual = 0;
    double reward = 0;
    bool telling = false;  // whether the residual says more of the item than of the models
  };
  ItemPart FindItemPart(const Decision& decision, const UserRecord& user, std::span<const double> x,
                        double reward, LearnMemo* memo) const;
  void ObserveItem(const Decision& decision, UserRecord& user, ModelId model, const ItemPart& part);
  void CountVisitsOfNobody(std::size_t own, std::uint64_t visits, std::span<double> chances) const;
  // The random effect of a user who is on model `own` of the outlook.
  std::span<const double> FindDeparture(const Outlook& outlook, const UserRecord& user,
                                        ChooseWorkspace& work) const;

  void ScoreArms(Outlook& outlook, ArmsView arms, ChooseWorkspace& work, Ranking& ranking) const;
  void LetCompete(const Outlook& outlook, ArmsView arms, std::size_t first,
                  std::span<const double> rows, ThompsonIntegral::Points& points) const;

  // So that what a new user brings can be taken back exactly (restore_point.h).
  void SetRestorePoint(UserId user);
  bool Restore(const RestorePoint::Point& before);

  // What all users share, in state format 3.
  void SavePool(ByteWriter& out) const;
  void LoadPool(ByteReader& in);
  // What came later stands at the end of a state. A state without it is from before.
  void SaveRest(ByteWriter& out) const;
  void LoadRest(ByteReader& in);
  void SaveTail(ByteWriter& out) const;
  void LoadTail(ByteReader& in);
  void SavePartition(ByteWriter& out) const;
  void LoadPartition(ByteReader& in);

  // Keeps of a policy that is no partition what is this partition's own.
  void BePart(std::uint32_t partition, const PoolSums& own, const PartitionOf& partition_of);
  Result<std::vector<PoolSums>> SumParts(std::uint32_t partitions, const PartitionOf& partition_of,
                                         const VisitUsers& users) const;
  // Keeps what partitions have together, of which this one has the newest pool.
  using ItemLives = ItemEffects::Lives;
  void BeWhole(const PoolSums& all, const ItemLives& lives, std::uint64_t counter,
               std::span<const CoDBand* const> partitions);

  using VisitUser = std::function<void(UserId, const UserRecord&)>;
  Status CheckRecords(const std::function<Status(const VisitUser&)>& all) const;

  CoDBandOptions options_;
  HyperParameters hyper_;
  ItemEffects items_;
  ModelPool pool_;
  PagedUserTable<UserRecord> users_;
  PeriodLedger ledger_;
  Assignment assignment_;
  std::unique_ptr<ChangeDetector> detector_;
  DetectorTraits traits_;
  RestorePoint restore_point_;
  // The inner_dim() of users' records from before format 5, which may still be in the archive.
  std::size_t dim_before_columns_;
  std::uint64_t pool_version_ = 0;  // of the last pool imported
  std::uint64_t erasures_ = 0;      // users forgotten by this partition
  bool random_effects_;
  bool item_effects_;
  Exploration exploration_;
  ThompsonIntegral integral_;
};

}  // namespace codband
