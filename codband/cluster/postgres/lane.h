#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/cluster/postgres/connection.h"
#include "codband/store/partition_log.h"

namespace codband::cluster {

// A connection that is made anew when it was lost. After a failure it waits a moment before the
// next try: meanwhile everybody gets the reason at once. Used by one thread.
class LastingConnection {
 public:
  LastingConnection(Connection::Options options, const std::atomic<bool>& stop, LogSink log)
      : options_(std::move(options)), stop_(stop), log_(std::move(log)) {}

  Result<Connection*> Get();

 private:
  Connection::Options options_;
  const std::atomic<bool>& stop_;
  LogSink log_;
  std::unique_ptr<Connection> connection_;
  Status failure_;
  double next_try_seconds_ = 0;
};

// A thread with a connection that does one thing after the other.
class Lane {
 public:
  // Gets the connection, or why there is none.
  using Job = std::function<void(const Result<Connection*>&)>;

  Lane(const Connection::Options& options, LogSink log);
  // Does what is waiting without a connection: it is refused.
  ~Lane();

  void Submit(Job job);

 private:
  void Run();

  std::atomic<bool> stop_{false};
  LastingConnection connection_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::thread thread_;
};

// A thread with a connection that appends frames of several partitions. Whatever waits is sent at
// once, in pipeline mode. If the connection is lost it finds out what has become of each frame
// before it answers.
class AppendLane {
 public:
  struct Append {
    store::Claim claim = {};
    std::uint64_t sequence = 0;
    std::string frame = {};
    store::PartitionLog::Done<Status> done = {};
  };

  AppendLane(const Connection::Options& options, LogSink log);
  // Frames that were sent and whose outcome is not known get kIoError.
  ~AppendLane();

  void Submit(Append append);

 private:
  void Run();
  void AppendAll(std::vector<Append> appends);
  // What has become of a frame that was sent. It begins a new session of the claim: an append of
  // the session before can no longer happen. Returns once it is known, or when this lane stops.
  Status Resolve(const store::Claim& claim, std::uint64_t sequence);
  Status Refusal(Connection& connection, const store::Claim& claim, std::uint64_t sequence);
  std::uint64_t& SessionOf(const store::Claim& claim);

  std::atomic<bool> stop_{false};
  LastingConnection connection_;
  std::map<store::Partition, std::pair<std::uint64_t, std::uint64_t>> sessions_;  // epoch, session
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<Append> appends_;
  std::thread thread_;
};

}  // namespace codband::cluster
