#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codband/base/log.h"
#include "codband/base/status.h"
#include "codband/engine/item.h"
#include "codband/engine/name_hash.h"
#include "codband/engine/partition.h"
#include "codband/engine/stats_report.h"
#include "codband/features/column_space.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// Whose choice is shown, and whether it is learned from.
enum class Mode {
  kOnline,       // the policy's choice is shown and learned from
  kApprentice,   // the first action (what the product would show anyway) is shown and learned from
  kLoggingOnly,  // the first action is shown; nothing is learned
};

struct EngineOptions {
  std::string policy = "codband";
  // Features of an item, names hashed into as many. 0: as the data directory has it; a new one then
  // gives every name a column of its own, as far as `columns` allows.
  std::size_t dim = 0;
  features::ColumnLimits columns = {};
  std::string crossings = "all";  // of context and items; see features/crossings.h
  std::uint64_t seed = 1;
  Mode mode = Mode::kOnline;
  double exploration_floor = 0.01;  // share of decisions that are uniform over the candidates
  std::int64_t reward_wait_ms = 600'000;
  std::optional<double> default_reward = 0;  // learned when the wait is over; none: nothing is
  // Rewards outside of this range are refused or, if `clip_rewards`, moved to its nearer end.
  double reward_min = -1e6;
  double reward_max = 1e6;
  bool clip_rewards = false;
  double max_abs_feature = 1e6;  // larger features are refused, of items and of actions
  std::size_t users_in_memory = 100'000;
  std::size_t user_memory_bytes = std::size_t{1} << 30U;  // that they take at most
  std::size_t checkpoint_events = 20'000;                 // at the latest after so many
  std::int64_t checkpoint_interval_ms = 60'000;           // or so long
  // So long after a user was forgotten the files that hold something of them are rewritten; those
  // who are forgotten meanwhile are erased together.
  std::int64_t erase_delay_ms = 10'000;
  std::size_t max_queue = 10'000;  // requests waiting to be made durable; more are refused
  bool sync = true;                // wait for the disk before acknowledging
  bool keep_candidates = false;    // pending decisions keep what a decision log needs
  bool read_only = false;          // ranks and changes are refused
  std::function<std::int64_t()> now_ms = {};  // the time; the system's if not given
  // Milliseconds of a monotonic clock, and the id of the current boot: waits are
  // measured by it (engine/wait_clock.h). BootMillis and BootId if not given.
  std::function<std::int64_t()> steady_ms = {};
  std::string boot_id = {};
  // Other machines go on where this one has stopped: their clocks say nothing of how long ago that
  // was.
  bool moves_between_machines = false;
  // Of the event ids that the engine makes up. Two engines with the same seed make the same ids at
  // the same time; drawn from the system's entropy if not given.
  std::optional<std::uint64_t> event_id_seed = {};
  // The secret of a new directory, by which names become ids; drawn from the system's entropy if
  // not given.
  std::optional<SipKey> name_secret = {};
  NameHash names = {};  // as the directory has it: set by Open
  // Which partition of a loop of several it is (engine/partition.h); none: it has all users.
  std::optional<std::uint32_t> partition = {};
  // Takes changes of the catalogue instead of this engine, and what it asks of columns, which gets
  // them back in the order of the loop (Partition::Follow); empty: they are the engine's own.
  std::function<void(CatalogueChange change, std::function<void(Status)> done)> share_catalogue =
      {};
  LogSink log = {};  // told what an operator should know; may be empty
  // How policies are made; by the registry if not given.
  std::function<Result<std::unique_ptr<Policy>>(std::string_view spec, std::size_t dim)>
      make_policy = {};
};

// An action on offer: an item of the catalogue, or one described on the spot.
struct Candidate {
  std::string id;
  std::vector<double> features = {};
  // Where the number of features is fixed: what they were hashed from, if they were.
  std::vector<features::NamedFeature> named = {};
  bool given = false;  // an empty feature list was given explicitly

  // Whether it is described on the spot.
  bool described() const { return given || !features.empty() || !named.empty(); }
};

