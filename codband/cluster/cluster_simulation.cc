#include "codband/cluster/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codband/base/bytes.h"

namespace codband::cluster {
namespace {

constexpr std::uint64_t kPurpose = 0x636c75;
constexpr std::int64_t kLeaseMs = 3000;
constexpr std::int64_t kFaultsMs = 30'000;
constexpr std::int64_t kJumpMs = 10'000;
// Until everything must be as if nothing had happened. A lease may last longer by what the clock of
// the record has jumped back.
constexpr std::int64_t kHealMs = 40'000;
constexpr std::int64_t kClientTimeoutMs = 2000;
constexpr std::size_t kClientsInPart = 3;
// What a standby that takes over lacks when all went well.
constexpr std::uint64_t kNearly = 2;
// And how far it may be behind while clients go on: some looks at the record.
constexpr std::uint64_t kLagFrames = 400;

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

// A machine of the cluster: its disk stays when the process is killed.
struct ClusterSimulation::Machine {
  std::string name;
  ToyDisk disk;
  // Of the process; nothing if it does not run. In the order of what they need.
  std::unique_ptr<ProcessTimers> timers;
  std::unique_ptr<store::SimulatedLog> log;
  std::unique_ptr<ToyHost> host;
  std::unique_ptr<Node> node;
};

struct ClusterSimulation::Client {
  std::uint64_t id = 0;
  store::Partition partition = 0;
  std::uint64_t command = 1;       // that is being asked for
  std::uint64_t acknowledged = 0;  // up to here
  std::uint64_t request = 0;       // numbers the tries
};

ClusterSimulation::ClusterSimulation(std::uint64_t seed)
    : seed_(seed), random_({.seed = seed, .event = 0}, kPurpose) {
  partitions_ = static_cast<store::Partition>(1 + Below(6));
  record_ = std::make_unique<store::SimulatedRecord>(partitions_, time_);
  const std::size_t nodes = 1 + Below(4);
  for (std::size_t i = 0; i < nodes; ++i) {
    machines_.push_back(std::make_unique<Machine>());
    machines_.back()->name = fmt::format("n{}", i);
    StartNode(i);
  }
  const std::size_t clients = 2 + Below(8);
  for (std::size_t i = 0; i < clients; ++i) {
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->id = i;
    clients_.back()->partition = static_cast<store::Partition>(Below(partitions_));
    SendNext(i);
  }
}

ClusterSimulation::~ClusterSimulation() {
  for (std::size_t i = 0; i < machines_.size(); ++i) KillNode(i, true);
}

void ClusterSimulation::StartNode(std::size_t index) {
  Machine& machine = *machines_[index];
  machine.timers = std::make_unique<ProcessTimers>(time_);
  machine.log = std::make_unique<store::SimulatedLog>(
      *record_, time_, EventKey{.seed = seed_, .event = ++processes_});
  machine.host =
      std::make_unique<ToyHost>(*machine.log, *machine.timers, machine.disk, 5 + Below(20));
  machine.node = std::make_unique<Node>(*machine.log, *machine.timers, *machine.host,
                                        NodeOptions{.name = machine.name,
                                                    .url = machine.name,
                                                    .instance = std::to_string(processes_),
                                                    .lease_ms = kLeaseMs});
  machine.host->on_fenced = [&node = *machine.node](const store::Claim& claim) {
    node.NoteBroken(claim, true);
  };
  machine.host->on_open = [this](std::uint64_t lacked) {
    if (lacked <= kNearly) ++counts_.ready;
  };
  machine.host->on_anew = [this] { ++counts_.anew; };
  machine.node->Start();
}

void ClusterSimulation::KillNode(std::size_t index, bool with_disk) {
  Machine& machine = *machines_[index];
  if (machine.node == nullptr) return;
  machine.log->Crash();
  machine.node.reset();
  machine.host.reset();
  machine.log.reset();
  machine.timers.reset();
  if (with_disk) machine.disk.clear();
}

// A client asks a node that it picks at random; that one serves, or asks the owner that it knows
// of.
void ClusterSimulation::SendNext(std::size_t index) {
  Client& client = *clients_[index];
  const std::uint64_t request = ++client.request;
  const auto again = [this, index, request](std::int64_t delay_ms) {
    time_.After(delay_ms, [this, index, request] {
      if (clients_[index]->request == request) SendNext(index);
    });
  };
  const auto answered = [this, index, request, again](const Status& status) {
    Client& asked = *clients_[index];
    if (asked.request != request) return;  // it has given up on this one
    if (!status.ok()) {
      ++counts_.refused;
      return again(static_cast<std::int64_t>(20 + Below(200)));
    }
    asked.acknowledged = asked.command++;
    ++counts_.acknowledged;
    again(static_cast<std::int64_t>(Below(300)));
  };
  Machine* target = machines_[Below(machines_.size())].get();
  if (target->node != nullptr && !target->node->serves(client.partition) &&
      !target->node->map().partitions.empty()) {
    const std::string owner = target->node->map().UrlOf(client.partition);
    for (const auto& machine : machines_) {
      if (machine->name == owner) target = machine.get();
    }
  }
  const auto arrives = static_cast<std::int64_t>(Below(10));
  time_.After(arrives, [this, target, index, request, command = client.command, answered] {
    if (target->node == nullptr || clients_[index]->request != request) return;
    // The request is in the process's socket: it reads it when it runs.
    target->timers->After(0, [target, partition = clients_[index]->partition,
                              id = clients_[index]->id, command, answered] {
      if (target->node == nullptr) return;
      target->host->Submit(partition, id, command, answered);
    });
  });
  again(kClientTimeoutMs);
}

void ClusterSimulation::InjectFault() {
  Machine& machine = *machines_[Below(machines_.size())];
  const auto index = static_cast<std::size_t>(
      std::ranges::find_if(machines_, [&](const auto& each) { return each.get() == &machine; }) -
      machines_.begin());
  if (machine.node == nullptr) return;
  const auto lasts = static_cast<std::int64_t>(Below(6000));
  switch (Below(6)) {
    case 0:
      ++counts_.crashes;
      KillNode(index, Below(3) == 0);
      time_.After(lasts, [this, index] { StartNode(index); });
      return;
    case 1:
      ++counts_.stops;
      machine.timers->stopped_until_ms = time_.now_ms() + lasts;
      return;
    case 2:
      ++counts_.cuts;
      machine.log->faults.cut = true;
      time_.After(lasts, [&machine, process = machine.log.get()] {
        if (machine.log.get() == process) process->faults.cut = false;
      });
      return;
    case 3:
      machine.log->faults.lost = 0.3 * random_.Uniform();
      machine.log->faults.slow = 0.3 * random_.Uniform();
      machine.log->faults.most_slow_ms = static_cast<std::int64_t>(Below(5000));
      return;
    case 4:
      ++counts_.jumps;
      record_->JumpClock(static_cast<std::int64_t>(Below(2 * kJumpMs)) - kJumpMs);
      return;
    default:
      ++counts_.drains;
      machine.node->Drain([this, index, process = machine.log.get()] {
        if (machines_[index]->log.get() != process) return;
        time_.After(1, [this, index, process] {
          if (machines_[index]->log.get() != process) return;
          KillNode(index, false);
          StartNode(index);
        });
      });
  }
}

void ClusterSimulation::ScheduleFaults() {
  time_.After(static_cast<std::int64_t>(200 + Below(3000)), [this] {
    if (faults_over_) return;
    InjectFault();
    ScheduleFaults();
  });
}

std::vector<std::string> ClusterSimulation::Run() {
  ScheduleFaults();
  time_.RunFor(kFaultsMs);
  faults_over_ = true;
  for (const auto& machine : machines_) {
    if (machine->log != nullptr) machine->log->faults = {};
  }
  time_.RunFor(kHealMs);
  std::vector<std::uint64_t> before;
  for (const auto& client : clients_) before.push_back(client->acknowledged);
  time_.RunFor(5000);
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i]->acknowledged == before[i]) {
      problems_.push_back(fmt::format("client {} gets no answer although all is well", i));
    }
  }
  Check();
  CheckStandbys();
  return problems_;
}

