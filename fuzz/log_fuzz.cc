// Any bytes in the log, among the pending decisions and their deadlines are refused or understood,
// never a crash; what was understood is written as it was read, and can be learned or is refused.
// The first byte says which table the rest is from.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "codband/base/check.h"
#include "codband/engine/records.h"
#include "codband/policy/registry.h"

namespace {

using namespace codband;

void ReadLogRecord(std::string_view bytes) {
  const auto record = engine::LogRecord::Decode(bytes);
  if (!record.ok()) return;
  if (record.value().Encode() != bytes) std::abort();
  if (record.value().kind != engine::LogRecord::Kind::kLearn) return;
  const auto policy = std::move(MakePolicy("codband", {.dim = 2})).value();
  try {
    policy->Learn(record.value().decision, record.value().reward, {1, record.value().event});
    policy->Forget(record.value().decision.user);
  } catch (const std::invalid_argument&) {
    // A decision that no policy made.
  }
}

void ReadPending(std::string_view bytes) {
  const auto pending = engine::PendingDecision::Decode(bytes);
  if (!pending.ok()) return;
  // What an older version wrote is written as the present one does.
  const std::string again = pending.value().Encode();
  const auto reread = engine::PendingDecision::Decode(again);
  if (again.size() < bytes.size() || !reread.ok()) std::abort();
  if (reread.value().Encode() != again) std::abort();
}

void ReadDeadline(std::string_view bytes) {
  const std::size_t key_size = std::min<std::size_t>(bytes.size(), 16);
  const auto deadline = engine::Deadline::Decode(bytes.substr(0, key_size), bytes.substr(key_size));
  if (deadline.ok() && deadline.value().Key() + deadline.value().Encode() != bytes) std::abort();
}

void ReadIdentity(std::string_view bytes) {
  const auto identity = engine::Identity::Decode(bytes);
  if (identity.ok() && identity.value().Encode() != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      ReadLogRecord(bytes);
      break;
    case 1:
      ReadPending(bytes);
      break;
    case 2:
      ReadDeadline(bytes);
      break;
    default:
      ReadIdentity(bytes);
  }
  return 0;
}