struct RankRequest {
  // Made up if empty; seeds the draw. The same request with the same id gives the same decision; an
  // id that another request has used, or that has its outcome, is refused (kConflict).
  std::string event_id = {};
  std::string user = {};                   // empty: an anonymous visitor
  std::vector<Candidate> candidates = {};  // empty: the whole catalogue
  std::vector<std::string> excluded = {};
  std::size_t top_k = 0;  // how many to return; 0: all candidates, or 100 of the catalogue
  bool defer_activation = false;
  bool explain = false;
  // It happened before: without a reward it teaches nothing, its reward is never late, and once it
  // has one its id is remembered for good: a request of the past with the same id is refused
  // (kConflict).
  bool past = false;
  // Where every name has a column: what the ranking depends on beside the items.
  std::vector<features::NamedFeature> context_features = {};
  std::vector<features::NamedFeature> user_features = {};
  // Both as JSON, for the decision log alone.
  std::string context = {};
  std::string user_context = {};
};

struct RankedItem {
  std::string id;
  double probability = 0;  // the chance with which it was, or would have been, chosen
  double score = 0;        // what the candidates were ordered by
  double mean = 0;         // expected reward
  double width = 0;        // its standard deviation
};

struct Explanation {
  struct Contribution {
    std::string feature;  // its name, or its index
    double value = 0;     // parameter times feature
  };
  std::vector<Contribution>
      contributions;  // of the chosen action, largest first; sum + intercept + item = mean
  double intercept = 0;
  double item = 0;                       // the part that is the action's own, beyond its features
  std::uint64_t group_users = 0;         // users who are on the same model now
  std::uint64_t group_observations = 0;  // rewards that it was learned from
  std::optional<std::int64_t> last_change_ms;
};

struct RankReply {
  std::string event_id;
  std::string reward_action_id;     // what to show
  std::vector<RankedItem> ranking;  // the policy's choice first, then by score
  ModelId model = kNoModel;
  std::optional<Explanation> explanation;
};

enum class RewardOutcome {
  kAccepted,   // durable and learned (or counted, when nothing is to be learned)
  kDuplicate,  // this event has its reward; nothing is changed
  kLate,       // the wait was over; nothing is changed
  kUnknown,    // no such decision
};

struct RewardReply {
  RewardOutcome outcome = RewardOutcome::kAccepted;
  std::uint64_t sequence = 0;  // place in the order of learning; 0 unless accepted and learned
};

// Why a change was seen: the last rewards, beside what was expected of them and those before.
struct Evidence {
  std::uint32_t rewards = 0;  // how many; 0: not known
  float expected = 0;         // their mean expectation, which follows what is learned meanwhile
  float got = 0;              // what they were in the mean
  float before = 0;           // what they had been before, in the mean; as `got` if not known
};

struct Change {
  std::string user;
  std::int64_t time_ms = 0;
  ModelId from = kNoModel;  // kNoModel: a policy without shared models
  ModelId to = kNoModel;
  Evidence evidence = {};
};

// One reward of a user, beside what was expected.
struct RewardTick {
  std::int64_t time_ms = 0;  // whole seconds
  float reward = 0;
  float expected = 0;
};

struct UserReport {
  std::string user;
  ModelId model = kNoModel;
  double model_chance = 0;                // how sure
  std::int64_t since_ms = 0;              // of the last change, or of the first reward
  std::uint64_t observations = 0;         // rewards learned from this user in all
  std::uint64_t period_observations = 0;  // since the last change
  std::int64_t first_ms = 0;              // of the first reward
  std::vector<Change> changes;            // oldest first, without the first reward
  std::vector<RewardTick> ticks = {};     // the last rewards, oldest first
};

struct ModelReport {
  ModelId id = kNoModel;
  double popularity = 0;      // its share of all periods
  std::uint64_t users = 0;    // on it now
  std::uint64_t periods = 0;  // current and past
  std::uint64_t observations = 0;
  std::vector<double> parameter;  // d numbers
  struct Top {
    std::string name;
    double weight = 0;
    double lift = 0;  // of a tag: how much more often the best items have it than all do
  };
  std::vector<Top> items;       // best first: expected reward
  std::vector<Top> worst = {};  // worst first
  std::vector<Top> tags;        // of the best quarter of the items, at most 100: how many have it
};

