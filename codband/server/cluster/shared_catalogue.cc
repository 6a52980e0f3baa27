#include "codband/server/cluster/shared_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "codband/base/bytes.h"
#include "codband/cluster/await.h"
#include "codband/engine/column_clerk.h"
#include "codband/server/cluster/log_calls.h"

namespace codband::server {
namespace {

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::chrono::seconds kFollowPatience(2);
constexpr std::size_t kMostTogether = 64;  // changes in one frame
constexpr std::uint64_t kIdentityFrame = 1;
constexpr int kIdentityTries = 5;
// How columns are given out: a program from before that would let each partition do it by itself,
// and cannot read an identity that has this.
constexpr std::uint64_t kColumnsOfLoop = 1;

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
  if (dim == 0) out.U64(kColumnsOfLoop);
  return out.Take();
}

Result<LoopIdentity> LoopIdentity::Decode(std::string_view bytes) {
  ByteReader in(bytes);
  LoopIdentity identity;
  identity.dim = in.U64("number of features");
  identity.name_secret.low = in.U64("secret");
  identity.name_secret.high = in.U64("secret");
  if (identity.dim == 0 && in.U64("columns") != kColumnsOfLoop) {
    in.Fail("columns", "are given out in a way that this program does not know: use a newer one");
  }
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
      return Status::InvalidArgument(fmt::format(
          "features.dimension: is {}, but this loop {}, for good", dim,
          found.value().dim == 0 ? "gives every name a column"
                                 : fmt::format("was made for {} features", found.value().dim)));
    }
    // Of several nodes that start at once the first decides.
    const Status appended = cluster::Await<Status>(
        [&](auto done) { log.AppendShared(kIdentityFrame, fresh.Encode(), std::move(done)); });
    if (!appended.ok() && appended.code() != StatusCode::kConflict) return appended;
  }
  return Status(StatusCode::kUnavailable, "the identity of the loop cannot be written");
}

Status TakeColumns(std::span<const engine::CatalogueChange> changes,
                   features::ColumnSpace& columns) {
  for (const engine::CatalogueChange& change : changes) {
    if (!change.columns.empty() && change.first_column != columns.size()) {
      return Status::Corruption(fmt::format("columns of the loop begin at {}, expected {}",
                                            change.first_column, columns.size()));
    }
    for (const features::ColumnSpace::Addition& each : change.columns) {
      CODBAND_RETURN_IF_ERROR(columns.Append(each));
    }
  }
  return {};
}

SharedCatalogue::SharedCatalogue(store::PartitionLog& log, LogSink sink,
                                 std::optional<features::ColumnLimits> columns)
    : log_(log), sink_(std::move(sink)), limits_(columns), thread_([this] { Run(); }) {}

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
  const bool only_asks = change.put.empty() && change.deleted.empty();
  {
    const std::lock_guard lock(state_->mutex);
    if (only_asks) {
      // Every request asks until there are columns.
      for (features::ColumnSpace::Addition& each : change.columns) {
        Additions& asked = state_->asked;
        if (asked.size() < kMostAsked && std::ranges::count(asked, each) == 0) {
          asked.push_back(std::move(each));
          state_->woken = true;
        }
      }
    } else {
      state_->changes.emplace_back(std::move(change), std::move(done));
      state_->woken = true;
    }
  }
  state_->changed.notify_all();
  if (only_asks) done({});
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
    Status status = at_end.status();
    if (at_end.ok() && at_end.value()) status = AppendChanges();
    Note(status);
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
    if (state_->followers.empty() && state_->changes.empty() && state_->asked.empty()) {
      return false;
    }
  }
  const auto page = ReadSharedPage(log_, from + 1);
  if (!page.ok()) return page.status();
  const std::span<const store::LogFrame> frames = page.value();
  const std::uint64_t last = from + frames.size();
  CODBAND_RETURN_IF_ERROR(NoteColumns(frames));
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

Status SharedCatalogue::NoteColumns(std::span<const store::LogFrame> frames) {
  if (!limits_) return {};
  for (const store::LogFrame& frame : frames) {
    if (frame.sequence != space_sequence_ + 1) continue;
    const auto changes = ChangesOf({&frame, 1});
    if (!changes.ok()) return changes.status();
    CODBAND_RETURN_IF_ERROR(TakeColumns(changes.value(), space_));
    space_sequence_ = frame.sequence;
  }
  return {};
}

