#include "codband/server/cluster/shared_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/cluster/await.h"
#include "codband/server/cluster/log_calls.h"

namespace codband::server {
namespace {

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::chrono::seconds kFollowPatience(2);
constexpr std::size_t kMostTogether = 64;  // changes in one frame
constexpr std::uint64_t kIdentityFrame = 1;
constexpr int kIdentityTries = 5;

// In the order of the log. The first frame is no change.
Result<std::vector<engine::CatalogueChange>> ChangesOf(std::span<const store::LogFrame> frames) {
  std::vector<engine::CatalogueChange> all;
  for (const store::LogFrame& frame : frames) {
    if (frame.sequence == kIdentityFrame) continue;
    auto changes = engine::DecodeChanges(frame.bytes);
    if (!changes.ok()) return changes.status();
    std::ranges::move(changes.value(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

std::string LoopIdentity::Encode() const {
  ByteWriter out;
  out.U64(dim);
  out.U64(name_secret.low);
  out.U64(name_secret.high);
  return out.Take();
}

Result<LoopIdentity> LoopIdentity::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  LoopIdentity identity;
  identity.dim = in.U64("number of features");
  identity.name_secret.low = in.U64("secret");
  identity.name_secret.high = in.U64("secret");
  in.ExpectEnd();
  if (in.ok()) return identity;
  return Status::Corruption("the identity of the loop cannot be read: " + in.status().message());
}

Result<LoopIdentity> FindLoopIdentity(store::PartitionLog& log, std::uint64_t dim) {
  std::random_device entropy;
  const auto draw = [&] { return std::uint64_t{entropy()} << 32 | entropy(); };
  const LoopIdentity fresh{.dim = dim, .name_secret = {.low = draw(), .high = draw()}};
  for (int i = 0; i < kIdentityTries; ++i) {
    const auto first = ReadSharedPage(log, kIdentityFrame, 1);
    if (!first.ok()) return first.status();
    if (!first.value().empty()) {
      const auto found = LoopIdentity::Decode(first.value()[0].bytes);
      if (!found.ok() || dim == 0 || found.value().dim == dim) return found;
      return Status::InvalidArgument(
          fmt::format("features.dimension: is {}, but this loop was made for {} features, for good",
                      dim, found.value().dim));
    }
    if (dim == 0) {
      return Status::InvalidArgument(
          "features.dimension: is 0 (a column for every name), expected a number from 1 on: the "
          "partitions of a loop must agree on what a feature means, so names are hashed into a "
          "fixed number of features; or make the loop with one partition");
    }
    // Of several nodes that start at once the first decides.
    const Status appended = cluster::Await<Status>(
        [&](auto done) { log.AppendShared(kIdentityFrame, fresh.Encode(), std::move(done)); });
    if (!appended.ok() && appended.code() != StatusCode::kConflict) return appended;
  }
  return Status(StatusCode::kUnavailable, "the identity of the loop cannot be written");
}

SharedCatalogue::SharedCatalogue(store::PartitionLog& log, LogSink sink)
    : log_(log), sink_(std::move(sink)), thread_([this] { Run(); }) {}

SharedCatalogue::~SharedCatalogue() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  thread_.join();
  const Status ends(StatusCode::kUnavailable, "the node stops; try again");
  for (auto& [change, done] : state_->changes) done(ends);
  for (Waiting& each : state_->waiting) each.done({});
}

Status SharedCatalogue::Attach(store::Partition partition, engine::Engine& engine) {
  const auto follower = std::make_shared<Follower>(engine);
  const auto sequence = engine.partition()->CatalogueSequence();
  if (!sequence.ok()) return sequence.status();
  follower->sequence = sequence.value();
  Status status;
  while (status.ok()) {
    const auto page = ReadSharedPage(log_, follower->sequence + 1);
    status = page.status();
    if (!status.ok() || page.value().empty()) break;
    Give(state_, follower, page.value());
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return !follower->busy; });
    if (follower->failed) status = Status(StatusCode::kUnavailable, "it cannot be written");
  }
  const std::lock_guard lock(state_->mutex);
  state_->followers[partition] = follower;
  return status;
}

void SharedCatalogue::Detach(store::Partition partition) {
  std::shared_ptr<Follower> follower;
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->followers.extract(partition);
    if (found.empty()) return;
    follower = found.mapped();
    state_->woken = true;
  }
  state_->changed.notify_all();
  follower->lent.TakeBack();
}

void SharedCatalogue::Change(engine::CatalogueChange change, Done done) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->changes.emplace_back(std::move(change), std::move(done));
    state_->woken = true;
  }
  state_->changed.notify_all();
}

std::uint64_t SharedCatalogue::lag() const {
  const std::lock_guard lock(state_->mutex);
  std::uint64_t lag = 0;
  for (const auto& [partition, follower] : state_->followers) {
    lag = std::max(lag, state_->end - std::min(state_->end, follower->sequence));
  }
  return lag;
}