// A log entry, or a run of them, that cannot be applied. It is left out, now and at every restart.
struct QuarantinedEntry {
  std::uint64_t first = 0, last = 0;  // sequence numbers
  std::int64_t time_ms = 0;           // when it was found
  std::string reason = {};
  // What it was, if that is known; empty once its user was forgotten.
  bool forgets = false;  // the user was to be forgotten; else a reward was to be learned
  std::string user = {};
  std::uint64_t event = 0;  // hash of its id
  double reward = 0;
};

// Counters since the start; gauges of now.
struct EngineStats {
  std::string policy;
  std::size_t dim = 0;        // of the models now
  std::size_t columns = 0;    // of a name or a crossing; 0 where the number is fixed
  std::size_t crossings = 0;  // of these
  std::size_t columns_limit = 0;
  std::size_t shared_columns = 0;
  std::size_t sharing_names = 0;  // that have no column of their own; 1000 at most are counted
  std::uint64_t ranks = 0;
  std::uint64_t rewards_accepted = 0, rewards_duplicate = 0, rewards_late = 0, rewards_unknown = 0;
  std::uint64_t rewards_defaulted = 0;  // learned by the default after the wait
  Activity activity = {};               // decisions and rewards by mode and source, estimates
  std::uint64_t expired = 0;            // wait over without a reward (defaulted ones included)
  std::uint64_t changes = 0;            // detected
  std::uint64_t changes_last_hour = 0;
  std::uint64_t learned = 0;
  std::uint64_t quarantined = 0;  // log entries left out, as far back as they are remembered
  std::uint64_t checkpoints = 0;
  std::uint64_t committed_sequence = 0, applied_sequence = 0, checkpoint_sequence = 0;
  // Everything up to this log entry is in the checkpoint, and gone from the log.
  std::uint64_t cleared_sequence = 0;
  // Users who were forgotten up to this log entry are in no file any more.
  std::uint64_t erased_sequence = 0;
  std::uint64_t last_erased_sequence = 0;  // of the last of them, since the start; 0: nobody
  std::uint64_t models = 0;
  std::uint64_t users_in_memory = 0;
  std::uint64_t user_bytes = 0;  // that they take
  std::uint64_t users = 0;       // in all
  std::uint64_t items = 0;
  std::uint64_t pending = 0;
  std::uint64_t queue = 0;
  std::uint64_t erasing = 0;  // forgotten users of whom something is still in a file
  store::StoreStats store;
  std::string last_error;  // of the store, if it is in trouble now
  // What was found to be damaged on disk; see Store::Damage. The rest goes on.
  std::vector<std::string> damage;
};

// One column of a directory that has one for every name.
struct ColumnReport {
  std::string name;         // "genre=jazz × device=phone"; "shared 3"
  std::string_view kind;    // "item", "context", "user", "crossing" or "shared"
  std::uint64_t count = 0;  // rewarded decisions in which it was not 0
  double min = 0, max = 0;  // in these
  double importance = 0;    // |parameter| × root mean square of the values, over the models
};
struct FeatureReport {
  std::size_t limit = 0;
  std::vector<ColumnReport> columns = {};
  std::vector<std::string> sharing = {};  // the first names that share columns
};

// A decision whose outcome is known, for a decision log.
struct FinishedDecision {
  std::string event_id;
  std::string user;
  std::int64_t time_ms = 0;  // of the decision
  double reward = 0;
  bool defaulted = false;  // no reward came
  bool learned = true;
  std::string context;
  std::string user_context = {};
  std::string policy;
  std::size_t chosen = 0;  // index among the candidates
  struct Candidate {
    std::string id;
    double probability = 0;
    std::vector<float> features;                     // given as numbers, or hashed from names
    std::vector<features::NamedFeature> named = {};  // where every name has a column
  };
  std::vector<Candidate> candidates;  // as offered
};

// The recommender: ranks, learns, remembers. Everything acknowledged is durable; see
// docs/durability.md. Functions may be called from any thread. Those with a `done` return at once
// (Rank after the ranking itself) and call it later from a thread of the engine, which it must not
// block; or before they return, if the request is refused. Messages of kInvalidArgument start with
// the field: "value: is nan, expected …".
class Engine {
 public:
  template <typename T>
  using Done = std::function<void(T)>;

