#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/bytes.h"
#include "codband/base/heap_bytes.h"
#include "codband/engine/column_book.h"
#include "codband/engine/decision_facts.h"
#include "codband/engine/engine.h"
#include "codband/features/column_space.h"
#include "codband/policy/policy.h"
#include "codband/store/store.h"

namespace codband::engine {

// The encoding of what the engine keeps in the store. Decode fails with kCorruption on bytes that
// Encode cannot have written; no input can crash it.

// Raised whenever the meaning of any byte changes; older directories are then converted or refused.
// Directories with a fixed number of features have format 3, those with a column for every name 4.
// Formats 1 and 2 are the same without a secret, and go on as they are.
inline constexpr std::uint32_t kDataFormatVersion = 4;

// Big-endian, so that keys are ordered like the numbers.
std::string NumberKey(std::uint64_t number);
Result<std::uint64_t> ReadNumberKey(std::string_view key);

// The event number that seeds an event's draws.
std::uint64_t HashEvent(std::string_view event_id);

// Facts about a data directory that never change.
struct Identity {
  std::uint64_t dim = 0;  // 0: a column for every name (features/column_space.h)
  std::int64_t created_ms = 0;
  std::string version;                     // of the program that made it
  std::optional<SipKey> name_secret = {};  // none in directories of before

  std::uint32_t format() const;
  // Into the store. There are two copies, since without the secret no user is found by their name:
  // a repair takes the second.
  void Put(store::StoreBatch& batch) const;

  static constexpr std::string_view kKey = "identity";
  std::string Encode() const;
  static Result<Identity> Decode(std::string_view bytes);
};

// Where the wait clock stood (engine/wait_clock.h), and the other clocks at the same moment.
struct ClockRecord {
  std::int64_t wait_ms = 0;
  std::int64_t wall_ms = 0;
  std::int64_t steady_ms = 0;
  std::string boot_id = {};

  static constexpr std::string_view kKey = "clock";
  std::string Encode() const;
  static Result<ClockRecord> Decode(std::string_view bytes);
};

// Two requests have the same exactly if they ask for the same decision: user, actions with their
// features, features of the context and the user, excluded actions, deferral. Never 0.
std::uint64_t FingerprintOf(const RankRequest& request);

// A decision that was made, and what became of it.
struct PendingDecision {
  enum class State : std::uint8_t {
    kWaiting = 0,
    kDeferred = 1,  // not shown yet
    kRewarded = 2,  // only state and deadline matter from here on
    kExpired = 3,
    kPast = 4,  // of an import: waits for its reward, but not to be shown; teaches nothing without
  };
  State state = State::kWaiting;
  std::int64_t time_ms = 0;
  std::int64_t deadline_ms = 0;  // by the wait clock
  bool learn = true;             // false: only logged
  std::string user = {};
  Decision decision = {};
  // When it was made, by the wait clock; `time_ms` is by the wall clock. Equal to `time_ms` in
  // records written before the wait clock existed.
  std::int64_t made_ms = 0;
  // Of the request and the action that it chose, if it named the event; else 0 and empty.
  std::uint64_t fingerprint = 0;
  std::string action = {};
  DecisionFacts facts = {};  // for the statistics
  // For the decision log; empty unless there is one.
  std::string context = {};
  std::string user_context = {};
  std::vector<FinishedDecision::Candidate> candidates = {};

  // Whether its outcome is open; the second form looks at an encoded one.
  bool waits() const { return Waits(state); }
  static bool Waits(State state) { return state <= State::kDeferred || state == State::kPast; }
  static bool Waits(std::string_view bytes);
  // The user of an encoded pending decision; nothing if it is settled or damaged.
  struct Waiting {
    UserId id = 0;
    std::string name = {};
  };
  static std::optional<Waiting> WaitingUser(std::string_view bytes);
  // Whose decision it is. Nothing once it has an outcome: its encoding then ends after state and
  // deadline, so that `decision.user` is the default, 0, which is a user id like any other.
  std::optional<UserId> user_id() const {
    return waits() ? std::optional<UserId>(decision.user) : std::nullopt;
  }

  std::string Encode() const;
  static Result<PendingDecision> Decode(std::string_view bytes);
};

// The key in kImported of an event of the past: a hash of 128 bits, which names nobody.
std::string ImportedKey(std::string_view event_id);

// The decisions of one group commit, and the time at which the wait of all of them is over.
struct Deadline {
  std::int64_t time_ms = 0;  // the latest of theirs
  std::uint64_t number = 0;  // makes the key unique
  std::vector<std::string> event_ids = {};

