#pragma once

// clang-format off: g++ 12 needs it before Asio.
#include <utility>
// clang-format on

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "codband/server/http/admission.h"
#include "codband/server/http/route_metrics.h"

namespace codband::server {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
// In a coroutine every co_await is a statement of its own: g++ 12 miscompiles some that are part of
// the condition of an if or a loop.
template <typename T>
using Awaitable = asio::awaitable<T, Executor>;
inline constexpr asio::use_awaitable_t<Executor> kUseAwaitable;

class PendingCall;

// A connection as its worker sees it.
class WorkerClient {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~WorkerClient() = default;
  // Neither may destroy the client: it cancels what it waits for, and ends afterwards.
  virtual void OnTick(Clock::time_point now) = 0;  // several times within every timeout
  virtual void OnStop() = 0;                       // accept no new requests
  // Another connection needs the place of this one: closes it, unless its client may still be
  // about to send or to take what it waits for. Whether it is closed.
  virtual bool OnRoomNeeded(Clock::time_point now) = 0;
  // Where the connection comes from; nothing: from this machine.
  virtual const std::optional<ClientNetwork>& network() const = 0;
};

// One thread with an event loop. A connection stays on one worker, so its state needs no lock. One
// timer serves the timeouts of all connections. Only Complete, Stop, index and reading the metrics
// are safe from other threads.
class Worker {
 public:
  // `tick` is the resolution of timeouts, `routes` the size of the table of routes.
  Worker(std::size_t index, std::chrono::milliseconds tick, std::size_t routes);

  std::size_t index() const { return index_; }

  asio::io_context& io() { return io_; }
  RouteMetrics& metrics() { return metrics_; }
  const RouteMetrics& metrics() const { return metrics_; }

  // Runs until it is stopped and has no clients left.
  void Run();
  // From any thread, while it runs: tells the clients, and ends Run once they have ended.
  void Stop();
  bool stopping() const { return stopping_; }

  // What a client is doing, which decides who goes first when there is no room: those that wait for
  // a request, then those that wait for the rest of one or for a reply to be taken, the longest
  // wait first. Those that are being answered stay.
  enum class Standing { kIdle, kMidway, kAnswering };
  using Clients = std::list<WorkerClient*>;

  Clients::iterator Add(WorkerClient* client, Standing standing) {
    Clients& target = ListOf(standing);
    const Clients::iterator added = target.insert(target.end(), client);
    Publish();
    return added;
  }
  // The client is now the last of those with this standing. Costs a few writes.
  void Move(Clients::iterator client, Standing from, Standing to) {
    Clients& target = ListOf(to);
    target.splice(target.end(), ListOf(from), client);
    Publish();
  }
  void Remove(Clients::iterator client, Standing standing);

  // Closes the client that has waited longest, if there is one, of the network if one is given.
  bool MakeRoom(const std::optional<ClientNetwork>& network);
  // How good the chances of MakeRoom are, to be compared between workers. From any thread.
  std::uint64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

  // From any thread: resumes the waiting coroutine on the worker's thread. Calls that complete
  // together, as after a group commit, wake the worker once.
  void Complete(PendingCall* call);

  // "Date: Sun, 07 Jul 2019 12:00:00 GMT\r\n", at most a tick old.
  std::string_view date_header() const { return date_header_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

  Clients& ListOf(Standing standing) {
    if (standing == Standing::kIdle) return idle_;
    return standing == Standing::kMidway ? midway_ : answering_;
  }
  // An idle client counts more than any number of others.
  void Publish() {
    waiting_.store(std::uint64_t{idle_.size()} << 32U | midway_.size(), std::memory_order_relaxed);
  }
  bool MakeRoomIn(Clients& clients, const std::optional<ClientNetwork>& network);
  void Tick();
  void SetDate();
  void ResumeCompleted();
  bool HasClients() const { return !idle_.empty() || !midway_.empty() || !answering_.empty(); }
  void EndIfDone();

  const std::size_t index_;
  asio::io_context io_;
  asio::executor_work_guard<Executor> guard_;
  std::chrono::milliseconds tick_;
  Timer timer_;
  RouteMetrics metrics_;
  Clients idle_;  // in the order in which they became so, like the others
  Clients midway_;
  Clients answering_;
  std::atomic<std::uint64_t> waiting_ = 0;
  std::string date_header_;
  std::atomic<PendingCall*> completed_ = nullptr;  // a stack, newest first
  bool stopping_ = false;
};

// A call that completes on another thread, or at once. Lives in the frame of the coroutine that
// waits for it.
class PendingCall {
 public:
  explicit PendingCall(Worker& worker) : worker_(worker) {}
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  // The call was made, and will complete. To be said by who makes several before they wait.
  void Started() { started_ = true; }
  // Waits until Complete has been called; does not suspend if it has been already.
  Awaitable<void> Wait() {
    Started();
    return Suspend();
  }

 protected:
  ~PendingCall() = default;
  // Where there was no memory to wait, or to make the next call, the coroutine ends before the call
  // has completed: this blocks the thread until then. To be called before anything is destroyed
  // that the call writes to.
  void AwaitCompletion();
  // From any thread, once. The object may be destroyed before it returns.
  void Complete() {
    if (state_.exchange(State::kCompleted, std::memory_order_acq_rel) == State::kWaiting) {
      worker_.Complete(this);
    }
  }

 private:
  friend class Worker;
  enum class State { kStarted, kWaiting, kCompleted };
  using Handler = asio::async_result<asio::use_awaitable_t<Executor>, void()>::handler_type;

  Awaitable<void> Suspend();

  Worker& worker_;
  bool started_ = false;
  std::atomic<State> state_ = State::kStarted;
  std::optional<Handler> handler_;
  PendingCall* next_ = nullptr;
};

template <typename T>
class Pending final : public PendingCall {
 public:
  using PendingCall::PendingCall;
  ~Pending() { AwaitCompletion(); }

  // From any thread; one of them, once.
  void Finish(T value) {
    value_.emplace(std::move(value));
    Complete();
  }
  void Fail(std::exception_ptr error) {
    error_ = std::move(error);
    Complete();
  }
  // After Wait().
  T Take() {
    if (error_) std::rethrow_exception(error_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

}  // namespace codband::server
