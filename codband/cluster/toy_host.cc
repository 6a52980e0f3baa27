#include "codband/cluster/toy_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "codband/base/bytes.h"
#include "codband/base/check.h"
#include "codband/base/random.h"

namespace codband::cluster {
namespace {

constexpr std::size_t kClientsInPart = 3;

}  // namespace

void ProcessTimers::After(std::int64_t delay_ms, std::function<void()> task) {
  time_.After(delay_ms, [this, alive = alive_, task = std::move(task)] {
    if (!*alive) return;
    // A process that is stopped finds everything late, in its order.
    if (time_.now_ms() < stopped_until_ms) return After(stopped_until_ms - time_.now_ms(), task);
    task();
  });
}

Status ToyState::Clear() {
  *this = {};
  return {};
}

Status ToyState::LoadPart(std::string_view part) {
  ByteReader in(part);
  digest_ = in.U64("digest");
  disorders_ = in.U64("disorders");
  const std::size_t count = in.Count("clients", 16);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t client = in.U64("client");
    last_[client] = in.U64("command");
  }
  in.ExpectEnd();
  return in.status();
}

Status ToyState::FinishLoad(const Position& position) {
  position_ = position;
  return {};
}

std::string ToyState::FrameOf(std::uint64_t client, std::uint64_t command) {
  ByteWriter out;
  out.U64(client);
  out.U64(command);
  return out.Take();
}

Status ToyState::Apply(const store::LogFrame& frame) {
  if (frame.sequence != position_.sequence + 1) {
    return Status::Corruption(fmt::format("frame {} after {}", frame.sequence, position_.sequence));
  }
  ByteReader in(frame.bytes);
  const std::uint64_t client = in.U64("client");
  const std::uint64_t command = in.U64("command");
  CODBAND_RETURN_IF_ERROR(in.status());
  // Done already: a client has asked twice.
  if (command > last_[client]) {
    if (command != last_[client] + 1) ++disorders_;
    last_[client] = command;
  }
  digest_ = RandomStream({.seed = digest_, .event = client}, command)();
  position_ = {.sequence = frame.sequence, .epoch = frame.epoch};
  return {};
}

bool ToyState::Did(std::uint64_t client, std::uint64_t command) const {
  const auto found = last_.find(client);
  return found != last_.end() && found->second >= command;
}

Checkpoint ToyState::MakeCheckpoint() const {
  Checkpoint checkpoint{.position = position_};
  for (auto client = last_.begin(); client != last_.end() || checkpoint.parts.empty();) {
    ByteWriter out;
    out.U64(digest_);
    out.U64(disorders_);
    const auto left = static_cast<std::size_t>(std::distance(client, last_.end()));
    const std::size_t count = std::min(left, kClientsInPart);
    out.U64(count);
    for (std::size_t i = 0; i < count; ++i, ++client) {
      out.U64(client->first);
      out.U64(client->second);
    }
    checkpoint.parts.push_back(out.Take());
  }
  return checkpoint;
}

Post ToyHost::PostHere() {
  return [this, alive = alive_](std::function<void()> task) {
    timers_.After(0, [alive, task = std::move(task)] {
      if (*alive) task();
    });
  };
}

void ToyHost::Follow(store::Partition partition, std::uint64_t last) {
  Standby& standby = standbys_[partition];
  standby.ended = false;
  if (!standby.reading && disk_[partition].position().sequence < last) ReadOn(partition, last);
}

void ToyHost::ReadOn(store::Partition partition, std::uint64_t last) {
  Standby& standby = standbys_[partition];
  standby.reading = true;
  const auto done = [this, alive = alive_, partition](const Status& status) {
    if (!*alive) return;
    Standby& read = standbys_[partition];
    read.reading = false;
    if (read.caught_up && status.code() == StatusCode::kNotFound && on_anew) on_anew();
    read.caught_up = status.ok();
    const auto then = std::exchange(read.then, {});
    if (read.ended || then) standbys_.erase(partition);
    if (then) then();
  };
  ToyState& state = disk_[partition];
  if (standby.caught_up) return FollowLog(log_, partition, state, last, PostHere(), done);
  CatchUp(log_, partition, state, last, PostHere(), done);
}

void ToyHost::EndFollow(store::Partition partition) {
  const auto standby = standbys_.find(partition);
  if (standby == standbys_.end()) return;
  standby->second.ended = true;
  if (!standby->second.reading) standbys_.erase(standby);
}

std::uint64_t ToyHost::FollowedTo(store::Partition partition) const {
  return disk_[partition].position().sequence;
}

