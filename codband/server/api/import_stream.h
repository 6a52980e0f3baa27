#pragma once

#include <cstdint>
#include <optional>

#include "codband/engine/engine.h"
#include "codband/server/api/item_import.h"
#include "codband/server/http/service.h"

namespace codband::server {

// A bulk import while its body arrives. Up to kAtomicBytes it is all or nothing: no item is put
// before every line has been read. A larger import is put in batches; an error then says how many
// items are in the catalogue.
class ImportStream final : public BodyStream {
 public:
  static constexpr std::uint64_t kAtomicBytes = 64u * 1024 * 1024;
  static constexpr std::size_t kBatchItems = 1000;  // at least, in a larger import

  // All are borrowed.
  ImportStream(engine::Engine& engine, JsonParser& parser, const Call& call,
               std::size_t max_line_bytes, std::optional<std::uint64_t> announced_bytes);

  Awaitable<bool> Take(std::string_view piece, bool last) override;

 private:
  using Clock = std::chrono::steady_clock;

  // Reads the piece and puts what is due. Errors of a line name no field but the line's.
  Awaitable<Status> TakePiece(std::string_view piece, bool last);
  Awaitable<Status> PutReady();
  void SetReply();

  engine::Engine& engine_;
  Worker& worker_;
  Reply& reply_;
  ItemImport import_;
  const bool announced_large_;
  const Clock::time_point start_ = Clock::now();
  std::uint64_t imported_ = 0;
  bool line_at_fault_ = true;  // whether an error is that of the last line read
};

}  // namespace codband::server
