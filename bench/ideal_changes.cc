// How soon a change of clicks can be noticed at all: the shop of bench/shop.py for filters that
// know every chance, of users of three tastes who are shown what they most probably like. A third
// of them changes half-way, all in one round. A filter tells a change when another taste than the
// last one told has more than a given chance.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "codband/base/random.h"
#include "codband/policy/codband/fashion.h"

namespace codband {
namespace {

constexpr std::size_t kTastes = 3;
constexpr std::size_t kRounds = 200;
constexpr double kLiked = 0.6;
constexpr double kOther = 0.05;
using Chances = std::array<double, kTastes>;

double Sum(const Chances& v) { return v[0] + v[1] + v[2]; }

Chances Densities(std::size_t shown, bool click) {
  Chances out;
  for (std::size_t k = 0; k < kTastes; ++k) {
    const double chance = k == shown ? kLiked : kOther;
    out[k] = click ? chance : 1 - chance;
  }
  return out;
}

class Filter {
 public:
  explicit Filter(std::size_t users) : beliefs(users, Chances{1. / 3, 1. / 3, 1. / 3}) {}
  virtual ~Filter() = default;

  std::size_t Likeliest(std::size_t user) const {
    return static_cast<std::size_t>(std::ranges::max_element(beliefs[user]) -
                                    beliefs[user].begin());
  }
  virtual void Learn(std::size_t user, std::size_t shown, bool click) = 0;
  virtual void EndRound() {}

  std::vector<Chances> beliefs;
};

// A fixed hazard, or one that fashions raise.
class HazardFilter final : public Filter {
 public:
  HazardFilter(std::size_t users, double calm, bool fashions)
      : Filter(users), calm_(calm), fashions_(fashions) {}

  void Learn(std::size_t user, std::size_t shown, bool click) override {
    const Chances densities = Densities(shown, click);
    const double hazard = fashion_.Hazard(calm_);
    Chances& belief = beliefs[user];
    double stays = 0;
    double moves = 0;
    for (std::size_t k = 0; k < kTastes; ++k) {
      const double comes = (1 - belief[k]) / 2;
      stays += belief[k] * densities[k];
      moves += comes * densities[k];
      belief[k] = ((1 - hazard) * belief[k] + hazard * comes) * densities[k];
    }
    const double sum = Sum(belief);
    for (double& chance : belief) chance /= sum;
    if (fashions_) fashion_.Weigh(calm_, moves / stays, beliefs.size());
  }

 private:
  double calm_;
  bool fashions_;
  Fashion fashion_;
};

// Told that a third of the users change in one round, and not which round: exact, over all of the
// last rounds in which it may have been.
class RoundFilter final : public Filter {
 public:
  explicit RoundFilter(std::size_t users)
      : Filter(users), calm_(beliefs), changed_(users), stayed_(users) {
    Begin();
  }

  void Learn(std::size_t user, std::size_t shown, bool click) override {
    const Chances densities = Densities(shown, click);
    double density = 0;
    for (std::size_t k = 0; k < kTastes; ++k) density += calm_[user][k] * densities[k];
    // All relative to no change at all.
    const auto weigh = [&](Chances& chances) {
      for (std::size_t k = 0; k < kTastes; ++k) chances[k] *= densities[k] / density;
    };
    weigh(calm_[user]);
    for (Chances& chances : changed_[user]) weigh(chances);
    for (Chances& chances : stayed_[user]) weigh(chances);
  }

  void EndRound() override {
    const std::size_t dates = changed_[0].size();
    std::vector<double> logs(dates, std::log(1.0 / kRounds));
    for (std::size_t date = 0; date < dates; ++date) {
      for (std::size_t user = 0; user < beliefs.size(); ++user) {
        logs[date] += std::log(Mixed(user, date));
      }
    }
    const double largest = std::max(0.0, *std::ranges::max_element(logs));
    for (std::size_t user = 0; user < beliefs.size(); ++user) {
      Chances& belief = beliefs[user];
      for (std::size_t k = 0; k < kTastes; ++k) {
        belief[k] = std::exp(-largest) * calm_[user][k];
        for (std::size_t date = 0; date < dates; ++date) {
          belief[k] += std::exp(logs[date] - largest) / Mixed(user, date) *
                       (kShare * changed_[user][date][k] + (1 - kShare) * stayed_[user][date][k]);
        }
      }
      const double sum = Sum(belief);
      for (double& chance : belief) chance /= sum;
    }
    Begin();
  }

