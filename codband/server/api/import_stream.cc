#include "codband/server/api/import_stream.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>

#include "codband/server/api/api_error.h"

namespace codband::server {

ImportStream::ImportStream(engine::Engine& engine, JsonParser& parser, const Call& call,
                           std::size_t max_line_bytes, std::optional<std::uint64_t> announced_bytes)
    : engine_(engine),
      worker_(call.worker),
      reply_(call.reply),
      import_(parser, engine.dim(), max_line_bytes),
      announced_large_(announced_bytes.value_or(0) > kAtomicBytes) {}

Awaitable<bool> ImportStream::Take(std::string_view piece, bool last) {
  std::exception_ptr failure;
  try {
    const Status status = co_await TakePiece(piece, last);
    if (status.ok()) {
      if (last) SetReply();
      co_return true;
    }
    ImportProgress progress{.imported = imported_};
    if (line_at_fault_) progress.line = import_.line();
    SetApiError(reply_, ToHttpError(status), progress);
    co_return false;
  } catch (...) {
    failure = std::current_exception();
  }
  reply_.Reset();
  SetApiError(reply_, ErrorOfException(failure), ImportProgress{.imported = imported_});
  co_return false;
}

Awaitable<Status> ImportStream::TakePiece(std::string_view piece, bool last) {
  Status status = import_.Feed(piece);
  if (status.ok() && last) status = import_.Finish();
  if (!status.ok()) co_return status;
  const bool large = announced_large_ || import_.bytes() > kAtomicBytes;
  if (import_.ready() > 0 && (last || (large && import_.ready() >= kBatchItems))) {
    status = co_await PutReady();
  }
  if (status.ok() && last && imported_ == 0) {
    status = Status::InvalidArgument("body: is empty, expected one JSON object per line");
    line_at_fault_ = false;
  }
  co_return status;
}

Awaitable<Status> ImportStream::PutReady() {
  const std::size_t count = import_.ready();
  Pending<Status> call(worker_);
  engine_.PutItems(import_.Take(),
                   [call = &call](Status status) { call->Finish(std::move(status)); });
  co_await call.Wait();
  Status status = call.Take();
  if (status.ok()) {
    imported_ += count;
  } else {
    line_at_fault_ = false;  // the batch as a whole was refused
  }
  co_return status;
}

void ImportStream::SetReply() {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
  fmt::format_to(std::back_inserter(reply_.body),
                 "{{\"accepted\":{},\"status\":\"ok\",\"tookMillis\":{}}}", imported_,
                 took.count());
}

}  // namespace codband::server
