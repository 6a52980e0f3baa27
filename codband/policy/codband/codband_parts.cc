// From one policy to the partitions of a pool, and back (shared_pool.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "codband/base/check.h"
#include "codband/policy/codband/codband_policy.h"
#include "codband/policy/codband/pool_merger.h"
#include "codband/policy/codband/record_sums.h"

namespace codband {
namespace {

// A part takes its own of what is left.
void Take(std::uint64_t& own, std::uint64_t& rest) {
  own = std::min(own, rest);
  rest -= own;
}

// What is no user's is the first partition's.
void GiveRest(const HyperEvidence& all, std::span<PoolSums> parts) {
  HyperEvidence rest = all;
  for (PoolSums& part : parts.subspan(1)) {
    HyperEvidence& own = part.evidence;
    Take(own.rewards.others, rest.rewards.others);
    Take(own.changes.observations, rest.changes.observations);
    Take(own.changes.confirmed, rest.changes.confirmed);
    rest.departures.Remove(own.departures);
  }
  parts[0].evidence = rest;
}

}  // namespace

// One pass over the records.
Result<std::vector<PoolSums>> CoDBand::SumParts(std::uint32_t partitions,
                                                const PartitionOf& partition_of,
                                                const VisitUsers& users) const {
  std::vector<RecordSums> sums(partitions, RecordSums(inner_dim(), options_.intercept));
  Status damaged;
  const Status read = users([&](UserId user, std::string_view bytes) {
    auto record = users_.Decode(bytes);
    if (!record.ok()) {
      damaged =
          Status::Corruption(fmt::format("user {:016x}: {}", user, record.status().message()));
      return false;
    }
    if (ItemHistory* const items = record.value().items.get()) {
      items->EraseIf([&](const ItemHistory::Entry& entry) { return !items_.Counts(entry); });
    }
    sums[partition_of(user)].Add(record.value());
    return true;
  });
  CODBAND_RETURN_IF_ERROR(read.ok() ? damaged : read);
  std::vector<PoolSums> parts;
  for (RecordSums& each : sums) parts.push_back(each.Take());
  HyperEvidence all = hyper_.OwnEvidence();
  all.credits = assignment_.model_prior().OwnCredits();
  GiveRest(all, parts);
  PoolSums whole;
  whole.models = pool_.OwnSums();
  whole.items = items_.OwnSums();
  AddRest(whole, parts, parts[0]);
  return parts;
}

void CoDBand::BePart(std::uint32_t partition, const PoolSums& own,
                     const PartitionOf& partition_of) {
  restore_point_.End();
  ItemLives lives{.last = items_.lives()};
  for (const ItemSums& item : own.items) lives.of_items.push_back(items_.LifeOf(item.id));
  items_.Hold(own.items, lives);
  pool_.Hold(own.models, hyper_.prior(), partition, pool_.counter());
  hyper_.BePartition(own.evidence);
  assignment_.SetOwnCredits(own.evidence.credits);
  assignment_.young_users().KeepIf([&](UserId user) { return partition_of(user) == partition; });
}

Result<std::vector<SharedPool::Part>> CoDBand::Split(std::uint32_t partitions,
                                                     const PartitionOf& partition_of,
                                                     const VisitUsers& users) const {
  CODBAND_CHECK(partitions > 0 && partitions <= kMostPartitions);
  if (pool_.is_partition()) {
    return Status::InvalidArgument(
        fmt::format("what was learned is that of partition {} of a loop, expected all of it",
                    pool_.partition()));
  }
  const auto sums = SumParts(partitions, partition_of, users);
  if (!sums.ok()) return sums.status();
  ByteWriter whole;
  SaveShared(whole);
  PoolImport pool{.version = 1, .prior = hyper_.prior()};
  for (ColumnScales::Proposal& each : hyper_.scales().Propose()) {
    pool.columns.push_back({.column = each.column, .used = each.used});
  }
  ByteWriter groups;
  hyper_.SaveGroups(groups);
  pool.groups = groups.Take();
  std::vector<Part> parts(partitions);
  std::vector<PoolRegister> registers;
  for (std::uint32_t partition = 0; partition < partitions; ++partition) {
    CoDBand part(dim(), options_);
    ByteReader in(whole.bytes());
    part.LoadShared(in);
    CODBAND_CHECK(in.ok());
    part.BePart(partition, sums.value()[partition], partition_of);
    ByteWriter out;
    part.SaveShared(out);
    parts[partition].shared = out.Take();
    pool.vector.emplace_back(partition, 0);  // what is published in the loop is newer
    registers.push_back({.partition = partition, .sums = sums.value()[partition]});
  }
  for (const PoolImport& import : GiveOut(pool, registers)) {
    parts[import.partition].import = import.Encode();
  }
  return parts;
}

void CoDBand::BeWhole(const PoolSums& all, const ItemLives& lives, std::uint64_t counter,
                      std::span<const CoDBand* const> partitions) {
  restore_point_.End();
  items_.Hold(all.items, lives);
  pool_.Hold(all.models, hyper_.prior(), std::nullopt, counter);
  HyperEvidence evidence;
  double concentration = 0;
  std::vector<const HyperParameters*> hyper;
  for (const CoDBand* partition : partitions) {
    evidence.Add(partition->hyper_.OwnEvidence());
    const ModelPrior::Credits credits = partition->assignment_.model_prior().OwnCredits();
    for (std::size_t i = 0; i < credits.size(); ++i) evidence.credits[i] += credits[i];
    hyper.push_back(&partition->hyper_);
    concentration +=
        partition->assignment_.concentration() / static_cast<double>(partitions.size());
    const YoungUsers& young = partition->assignment_.young_users();
    for (std::size_t i = 0; i < young.size(); ++i) {
      assignment_.young_users().Note(young.user(i), i);
    }
  }
  hyper_.BeWhole(pool_, evidence, hyper);
  assignment_.ImportCredits({});
  assignment_.SetOwnCredits(evidence.credits);
  assignment_.SetConcentration(concentration);
  pool_version_ = erasures_ = 0;
}

// The names of models are those of the newest pool, in which the partitions' own have become those
// of the first one: a policy that is no partition has no others.
class CoDBand::Joining final : public SharedPool::Joining {
 public:
  Joining(const CoDBandOptions& options, std::vector<const CoDBand*> partitions)
      : partitions_(std::move(partitions)),
        newest_(*std::ranges::max_element(partitions_, {}, &CoDBand::pool_version)),
        whole_(newest_->dim(), options),
        sums_(newest_->inner_dim(), options.intercept),
        aliases_(newest_->pool_.aliases()) {
    ByteWriter shared;
    newest_->SaveShared(shared);
    ByteReader in(shared.bytes());
    whole_.LoadShared(in);
    CODBAND_CHECK(in.ok());
  }

