// A program with a policy inside: what brightness does the reader like at this hour? It keeps what
// it has learned in a file and goes on with it the next time.
//   embedded [STATE-FILE]
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "codband/policy/registry.h"
#include "codband/policy/state_file.h"

namespace {

constexpr std::size_t kFeatures = 6;  // brightness level × day or night
constexpr std::size_t kLevels = 3;

// One row for each level; at night the other half of the features is used.
std::vector<double> Offer(bool night) {
  std::vector<double> arms(kLevels * kFeatures);
  for (std::size_t level = 0; level < kLevels; ++level) {
    arms[level * kFeatures + level + (night ? kLevels : 0)] = 1;
  }
  return arms;
}

// Bright by day, dim by night.
double Liked(bool night, std::size_t level) { return level == (night ? 0U : 2U) ? 1 : 0; }

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path file = argc > 1 ? argv[1] : "brightness.state";
  auto made = std::filesystem::exists(file) ? codband::ReadStateFile(file, {.dim = kFeatures})
                                            : codband::MakePolicy("codband", {.dim = kFeatures});
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().message().c_str());
    return 1;
  }
  const std::unique_ptr<codband::Policy> policy = std::move(made).value();

  std::size_t liked = 0;
  constexpr std::size_t kEvenings = 100;
  for (std::size_t i = 0; i < kEvenings; ++i) {
    const bool night = i % 2 == 1;
    const std::vector<double> arms = Offer(night);
    const codband::EventKey key{.seed = 1, .event = i};
    const codband::Decision decision = policy->Choose(7, {arms, kFeatures}, key);
    const double reward = Liked(night, decision.arm);
    policy->Learn(decision, reward, key);
    liked += reward > 0 ? 1 : 0;
  }
  std::printf("liked %zu of %zu\n", liked, kEvenings);
  const codband::Status saved = codband::WriteStateFile(*policy, file);
  if (!saved.ok()) std::fprintf(stderr, "%s\n", saved.message().c_str());
  return saved.ok() ? 0 : 1;
}