void ToyHost::Open(const store::PartitionState& state, std::function<void(Status)> done) {
  served_[state.partition] = {.claim = state.claim(), .appending = true};  // the replica is in use
  const auto standby = standbys_.find(state.partition);
  if (standby != standbys_.end() && standby->second.reading) {
    standby->second.then = [this, state, done] { OpenNow(state, done); };
    return;
  }
  standbys_.erase(state.partition);
  OpenNow(state, done);
}

void ToyHost::OpenNow(const store::PartitionState& state, const std::function<void(Status)>& done) {
  const store::Claim claim = state.claim();
  const std::uint64_t has = disk_[claim.partition].position().sequence;
  if (on_open) on_open(state.last_sequence - std::min(has, state.last_sequence));
  CatchUp(log_, claim.partition, disk_[claim.partition], state.last_sequence, PostHere(),
          [this, alive = alive_, claim, done](const Status& status) {
            if (!*alive) return;
            Served& served = served_[claim.partition];
            served.appending = false;
            if (served.closed) return EndIfIdle(claim.partition);
            served.open = status.ok();
            done(status);
          });
}

void ToyHost::Close(store::Partition partition, bool, std::function<void()> done) {
  Served& served = served_[partition];
  served.open = false;
  served.closed = std::move(done);
  for (Command& command : std::exchange(served.queue, {})) {
    command.done({StatusCode::kUnavailable, "the partition moves"});
  }
  EndIfIdle(partition);
}

void ToyHost::EndIfIdle(store::Partition partition) {
  Served& served = served_[partition];
  if (served.appending || served.storing || !served.closed) return;
  const auto closed = std::exchange(served.closed, {});
  served_.erase(partition);
  closed();
}

void ToyHost::Submit(store::Partition partition, std::uint64_t client, std::uint64_t command,
                     Done done) {
  const auto served = served_.find(partition);
  if (served == served_.end() || !served->second.open) {
    return done({StatusCode::kUnavailable, "not here"});
  }
  served->second.queue.push_back({.client = client, .command = command, .done = std::move(done)});
  Next(partition);
}

void ToyHost::Next(store::Partition partition) {
  Served& served = served_[partition];
  if (served.appending || served.queue.empty() || !served.open) return;
  const ToyState& state = disk_[partition];
  Command command = std::move(served.queue.front());
  served.queue.erase(served.queue.begin());
  if (state.Did(command.client, command.command)) {
    command.done(Status());
    return Next(partition);
  }
  served.appending = true;
  const store::LogFrame frame{.sequence = state.position().sequence + 1,
                              .epoch = served.claim.epoch,
                              .bytes = ToyState::FrameOf(command.client, command.command)};
  log_.Append(served.claim, frame.sequence, frame.bytes,
              [this, alive = alive_, partition, command, frame](const Status& status) {
                timers_.After(0, [this, alive, partition, command, frame, status] {
                  if (*alive) Answered(partition, command, frame, status);
                });
              });
}

void ToyHost::Answered(store::Partition partition, const Command& command,
                       const store::LogFrame& frame, const Status& status) {
  Served& served = served_[partition];
  served.appending = false;
  if (status.ok()) {
    const Status applied = disk_[partition].Apply(frame);
    CODBAND_CHECK(applied.ok());
    command.done(Status());
  } else {
    command.done({StatusCode::kUnavailable, status.message()});
  }
  if (store::IsFenced(status)) {
    served.open = false;
    for (Command& waiting : std::exchange(served.queue, {})) waiting.done(status);
    // The node closes it, after which `served` is gone.
    if (!served.closed) return on_fenced(store::Claim(served.claim));
  }
  if (served.closed) return EndIfIdle(partition);
  StoreCheckpointIfDue(partition);
  Next(partition);
}

void ToyHost::StoreCheckpointIfDue(store::Partition partition) {
  Served& served = served_[partition];
  const ToyState& state = disk_[partition];
  if (served.storing || state.position().sequence < served.checkpoint + between_) return;
  served.storing = true;
  Checkpoint checkpoint = state.MakeCheckpoint();
  checkpoint.attempt = ++served.attempts;
  const std::uint64_t sequence = checkpoint.position.sequence;
  StoreCheckpoint(log_, served.claim, std::move(checkpoint),
                  [this, alive = alive_, partition, sequence](const Status& status) {
                    if (!*alive) return;
                    Served& stored = served_[partition];
                    stored.storing = false;
                    if (status.ok()) stored.checkpoint = sequence;
                    EndIfIdle(partition);
                  });
}

}  // namespace codband::cluster