  // The users without an id become one, on the model of the one who came most.
  Status Start(const std::vector<Joined>& partitions) {
    NameModels();
    for (std::uint32_t i = 0; i < partitions.size(); ++i) {
      if (partitions[i].nobody.empty()) continue;
      auto record = Read(i, partitions[i].nobody);
      if (!record.ok()) return record.status();
      if (!record.value().has_period()) continue;  // nothing is known of them
      record.value().Rename(aliases_);
      nobodies_.push_back(std::move(record).value());
    }
    if (nobodies_.empty()) return {};
    std::ranges::stable_sort(nobodies_, std::ranges::greater(),
                             [](const UserRecord& record) { return record.current.data.m(); });
    UserRecord whole = NewNobody();
    for (const UserRecord& record : nobodies_) AddNobody(record, whole);
    nobody_ = Keep(whole);
    nobodies_.push_back(std::move(whole));
    return {};
  }

  ModelId NameOf(ModelId model) const override { return aliases_.Resolve(model); }
  const std::string& nobody() const override { return nobody_; }

  Result<std::string> Take(std::uint32_t partition, std::string_view bytes) override {
    auto record = Read(partition, bytes);
    if (!record.ok()) return record.status();
    record.value().Rename(aliases_);
    return Keep(record.value());
  }

  std::string Finish() override {
    PoolSums all = sums_.Take();
    AddRest(SumsOfAll(), {&all, 1}, all);
    ItemLives lives;
    for (const ItemSums& item : all.items) lives.of_items.push_back(LifeOf(item.id));
    lives.last = static_cast<std::uint32_t>(lives_.size());
    whole_.BeWhole(all, lives, counter_, partitions_);
    ByteWriter out;
    whole_.SaveShared(out);
    return out.Take();
  }

 private:
  // As the partition has it, without showings that do not count any more.
  Result<UserRecord> Read(std::uint32_t partition, std::string_view bytes) {
    const CoDBand& of = *partitions_[partition];
    auto record = of.users_.Decode(bytes);
    if (!record.ok() || record.value().items == nullptr) return record;
    ItemHistory& items = *record.value().items;
    items.EraseIf([&](const ItemHistory::Entry& entry) { return !of.items_.Counts(entry); });
    // Partitions have counted the lives of their items each for itself.
    for (ItemHistory::Entry& entry : items.entries()) entry.life = LifeOf(entry.item);
    return record;
  }
  std::uint32_t LifeOf(ItemId item) {
    const auto next = static_cast<std::uint32_t>(lives_.size() + 1);
    return lives_.try_emplace(item, next).first->second;
  }

