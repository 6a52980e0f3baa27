#include "codband/cluster/replica.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "codband/base/bytes.h"

namespace codband::cluster {
namespace {

constexpr const char* kBlob = "checkpoint";
constexpr std::size_t kReadBytes = std::size_t{4} << 20;
// A checkpoint may be replaced by a newer one while it is read.
constexpr int kMostTries = 5;

// Versions are ordered by the sequence. A part of an attempt that was given up may arrive late: the
// low bits keep it apart from those of other attempts and owners.
std::uint64_t VersionOf(const store::Claim& claim, const Checkpoint& checkpoint) {
  return checkpoint.position.sequence << 20 | (claim.epoch & 0x3ff) << 10 |
         (checkpoint.attempt & 0x3ff);
}

// Part 0 of a checkpoint, written last.
struct Manifest {
  Position position = {};
  std::vector<std::uint32_t> checksums = {};  // of the parts

  std::string Encode() const {
    ByteWriter out;
    out.U64(position.sequence);
    out.U64(position.epoch);
    out.U64(checksums.size());
    for (const std::uint32_t checksum : checksums) out.U32(checksum);
    return out.Take();
  }
  static Result<Manifest> Decode(std::string_view bytes) {
    ByteReader in(bytes);
    Manifest manifest;
    manifest.position.sequence = in.U64("sequence");
    manifest.position.epoch = in.U64("epoch");
    manifest.checksums.resize(in.Count("number of parts", 4));
    for (std::uint32_t& checksum : manifest.checksums) checksum = in.U32("checksum");
    in.ExpectEnd();
    if (!in.ok()) {
      return Status::Corruption("the checkpoint of a partition cannot be read: " +
                                in.status().message());
    }
    return manifest;
  }
};

// One run of CatchUp. It keeps itself alive by the callbacks that it waits for.
class CatchingUp : public std::enable_shared_from_this<CatchingUp> {
 public:
  CatchingUp(store::PartitionLog& log, store::Partition partition, Replica& replica,
             std::uint64_t last, Post post, std::function<void(Status)> done)
      : log_(log),
        partition_(partition),
        replica_(replica),
        last_(last),
        post_(std::move(post)),
        done_(std::move(done)) {}

  void FollowOn() {
    follows_ = true;
    ReadFrames();
  }

  void FindCheckpoint() {
    log_.FindBlob(partition_, kBlob, Then<Result<std::uint64_t>>([this](auto& version) {
                    if (version.ok()) return ReadManifest(version.value());
                    if (version.status().code() != StatusCode::kNotFound) {
                      return done_(version.status());
                    }
                    manifest_ = {};
                    Check();
                  }));
  }

 private:
  // A callback that goes on here, on the thread that may be blocked.
  template <typename T>
  std::function<void(T)> Then(std::function<void(T&)> next) {
    return [self = shared_from_this(), next = std::move(next)](T value) {
      self->post_([self, next, value = std::make_shared<T>(std::move(value))] { next(*value); });
    };
  }

  void ReadManifest(std::uint64_t version) {
    version_ = version;
    log_.GetBlob(partition_, {kBlob, version, 0}, Then<Result<std::string>>([this](auto& bytes) {
                   if (!bytes.ok()) return AgainUnless(bytes.status());
                   auto manifest = Manifest::Decode(bytes.value());
                   if (!manifest.ok()) return done_(manifest.status());
                   manifest_ = std::move(manifest).value();
                   Check();
                 }));
  }

  // Whether what the replica has is what the log has.
  void Check() {
    const Position position = replica_.position();
    if (position.sequence > 0 && position == manifest_.position) return ReadFrames();
    // One without a position may have been loaded by half.
    if (position.sequence <= manifest_.position.sequence) return Load();
    log_.Read(partition_, position.sequence, 1,
              Then<Result<std::vector<store::LogFrame>>>([this, position](auto& frames) {
                if (!frames.ok() && frames.status().code() != StatusCode::kNotFound) {
                  return done_(frames.status());
                }
                const bool same = frames.ok() && !frames.value().empty() &&
                                  frames.value()[0].epoch == position.epoch;
                same ? ReadFrames() : Load();
              }));
  }

  void Load() {
    if (const Status cleared = replica_.Clear(); !cleared.ok()) return done_(cleared);
    LoadPart(1);
  }

  void LoadPart(std::uint32_t part) {
    if (part > manifest_.checksums.size()) {
      const bool empty = manifest_.position == Position{};
      const Status loaded = empty ? Status() : replica_.FinishLoad(manifest_.position);
      return loaded.ok() ? ReadFrames() : done_(loaded);
    }
    log_.GetBlob(partition_, {kBlob, version_, part},
                 Then<Result<std::string>>([this, part](auto& bytes) {
                   if (!bytes.ok()) return AgainUnless(bytes.status());
                   if (Crc32(bytes.value()) != manifest_.checksums[part - 1]) {
                     return done_(Status::Corruption(
                         fmt::format("partition {}: part {} of the checkpoint at {} is damaged",
                                     partition_, part, manifest_.position.sequence)));
                   }
                   const Status loaded = replica_.LoadPart(bytes.value());
                   loaded.ok() ? LoadPart(part + 1) : done_(loaded);
                 }));
  }

