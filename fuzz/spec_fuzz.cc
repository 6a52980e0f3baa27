// Any text is a policy or a clear refusal; the spec of a policy makes the same policy again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "codband/policy/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace codband;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::string& spec : SplitPolicyList(text)) {
    const auto policy = MakePolicy(spec, {.dim = 2});
    if (!policy.ok()) {
      if (policy.status().message().empty()) std::abort();
      continue;
    }
    const auto again = MakePolicy(policy.value()->spec(), {.dim = 2});
    if (!again.ok() || again.value()->spec() != policy.value()->spec()) std::abort();
  }
  return 0;
}
