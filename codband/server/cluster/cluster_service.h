#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/server/api/api.h"
#include "codband/server/api/metrics.h"
#include "codband/server/cluster/cluster_directory.h"
#include "codband/server/cluster/destination.h"
#include "codband/server/cluster/erasures.h"
#include "codband/server/cluster/peers.h"
#include "codband/server/http/service.h"

namespace codband::server {

struct ClusterServiceOptions {
  std::size_t max_line_bytes = 0;  // as of Api
  ApiOptions api = {};
  std::size_t dim = 0;  // features of an item; 0: every name has a column
  // Beside what the service knows itself; may be empty.
  std::function<void(ClusterFacts&)> add_facts = {};
  // Whether anything is left of a user who was forgotten. May block.
  std::function<Result<ErasureProgress>(const ErasureId& id)> look_at_erasure = {};
};

// The API of a node. Requests for a partition that this node has are answered, others are passed on
// to the node that has it, once. While nobody has it they wait: a partition is handed over in a
// moment, and taken over in some seconds. Streamed bodies and what is not JSON are not passed on:
// they get 503 with the address of a node to ask.
class ClusterService final : public Service {
 public:
  // The directory outlives it.
  ClusterService(const ClusterDirectory& directory, ClusterServiceOptions options);
  ~ClusterService() override;

  // The engine that answers for a partition from now on; nullptr: none. Returns once nobody uses
  // the one before any more. One thread at a time for each partition.
  void SetEngine(store::Partition partition, engine::Engine* engine);

  const Router& router() const override;
  void Start(std::size_t workers) override;
  void BeginStop() override { stopping_ = true; }
  void Stop() override;
  Awaitable<void> Handle(Call& call) override;
  std::unique_ptr<BodyStream> OpenStream(const Call& call,
                                         std::optional<std::uint64_t> announced_bytes) override;
  void SetError(Reply& reply, const HttpError& error) const override;

 private:
  struct Served;
  class HeldReply;
  class HeldBody;
  class RefusedBody;
  using Engines = std::map<store::Partition, std::shared_ptr<Served>>;
  // What came of one try. kNotNow: nothing has happened, and another try may succeed.
  enum class Tried { kAnswered, kNotNow };

  std::shared_ptr<Served> Find(store::Partition partition) const;
  Engines All() const;

  Destination DestinationOf(const Call& call);
  Awaitable<void> Deliver(Call& call, const Destination& destination);
  Awaitable<Tried> Try(Call& call, const Destination& destination);
  Awaitable<Tried> Answer(Call& call, store::Partition partition, std::shared_ptr<Served> served);
  Awaitable<Tried> TryEvent(Call& call, const Destination& destination);
  Awaitable<Tried> TryOthersForEvent(Call& call, const Destination& destination,
                                     std::vector<bool> looked_into);
  Awaitable<Tried> Forward(Call& call, const Destination& destination, const std::string& url);
  Awaitable<void> Report(Call& call);
  // Of the partition whose engine this is.
  Awaitable<void> TellErasure(Call& call, store::Partition partition, engine::Engine& engine);
  Awaitable<void> DeliverHistory(Call& call);
  void SetMisdirected(Reply& reply) const;
  void SetNotHere(const Call& call, const std::string& owner) const;

  const ClusterDirectory& directory_;
  const ClusterServiceOptions options_;
  std::size_t workers_ = 0;
  std::vector<JsonParser> parsers_;  // one for each worker
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> forwarded_{0};
  boost::asio::thread_pool blocking_;          // what would block a worker
  std::vector<std::unique_ptr<Peers>> peers_;  // of each worker, from its first use on
  mutable std::mutex mutex_;                   // guards what follows
  // Shared with the requests that they answer.
  Engines engines_;
};

}  // namespace codband::server