void SharedCatalogue::Run() {
  while (true) {
    {
      std::unique_lock lock(state_->mutex);
      state_->changed.wait_for(lock, kLookAgain, [&] { return state_->woken || state_->stopping; });
      if (state_->stopping) return;
      state_->woken = false;
    }
    const auto at_end = FollowLog();
    Note(at_end.status());
    if (at_end.ok() && at_end.value()) AppendChanges();
    TellWaiting();
  }
}

void SharedCatalogue::Give(const std::shared_ptr<State>& state,
                           const std::shared_ptr<Follower>& follower,
                           std::span<const store::LogFrame> frames) {
  auto changes = ChangesOf(frames);
  const std::uint64_t last = frames.back().sequence;
  {
    const std::lock_guard lock(state->mutex);
    follower->failed = !changes.ok();
    if (!changes.ok()) return;
    follower->busy = true;
  }
  const auto done = [state, follower, last](const Status& status) {
    {
      const std::lock_guard lock(state->mutex);
      follower->busy = false;
      follower->failed = !status.ok();
      if (status.ok()) follower->sequence = last;
      state->woken = true;
    }
    state->changed.notify_all();
  };
  const bool used = follower->lent.Use([&](engine::Partition& partition) {
    partition.Follow(last, std::move(changes).value(), done);
  });
  if (!used) done(Status(StatusCode::kUnavailable, "the partition is closed"));
}

Result<bool> SharedCatalogue::FollowLog() {
  std::vector<std::shared_ptr<Follower>> idle;
  std::uint64_t from = 0;
  {
    const std::lock_guard lock(state_->mutex);
    from = state_->end;
    for (const auto& [partition, follower] : state_->followers) {
      if (follower->busy) continue;
      idle.push_back(follower);
      from = std::min(from, follower->sequence);
    }
    if (state_->followers.empty() && state_->changes.empty()) return false;
  }
  const auto page = ReadSharedPage(log_, from + 1);
  if (!page.ok()) return page.status();
  const std::span<const store::LogFrame> frames = page.value();
  const std::uint64_t last = from + frames.size();
  bool at_end = false;
  {
    const std::lock_guard lock(state_->mutex);
    at_end = last >= state_->end;
    state_->end = std::max(state_->end, last);
  }
  for (const auto& follower : idle) {
    const std::uint64_t has = follower->sequence - from;  // nobody changes it while it is idle
    if (has < frames.size()) Give(state_, follower, frames.subspan(has));
  }
  // A page that was full may not be the last one.
  return at_end && frames.empty();
}

void SharedCatalogue::AppendChanges() {
  std::vector<std::pair<engine::CatalogueChange, Done>> taken;
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(state_->mutex);
    sequence = state_->end + 1;
    const std::size_t count = std::min(state_->changes.size(), kMostTogether);
    const auto end = state_->changes.begin() + static_cast<std::ptrdiff_t>(count);
    taken.assign(std::make_move_iterator(state_->changes.begin()), std::make_move_iterator(end));
    state_->changes.erase(state_->changes.begin(), end);
  }
  if (taken.empty()) return;
  std::vector<engine::CatalogueChange> changes;
  for (const auto& [change, done] : taken) changes.push_back(change);
  const Status appended = cluster::Await<Status>([&](auto done) {
    log_.AppendShared(sequence, engine::EncodeChanges(changes), std::move(done));
  });
  const std::lock_guard lock(state_->mutex);
  state_->woken = true;  // read it, or what came before it
  if (appended.code() == StatusCode::kConflict) {
    state_->changes.insert(state_->changes.begin(), std::make_move_iterator(taken.begin()),
                           std::make_move_iterator(taken.end()));
    return;
  }
  const Clock::time_point until = Clock::now() + kFollowPatience;
  for (auto& [change, done] : taken) {
    if (appended.ok()) {
      state_->waiting.push_back({.sequence = sequence, .until = until, .done = std::move(done)});
    } else {
      done(Status(StatusCode::kUnavailable, appended.message()));
    }
  }
}

void SharedCatalogue::TellWaiting() {
  std::vector<Done> told;
  {
    const std::lock_guard lock(state_->mutex);
    const Clock::time_point now = Clock::now();
    std::erase_if(state_->waiting, [&](Waiting& each) {
      const bool all = std::ranges::all_of(state_->followers, [&](const auto& follower) {
        return follower.second->failed || follower.second->sequence >= each.sequence;
      });
      if (all || now >= each.until) told.push_back(std::move(each.done));
      return all || now >= each.until;
    });
  }
  for (const Done& done : told) done({});
}

void SharedCatalogue::Note(const Status& status) {
  if (std::exchange(in_trouble_, !status.ok()) == !status.ok() || !sink_) return;
  sink_({.level = status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
         .cause = "catalogue",
         .message = status.ok() ? "the catalogue of the loop can be read again"
                                : fmt::format("the catalogue of the loop cannot be read: {}; the "
                                              "items that are known stay, it is tried again",
                                              status.message())});
}

}  // namespace codband::server
