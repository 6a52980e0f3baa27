#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "codband/server/http/connection.h"
#include "codband/server/http/gatekeeper.h"
#include "codband/server/http/gzip_decoder.h"
#include "codband/server/http/http_error.h"
#include "codband/server/http/reply.h"
#include "codband/server/http/request_guard.h"
#include "codband/server/http/request_reader.h"
#include "codband/server/http/service.h"

namespace codband::server {

// The requests of one connection: reads them, has the service answer them in order, writes the
// replies. Replies to pipelined requests are written together. Belongs to its worker's thread.
class Session final {
 public:
  // All are borrowed but the connection.
  Session(Worker& worker, Service& service, const ServerView& server, const ServerOptions& options,
          const RequestGuard& guard, Incoming incoming);

  // Serves until the connection ends. Throws nothing. The caller keeps the session alive.
  Awaitable<void> Run();
  // Replies that there are too many connections (of the client's network), and ends.
  Awaitable<void> Refuse(bool of_network);

 private:
  using Clock = WorkerClient::Clock;
  using State = Connection::State;

  enum class Next {
    kHandle,  // the request is complete: hand it to the service
    kReply,   // the reply is complete
    kEnd,     // the client is gone or the server stops: no reply
  };

  Awaitable<bool> Open();
  Awaitable<bool> ServeOne();
  // Replies to the request at hand that it failed, if that is possible.
  Awaitable<void> ReplyFailed(const std::exception_ptr& failure);
  Awaitable<Next> ReadRequest();
  Awaitable<Next> ReadHeader();
  Awaitable<Next> ReadBody();
  Awaitable<Next> ReadStream();

  // Feeds the parser with the input; false (and a reply) if it is not HTTP or too large.
  bool Parse();
  void StartBody(std::uint64_t max_bytes);
  // What is wrong with the request's head, if anything.
  std::optional<HttpError> CheckHead();
  std::optional<HttpError> CheckRoute() const;
  // Of the body of the request at hand, whose route is known.
  std::size_t MostBody() const;
  // Answers a browser that asks whether a page of an allowed origin may send a request (CORS).
  void AnswerPreflight();
  // Replies with the error, before the body is read.
  void RefuseRequest(const HttpError& error);
  void SkipBody();
  void SetTooLarge();
  Next EndOfInput();
  // Replaces a body of gzip by what it says; false (and a reply) if that is too large or not gzip.
  bool DecodeBody();
  // Hands what has been read of a streamed body to the service, decoded in pieces of a bounded
  // size. Whether it wants more.
  Awaitable<bool> Deliver(BodyStream& stream, bool last);
  // Writes a reply without an end until the client is gone or the server stops.
  Awaitable<void> RunReplyStream(ReplyStream& stream);
  void AppendReply(bool keep_alive);
  Call MakeCall() {
    return {.worker = worker_,
            .server = server_,
            .match = match_,
            .head = head_,
            .client = access_.client(),
            .body = body_,
            .reply = reply_};
  }

  Worker& worker_;
  Service& service_;
  const ServerView& server_;
  const ServerOptions& options_;
  const RequestGuard& guard_;
  RequestAccess access_;
  Connection connection_;

  // Of the request at hand; reused, so that strings keep their memory.
  RequestHead head_;
  std::string body_;
  std::optional<RequestReader> reader_;
  std::unique_ptr<GzipDecoder> decoder_;  // while a body of gzip arrives
  std::string decoded_;
  std::uint64_t decoded_bytes_ = 0;
  bool cors_ = false;  // a page of an allowed origin sent it
  std::size_t header_bytes_ = 0;
  RouteMatch match_;
  Reply reply_;
  bool replied_ = false;        // the reply is in the output of the connection
  Clock::time_point received_;  // when the last byte arrived; of a streamed body, the header's last
};

}  // namespace codband::server
