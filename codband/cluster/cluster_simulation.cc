#include "codband/cluster/cluster_simulation.h"

#include <fmt/format.h>

#include <algorithm>

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
// What a standby that takes over lacks when all went well.
constexpr std::uint64_t kNearly = 2;
// And how far it may be behind while clients go on: some looks at the record.
constexpr std::uint64_t kLagFrames = 400;

}  // namespace

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