 private:
  static constexpr double kShare = 1.0 / 3;
  static constexpr std::size_t kMostDates = 80;

  double Mixed(std::size_t user, std::size_t date) const {
    return kShare * Sum(changed_[user][date]) + (1 - kShare) * Sum(stayed_[user][date]);
  }

  void Begin() {
    for (std::size_t user = 0; user < beliefs.size(); ++user) {
      Chances comes;
      for (std::size_t k = 0; k < kTastes; ++k) comes[k] = (1 - calm_[user][k]) / 2;
      changed_[user].push_back(comes);
      stayed_[user].push_back(calm_[user]);
      if (changed_[user].size() <= kMostDates) continue;
      changed_[user].erase(changed_[user].begin());
      stayed_[user].erase(stayed_[user].begin());
    }
  }

  std::vector<Chances> calm_;  // if nobody has changed
  std::vector<std::vector<Chances>> changed_;
  std::vector<std::vector<Chances>> stayed_;
};

struct Result {
  double delay = 0;  // median
  double within_three = 0;
  double false_alarms = 0;  // in 1000 visits
};

Result Play(Filter& filter, double sure, std::uint64_t seed) {
  const std::size_t users = filter.beliefs.size();
  std::vector<std::size_t> told(users, kTastes);
  std::vector<double> delays(users, 0);  // 0: not yet
  Result result;
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t user = 0; user < users; ++user) {
      const bool changed = user % 3 == 0 && round >= kRounds / 2;
      const std::size_t taste = (user / 3 + (changed ? 1 + user % 2 : 0)) % kTastes;
      const std::size_t shown = filter.Likeliest(user);
      RandomStream random({seed, round * users + user}, 840);
      filter.Learn(user, shown, random.Uniform() < (shown == taste ? kLiked : kOther));
    }
    filter.EndRound();
    for (std::size_t user = 0; user < users; ++user) {
      const std::size_t now = filter.Likeliest(user);
      const double chance = filter.beliefs[user][now];
      if (told[user] == kTastes ? chance < 0.99 : now == told[user] || chance <= sure) continue;
      const bool first = told[user] == kTastes;
      told[user] = now;
      if (first) continue;
      if (user % 3 == 0 && round >= kRounds / 2 && delays[user] == 0) {
        delays[user] = static_cast<double>(round - kRounds / 2 + 1);
      } else {
        result.false_alarms += 1000.0 / static_cast<double>(users * kRounds);
      }
    }
  }
  std::vector<double> changed;
  for (std::size_t user = 0; user < users; user += 3) {
    changed.push_back(delays[user] == 0 ? kRounds : delays[user]);
  }
  std::ranges::sort(changed);
  result.delay = changed[changed.size() / 2];
  result.within_three =
      static_cast<double>(std::ranges::count_if(changed, [](double d) { return d <= 3; })) /
      static_cast<double>(changed.size());
  return result;
}

void PrintRow(const char* name, std::size_t users, double sure, const auto& make) {
  constexpr int kSeeds = 20;
  Result mean;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const std::unique_ptr<Filter> filter = make(users);
    const Result one = Play(*filter, sure, static_cast<std::uint64_t>(seed));
    mean.delay += one.delay / kSeeds;
    mean.within_three += one.within_three / kSeeds;
    mean.false_alarms += one.false_alarms / kSeeds;
  }
  fmt::print("| {} | {} | {} | {:.1f} | {:.2f} | {:.2f} |\n", name, users, sure, mean.delay,
             mean.within_three, mean.false_alarms);
}

}  // namespace
}  // namespace codband

int main() {
  using codband::HazardFilter;
  fmt::print(
      "| filter | users | told at | delay | within 3 | false in 1000 "
      "|\n|---|---|---|---|---|---|\n");
  for (const std::size_t users : {30U, 201U}) {
    for (const double sure : {0.5, 0.9}) {
      const auto row = [&](const char* name, const auto& make) {
        codband::PrintRow(name, users, sure, make);
      };
      for (const bool fashions : {false, true}) {
        row(fashions ? "hazard 1/600, fashions" : "hazard 1/600",
            [&](std::size_t n) { return std::make_unique<HazardFilter>(n, 1.0 / 600, fashions); });
        row(fashions ? "hazard 1/4000, fashions" : "hazard 1/4000",
            [&](std::size_t n) { return std::make_unique<HazardFilter>(n, 1.0 / 4000, fashions); });
      }
      row("told that a third changes in one round",
          [](std::size_t n) { return std::make_unique<codband::RoundFilter>(n); });
    }
  }
  return 0;
}