  void ReadFrames() {
    const std::uint64_t next = replica_.position().sequence + 1;
    if (next > last_) return done_(Status());
    log_.Read(partition_, next, kReadBytes,
              Then<Result<std::vector<store::LogFrame>>>([this, next](auto& frames) {
                if (!frames.ok()) return AgainUnless(frames.status());
                if (frames.value().empty()) {
                  return done_(Status::Corruption(
                      fmt::format("partition {}: the log ends before frame {}, expected {} frames",
                                  partition_, next, last_)));
                }
                for (const store::LogFrame& frame : frames.value()) {
                  if (frame.sequence > last_) break;  // perhaps it is not final yet
                  if (const Status applied = replica_.Apply(frame); !applied.ok()) {
                    return done_(applied);
                  }
                }
                ReadFrames();
              }));
  }

  // What was there a moment ago was replaced by a newer checkpoint.
  void AgainUnless(const Status& status) {
    if (follows_ || status.code() != StatusCode::kNotFound || ++tries_ > kMostTries) {
      return done_(status);
    }
    FindCheckpoint();
  }

  store::PartitionLog& log_;
  const store::Partition partition_;
  Replica& replica_;
  const std::uint64_t last_;
  const Post post_;
  const std::function<void(Status)> done_;
  std::uint64_t version_ = 0;
  Manifest manifest_;
  int tries_ = 0;
  bool follows_ = false;  // the replica was caught up before
};

// What callbacks have for the thread that waits.
class Mailbox {
 public:
  void Put(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }
  void RunNext() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !tasks_.empty(); });
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
};

// One run of StoreCheckpoint.
class Storing : public std::enable_shared_from_this<Storing> {
 public:
  Storing(store::PartitionLog& log, const store::Claim& claim, Checkpoint checkpoint,
          std::function<void(Status)> done)
      : log_(log),
        claim_(claim),
        version_(VersionOf(claim, checkpoint)),
        parts_(std::move(checkpoint.parts)),
        manifest_{.position = checkpoint.position},
        done_(std::move(done)) {
    for (const std::string& part : parts_) manifest_.checksums.push_back(Crc32(part));
  }

  void PutPart(std::uint32_t part) {
    if (part > parts_.size()) {
      return log_.PutBlob(claim_, {kBlob, version_, 0}, manifest_.Encode(), Then([this] {
                            log_.Truncate(claim_, manifest_.position.sequence + 1,
                                          Then([this] { DeleteOlder(); }));
                          }));
    }
    log_.PutBlob(claim_, {kBlob, version_, part}, std::move(parts_[part - 1]),
                 Then([this, part] { PutPart(part + 1); }));
  }

 private:
  std::function<void(Status)> Then(std::function<void()> next) {
    return [self = shared_from_this(), next = std::move(next)](const Status& status) {
      status.ok() ? next() : self->done_(status);
    };
  }
  void DeleteOlder() {
    log_.DeleteBlobs(claim_, kBlob, version_, Then([this] { done_(Status()); }));
  }

  store::PartitionLog& log_;
  const store::Claim claim_;
  const std::uint64_t version_;
  std::vector<std::string> parts_;
  Manifest manifest_;
  const std::function<void(Status)> done_;
};

}  // namespace

void CatchUp(store::PartitionLog& log, store::Partition partition, Replica& replica,
             std::uint64_t last, Post post, std::function<void(Status)> done) {
  std::make_shared<CatchingUp>(log, partition, replica, last, std::move(post), std::move(done))
      ->FindCheckpoint();
}

void FollowLog(store::PartitionLog& log, store::Partition partition, Replica& replica,
               std::uint64_t last, Post post, std::function<void(Status)> done) {
  std::make_shared<CatchingUp>(log, partition, replica, last, std::move(post), std::move(done))
      ->FollowOn();
}

namespace {

// Calls one of the two and runs what it posts on this thread.
template <typename Start>
Status RunHere(const Start& start) {
  // Shared with the last callback, which is still in Put when this thread goes on.
  const auto mailbox = std::make_shared<Mailbox>();
  std::optional<Status> done;
  start([mailbox](std::function<void()> task) { mailbox->Put(std::move(task)); },
        [&](Status status) { done = std::move(status); });
  while (!done) mailbox->RunNext();
  return *done;
}

}  // namespace

Status CatchUpAndWait(store::PartitionLog& log, store::Partition partition, Replica& replica,
                      std::uint64_t last) {
  return RunHere([&](Post post, std::function<void(Status)> done) {
    CatchUp(log, partition, replica, last, std::move(post), std::move(done));
  });
}

Status FollowLogAndWait(store::PartitionLog& log, store::Partition partition, Replica& replica,
                        std::uint64_t last) {
  return RunHere([&](Post post, std::function<void(Status)> done) {
    FollowLog(log, partition, replica, last, std::move(post), std::move(done));
  });
}

void StoreCheckpoint(store::PartitionLog& log, const store::Claim& claim, Checkpoint checkpoint,
                     std::function<void(Status)> done) {
  std::make_shared<Storing>(log, claim, std::move(checkpoint), std::move(done))->PutPart(1);
}

}  // namespace codband::cluster
