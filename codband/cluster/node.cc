#include "codband/cluster/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codband/base/version.h"

namespace codband::cluster {
namespace {

// Signs of life are given so often in the time of a lease.
constexpr std::int64_t kSigns = 4;
// What a living node follows is left to it for this part of the time of a lease.
constexpr std::int64_t kHeadStart = 3;

}  // namespace

Node::Node(store::PartitionLog& log, Timers& timers, PartitionHost& host, NodeOptions options)
    : log_(log), timers_(timers), host_(host), options_(std::move(options)) {}

Node::~Node() { *alive_ = false; }

template <typename T>
std::function<void(T)> Node::Then(std::function<void(T&)> next) {
  return [&timers = timers_, alive = alive_, next = std::move(next)](T value) {
    timers.After(0, [alive, next, value = std::make_shared<T>(std::move(value))] {
      if (*alive) next(*value);
    });
  };
}

void Node::Start() {
  log_.Watch([&timers = timers_, alive = alive_, this] {
    timers.After(0, [alive, this] {
      if (*alive && registered_) Look();
    });
  });
  Tick();
}

void Node::Tick() {
  KeepAlive();
  if (registered_) {
    Renew();
    Look();
  }
  timers_.After(options_.lease_ms / kSigns, [alive = alive_, this] {
    if (*alive) Tick();
  });
}

void Node::Note(const Status& status) { problem_ = status.ok() ? "" : status.message(); }

void Node::Tell(LogLevel level, std::string message) const {
  if (options_.log) {
    options_.log({.level = level, .cause = "cluster", .message = std::move(message)});
  }
}

store::NodeState Node::Self() const {
  store::NodeState self{.name = options_.name,
                        .url = options_.url,
                        .instance = options_.instance,
                        .version = std::string(kVersion),
                        .draining = draining_,
                        .standby = options_.standby};
  for (const store::Partition partition : followed_) {
    self.follows.push_back({.partition = partition, .sequence = host_.FollowedTo(partition)});
  }
  return self;
}

bool Node::IsLate(std::int64_t since_ms) const {
  return timers_.now_ms() - since_ms > options_.lease_ms / kSigns;
}

void Node::KeepAlive() {
  if (draining_ || std::exchange(keeping_alive_, true)) return;
  log_.KeepNode(
      Self(), options_.lease_ms, Then<Status>([this, since_ms = timers_.now_ms()](Status& status) {
        keeping_alive_ = false;
        const bool told = !problem_.empty();
        Note(status);
        if (status.code() == StatusCode::kConflict && !told) {
          Tell(LogLevel::kWarning,
               fmt::format("another node called '{}' is alive: this one waits until it is "
                           "gone; give each node a name of its own",
                           options_.name));
        }
        if (status.ok() && IsLate(since_ms)) KeepAlive();
        if (!status.ok() || draining_ || std::exchange(registered_, true)) return;
        Tell(LogLevel::kInfo, fmt::format("node '{}' has joined", options_.name));
        Look();
      }));
}

void Node::Renew() {
  if (renewing_) return;
  std::vector<store::Claim> claims;
  for (const auto& [partition, held] : held_) {
    if (held.phase != Held::Phase::kClosing) claims.push_back(held.claim);
  }
  if (claims.empty()) return;
  renewing_ = true;
  log_.Renew(
      std::move(claims), options_.lease_ms,
      Then<Result<std::vector<store::Claim>>>([this, since_ms = timers_.now_ms()](auto& over) {
        renewing_ = false;
        Note(over.status());
        if (!over.ok()) return;
        for (const store::Claim& claim : over.value()) NoteBroken(claim, true);
        if (IsLate(since_ms)) Renew();
      }));
}

void Node::NoteBroken(const store::Claim& claim, bool fenced) {
  const auto held = held_.find(claim.partition);
  if (held == held_.end() || !(held->second.claim == claim)) return;
  if (held->second.phase == Held::Phase::kClosing) return;
  Tell(LogLevel::kWarning,
       fenced ? fmt::format("partition {} was taken over by another node", claim.partition)
              : fmt::format("partition {} is given up, as its local copy is in trouble",
                            claim.partition));
  // Others come first.
  if (!fenced) not_before_ms_[claim.partition] = timers_.now_ms() + options_.lease_ms;
  Close(claim.partition, fenced);
}

void Node::Look() {
  if (std::exchange(looking_, true)) return;
  log_.ListNodes(Then<Result<std::vector<store::NodeState>>>([this](auto& nodes) {
    if (!nodes.ok()) {
      looking_ = false;
      return Note(nodes.status());
    }
    map_.nodes = std::move(nodes).value();
    log_.ListPartitions(Then<Result<std::vector<store::PartitionState>>>([this](auto& states) {
      looking_ = false;
      Note(states.status());
      if (!states.ok()) return;
      map_.partitions = std::move(states).value();
      if (options_.on_map) options_.on_map(map_);
      LookWhenALeaseEnds();
      Balance();
      FollowOthers();
    }));
  }));
}

// One that is not prolonged ends before the next tick: what it leaves is taken at once.
void Node::LookWhenALeaseEnds() {
  const std::int64_t tick_ms = options_.lease_ms / kSigns;
  std::int64_t soonest_ms = tick_ms;
  const auto consider = [&](const std::string& of, std::int64_t left_ms) {
    if (of != options_.name && left_ms > 0) soonest_ms = std::min(soonest_ms, left_ms);
  };
  for (const store::NodeState& node : map_.nodes) consider(node.name, node.lease_left_ms);
  for (const store::PartitionState& state : map_.partitions) {
    consider(state.owner, state.lease_left_ms);
  }
  if (soonest_ms == tick_ms) return;
  timers_.After(soonest_ms + 1, [alive = alive_, this] {
    if (*alive && registered_) Look();
  });
}

// A frame that has a successor is final: its owner was told so before it appended the next one. The
// last one may still be lost with a database that fails over.
void Node::FollowOthers() {
  if (draining_ || !options_.standby) return;
  const std::vector<store::Partition> planned = PlanStandbys(map_, options_.name);
  std::set<store::Partition> following;
  for (const store::PartitionState& state : map_.partitions) {
    const store::Partition partition = state.partition;
    if (held_.contains(partition)) continue;
    const bool mine = std::ranges::binary_search(planned, partition);
    // It goes on until another one has begun.
    const bool kept = followed_.contains(partition) && !map_.IsFollowed(partition, options_.name);
    if ((!mine && !kept) || state.last_sequence < 2) continue;
    following.insert(partition);
    host_.Follow(partition, state.last_sequence - 1);
  }
  for (const store::Partition partition : followed_) {
    if (!following.contains(partition) && !held_.contains(partition)) host_.EndFollow(partition);
  }
  followed_ = std::move(following);
}

// What is not to be taken now. The head start is measured here, from when the lease was first seen
// to be over: it ends, whatever the one that follows does. What was given up is for who lacks it.
std::vector<store::Partition> Node::NotNow() {
  const std::int64_t now_ms = timers_.now_ms();
  const std::int64_t head_start_ms = options_.lease_ms / kHeadStart;
  std::vector<store::Partition> all;
  for (const auto& [partition, time_ms] : not_before_ms_) {
    if (now_ms < time_ms) all.push_back(partition);
  }
  for (const auto& [partition, each] : held_) {
    if (each.phase == Held::Phase::kClosing) all.push_back(partition);
  }
  for (const store::PartitionState& state : map_.partitions) {
    if (state.lease_left_ms > 0 || state.owner.empty()) {
      over_since_ms_.erase(state.partition);
      continue;
    }
    const auto [since, first] = over_since_ms_.emplace(state.partition, now_ms);
    if (followed_.contains(state.partition) || state.wanted == options_.name) continue;
    if (now_ms >= since->second + head_start_ms) continue;
    if (!map_.IsFollowed(state.partition, options_.name)) continue;
    all.push_back(state.partition);
    if (!first) continue;
    timers_.After(head_start_ms, [alive = alive_, this] {
      if (*alive && registered_) Look();
    });
  }
  return all;
}

void Node::Balance() {
  if (draining_) return;
  std::vector<store::Partition> held;
  bool moving = false;
  for (const auto& [partition, each] : held_) {
    moving |= each.phase != Held::Phase::kServing;
    if (each.phase != Held::Phase::kClosing) held.push_back(partition);
  }
  const Plan plan = MakePlan(map_, options_.name, held, NotNow());
  if (!plan.take.empty() && !std::exchange(taking_, true)) Take(plan.take[0]);
  // One at a time: what is given up must first be served elsewhere.
  if (!plan.give.empty() && !moving) {
    // What is wanted elsewhere is not taken anyway, and may soon be wanted here again.
    if (map_.partitions[plan.give[0]].wanted.empty()) {
      not_before_ms_[plan.give[0]] = timers_.now_ms() + 2 * options_.lease_ms;
    }
    Close(plan.give[0], false);
  }
}

void Node::Take(store::Partition partition) {
  log_.Acquire(
      partition, options_.name, options_.lease_ms,
      Then<Result<store::PartitionState>>(
          [this, partition, since_ms = timers_.now_ms()](auto& state) {
            taking_ = false;
            if (draining_) {
              if (!state.ok()) return LeaveIfDone();
              return GiveUp(state.value().claim());
            }
            if (!state.ok()) {
              // Somebody else was faster, or nobody knows: the next look tells.
              if (state.status().code() != StatusCode::kConflict) return Note(state.status());
              not_before_ms_[partition] = timers_.now_ms() + options_.lease_ms / kSigns;
              return Look();
            }
            const store::Claim claim = state.value().claim();
            held_[partition] = {.claim = claim};
            if (IsLate(since_ms)) Renew();
            followed_.erase(partition);
            Tell(LogLevel::kInfo, fmt::format("takes partition {}, epoch {}, {} frames", partition,
                                              claim.epoch, state.value().last_sequence));
            host_.Open(state.value(),
                       Then<Status>([this, claim](Status& status) { Opened(claim, status); }));
            Look();
          }));
}

void Node::Opened(const store::Claim& claim, const Status& status) {
  const auto held = held_.find(claim.partition);
  if (held == held_.end() || !(held->second.claim == claim) ||
      held->second.phase != Held::Phase::kOpening) {
    return;
  }
  if (status.ok()) {
    held->second.phase = Held::Phase::kServing;
    Tell(LogLevel::kInfo, fmt::format("serves partition {}", claim.partition));
    return Look();
  }
  Tell(LogLevel::kError,
       fmt::format("cannot serve partition {}: {}; it is given up and tried again", claim.partition,
                   status.message()));
  not_before_ms_[claim.partition] = timers_.now_ms() + options_.lease_ms;
  Close(claim.partition, store::IsFenced(status));
}

void Node::Close(store::Partition partition, bool fenced) {
  Held& held = held_.at(partition);
  if (held.phase == Held::Phase::kClosing) return;
  held.phase = Held::Phase::kClosing;
  const store::Claim claim = held.claim;
  const auto closed = Then<Status>([this, claim, fenced](Status&) { Closed(claim, fenced); });
  host_.Close(partition, fenced, [closed] { closed(Status()); });
}

void Node::Closed(const store::Claim& claim, bool fenced) {
  held_.erase(claim.partition);
  fenced ? LeaveIfDone() : GiveUp(claim);
}

// If the answer is lost the lease runs out.
void Node::GiveUp(const store::Claim& claim) {
  ++releasing_;
  log_.Release(claim, Then<Status>([this](Status&) {
                 --releasing_;
                 LeaveIfDone();
               }));
}

void Node::Drain(std::function<void()> done) {
  draining_ = true;
  drained_ = std::move(done);
  for (const store::Partition partition : std::exchange(followed_, {})) host_.EndFollow(partition);
  // So that others take what it gives up as soon as it does.
  if (registered_) log_.KeepNode(Self(), options_.lease_ms, [](const Status&) {});
  std::vector<store::Partition> all;
  for (const auto& [partition, held] : held_) all.push_back(partition);
  for (const store::Partition partition : all) Close(partition, false);
  LeaveIfDone();
}

void Node::LeaveIfDone() {
  if (!draining_ || !held_.empty() || taking_ || releasing_ > 0 || !drained_) return;
  const auto done = std::exchange(drained_, {});
  registered_ = false;
  log_.RemoveNode(options_.name, options_.instance, Then<Status>([done](Status&) { done(); }));
}

bool Node::serves(store::Partition partition) const {
  const auto held = held_.find(partition);
  return held != held_.end() && held->second.phase == Held::Phase::kServing;
}

}  // namespace codband::cluster
