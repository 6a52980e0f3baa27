#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codband/server/api/api.h"
#include "codband/server/api/item_import.h"
#include "codband/server/http/http_error.h"
#include "codband/server/http/reply.h"
#include "codband/server/http/request_reader.h"
#include "codband/server/http/server.h"
#include "codband/server/http/worker.h"

namespace codband::server {

// One connection: reads requests, has them answered in order, writes the answers. Answers to
// requests that came together are written together. Belongs to its worker's thread.
class Session final : public WorkerClient {
 public:
  // All borrowed but the socket; `gone` is called at the end.
  Session(Worker& worker, Api& api, const ServerOptions& options, Socket socket,
          std::function<void()> gone);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override;

  // Serves until the connection ends. Throws nothing. The caller keeps the session alive.
  Awaitable<void> Run();
  // Says that there are too many connections, and ends.
  Awaitable<void> Refuse();

  void OnTick(Clock::time_point now) override;
  void OnStop() override;

 private:
  enum class State {
    kIdle,       // between requests
    kReading,    // since the first byte of a request
    kAnswering,  // a request is being worked on: no limit, the engine always answers
    kWriting,    // the client is slow to take its answer
    kLingering,  // all is said; waiting for the client to stop sending
  };

  enum class Next {
    kAnswer,  // the request is here: have it answered
    kReply,   // the reply is made
    kEnd,     // the client is gone, or we stop: nothing to say
  };

  Awaitable<bool> ServeOne();
  Awaitable<Next> ReadRequest();
  Awaitable<Next> ReadHeader();
  Awaitable<Next> ReadBody();
  Awaitable<Next> ReadImport();
  Awaitable<bool> ReadMore();
  Awaitable<bool> WriteRest();
  Awaitable<void> Linger();

  // Feeds the parser with what has been read; false (and a reply) if it is not HTTP.
  bool Parse();
  void StartBody(std::uint64_t max_bytes);
  std::optional<HttpError> Objection() const;
  void Object(const HttpError& error);
  Next EndOfInput();
  void AppendReply(bool keep_alive);
  void Enter(State state, std::int64_t limit_ms);
  bool WriteSome();
  bool HasInput() const { return in_begin_ < in_end_; }

  Worker& worker_;
  Api& api_;
  const ServerOptions& options_;
  Socket socket_;
  std::function<void()> gone_;

  std::vector<char> in_;  // [in_begin_, in_end_) is read and not parsed
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::string out_;  // answers not written
  std::size_t out_begin_ = 0;

  RequestHead head_;
  std::string body_;
  std::optional<RequestReader> reader_;
  std::size_t header_bytes_ = 0;
  RouteMatch match_;
  Reply reply_;
  Clock::time_point received_;  // when the request was complete

  State state_ = State::kIdle;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool timed_out_ = false;
};

}  // namespace codband::server