  // In the order of their names, so that the oldest of a partition stay the oldest.
  void NameModels() {
    std::set<ModelId> others;
    for (const CoDBand* partition : partitions_) {
      counter_ = std::max(counter_, partition->pool_.counter());
      for (const ModelSums& model : partition->pool_.OwnSums()) {
        const ModelId id = aliases_.Resolve(model.id);
        if (ModelPool::IsOfPartition(id)) others.insert(id);
      }
    }
    for (const ModelId id : others) aliases_.Join(counter_++, id);
  }

  // What the partitions have by themselves, models by their new names.
  PoolSums SumsOfAll() const {
    std::map<ModelId, ModelSums> models;
    std::map<ItemId, ItemSums> items;
    for (const CoDBand* partition : partitions_) {
      for (const ModelSums& model : partition->pool_.OwnSums()) {
        const ModelId id = aliases_.Resolve(model.id);
        const auto [entry, is_new] = models.try_emplace(id, model);
        entry->second.id = id;
        if (is_new) continue;
        entry->second.periods += model.periods;
        entry->second.users += model.users;
        entry->second.data.Add(model.data);
      }
      for (const ItemSums& item : partition->items_.OwnSums()) {
        items.try_emplace(item.id, ItemSums{.id = item.id}).first->second.Add(item, aliases_);
      }
    }
    // Those without an id have become one, the last of them.
    for (const UserRecord& nobody : nobodies_) {
      ModelSums& model = models.at(nobody.current.model);
      const bool whole = &nobody == &nobodies_.back();
      model.periods += whole ? 1 : -1;
      model.users += whole ? 1 : -1;
      whole ? model.data.Add(nobody.current.data) : model.data.Remove(nobody.current.data);
    }
    PoolSums all;
    for (auto& [id, model] : models) all.models.push_back(std::move(model));
    for (auto& [id, item] : items) all.items.push_back(std::move(item));
    return all;
  }

  UserRecord NewNobody() const {
    UserRecord nobody = whole_.NewUser();
    nobody.current.model = nobodies_[0].current.model;
    return nobody;
  }
  static void AddNobody(const UserRecord& more, UserRecord& nobody) {
    nobody.current.data.Add(more.current.data);
    nobody.other_rewards += more.other_rewards;
    if (more.items == nullptr) return;
    if (nobody.items == nullptr) nobody.items = std::make_unique<ItemHistory>();
    nobody.items->Add(*more.items);
    for (ItemHistory::Entry& entry : nobody.items->entries()) {
      if (entry.model != kNoModel) entry.model = nobody.current.model;
    }
  }

  std::string Keep(const UserRecord& record) {
    sums_.Add(record);
    ByteWriter out;
    record.Save(out);
    record.SaveRest(out);
    return out.Take();
  }

  const std::vector<const CoDBand*> partitions_;
  const CoDBand* const newest_;
  CoDBand whole_;
  RecordSums sums_;
  ModelAliases aliases_;
  std::uint64_t counter_ = 0;
  std::unordered_map<ItemId, std::uint32_t> lives_;
  std::string nobody_;
  std::vector<UserRecord> nobodies_;  // of the partitions, and last what they become
};

Result<std::unique_ptr<SharedPool::Joining>> CoDBand::Join(std::vector<Joined> partitions) const {
  CODBAND_CHECK(!partitions.empty());
  std::size_t dim = 0;
  for (const Joined& each : partitions) dim = std::max(dim, each.policy->dim());
  std::vector<const CoDBand*> parts;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    auto* const part = dynamic_cast<CoDBand*>(partitions[i].policy);
    CODBAND_CHECK(part != nullptr);
    if (!part->pool_.is_partition() || part->pool_.partition() != i) {
      return Status::InvalidArgument(fmt::format(
          "partition {}: what it has learned is {}, expected partition {}", i,
          part->pool_.is_partition() ? fmt::format("that of partition {}", part->pool_.partition())
                                     : "that of one server",
          i));
    }
    part->Grow(dim);
    parts.push_back(part);
  }
  auto joining = std::make_unique<Joining>(options_, std::move(parts));
  CODBAND_RETURN_IF_ERROR(joining->Start(partitions));
  return std::unique_ptr<SharedPool::Joining>(std::move(joining));
}

}  // namespace codband
