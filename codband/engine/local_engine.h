#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/string_hash.h"
#include "codband/engine/catalogue.h"
#include "codband/engine/committer.h"
#include "codband/engine/engine.h"
#include "codband/engine/eraser.h"
#include "codband/engine/learner.h"
#include "codband/engine/left_right.h"
#include "codband/engine/rank_workspace.h"
#include "codband/engine/records.h"

namespace codband::engine {

// The engine in this process. engine.cc opens it and accepts commands, ranking.cc ranks,
// engine_reports.cc tells about users and models.
class LocalEngine final : public Engine, private Partition {
 public:
  template <typename T>
  using Done = Engine::Done<T>;

  LocalEngine(std::unique_ptr<store::Store> store, const EngineOptions& options, std::size_t dim)
      : store_(std::move(store)),
        options_(options),
        dim_(dim),
        rules_{.limits = features::ColumnLimits::Serving(options.columns.columns),
               .crossings = features::CrossingRules::Parse(options.crossings).value()},
        catalogue_(Catalogue(dim, options.names), Catalogue(dim, options.names)) {
    // Crossings that are asked for of the loop need columns of their names first.
    if (options.share_catalogue) rules_.limits.at_once = 0;
  }
  ~LocalEngine() override { static_cast<void>(Close()); }

  // One of these options, and of what the store says it is.
  static Result<std::unique_ptr<LocalEngine>> Make(std::unique_ptr<store::Store> store,
                                                   const EngineOptions& options);
  // Reads everything from the store and starts the threads.
  Status Start(std::function<void(const FinishedDecision&)> on_finished);
  // The same in three steps, for one that learns before it is served (follower.h).
  Status LoadLearned();
  Status StartLearning();
  Status Serve(std::function<void(const FinishedDecision&)> on_finished);
  Learner& learner() { return *learner_; }
  std::uint64_t ErasedSequence() const {
    return eraser_ == nullptr ? 0 : eraser_->ErasedUpTo(learner_->cleared_sequence());
  }

  void Rank(RankRequest request, const std::function<void(const RankReply&)>& ranked,
            Done<Status> done) override;
  void Reward(std::string event_id, double value, Done<Result<RewardReply>> done) override;
  Status CheckReward(double value) const override;
  void Activate(std::string event_id, Done<Status> done) override;
  std::string NewEventId() override;
  Result<std::vector<std::string>> FindEvents(const std::string& prefix,
                                              std::size_t most) const override;
  void PutItems(std::vector<Item> items, Done<Status> done) override;
  void DeleteItem(std::string id, Done<Status> done) override;
  Result<Item> GetItem(const std::string& id) const override;
  std::vector<Item> ListItems(const std::string& after, std::size_t most) const override;
  FeatureReport Features() override;
  std::optional<ItemDescription> DescribeItem(const std::string& id) const override;
  void Forget(std::string user, Done<Status> done) override;
  Result<UserReport> GetUser(const std::string& user) override;
  Status VisitUsers(const std::function<bool(const UserReport&)>& visit) override;
  std::vector<ModelReport> Models(std::size_t top) override;
  Result<ModelReport> GetModel(ModelId id, std::size_t top) override;
  std::vector<Change> RecentChanges(std::size_t most) override;
  SeriesReport Series(std::int64_t from_ms, std::int64_t to_ms, std::int64_t step_ms) override;
  std::vector<QuarantinedEntry> Quarantined() override { return learner_->quarantine().List(); }
  EngineStats Stats() override;
  std::size_t dim() const override { return dim_; }
  Status Close() override;
  Status Checkpoint() override;
  Status Backup(const std::filesystem::path& directory) override;
  Status Check() override;
  Partition* partition() override { return options_.partition ? this : nullptr; }

 private:
  // partition.cc:
  Result<std::uint64_t> CatalogueSequence() const override;
  void Follow(std::uint64_t sequence, std::vector<CatalogueChange> changes,
              Partition::Done done) override;
  bool shares() const override;
  std::uint64_t learned() const override { return learner_->learned_here(); }
  std::optional<Register> Publish(std::uint64_t version, bool always) override {
    return learner_->Publish(version, always);
  }
  Result<SharedPool::Merged> Merge(std::span<const std::string> registers,
                                   std::string_view previous) const override;
  void Import(std::string pool, Partition::Done done) override;
  std::uint64_t committed() const override { return committer_->committed_sequence(); }

  Status LoadItems();
  Status PutUnplaced();
  Status CheckAll();

  Status CheckRequest(const RankRequest& request) const;
  Status MakeOffer(const RankRequest& request, const Catalogue& catalogue, const Learned& learned,
                   RankWorkspace& workspace) const;
  void OfferCatalogue(const StringViewSet& excluded, const Catalogue& catalogue,
                      Offer& offer) const;
  Status OfferCandidates(const std::vector<Candidate>& candidates, const StringViewSet& excluded,
                         const Catalogue& catalogue, std::size_t plain_length, Offer& offer) const;
  // The checks of an action that the request describes. `plain_length`: see CheckPlainLength.
  Status CheckDescribed(const Candidate& candidate, std::size_t index,
                        std::size_t& plain_length) const;
  // The decision that the same request got before, if any; kConflict if its event is another one.
  Result<std::optional<PendingDecision>> FindEarlier(const std::string& event_id,
                                                     std::uint64_t fingerprint) const;
  Status TakeEarlier(const PendingDecision& earlier, RankWorkspace& workspace) const;
  Status RankOffer(const RankRequest& request, const PendingDecision* earlier,
                   const Learned& learned, RankWorkspace& workspace) const;
  Status CheckEventId(const std::string& id) const;
  Status CannotRank(const char* reason) const;
  void MakeReply(const RankRequest& request, RankWorkspace& workspace) const;
  Explanation Explain(const RankRequest& request, const Offer& offer, const Ranking& ranking,
                      const Learned& learned) const;
  PendingDecision MakePending(RankRequest& request, const Catalogue& catalogue, const Offer& offer,
                              Ranking& ranking) const;
  void KeepCandidates(RankRequest& request, const Catalogue& catalogue, const Offer& offer,
                      const Ranking& ranking, PendingDecision& pending) const;
  DecisionFacts FactsOf(const RankRequest& request, const Ranking& ranking) const;
  UserId UserOf(const RankRequest& request) const;
  // kConflict if another user has the id of this name.
  Status CheckName(const std::string& user, const Learned& learned) const;
  ModelReport Describe(ModelDescription model, double all_periods, std::size_t top) const;
  UserReport Describe(UserId id, const Person& person, const Learned& learned) const;

  std::unique_ptr<store::Store> store_;
  EngineOptions options_;
  std::size_t dim_;          // 0: every name has a column
  NamedOffer::Rules rules_;  // as in the beginning
  LeftRight<Catalogue> catalogue_;
  std::vector<std::shared_ptr<const Item>> unplaced_;  // at the start: names without a column
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Committer> committer_;
  std::atomic<Committer*> serving_{nullptr};  // the committer, once it takes commands
  std::unique_ptr<Eraser> eraser_;            // from when it learns
  RankWorkspaces workspaces_;
  std::atomic<std::uint64_t> next_event_id_{0};
  std::atomic<std::uint64_t> ranks_{0};
};

}  // namespace codband::engine
