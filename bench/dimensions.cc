// What a reward and rankings of ten and of a thousand arms cost codband by the number of features,
// d = 8 … 1024: dense vectors, and sparse ones with eight names of d. Three users of three tastes;
// settled ones have brought more rewards than there are features. Times are of the processor, means
// over all rewards (those that bring a review or another prior included) of several rounds in which
// the dimensions take turns, so that a busy machine slows all of them alike. Records are of a
// settled user, and of one who has brought sixteen rewards.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "codband/linalg/kernels.h"
#include "codband/policy/paged_users.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kTastes = 3;
constexpr UserId kUsers = 3;
constexpr std::size_t kFew = 10;  // arms
constexpr std::size_t kMany = 1000;
constexpr std::size_t kNames = 8;  // of a sparse vector
constexpr int kRounds = 5;

double Seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Population {
 public:
  Population(std::size_t dim, bool sparse)
      : dim_(dim),
        sparse_(sparse),
        policy_(std::move(MakePolicy("codband", {.dim = dim})).value()),
        tastes_(kTastes, std::vector<double>(dim)) {
    RandomStream random({9, dim}, 910);
    for (auto& taste : tastes_) random.FillNormal(taste);
  }

  std::size_t dim() const { return dim_; }

  // Rewards of all users until each has so many.
  void WarmUp(std::size_t rewards) {
    for (std::size_t i = 0; i < rewards; ++i) {
      for (UserId user = 0; user < kUsers; ++user) Learn(user, Arms(1));
    }
  }

  // Microseconds for a reward, and for a ranking.
  void Measure(std::size_t count) {
    std::vector<std::vector<double>> arms;
    for (std::size_t i = 0; i < count; ++i) arms.push_back(Arms(1));
    double start = Seconds();
    for (std::size_t i = 0; i < count; ++i) Learn(i % kUsers, arms[i]);
    reward_us += 1e6 * (Seconds() - start) / static_cast<double>(count) / kRounds;
    rank_us += RankingTime(kFew, std::max<std::size_t>(count / 4, 4)) / kRounds;
    rank_many_us += RankingTime(kMany, std::max<std::size_t>(count / 64, 3)) / kRounds;
  }

  // Kilobytes of a user's record; of one who is new, after sixteen rewards.
  double RecordSize(bool settled) {
    const UserId user = settled ? 0 : kUsers;
    for (int i = 0; !settled && i < 16; ++i) Learn(user, Arms(1));
    std::size_t bytes = 0;
    policy_->paged_users()->SaveChangedUsers([&](UserId id, const std::string& record) {
      if (id == user) bytes = record.size();
    });
    return static_cast<double>(bytes) / 1000;
  }

  double reward_us = 0;
  double rank_us = 0;
  double rank_many_us = 0;

 private:
  double RankingTime(std::size_t arms, std::size_t rankings) {
    const std::vector<double> offer = Arms(arms);
    const double start = Seconds();
    for (std::size_t i = 0; i < rankings; ++i) {
      policy_->Rank(i % kUsers, {offer, dim_}, {1, event_ + i}, 0.01, ranking_);
    }
    return 1e6 * (Seconds() - start) / static_cast<double>(rankings);
  }

  std::vector<double> Arms(std::size_t count) {
    RandomStream random({9, ++drawn_}, 911);
    std::vector<double> arms(count * dim_);
    if (!sparse_) {
      random.FillNormal(arms);
      return arms;
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t name = 0; name < std::min(kNames, dim_ / 2); ++name) {
        arms[i * dim_ + random.Below(dim_)] = 1;
      }
    }
    return arms;
  }

  void Learn(UserId user, const std::vector<double>& arm) {
    const EventKey key{1, event_++};
    decision_.user = user;
    decision_.features = arm;
    const double mean = linalg::Dot(arm, tastes_[user % kTastes]);
    policy_->Learn(decision_, mean + 0.1 * RandomStream(key, 912).Normal(), key);
  }

  std::size_t dim_;
  bool sparse_;
  std::unique_ptr<Policy> policy_;
  std::vector<std::vector<double>> tastes_;
  Decision decision_;
  Ranking ranking_;
  std::uint64_t event_ = 0;
  std::uint64_t drawn_ = 0;
};

void PrintTable(bool sparse, std::size_t most) {
  std::vector<std::unique_ptr<Population>> all;
  for (std::size_t dim = 8; dim <= most; dim *= 2) {
    all.push_back(std::make_unique<Population>(dim, sparse));
    const double start = Seconds();
    all.back()->WarmUp(std::max<std::size_t>(64, dim + dim / 4));
    std::fprintf(stderr, "d = %zu: settled after %.1f s\n", dim, Seconds() - start);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& each : all) each->Measure(std::max<std::size_t>(64, 32768 / each->dim()));
  }
  const Population& reference = *all[std::min<std::size_t>(2, all.size() - 1)];
  fmt::print("\n{} vectors, times those of d = {}\n\n", sparse ? "sparse" : "dense",
             reference.dim());
  fmt::print(
      "| d | reward, µs | times | (d/{0})² | rank of ten, µs | times | rank of 1000, µs | an arm | "
      "record, kB | after 16 |\n",
      reference.dim());
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& each : all) {
    const double ratio = static_cast<double>(each->dim()) / static_cast<double>(reference.dim());
    fmt::print(
        "| {} | {:.1f} | {:.2f} | {:.2f} | {:.1f} | {:.2f} | {:.0f} | {:.2f} | {:.1f} | {:.1f} |\n",
        each->dim(), each->reward_us, each->reward_us / reference.reward_us, ratio * ratio,
        each->rank_us, each->rank_us / reference.rank_us, each->rank_many_us,
        (each->rank_many_us - each->rank_us) / (kMany - kFew), each->RecordSize(true),
        each->RecordSize(false));
  }
}

}  // namespace
}  // namespace codband

// dimensions [MOST]: up to so many features, 1024 unless given.
int main(int argc, char** argv) {
  const std::size_t most = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
  if (most < 32 || most > codband::kMaxFeatures) {
    std::fprintf(stderr, "dimensions [MOST]: a number from 32 to %zu\n", codband::kMaxFeatures);
    return 2;
  }
  for (const bool sparse : {false, true}) codband::PrintTable(sparse, most);
  return 0;
}
