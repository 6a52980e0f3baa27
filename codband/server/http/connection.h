#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/server/http/admission.h"
#include "codband/server/http/server.h"
#include "codband/server/http/tls_stream.h"
#include "codband/server/http/worker.h"

namespace codband::server {

// A connection that has been accepted.
struct Incoming {
  Socket socket;
  Admission::Place place;
  TlsContext tls = nullptr;  // nullptr: plain HTTP
};

// A socket with its buffers and timeouts; knows nothing about HTTP. Belongs to its worker's thread.
class Connection final : public WorkerClient {
 public:
  static constexpr std::size_t kSmallInput = 16 * 1024;  // the read buffer

  // What the connection waits for decides its timeout.
  enum class State {
    kIdle,       // between requests
    kReading,    // since the first byte of a request
    kAnswering,  // the service works on a request: no timeout, it always answers
    kWriting,    // the client is slow to take its reply
    kLingering,  // everything is written; waiting for the client to stop sending
  };

  // Worker and options are borrowed.
  Connection(Worker& worker, const ServerOptions& options, Incoming incoming);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  void OnTick(Clock::time_point now) override;
  void OnStop() override;
  bool OnRoomNeeded(Clock::time_point now) override;
  const std::optional<ClientNetwork>& network() const override { return place_.network(); }

  bool is_tls() const { return tls_ != nullptr; }
  // Of a connection with TLS, before anything else. A client that speaks plain HTTP instead can be
  // answered in plain HTTP.
  Awaitable<TlsStream::Opened> Handshake();

  void SetNoDelay();

  State state() const { return state_; }
  bool timed_out() const { return timed_out_; }
  bool gave_way() const { return gave_way_; }  // another one has its place
  Clock::time_point deadline() const { return deadline_; }
  // `timeout_ms` from now; 0: none.
  void Enter(State state, std::int64_t timeout_ms);
  void Enter(State state, Clock::time_point deadline);
  // Forgets a timeout of the request before.
  void ClearTimeout() { timed_out_ = false; }

  // Bytes that have been read and not consumed.
  std::string_view input() const { return {in_.data() + in_begin_, in_end_ - in_begin_}; }
  bool has_input() const { return in_begin_ < in_end_; }
  void Consume(std::size_t bytes) { in_begin_ += bytes; }
  // Whether the unconsumed input leaves no room for more.
  bool input_full() const { return in_begin_ == 0 && in_end_ == in_.size(); }
  // Makes the read buffer large, until the connection is idle again.
  void ExpectLargeInput();

  // Bytes that have not been written; append to it.
  std::string& output() { return out_; }

  // Writes the output, then waits for input. False: there will be none.
  Awaitable<bool> ReadMore();
  // Writes what the socket takes without waiting. False: the connection is broken.
  bool WriteSome();
  // Writes all. False: the connection is broken, or the client takes nothing.
  Awaitable<bool> WriteAll();
  // Ends the output and reads on for a while. Closing a socket with unread input resets the
  // connection, and the client could lose the last reply.
  Awaitable<void> Linger();

 private:
  Worker::Standing StandingOf(State state) const;
  void ClearOutput();

  Worker& worker_;
  const ServerOptions& options_;
  Socket socket_;
  Admission::Place place_;
  const bool gives_room_;           // when it is closed: one that is being refused has no place
  std::unique_ptr<TlsStream> tls_;  // nullptr: plain HTTP

  std::vector<char> in_;  // [in_begin_, in_end_) is read and not consumed
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::string out_;
  std::size_t out_begin_ = 0;  // bytes of out_ that are written

  State state_ = State::kIdle;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool timed_out_ = false;
  bool gave_way_ = false;  // closed because another connection needed its place
  // Last: nothing may fail once the worker knows the connection.
  const Worker::Clients::iterator client_;
};

// Clears the text, and gives its memory back if it has grown large.
void ClearAndShrink(std::string& text);

}  // namespace codband::server
