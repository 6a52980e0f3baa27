// Any bytes given to a policy's LoadState are refused or loaded, never a crash; a policy that was
// loaded can choose, learn and save.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "codband/policy/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace codband;
  constexpr std::size_t kDim = 2;
  static const std::vector<std::string> specs = [] {
    std::vector<std::string> learners = RegisteredSpecs();
    std::erase_if(learners,
                  [](const std::string& spec) { return FindPolicy(spec).value()->knows_truth; });
    return learners;
  }();
  if (size == 0) return 0;
  // The first byte names the policy, the rest is its state, without an envelope: a checksum would
  // keep the fuzzer out.
  const std::string& spec = specs[data[0] % specs.size()];
  const auto policy = std::move(MakePolicy(spec, {.dim = kDim})).value();
  ByteReader in({reinterpret_cast<const char*>(data) + 1, size - 1});
  policy->LoadState(in);
  if (!in.ok()) return 0;
  const std::vector<double> arms = {1, 0, 0, 1};
  try {
    for (UserId user = 0; user < 3; ++user) {
      const Decision decision = policy->Choose(user, {arms, kDim}, {1, user});
      policy->Learn(decision, 0.5, {1, user});
      policy->Forget(user);
    }
  } catch (const InternalError&) {
    // Numbers that no run could have produced (a huge negative sum) may break an invariant; that
    // is reported, not undefined.
  }
  ByteWriter out;
  policy->SaveState(out);
  return 0;
}
