#include "codband/cluster/replicated_store.h"

#include <fmt/format.h>

#include <utility>

#include "codband/cluster/frame.h"

namespace codband::cluster {
namespace {

Status Refused(const std::string& reason) { return {StatusCode::kUnavailable, reason}; }

}  // namespace

ReplicatedStore::ReplicatedStore(std::unique_ptr<store::Store> local, store::PartitionLog& log,
                                 const Position& position)
    : local_(std::move(local)), log_(log) {
  shared_->position = position;
}

Result<store::StoreBatch> ReplicatedStore::Follow(const store::LogFrame& frame) {
  auto batch = ApplyFrame(frame, *local_);
  if (!batch.ok()) return batch;
  const std::lock_guard lock(shared_->mutex);
  shared_->position = {.sequence = frame.sequence, .epoch = frame.epoch};
  return batch;
}

void ReplicatedStore::Own(const store::Claim& claim, OnGivenUp on_given_up) {
  const std::lock_guard lock(shared_->mutex);
  claim_ = claim;
  on_given_up_ = std::move(on_given_up);
  shared_->owns = true;
}

Position ReplicatedStore::position() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->position;
}

Status ReplicatedStore::Write(const store::StoreBatch& batch, bool /*sync*/) {
  std::unique_lock lock(shared_->mutex);
  Shared& shared = *shared_;
  shared.changed.wait(lock, [&] { return !shared.writing || !shared.given_up.empty(); });
  if (!shared.given_up.empty()) return Refused(shared.given_up);
  if (!shared.owns) return Refused("another node serves the partition, this one follows it");
  shared.writing = true;
  const Status appended = Append(EncodeFrame(batch), lock);
  if (store::IsFenced(appended)) return Lose(appended.message(), true, lock);
  if (!shared.given_up.empty()) return Refused(shared.given_up);
  if (appended.code() == StatusCode::kUnavailable) {
    shared.writing = false;
    shared.changed.notify_all();
    return appended;
  }
  // Somebody else's frame, or bytes that the database has lost.
  if (!appended.ok()) return Lose(appended.message(), false, lock);
  const Position next{.sequence = shared.position.sequence + 1, .epoch = claim_.epoch};
  lock.unlock();
  store::StoreBatch local = batch;
  PutPosition(next, local);
  const Status written = local_->Write(local, false);
  lock.lock();
  if (!written.ok()) {
    return Lose(fmt::format("partition {}: the local copy cannot follow the log: {}",
                            claim_.partition, written.message()),
                false, lock);
  }
  shared.position = next;
  shared.writing = false;
  shared.changed.notify_all();
  return {};
}

// Waits for the outcome, or until the store is given up. The lock is not held meanwhile.
Status ReplicatedStore::Append(std::string frame, std::unique_lock<std::mutex>& lock) {
  const auto answer = std::make_shared<Answer>();
  const std::uint64_t sequence = shared_->position.sequence + 1;
  lock.unlock();
  log_.Append(claim_, sequence, std::move(frame), [shared = shared_, answer](const Status& status) {
    const std::lock_guard guard(shared->mutex);
    *answer = {.came = true, .status = status};
    shared->changed.notify_all();
  });
  lock.lock();
  shared_->changed.wait(lock, [&] { return answer->came || !shared_->given_up.empty(); });
  return answer->came ? answer->status : Refused(shared_->given_up);
}

Status ReplicatedStore::Lose(std::string reason, bool fenced, std::unique_lock<std::mutex>& lock) {
  if (shared_->given_up.empty()) shared_->given_up = reason;
  shared_->changed.notify_all();
  lock.unlock();
  if (on_given_up_) on_given_up_(fenced);
  return Refused(reason);
}

void ReplicatedStore::GiveUp(const std::string& reason) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->given_up.empty()) shared_->given_up = reason;
  shared_->changed.notify_all();
}

Status ReplicatedStore::Tidy(const store::StoreBatch& batch, bool /*sync*/) {
  return local_->Write(batch, false);
}

Status ReplicatedStore::WriteBulk(store::StoreBatch batch) {
  return local_->WriteBulk(std::move(batch));
}

Status ReplicatedStore::Get(store::Table table, std::string_view key, std::string& value) const {
  return local_->Get(table, key, value);
}

Status ReplicatedStore::Scan(store::Table table, std::string_view from, std::string_view to,
                             const Visit& visit) const {
  return local_->Scan(table, from, to, visit);
}

Status ReplicatedStore::ScanPastDamage(store::Table table, const Visit& visit,
                                       std::vector<Lost>& lost) const {
  return local_->ScanPastDamage(table, visit, lost);
}

}  // namespace codband::cluster
