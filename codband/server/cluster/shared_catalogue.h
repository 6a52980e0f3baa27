#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/sip_hash.h"
#include "codband/base/status.h"
#include "codband/engine/engine.h"
#include "codband/features/column_space.h"
#include "codband/server/cluster/lent_engine.h"
#include "codband/store/partition_log.h"

namespace codband::server {

// What all partitions of a loop must have alike. It is the first frame of the shared log.
struct LoopIdentity {
  std::uint64_t dim = 0;  // features of an item; 0: every name has a column
  SipKey name_secret = {};

  std::string Encode() const;
  static Result<LoopIdentity> Decode(std::string_view bytes);
};

// That of the loop; of a new one it is made with `dim` features. kInvalidArgument: `dim` is not 0,
// and another than the loop's.
Result<LoopIdentity> FindLoopIdentity(store::PartitionLog& log, std::uint64_t dim);

// Appends the columns that changes of the loop's log give out. kCorruption if they do not follow
// those that are there.
Status TakeColumns(std::span<const engine::CatalogueChange> changes,
                   features::ColumnSpace& columns);

// The catalogue of a loop: a log that anybody appends to, and that the engines of this node follow.
// Where every name has a column the log has which, and so all partitions have the same: who appends
// knows all columns up to there, and adds those that the engines of this node ask for and those
// of the items that they put. A thread of its own. Thread-safe.
class SharedCatalogue {
 public:
  using Done = std::function<void(Status)>;

  // The log outlives it. `columns`: where every name has a column.
  SharedCatalogue(store::PartitionLog& log, LogSink sink,
                  std::optional<features::ColumnLimits> columns = {});
  // What waits is told that it may or may not have happened.
  ~SharedCatalogue();
  SharedCatalogue(const SharedCatalogue&) = delete;
  SharedCatalogue& operator=(const SharedCatalogue&) = delete;

  // The engine follows from now on. Returns when it has caught up, or why it could not; it is tried
  // again then.
  Status Attach(store::Partition partition, engine::Engine& engine);
  // Returns once the engine is not used any more.
  void Detach(store::Partition partition);

  // Appends a change. `done`: it is durable, and the engines of this node have it, unless one of
  // them is slow or in trouble. A change that does nothing but ask for columns is done at once: so
  // many of them wait, others are forgotten.
  static constexpr std::size_t kMostAsked = 256;
  void Change(engine::CatalogueChange change, Done done);

  // How many frames the engine that is farthest behind lacks.
  std::uint64_t lag() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Additions = std::vector<features::ColumnSpace::Addition>;
  struct Follower {
    explicit Follower(engine::Engine& engine) : lent(engine) {}
    LentEngine lent;
    // Guarded by the catalogue's mutex, which outlives the calls of the engine.
    std::uint64_t sequence = 0;
    bool busy = false;
    bool failed = false;  // the last time
  };
  struct Waiting {
    std::uint64_t sequence = 0;
    Clock::time_point until = {};
    Done done = {};
  };
  // Shared with callbacks, which may come late.
  struct State {
    std::mutex mutex;  // guards what follows, and the followers
    std::condition_variable changed;
    std::map<store::Partition, std::shared_ptr<Follower>> followers = {};
    std::vector<std::pair<engine::CatalogueChange, Done>> changes = {};
    Additions asked = {};
    std::vector<Waiting> waiting = {};
    std::uint64_t end = 0;  // of the log, as it was seen last
    bool woken = false;
    bool stopping = false;
  };

  void Run();
  // Reads what the followers lack and gives it to them. Whether the end of the log was reached.
  Result<bool> FollowLog();
  static void Give(const std::shared_ptr<State>& state, const std::shared_ptr<Follower>& follower,
                   std::span<const store::LogFrame> frames);
  Status AppendChanges();
  struct Taken {
    std::vector<std::pair<engine::CatalogueChange, Done>> changes = {};
    Additions asked = {};
  };
  void EndAppend(std::uint64_t sequence, Taken taken, const Status& appended);
  // Takes over the columns of frames that it has not seen; or of all there are.
  Status NoteColumns(std::span<const store::LogFrame> frames);
  Status FindColumns(std::uint64_t end);
  // Gives columns to what the changes ask for and put, as if they were appended.
  void GiveColumns(std::vector<engine::CatalogueChange>& changes);
  bool HasRoomAtOnce(std::span<const features::ColumnSpace::Addition> names) const;
  void TellWaiting();
  void Note(const Status& status);

  store::PartitionLog& log_;
  const LogSink sink_;
  const std::optional<features::ColumnLimits> limits_;
  features::ColumnSpace space_;       // as of a frame; of the thread
  std::uint64_t space_sequence_ = 0;  // which
  bool in_trouble_ = false;           // of the thread
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace codband::server