  // Opens the data in the store, or starts anew: loads the last checkpoint and replays the log
  // since. `on_finished` (may be empty) is told of every decision whose outcome is known, from one
  // thread.
  static Result<std::unique_ptr<Engine>> Open(
      std::unique_ptr<store::Store> store, const EngineOptions& options,
      std::function<void(const FinishedDecision&)> on_finished = {});
  virtual ~Engine() = default;  // commits what was accepted, then makes a checkpoint

  // Calls `ranked` with the reply before it returns, unless the request is refused. The reply is
  // valid once `done` says that the decision is durable; serialise it meanwhile.
  virtual void Rank(RankRequest request, const std::function<void(const RankReply&)>& ranked,
                    Done<Status> done) = 0;
  virtual void Reward(std::string event_id, double value, Done<Result<RewardReply>> done) = 0;
  // Whether a reward of this value would be refused, whatever its event.
  virtual Status CheckReward(double value) const = 0;
  virtual void Activate(std::string event_id, Done<Status> done) = 0;

  // An id for an event that its caller wants to know beforehand.
  virtual std::string NewEventId() = 0;
  // The ids of durable events that begin like this, in their order, `most` at most.
  virtual Result<std::vector<std::string>> FindEvents(const std::string& prefix,
                                                      std::size_t most) const = 0;

  // All of them or none.
  virtual void PutItems(std::vector<Item> items, Done<Status> done) = 0;
  virtual void DeleteItem(std::string id, Done<Status> done) = 0;
  virtual Result<Item> GetItem(const std::string& id) const = 0;
  // Items whose id comes after `after`, in the order of ids, `most` at most, and fewer where they
  // reach kItemPageBytes.
  virtual std::vector<Item> ListItems(const std::string& after, std::size_t most) const = 0;
  // Every column; none where the number of features is fixed.
  virtual FeatureReport Features() = 0;
  // What was learned of an action itself, in the catalogue or not; nothing if it is not known.
  virtual std::optional<ItemDescription> DescribeItem(const std::string& id) const = 0;

  // Removes all that was learned from the user, and every record of them.
  virtual void Forget(std::string user, Done<Status> done) = 0;
  virtual Result<UserReport> GetUser(const std::string& user) = 0;
  // Every user on disk and in memory; for export. Stops when the visitor returns false.
  virtual Status VisitUsers(const std::function<bool(const UserReport&)>& visit) = 0;

  // With their best `top` items and tags; most popular first.
  virtual std::vector<ModelReport> Models(std::size_t top) = 0;
  virtual Result<ModelReport> GetModel(ModelId id, std::size_t top) = 0;
  virtual std::vector<Change> RecentChanges(std::size_t most) = 0;  // newest first
  // What happened in [from_ms, to_ms), in steps of whole minutes; of a minute for a day, of hours
  // for a year. Durable: the same after a restart.
  virtual SeriesReport Series(std::int64_t from_ms, std::int64_t to_ms, std::int64_t step_ms) = 0;

  // Log entries that could not be applied, oldest first.
  virtual std::vector<QuarantinedEntry> Quarantined() = 0;

  virtual EngineStats Stats() = 0;
  // The number of features of an item; 0: every name has a column.
  virtual std::size_t dim() const = 0;

  // Commits what was accepted, makes a checkpoint and stops: changes are refused from now on. If
  // the engine stops in trouble the status says why; what was acknowledged is on disk all the same.
  virtual Status Close() = 0;

  // What a cluster does with it; nullptr: it is no partition.
  virtual Partition* partition() { return nullptr; }

  // Makes a checkpoint now.
  virtual Status Checkpoint() = 0;
  // Writes a snapshot into a directory that does not exist yet.
  virtual Status Backup(const std::filesystem::path& directory) = 0;
  // Whether the data is consistent: every user's record can be read, and the models are the sums of
  // their users. Slow: reads everything, and learning waits meanwhile.
  virtual Status Check() = 0;
};

}  // namespace codband::engine