// All is well: every partition has a standby, if there is a node for it, that has nearly all of it.
void ClusterSimulation::CheckStandbys() {
  const auto states = record_->ListPartitions();
  const auto nodes = record_->ListNodes();
  for (const store::PartitionState& state : states) {
    bool followed = false;
    std::size_t others = 0;
    for (const store::NodeState& node : nodes) {
      if (node.lease_left_ms <= 0 || node.draining || node.name == state.owner) continue;
      ++others;
      for (const store::Followed& each : node.follows) {
        if (each.partition != state.partition) continue;
        followed = true;
        if (each.sequence + kLagFrames >= state.last_sequence) continue;
        problems_.push_back(fmt::format("partition {}: {} has followed up to frame {} of {}",
                                        state.partition, node.name, each.sequence,
                                        state.last_sequence));
      }
    }
    if (followed || others == 0 || state.last_sequence < 2) continue;
    problems_.push_back(fmt::format("partition {}: nobody follows it", state.partition));
  }
}

void ClusterSimulation::Check() {
  for (store::Partition partition = 0; partition < partitions_; ++partition) {
    const auto& history = record_->History(partition);
    std::map<std::uint64_t, std::uint64_t> digests{{0, 0}};
    ToyState replayed;
    std::uint64_t epoch = 0;
    for (std::size_t i = 0; i < history.size(); ++i) {
      if (history[i].sequence != i + 1 || history[i].epoch < epoch) {
        problems_.push_back(
            fmt::format("partition {}: frame {} has sequence {} and epoch {} after "
                        "epoch {}",
                        partition, i + 1, history[i].sequence, history[i].epoch, epoch));
      }
      if (history[i].epoch > epoch) ++counts_.takeovers;
      epoch = history[i].epoch;
      static_cast<void>(replayed.Apply(history[i]));
      digests[i + 1] = replayed.digest();
    }
    if (replayed.disorders() != 0) {
      problems_.push_back(fmt::format("partition {}: a command is missing", partition));
    }
    for (const auto& client : clients_) {
      if (client->partition == partition && client->acknowledged > 0 &&
          !replayed.Did(client->id, client->acknowledged)) {
        problems_.push_back(fmt::format("client {}: command {} was acknowledged and is lost",
                                        client->id, client->acknowledged));
      }
    }
    for (const auto& machine : machines_) {
      const ToyState& state = machine->disk[partition];
      // One that is being loaded is empty still.
      if (state.position().sequence > 0 && state.digest() != digests[state.position().sequence]) {
        problems_.push_back(fmt::format("partition {}: {} has another state at frame {}", partition,
                                        machine->name, state.position().sequence));
      }
    }
    if (record_->ListPartitions()[partition].first_sequence > 1) ++counts_.checkpoints;
  }
}

}  // namespace codband::cluster
