// Any bytes as a log of decisions, in DSJSON ('d', the first byte) or CSV, are read or refused with
// a reason, and what is read can be evaluated: estimates are numbers.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "codband/eval/evaluate.h"
#include "codband/eval/log_reader.h"
#include "codband/eval/make_target.h"

namespace {

using namespace codband;

// The name of a file with these bytes, in memory, which is the same at every call.
std::string MemoryFile(const std::uint8_t* data, std::size_t size) {
  static const int descriptor = ::memfd_create("log", 0);
  if (descriptor < 0 || ::ftruncate(descriptor, 0) != 0) std::abort();
  if (::pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  return "/proc/self/fd/" + std::to_string(descriptor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const eval::LogSource source{.files = {MemoryFile(data + 1, size - 1)},
                               .limits = {.memory_bytes = 1U << 20U}};
  const auto read = data[0] == 'd' ? eval::ReadDsJsonLog(source, {}) : eval::ReadCsvLog(source, {});
  if (!read.ok()) {
    if (read.status().message().empty()) std::abort();
    return 0;
  }
  const eval::LoggedDecisions& log = read.value().log;
  std::vector<std::unique_ptr<eval::Target>> targets;
  for (const char* policy : {"logged", "uniform", "codband"}) {
    if (log.dim() > 32 && targets.size() == 2) break;  // takes long
    auto target = eval::MakeTarget(policy, log, {});
    if (!target.ok()) std::abort();
    targets.push_back(std::move(target).value());
  }
  const auto evaluation = eval::Evaluate(log, targets, {.resamples = 4});
  if (!evaluation.ok()) return 0;
  for (const eval::TargetReport& target : evaluation.value().targets) {
    for (const eval::Estimate& estimate : target.estimates) {
      if (estimate.value && !std::isfinite(*estimate.value)) std::abort();
    }
  }
  return 0;
}
