#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "codband/engine/engine.h"
#include "codband/server/api/api.h"
#include "codband/server/http/service.h"

namespace codband::server {

// The API of a node. If this node has the engine it answers; if not, it passes the request on to
// the node that has it, once. Streamed bodies and what is not JSON are not passed on: they get 503
// with the address of the node to ask.
class ClusterService final : public Service {
 public:
  // `owner`: the URL of the node that has the engine; empty if there is none. From any thread.
  ClusterService(std::size_t max_line_bytes, ApiOptions options,
                 std::function<std::string()> owner);
  ~ClusterService() override;

  // The engine that answers from now on; nullptr: none. Returns once nobody uses the one before any
  // more. One thread at a time.
  void SetEngine(engine::Engine* engine);

  const Router& router() const override;
  void Start(std::size_t workers) override { workers_ = workers; }
  void Stop() override;
  Awaitable<void> Handle(Call& call) override;
  std::unique_ptr<BodyStream> OpenStream(const Call& call,
                                         std::optional<std::uint64_t> announced_bytes) override;
  void SetError(Reply& reply, const HttpError& error) const override;

 private:
  struct Served;
  class HeldReply;
  class HeldBody;
  class RefusedBody;

  std::shared_ptr<Served> Current() const;
  Awaitable<void> Forward(Call& call);
  void SetNotHere(Reply& reply, const std::string& owner) const;

  const std::size_t max_line_bytes_;
  const ApiOptions options_;
  const std::function<std::string()> owner_;
  std::size_t workers_ = 0;
  boost::asio::thread_pool forwards_;
  mutable std::mutex mutex_;  // guards what follows
  // Shared with the requests that it answers.
  std::shared_ptr<Served> served_;
};

}  // namespace codband::server
