// The C++ side of python/bench/overhead.py: plays recorded visits and times the policy alone.
//
// native_steps SPEC FILE USERS VISITS ARMS DIM BATCH
//
// FILE holds doubles: for every visit the features of the arms, then for every visit the rewards of
// the arms. Users visit in turn. Chooses for BATCH visits, which divides VISITS, then learns them.
// Prints microseconds of processor time per step, and the sum of the rewards.
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "codband/policy/registry.h"

namespace codband {
namespace {

struct Visits {
  std::size_t users, count, arms, dim;
  std::vector<double> features, rewards;

  ArmsView offer(std::size_t visit) const {
    return {std::span(features).subspan(visit * arms * dim, arms * dim), dim};
  }
  double reward(std::size_t visit, std::size_t arm) const { return rewards[visit * arms + arm]; }
};

double Seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The sum of the rewards.
double PlayBatch(Policy& policy, const Visits& visits, std::size_t first,
                 std::vector<Decision>& decisions) {
  double sum = 0;
  std::size_t visit = first;
  for (Decision& decision : decisions) {
    policy.Choose(visit % visits.users, visits.offer(visit), {.seed = 1, .event = visit}, decision);
    ++visit;
  }
  visit = first;
  for (const Decision& decision : decisions) {
    const double reward = visits.reward(visit, decision.arm);
    policy.Learn(decision, reward, {.seed = 1, .event = visit});
    sum += reward;
    ++visit;
  }
  return sum;
}

int Play(const char* spec, const Visits& visits, std::size_t batch) {
  auto policy = MakePolicy(spec, {.dim = visits.dim});
  if (!policy.ok()) {
    std::fprintf(stderr, "%s\n", policy.status().message().c_str());
    return 1;
  }
  std::vector<Decision> decisions(batch);
  double sum = 0;
  const double start = Seconds();
  for (std::size_t first = 0; first < visits.count; first += batch) {
    sum += PlayBatch(*policy.value(), visits, first, decisions);
  }
  fmt::print("{:.17g} {:.17g}\n", 1e6 * (Seconds() - start) / static_cast<double>(visits.count),
             sum);
  return 0;
}

}  // namespace
}  // namespace codband

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "native_steps SPEC FILE USERS VISITS ARMS DIM BATCH\n");
    return 2;
  }
  const auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
  codband::Visits visits{number(3), number(4), number(5), number(6), {}, {}};
  visits.rewards.resize(visits.count * visits.arms);
  visits.features.resize(visits.rewards.size() * visits.dim);
  std::ifstream file(argv[2], std::ios::binary);
  for (std::vector<double>* part : {&visits.features, &visits.rewards}) {
    file.read(reinterpret_cast<char*>(part->data()),
              static_cast<std::streamsize>(part->size() * sizeof(double)));
  }
  if (!file) {
    std::fprintf(stderr, "%s: too short\n", argv[2]);
    return 1;
  }
  return codband::Play(argv[1], visits, number(7));
}
