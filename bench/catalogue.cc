// What effects of items cost where there are many: a catalogue of 100,000 items with 25 features,
// ranked as a whole and ten at a time, with ids and without, none of the items shown yet, some, or
// all. Both
// policies learn from the same visits and are ranked in turns, so that a busy machine slows both
// alike; times are of the processor, medians. And the bytes that an item costs, of the heap.
#include <fmt/format.h>
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "codband/policy/item_effects.h"
#include "codband/policy/registry.h"

namespace codband {
namespace {

constexpr std::size_t kDim = 25;
constexpr UserId kUsers = 200;
constexpr std::size_t kTastes = 3;

double Microseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Ids as the server makes them: hashes.
ItemId IdOf(std::size_t item) { return RandomStream({17, item}, 920).Below(1ULL << 62U); }

class Shop {
 public:
  explicit Shop(std::size_t items)
      : features_(items * kDim),
        with_(std::move(MakePolicy("codband", {.dim = kDim})).value()),
        without_(std::move(MakePolicy("codband:items=none", {.dim = kDim})).value()),
        tastes_(kTastes * kDim) {
    RandomStream random({18, items}, 921);
    random.FillNormal(features_);
    random.FillNormal(tastes_);
    for (std::size_t i = 0; i < items; ++i) ids_.push_back(IdOf(i));
  }

  std::size_t size() const { return ids_.size(); }

  // Users are shown the items from `first` on, one after the other.
  void Show(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const UserId user = event_ % kUsers;
      const EventKey key{1, event_++};
      const std::span<const double> x = std::span(features_).subspan(i % size() * kDim, kDim);
      RandomStream random(key, 922);
      double reward = 0.1 * random.Normal();
      for (std::size_t f = 0; f < kDim; ++f) reward += x[f] * tastes_[user % kTastes * kDim + f];
      for (const bool ids : {false, true}) {
        Policy& policy = ids ? *with_ : *without_;
        policy.Choose(user, Offer(i % size(), 1, ids), key, decision_);
        policy.Learn(decision_, reward, key);
      }
    }
  }

  // Microseconds of a ranking of `count` items without ids and with them.
  std::pair<double, double> Measure(std::size_t count, std::size_t times) {
    std::vector<double> took[2];
    for (std::size_t i = 0; i < times; ++i) {
      for (const bool ids : {false, true}) {
        const std::size_t first = i * 7919 % (size() - count + 1);
        const double start = Microseconds();
        (ids ? *with_ : *without_)
            .Rank(i % kUsers, Offer(first, count, ids), {2, i}, 0.01, ranking_);
        took[ids ? 1 : 0].push_back(Microseconds() - start);
      }
    }
    return {Median(took[0]), Median(took[1])};
  }

 private:
  ArmsView Offer(std::size_t first, std::size_t count, bool ids) const {
    return {.features = std::span(features_).subspan(first * kDim, count * kDim),
            .dim = kDim,
            .items = ids ? std::span(ids_).subspan(first, count) : std::span<const ItemId>()};
  }

  std::vector<double> features_;
  std::vector<ItemId> ids_;
  std::unique_ptr<Policy> with_;
  std::unique_ptr<Policy> without_;
  std::vector<double> tastes_;
  Decision decision_;
  Ranking ranking_;
  std::uint64_t event_ = 0;
};

// Of an item that each of so many groups was shown once.
double BytesOfAnItem(std::size_t items, ModelId groups) {
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  ItemEffects effects(true);
  for (ModelId group = 0; group < groups; ++group) {
    for (std::size_t i = 0; i < items; ++i) {
      ItemHistory user;  // what users' records hold is theirs
      effects.Observe(user, IdOf(i), group, 0.1, 1, {});
    }
  }
  const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  return static_cast<double>(after - before) / static_cast<double>(items);
}

void Print(std::size_t items) {
  fmt::print("bytes of an item that one group was shown: {:.0f}, four groups: {:.0f}\n\n",
             BytesOfAnItem(items, 1), BytesOfAnItem(items, 4));
  fmt::print("| items shown | ranked | without ids, µs | with ids, µs | times |\n");
  fmt::print("|---|---|---|---|---|\n");
  Shop shop(items);
  std::size_t shown = 0;
  for (const std::size_t next : {std::size_t{0}, items / 100, items}) {
    shop.Show(shown, next - shown);
    shown = next;
    for (const std::size_t ranked : {std::size_t{10}, items}) {
      const auto [without, with] = shop.Measure(ranked, ranked == items ? 41 : 2001);
      fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.2f} |\n", shown, ranked, without, with,
                 with / without);
    }
  }
}

}  // namespace
}  // namespace codband

// catalogue [ITEMS]: 100,000 unless given.
int main(int argc, char** argv) {
  const std::size_t items = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  if (items < 1000 || items > codband::ItemEffects::kMostItems) {
    fmt::print(stderr, "catalogue [ITEMS]: a number from 1000 to {}\n",
               codband::ItemEffects::kMostItems);
    return 2;
  }
  codband::Print(items);
  return 0;
}
