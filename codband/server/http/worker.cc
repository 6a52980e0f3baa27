#include "codband/server/http/worker.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <ctime>
#include <new>
#include <thread>

namespace codband::server {

Worker::Worker(std::size_t index, std::chrono::milliseconds tick, std::size_t routes)
    : index_(index),
      io_(1),
      guard_(io_.get_executor()),
      tick_(tick),
      timer_(io_),
      metrics_(routes) {
  SetDate();
}

void Worker::Run() {
  Tick();
  bool done = false;
  while (!done) {
    try {
      io_.run();
      done = true;
    } catch (...) {
      // Out of memory in a handler, whose connection has ended: the others go on.
    }
  }
}

void Worker::Stop() {
  asio::post(io_, [this] {
    stopping_ = true;
    for (const Clients* clients : {&idle_, &midway_, &answering_}) {
      for (WorkerClient* client : *clients) client->OnStop();
    }
    EndIfDone();
  });
}

void Worker::Remove(Clients::iterator client, Standing standing) {
  ListOf(standing).erase(client);
  Publish();
  EndIfDone();
}

bool Worker::MakeRoom(const std::optional<ClientNetwork>& network) {
  return MakeRoomIn(idle_, network) || MakeRoomIn(midway_, network);
}

bool Worker::MakeRoomIn(Clients& clients, const std::optional<ClientNetwork>& network) {
  const auto now = Clock::now();
  for (WorkerClient* client : clients) {
    if (network && client->network() != network) continue;
    // It leaves the list, so this is the last turn. If the one that has waited longest stays, so do
    // the others.
    return client->OnRoomNeeded(now);
  }
  return false;
}

void Worker::EndIfDone() {
  if (!stopping_ || HasClients()) return;
  timer_.cancel();
  guard_.reset();
}

void Worker::Tick() {
  timer_.expires_after(tick_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    SetDate();
    const auto now = Clock::now();
    for (const Clients* clients : {&idle_, &midway_, &answering_}) {
      for (WorkerClient* client : *clients) client->OnTick(now);
    }
    ResumeCompleted();  // in case there was no memory to be woken
    if (!(stopping_ && !HasClients())) Tick();
  });
}

void Worker::SetDate() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  // The program never leaves the C locale, so the names are English.
  const std::size_t size =
      std::strftime(text, sizeof(text), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
  date_header_.assign(text, size);
}

void Worker::Complete(PendingCall* call) {
  PendingCall* head = completed_.load(std::memory_order_relaxed);
  do {
    call->next_ = head;
  } while (!completed_.compare_exchange_weak(head, call, std::memory_order_release,
                                             std::memory_order_relaxed));
  // Whoever finds the stack empty wakes the worker for all that follow.
  if (head != nullptr) return;
  try {
    asio::post(io_, [this] { ResumeCompleted(); });
  } catch (const std::bad_alloc&) {
    // The next tick does it.
  }
}

void Worker::ResumeCompleted() {
  PendingCall* call = completed_.exchange(nullptr, std::memory_order_acquire);
  PendingCall* first = nullptr;
  while (call != nullptr) {
    PendingCall* const next = call->next_;
    call->next_ = first;
    first = call;
    call = next;
  }
  while (first != nullptr) {
    // Resuming destroys the call.
    PendingCall* const next = first->next_;
    PendingCall::Handler handler = std::move(*first->handler_);
    handler();
    first = next;
  }
}

void PendingCall::AwaitCompletion() {
  if (!started_) return;
  while (state_.load(std::memory_order_acquire) != State::kCompleted) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Awaitable<void> PendingCall::Suspend() {
  if (state_.load(std::memory_order_acquire) == State::kCompleted) co_return;
  auto initiate = [this](Handler handler) {
    handler_.emplace(std::move(handler));
    State expected = State::kStarted;
    if (!state_.compare_exchange_strong(expected, State::kWaiting, std::memory_order_acq_rel)) {
      worker_.Complete(this);  // it completed meanwhile
    }
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(initiate,
                                                                               kUseAwaitable);
}

}  // namespace codband::server