Status SharedCatalogue::FindColumns(std::uint64_t end) {
  while (limits_ && space_sequence_ < end) {
    const auto page = ReadSharedPage(log_, space_sequence_ + 1);
    if (!page.ok()) return page.status();
    if (page.value().empty()) break;
    CODBAND_RETURN_IF_ERROR(NoteColumns(page.value()));
  }
  if (!limits_ || space_sequence_ == end) return {};
  return Status(StatusCode::kUnavailable, "the log has another end");
}

bool SharedCatalogue::HasRoomAtOnce(std::span<const features::ColumnSpace::Addition> names) const {
  const auto fresh = std::ranges::count_if(
      names, [&](const auto& each) { return !space_.Find(each.side, each.name); });
  return space_.requested() + static_cast<std::size_t>(fresh) <= limits_->at_once;
}

// What is appended is read again: until then nothing is given.
void SharedCatalogue::GiveColumns(std::vector<engine::CatalogueChange>& changes) {
  if (!limits_) return;
  const features::ColumnSpace::Mark before = space_.mark();
  for (engine::CatalogueChange& change : changes) {
    change.first_column = space_.size();
    const Additions asked = std::exchange(change.columns, {});
    for (auto first = asked.begin(); first != asked.end();) {
      const auto last = std::find_if(first, asked.end(), [&](const auto& each) {
        return each.at_once != first->at_once || each.side != first->side ||
               features::WholeOf(each.name) != features::WholeOf(first->name);
      });
      const std::span<const features::ColumnSpace::Addition> whole(first, last);
      if (!first->at_once || HasRoomAtOnce(whole)) {
        for (const auto& each : whole) space_.AdmitLike(each, *limits_, change.columns);
      }
      first = last;
    }
    for (const engine::Item& item : change.put) {
      if (engine::IsKnownByIdAlone(item) && !engine::IdHasRoom(space_, *limits_)) continue;
      for (const auto& feature : engine::NamedFeaturesOf(item)) {
        space_.Admit(features::Side::kItem, feature.name, *limits_, change.columns);
      }
    }
  }
  space_.ReturnTo(before);
}

Status SharedCatalogue::AppendChanges() {
  std::uint64_t end = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->changes.empty() && state_->asked.empty()) return {};
    end = state_->end;
  }
  CODBAND_RETURN_IF_ERROR(FindColumns(end));
  Taken taken;
  {
    const std::lock_guard lock(state_->mutex);
    const std::size_t count = std::min(state_->changes.size(), kMostTogether);
    const auto last = state_->changes.begin() + static_cast<std::ptrdiff_t>(count);
    taken.changes.assign(std::make_move_iterator(state_->changes.begin()),
                         std::make_move_iterator(last));
    state_->changes.erase(state_->changes.begin(), last);
    taken.asked = state_->asked;
  }
  std::vector<engine::CatalogueChange> changes;
  for (const auto& [change, done] : taken.changes) changes.push_back(change);
  changes.emplace_back().columns = taken.asked;
  GiveColumns(changes);
  // What was asked for may be there by now.
  if (changes.back().columns.empty()) changes.pop_back();
  const Status appended = changes.empty() ? Status() : cluster::Await<Status>([&](auto done) {
    log_.AppendShared(end + 1, engine::EncodeChanges(changes), std::move(done));
  });
  EndAppend(end + 1, std::move(taken), appended);
  return {};
}

void SharedCatalogue::EndAppend(std::uint64_t sequence, Taken taken, const Status& appended) {
  const std::lock_guard lock(state_->mutex);
  const bool taken_by_others = appended.code() == StatusCode::kConflict;
  state_->woken |= appended.ok() || taken_by_others;  // read it, or what came before it
  if (appended.ok()) {
    // More may have been asked for behind these.
    const auto count = static_cast<std::ptrdiff_t>(taken.asked.size());
    state_->asked.erase(state_->asked.begin(), state_->asked.begin() + count);
  }
  if (taken_by_others) {
    state_->changes.insert(state_->changes.begin(), std::make_move_iterator(taken.changes.begin()),
                           std::make_move_iterator(taken.changes.end()));
    return;
  }
  const Clock::time_point until = Clock::now() + kFollowPatience;
  for (auto& [change, done] : taken.changes) {
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
