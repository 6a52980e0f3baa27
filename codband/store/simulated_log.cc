#include "codband/store/simulated_log.h"

#include <utility>

#include "codband/base/check.h"

namespace codband::store {
namespace {

constexpr std::uint64_t kPurpose = 0x6c6f67;
constexpr std::int64_t kWatchMs = 90;

Status NoAnswer() { return {StatusCode::kUnavailable, "the record did not answer in time"}; }

}  // namespace

SimulatedLog::SimulatedLog(SimulatedRecord& record, VirtualTime& time, EventKey key)
    : record_(record), time_(time), random_(key, kPurpose) {}

SimulatedLog::~SimulatedLog() {
  if (std::exchange(link_->crashed, true)) return;
  for (const auto& [partition, done] : std::exchange(appends_, {})) {
    done(Status::IoError("the log was closed before the outcome was known"));
  }
}

std::int64_t SimulatedLog::Delay() {
  const bool slow = random_.Uniform() < faults.slow;
  const auto most = static_cast<std::uint64_t>(slow ? faults.most_slow_ms : faults.most_delay_ms);
  return static_cast<std::int64_t>(random_.Below(most + 1));
}

template <typename T>
void SimulatedLog::Exchange(std::function<T()> effect, std::function<void(T)> answered,
                            std::function<void()> lost) {
  auto open = std::make_shared<bool>(true);
  const auto link = link_;
  if (!Lost()) {
    time_.After(Delay(), [this, link, open, effect, answered] {
      T result = effect();
      // The record is there all the same; this log may not be.
      if (link->crashed || Lost()) return;
      time_.After(Delay(), [link, open, answered, result = std::move(result)] {
        if (!link->crashed && std::exchange(*open, false)) answered(result);
      });
    });
  }
  time_.After(kTimeoutMs, [link, open, lost] {
    if (!link->crashed && std::exchange(*open, false)) lost();
  });
}

template <typename T>
void SimulatedLog::Call(std::function<T()> effect, Done<T> done) {
  Exchange<T>(std::move(effect), done, [done] { done(NoAnswer()); });
}

void SimulatedLog::Acquire(Partition partition, std::string node, std::int64_t lease_ms,
                           Done<Result<PartitionState>> done) {
  Call<Result<PartitionState>>([&record = record_, partition, node,
                                lease_ms] { return record.Acquire(partition, node, lease_ms); },
                               std::move(done));
}

void SimulatedLog::Renew(std::vector<Claim> claims, std::int64_t lease_ms,
                         Done<Result<std::vector<Claim>>> done) {
  Call<Result<std::vector<Claim>>>(
      [&record = record_, claims, lease_ms] {
        return Result<std::vector<Claim>>(record.Renew(claims, lease_ms));
      },
      std::move(done));
}

void SimulatedLog::Release(Claim claim, Done<Status> done) {
  Call<Status>([&record = record_, claim] { return record.Release(claim); }, std::move(done));
}

void SimulatedLog::Append(Claim claim, std::uint64_t sequence, std::string frame,
                          Done<Status> done) {
  CODBAND_CHECK(!appends_.contains(claim.partition));
  appends_[claim.partition] = std::move(done);
  if (!(sessions_of_[claim.partition] == claim)) {
    sessions_of_[claim.partition] = claim;
    sessions_[claim.partition] = 0;
  }
  Exchange<Status>([&record = record_, claim, session = sessions_[claim.partition], sequence,
                    frame] { return record.Append(claim, session, sequence, frame); },
                   [this, claim, sequence](const Status& status) {
                     // A resolution that was given up has arrived meanwhile and begun another
                     // session.
                     if (status.code() == StatusCode::kUnavailable) return Resolve(claim, sequence);
                     AnswerAppend(claim, status);
                   },
                   [this, claim, sequence] { Resolve(claim, sequence); });
}

void SimulatedLog::Resolve(Claim claim, std::uint64_t sequence) {
  Exchange<SimulatedRecord::Resolved>(
      [&record = record_, claim, sequence] { return record.Resolve(claim, sequence); },
      [this, claim](const SimulatedRecord::Resolved& resolved) {
        sessions_[claim.partition] = resolved.session;
        AnswerAppend(claim, resolved.status);
      },
      [this, link = link_, claim, sequence] {
        time_.After(kRetryMs, [this, link, claim, sequence] {
          if (!link->crashed) Resolve(claim, sequence);
        });
      });
}

void SimulatedLog::AnswerAppend(const Claim& claim, const Status& status) {
  const auto append = appends_.extract(claim.partition);
  append.mapped()(status);
}

void SimulatedLog::Read(Partition partition, std::uint64_t from, std::size_t most_bytes,
                        Done<Result<std::vector<LogFrame>>> done) {
  Call<Result<std::vector<LogFrame>>>(
      [&record = record_, partition, from, most_bytes] {
        return record.Read(partition, from, most_bytes);
      },
      std::move(done));
}

void SimulatedLog::Truncate(Claim claim, std::uint64_t below, Done<Status> done) {
  Call<Status>([&record = record_, claim, below] { return record.Truncate(claim, below); },
               std::move(done));
}

void SimulatedLog::PutBlob(Claim claim, BlobId id, std::string bytes, Done<Status> done) {
  Call<Status>([&record = record_, claim, id, bytes] { return record.PutBlob(claim, id, bytes); },
               std::move(done));
}

void SimulatedLog::GetBlob(Partition partition, BlobId id, Done<Result<std::string>> done) {
  Call<Result<std::string>>(
      [&record = record_, partition, id] { return record.GetBlob(partition, id); },
      std::move(done));
}

void SimulatedLog::FindBlob(Partition partition, std::string name,
                            Done<Result<std::uint64_t>> done) {
  Call<Result<std::uint64_t>>(
      [&record = record_, partition, name] { return record.FindBlob(partition, name); },
      std::move(done));
}

void SimulatedLog::ListBlobs(Partition partition, Done<Result<std::vector<BlobPart>>> done) {
  Call<Result<std::vector<BlobPart>>>(
      [&record = record_, partition] { return record.ListBlobs(partition); }, std::move(done));
}

void SimulatedLog::DeleteBlobs(Claim claim, std::string name, std::uint64_t below,
                               Done<Status> done) {
  Call<Status>(
      [&record = record_, claim, name, below] { return record.DeleteBlobs(claim, name, below); },
      std::move(done));
}

void SimulatedLog::AppendShared(std::uint64_t sequence, std::string frame, Done<Status> done) {
  Call<Status>(
      [&record = record_, sequence, frame] { return record.AppendShared(sequence, frame); },
      std::move(done));
}

void SimulatedLog::ReadShared(std::uint64_t from, std::size_t most_bytes,
                              Done<Result<std::vector<LogFrame>>> done) {
  Call<Result<std::vector<LogFrame>>>(
      [&record = record_, from, most_bytes]() -> Result<std::vector<LogFrame>> {
        return record.ReadShared(from, most_bytes);
      },
      std::move(done));
}

void SimulatedLog::Want(Partition partition, std::string node, Done<Status> done) {
  Call<Status>([&record = record_, partition, node] { return record.Want(partition, node); },
               std::move(done));
}

void SimulatedLog::SetDraining(std::string node, bool draining, Done<Status> done) {
  Call<Status>([&record = record_, node, draining] { return record.SetDraining(node, draining); },
               std::move(done));
}

void SimulatedLog::KeepNode(NodeState node, std::int64_t lease_ms, Done<Status> done) {
  Call<Status>([&record = record_, node, lease_ms] { return record.KeepNode(node, lease_ms); },
               std::move(done));
}

void SimulatedLog::RemoveNode(std::string name, std::string instance, Done<Status> done) {
  Call<Status>([&record = record_, name, instance] { return record.RemoveNode(name, instance); },
               std::move(done));
}

void SimulatedLog::ListNodes(Done<Result<std::vector<NodeState>>> done) {
  Call<Result<std::vector<NodeState>>>(
      [&record = record_] { return Result<std::vector<NodeState>>(record.ListNodes()); },
      std::move(done));
}

void SimulatedLog::ListPartitions(Done<Result<std::vector<PartitionState>>> done) {
  Call<Result<std::vector<PartitionState>>>(
      [&record = record_] { return Result<std::vector<PartitionState>>(record.ListPartitions()); },
      std::move(done));
}

void SimulatedLog::Watch(std::function<void()> changed) {
  Look(record_.changes(), std::move(changed));
}

void SimulatedLog::Look(std::uint64_t seen, std::function<void()> changed) {
  time_.After(kWatchMs, [this, link = link_, seen, changed = std::move(changed)] {
    if (link->crashed) return;
    const bool told = seen != record_.changes() && !Lost();
    const std::uint64_t now = record_.changes();
    Look(now, changed);
    if (told) changed();
  });
}

}  // namespace codband::store
