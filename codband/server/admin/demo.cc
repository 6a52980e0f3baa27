#include "codband/server/admin/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>
#include <string_view>

namespace codband::server {
namespace {

constexpr std::size_t kArtists = 300;
constexpr std::size_t kOffer = 20;   // candidates of a visit
constexpr std::size_t kBatch = 256;  // concurrent visits during the burst

constexpr std::array<std::string_view, 12> kGenres = {"rock",    "jazz",      "folk",    "techno",
                                                      "hip-hop", "classical", "country", "soul",
                                                      "metal",   "ambient",   "reggae",  "pop"};
constexpr std::array<std::string_view, 4> kMoods = {"calm", "wild", "sad", "sunny"};
constexpr std::array<std::string_view, 5> kDecades = {"1980s", "1990s", "2000s", "2010s", "2020s"};
constexpr std::array<std::string_view, 20> kFirstWords = {
    "silver", "velvet",   "midnight", "paper",     "electric", "quiet", "golden",
    "hollow", "northern", "wooden",   "crimson",   "broken",   "lucky", "distant",
    "little", "burning",  "frozen",   "wandering", "neon",     "gentle"};
constexpr std::array<std::string_view, 15> kSecondWords = {
    "foxes",   "harbour", "lanterns", "wolves", "gardens", "engines",  "sparrows", "rivers",
    "mirrors", "pilots",  "orchids",  "tides",  "ghosts",  "bicycles", "saints"};
constexpr std::array<std::string_view, 25> kNames = {
    "ada",   "ben",  "carla", "dmitri", "elif", "femi",  "greta", "hugo",  "ines",
    "jonas", "kira", "leo",   "mara",   "nils", "olga",  "pablo", "quinn", "rosa",
    "sven",  "tara", "umar",  "vera",   "wim",  "xenia", "yuki"};

// What a taste adds to the probability of a play, which is small otherwise.
struct Taste {
  std::array<std::string_view, 3> genres;  // favourite first
  std::string_view mood;
  std::string_view decade;
};
constexpr std::array<Taste, 8> kTastes = {{
    {{"rock", "metal", "country"}, "wild", "1980s"},
    {{"jazz", "soul", "classical"}, "calm", "1990s"},
    {{"folk", "country", "pop"}, "sunny", "2010s"},
    {{"techno", "ambient", "pop"}, "wild", "2000s"},
    {{"hip-hop", "soul", "reggae"}, "sunny", "2020s"},
    {{"classical", "ambient", "jazz"}, "sad", "1980s"},
    {{"metal", "techno", "rock"}, "sad", "2010s"},
    {{"pop", "reggae", "hip-hop"}, "calm", "2020s"},
}};
constexpr std::array<double, 3> kGenreWorth = {0.6, 0.35, 0.2};

// Keys of the random streams.
enum Purpose : std::uint64_t { kWorld = 1, kVisit = 2, kPlay = 3 };

std::string Feature(std::string_view kind, std::string_view value) {
  return fmt::format("{}={}", kind, value);
}

double Value(const engine::Item& item, const std::string& name) {
  const auto found = std::ranges::find(item.named, name, &features::NamedFeature::name);
  return found == item.named.end() ? 0 : found->value;
}

engine::Item MakeArtist(std::size_t number, std::size_t dim, RandomStream& random) {
  engine::Item item;
  item.id = fmt::format("{}-{}", kFirstWords[number % kFirstWords.size()],
                        kSecondWords[number / kFirstWords.size()]);
  const std::size_t genre = random.Below(kGenres.size());
  const std::size_t other = random.Below(kGenres.size());
  const std::string_view mood = kMoods[random.Below(kMoods.size())];
  const std::string_view decade = kDecades[random.Below(kDecades.size())];
  item.named = {{Feature("genre", kGenres[genre]), 1.0}};
  item.tags.emplace_back(kGenres[genre]);
  if (other != genre && random.Uniform() < 0.4) {
    item.named.push_back({Feature("genre", kGenres[other]), 0.5});
    item.tags.emplace_back(kGenres[other]);
  }
  item.named.push_back({Feature("mood", mood), 0.5});
  item.named.push_back({Feature("decade", decade), 0.5});
  // Rounded to hundredths, as people write it.
  item.named.push_back({"energy", static_cast<double>(random.Below(101)) / 100});
  item.tags.emplace_back(mood);
  item.tags.emplace_back(decade);
  if (dim == 0) return item;  // every name has a column
  item.features.resize(dim);
  features::HashFeatures(item.named, item.features);
  return item;
}

}  // namespace

DemoWorld::DemoWorld(std::size_t dim, const DemoOptions& options) : options_(options) {
  RandomStream random({options.seed, 0}, kWorld);
  std::vector<std::size_t> numbers(kArtists);
  std::iota(numbers.begin(), numbers.end(), 0);
  random.Shuffle(std::span(numbers));
  for (const std::size_t number : numbers) items_.push_back(MakeArtist(number, dim, random));
  for (std::size_t u = 0; u < options.users; ++u) {
    // Some tastes are more common than others.
    const std::size_t taste = std::min(random.Below(kTastes.size()), random.Below(kTastes.size()));
    users_.push_back(
        {.name = fmt::format("{}-{}", kNames[u % kNames.size()], u / kNames.size() + 1),
         .taste = taste});
  }
}

DemoWorld::Visit DemoWorld::Next() {
  Visit visit{.number = next_visit_++};
  RandomStream random({options_.seed, visit.number}, kVisit);
  visit.user = random.Below(users_.size());
  bool changes = random.Uniform() < options_.chance_of_change;
  if (options_.story_every > 0 && visit.number % options_.story_every == 0) {
    visit.user = 0;
    changes = ++story_visits_ % options_.story_changes == 0;
  } else if (visit.user == 0 && options_.story_every > 0) {
    changes = false;  // by the story alone
  }
  if (changes) {
    User& user = users_[visit.user];
    user.taste = (user.taste + 1 + random.Below(kTastes.size() - 1)) % kTastes.size();
  }
  visit.taste = users_[visit.user].taste;
  while (visit.offer.size() < kOffer) {
    const std::size_t item = random.Below(items_.size());
    if (std::ranges::count(visit.offer, item) == 0) visit.offer.push_back(item);
  }
  return visit;
}

double DemoWorld::PlayChance(std::size_t taste, std::size_t item) const {
  const Taste& likes = kTastes[taste];
  double chance = 0.03;
  for (std::size_t g = 0; g < likes.genres.size(); ++g) {
    chance += kGenreWorth[g] * Value(items_[item], Feature("genre", likes.genres[g]));
  }
  chance += 0.2 * Value(items_[item], Feature("mood", likes.mood));
  chance += 0.2 * Value(items_[item], Feature("decade", likes.decade));
  if (likes.mood == "wild" || likes.mood == "sunny") chance += 0.1 * Value(items_[item], "energy");
  return std::min(chance, 0.95);
}

double DemoWorld::Reward(const Visit& visit, const std::string& item) const {
  const auto found = std::ranges::find(items_, item, &engine::Item::id);
  if (found == items_.end()) return 0;
  RandomStream random({options_.seed, visit.number}, kPlay);
  const auto index = static_cast<std::size_t>(found - items_.begin());
  return random.Uniform() < PlayChance(visit.taste, index) ? 1 : 0;
}

Result<std::unique_ptr<Demo>> Demo::Start(engine::Engine& engine, const DemoOptions& options) {
  std::unique_ptr<Demo> demo(new Demo(engine, options));
  std::promise<Status> stored;
  engine.PutItems(demo->world_.items(),
                  [&](Status status) { stored.set_value(std::move(status)); });
  CODBAND_RETURN_IF_ERROR(stored.get_future().get());
  demo->thread_ = std::thread([raw = demo.get()] { raw->Run(); });
  return demo;
}

Demo::Demo(engine::Engine& engine, const DemoOptions& options)
    : engine_(engine),
      options_(options),
      world_(engine.dim(), options),
      run_(fmt::format("demo-{}", engine.Stats().committed_sequence)) {}

Demo::~Demo() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Demo::warm() const {
  const std::scoped_lock lock(mutex_);
  return warm_;
}

void Demo::Run() {
  // A directory with users has something to show already.
  const std::size_t burst = engine_.Stats().users > 0 ? 0 : options_.burst;
  const auto stopped = [this] {
    const std::scoped_lock lock(mutex_);
    return stopping_;
  };
  for (std::size_t played = 0; played < burst && !stopped(); played += kBatch) {
    Play(std::min(kBatch, burst - played));
  }
  std::unique_lock lock(mutex_);
  warm_ = true;
  constexpr auto kTick = std::chrono::milliseconds(100);
  double due = 0;
  while (!stop_.wait_for(lock, kTick, [this] { return stopping_; })) {
    due += options_.visits_per_second * std::chrono::duration<double>(kTick).count();
    lock.unlock();
    if (due >= 1) Play(static_cast<std::size_t>(due));
    due -= static_cast<double>(static_cast<std::size_t>(due));
    lock.lock();
  }
}

// Ranks all visits at once, so that they share group commits, then sends all rewards. A visit that
// the engine refuses is skipped.
void Demo::Play(std::size_t visits) {
  struct Pending {
    DemoWorld::Visit visit;
    engine::RankReply reply;
    std::future<Status> durable;
  };
  std::vector<Pending> pending;
  for (std::size_t v = 0; v < visits; ++v) {
    DemoWorld::Visit visit = world_.Next();
    engine::RankRequest request{.event_id = fmt::format("{}-{}", run_, visit.number),
                                .user = world_.user(visit.user)};
    for (const std::size_t item : visit.offer) {
      request.candidates.push_back({.id = world_.items()[item].id});
    }
    auto promise = std::make_shared<std::promise<Status>>();
    pending.push_back({std::move(visit), {}, promise->get_future()});
    engine_.Rank(
        std::move(request), [&](const engine::RankReply& reply) { pending.back().reply = reply; },
        [promise](Status status) { promise->set_value(std::move(status)); });
  }
  std::vector<std::future<void>> rewarded;
  for (Pending& one : pending) {
    if (!one.durable.get().ok()) continue;
    auto promise = std::make_shared<std::promise<void>>();
    rewarded.push_back(promise->get_future());
    engine_.Reward(one.reply.event_id, world_.Reward(one.visit, one.reply.reward_action_id),
                   [promise](const Result<engine::RewardReply>&) { promise->set_value(); });
  }
  for (std::future<void>& one : rewarded) one.wait();
}

}  // namespace codband::server
