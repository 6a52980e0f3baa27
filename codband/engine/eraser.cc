#include "codband/engine/eraser.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <string_view>
#include <utility>

#include "codband/engine/records.h"

namespace codband::engine {
namespace {

// Decisions that are deleted in one group.
constexpr std::size_t kDeletedAtOnce = 500;

}  // namespace

Eraser::Eraser(store::Store& store, std::int64_t delay_ms, DeleteDecisions delete_decisions)
    : store_(store), delay_ms_(delay_ms), delete_decisions_(std::move(delete_decisions)) {}

std::string Eraser::Key(UserId user) { return std::string(kPrefix) + NumberKey(user); }

Status Eraser::Load() {
  const std::string from(kPrefix);
  const std::string to = from.substr(0, from.size() - 1) + '0';  // the byte after '/'
  const std::lock_guard lock(mutex_);
  return store_.Scan(store::Table::kMeta, from, to, [&](std::string_view key, std::string_view) {
    const auto user = ReadNumberKey(key.substr(from.size()));
    if (user.ok()) users_.insert(user.value());
    return true;
  });
}

void Eraser::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Eraser::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Eraser::Add(const std::vector<UserId>& users, std::uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    users_.insert(users.begin(), users.end());
    users_sequence_ = std::max(users_sequence_, sequence);
  }
  wake_.notify_one();
}

std::uint64_t Eraser::ErasedUpTo(std::uint64_t cleared) const {
  const std::lock_guard lock(mutex_);
  return users_.empty() && erasing_.empty() ? std::max(cleared, erased_sequence_)
                                            : erased_sequence_;
}

std::uint64_t Eraser::last_erased() const {
  const std::lock_guard lock(mutex_);
  return erased_sequence_;
}

std::size_t Eraser::waiting() const {
  const std::lock_guard lock(mutex_);
  return users_.size() + erasing_.size();
}

std::string Eraser::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Eraser::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait(lock, [&] { return stopping_ || !users_.empty(); });
    wake_.wait_for(lock, std::chrono::milliseconds(delay_ms_), [&] { return stopping_; });
    if (stopping_) return;
    erasing_ = std::exchange(users_, {});
    const std::uint64_t sequence = users_sequence_;
    lock.unlock();
    const Status status = Erase(erasing_);
    lock.lock();
    last_error_ = status.ok() ? "" : "erasing forgotten users: " + status.message();
    if (status.ok()) {
      store::StoreBatch marks;
      for (const UserId user : erasing_) {
        // Those who were forgotten again meanwhile still need their mark.
        if (!users_.contains(user)) marks.Delete(store::Table::kMeta, Key(user));
      }
      lock.unlock();
      // A mark that stays has the next process do it once more.
      static_cast<void>(store_.Tidy(marks, false));
      lock.lock();
      erased_sequence_ = sequence;
    } else {
      users_.merge(erasing_);
    }
    erasing_.clear();
  }
}

Status Eraser::Erase(const std::set<UserId>& users) {
  CODBAND_RETURN_IF_ERROR(DeleteDecisionsOf(users));
  store::Store::Traces traces{.tables = {store::Table::kMeta, store::Table::kLog,
                                         store::Table::kPending, store::Table::kCheckpoint,
                                         store::Table::kCheckpointCopy}};
  for (const UserId user : users) {
    traces.keys.emplace_back(store::Table::kUsers, NumberKey(user));
    traces.keys.emplace_back(store::Table::kPeople, NumberKey(user));
  }
  return store_.Scrub(traces);
}

Status Eraser::DeleteDecisionsOf(const std::set<UserId>& users) {
  std::vector<std::string> ids;
  CODBAND_RETURN_IF_ERROR(store_.Scan(
      store::Table::kPending, {}, {}, [&](std::string_view key, std::string_view value) {
        const auto pending = PendingDecision::Decode(value);
        const auto user = pending.ok() ? pending.value().user_id() : std::nullopt;
        if (user && users.contains(*user)) ids.emplace_back(key);
        return true;
      }));
  for (std::size_t from = 0; from < ids.size(); from += kDeletedAtOnce) {
    const auto end = std::min(ids.size(), from + kDeletedAtOnce);
    std::promise<Status> deleted;
    delete_decisions_({ids.begin() + static_cast<std::ptrdiff_t>(from),
                       ids.begin() + static_cast<std::ptrdiff_t>(end)},
                      [&](Status status) { deleted.set_value(std::move(status)); });
    CODBAND_RETURN_IF_ERROR(deleted.get_future().get());
  }
  return {};
}

}  // namespace codband::engine