  // The key has time and number, the value the ids.
  std::string Key() const;
  std::string Encode() const;
  static Result<Deadline> Decode(std::string_view key, std::string_view value);
  // The end of the range of keys up to and including this time.
  static std::string KeyAfter(std::int64_t time_ms);
};

// One entry of the write-ahead log: a reward to learn, a user or an item to forget, new columns, or
// what other partitions have learned.
struct LogRecord {
  enum class Kind : std::uint8_t {
    kLearn = 0,
    kForget = 1,
    kColumns = 2,
    kForgetItem = 3,
    kPool = 4
  };
  Kind kind = Kind::kLearn;
  std::int64_t time_ms = 0;
  // Empty: an anonymous visitor, new columns, or kForgetItem, whose item is the decision's. Their
  // id is the decision's user, of kForget too; 0: as HashUser has it, in entries of before.
  std::string user = {};
  // kLearn:
  std::uint64_t event = 0;  // HashEvent of its id
  double reward = 0;
  Decision decision = {};
  // kColumns: what is added to a space that has so many columns.
  std::uint64_t first_column = 0;
  std::vector<features::ColumnSpace::Addition> additions = {};
  // kForget: columns that were the user's alone, whose names are forgotten too.
  std::vector<std::uint32_t> forgotten_columns = {};
  // kPool: as SharedPool::Import takes it.
  std::string pool = {};

  UserId user_id() const { return decision.user != 0 ? decision.user : HashUser(user); }

  std::string Encode() const;
  static Result<LogRecord> Decode(std::string_view bytes);
};

// A log entry in quarantine (engine/quarantine.h). The key has its first sequence number.
std::string QuarantineKey(std::uint64_t first);
bool IsQuarantineKey(std::string_view key);
std::string EncodeQuarantined(const QuarantinedEntry& entry);
Result<QuarantinedEntry> DecodeQuarantined(std::string_view bytes);

// A user's name and history, beside the policy's record of them.
struct Person {
  static constexpr std::size_t kMostChanges = 64;  // newest
  static constexpr std::size_t kMostTicks = 20;    // rewards, newest

  std::string name;
  std::uint64_t observations = 0;
  std::int64_t first_ms = 0;
  struct Move {
    std::int64_t time_ms;
    ModelId from;
    ModelId to;
    Evidence evidence = {};
  };
  std::vector<Move> moves;  // oldest first
  struct Tick {
    std::uint32_t time_s = 0;
    float reward = 0;
    float expected = 0;
  };
  std::vector<Tick> ticks = {};  // oldest first
  float usual = 0;               // mean of rewards before these, the last few dozen count most
  std::uint32_t older = 0;       // how many there were
  ColumnShares columns = {};     // what they have added to what is known of columns

  void AddMove(const Move& move);
  void AddTick(std::int64_t time_ms, double reward, double expected);
  // Of the rewards that led to a change now.
  Evidence LastEvidence() const;
  std::size_t HeapBytes() const {
    return codband::HeapBytes(name) + codband::HeapBytes(moves) + codband::HeapBytes(ticks) +
           codband::HeapBytes(columns);
  }
  std::int64_t since_ms() const { return moves.empty() ? first_ms : moves.back().time_ms; }

  void Save(ByteWriter& out) const;
  void Load(ByteReader& in);
};

// What all users share, as of one place in the log.
struct CheckpointRecord {
  std::string spec;            // of the policy
  std::uint64_t sequence = 0;  // of the last log entry it contains
  std::uint64_t users = 0;
  std::uint64_t changes = 0;
  std::vector<Change> recent;  // changes, newest last
  std::string shared;          // PagedUsers::SaveShared
  std::string columns = {};    // ColumnBook::Save; empty in directories of format 1
  // Not stored: nothing was learned up to here or is in the log since, there are columns at most.
  bool columns_alone = false;

  static constexpr std::string_view kKey = "checkpoint";
  std::string Encode() const;
  static Result<CheckpointRecord> Decode(std::string_view bytes);

  // Into the store and out of it. There are two copies: the second is read if the first one is
  // damaged or was dropped by a repair. kNotFound if there is none.
  static void Put(std::string bytes, store::StoreBatch& batch);
  static Result<CheckpointRecord> Get(const store::Store& store);
};

std::string EncodeItem(const Item& item);
Result<Item> DecodeItem(std::string_view bytes);

}  // namespace codband::engine
