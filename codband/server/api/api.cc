#include "codband/server/api/api.h"

#include <fmt/format.h>

#include <exception>

#include "codband/base/check.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/live_feed.h"

namespace codband::server {

Api::Api(engine::Engine& engine, std::size_t max_line_bytes, ApiOptions options)
    : engine_(engine), max_line_bytes_(max_line_bytes), options_(std::move(options)) {}

void Api::Start(std::size_t workers) { parsers_ = std::vector<JsonParser>(workers); }

Api::~Api() { Stop(); }

void Api::Stop() {
  BeginStop();
  reports_.join();
  backups_.join();
  evaluations_.pool().join();
}

Awaitable<void> Api::Handle(Call& call) {
  std::exception_ptr failure;
  try {
    const Row& row = Table()[call.match.index];
    CODBAND_CHECK(row.handler != nullptr);
    co_await (this->*row.handler)(call);
    co_return;
  } catch (...) {
    failure = std::current_exception();
  }
  call.reply.Reset();
  SetApiError(call.reply, ErrorOfException(failure));
}

std::unique_ptr<BodyStream> Api::OpenStream(const Call& call,
                                            std::optional<std::uint64_t> announced_bytes) {
  const Row& row = Table()[call.match.index];
  CODBAND_CHECK(row.open_stream != nullptr);
  return (this->*row.open_stream)(call, announced_bytes);
}

void Api::SetError(Reply& reply, const HttpError& error) const { SetApiError(reply, error); }

Result<std::unique_ptr<Server>> StartServer(engine::Engine& engine, const ServerOptions& options,
                                            ApiOptions api_options) {
  api_options.gatekeeper = options.gatekeeper;
  api_options.tls = !options.tls.empty();
  return Server::Start(
      std::make_unique<Api>(engine, options.max_body_bytes, std::move(api_options)), options);
}

}  // namespace codband::server
