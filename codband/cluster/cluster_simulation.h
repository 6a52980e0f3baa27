#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/random.h"
#include "codband/base/timers.h"
#include "codband/cluster/node.h"
#include "codband/cluster/partition_map.h"
#include "codband/cluster/toy_host.h"
#include "codband/store/simulated_log.h"
#include "codband/store/simulated_record.h"

namespace codband::cluster {

// A whole cluster in one thread, by a seed: nodes, clients and a record, and everything that can
// happen to them. After the faults are over it must heal by itself.
class ClusterSimulation {
 public:
  explicit ClusterSimulation(std::uint64_t seed);
  ~ClusterSimulation();

  // Runs it, and returns what is wrong; nothing if all is well.
  std::vector<std::string> Run();

  struct Counts {
    std::uint64_t acknowledged = 0, refused = 0, crashes = 0, stops = 0, cuts = 0, jumps = 0,
                  drains = 0, takeovers = 0, checkpoints = 0, ready = 0, anew = 0;
  };
  Counts counts() const { return counts_; }

 private:
  struct Machine;
  struct Client;

  void StartNode(std::size_t index);
  void KillNode(std::size_t index, bool with_disk);
  void InjectFault();
  void ScheduleFaults();
  void SendNext(std::size_t client);
  void Check();
  void CheckStandbys();
  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }

  const std::uint64_t seed_;
  RandomStream random_;
  VirtualTime time_;
  std::unique_ptr<store::SimulatedRecord> record_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Client>> clients_;
  store::Partition partitions_;
  bool faults_over_ = false;
  std::uint64_t processes_ = 0;
  std::vector<std::string> problems_;
  Counts counts_;
};

}  // namespace codband::cluster
