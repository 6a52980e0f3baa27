#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codband/base/random.h"
#include "codband/base/status.h"
#include "codband/engine/engine.h"

namespace codband::server {

struct DemoOptions {
  std::uint64_t seed = 1;
  std::size_t users = 200;
  std::size_t burst = 12'000;      // visits at full speed, so that there is something to see
  double visits_per_second = 100;  // after the burst
  double chance_of_change = 2e-3;  // per visit, that the user's taste changes
  // The story: one visit in so many is that of the first listener, who changes their mind once in
  // so many of their own. 0: there is none.
  std::size_t story_every = 12;
  std::size_t story_changes = 400;
};

// A small world of music: 300 artists with genres, moods and decades, and listeners with one of
// eight tastes, which change now and then. One of them, whom the story is about, comes often and
// changes at regular times. What a listener does depends on the seed and on what is recommended,
// not on timing.
class DemoWorld {
 public:
  DemoWorld(std::size_t dim, const DemoOptions& options);

  const std::vector<engine::Item>& items() const { return items_; }
  const std::string& user(std::size_t u) const { return users_[u].name; }

  // Whom the story is about.
  const std::string& hero() const { return users_.front().name; }

  // The next visit: a listener, perhaps with a new taste, and the candidates.
  struct Visit {
    std::uint64_t number = 0;
    std::size_t user = 0;
    std::size_t taste = 0;                // the listener's, at this visit
    std::vector<std::size_t> offer = {};  // indices of the candidates
  };
  Visit Next();
  // 1 if the listener plays the artist, else 0.
  double Reward(const Visit& visit, const std::string& item) const;
  // The probability of a play.
  double PlayChance(std::size_t taste, std::size_t item) const;

 private:
  struct User {
    std::string name;
    std::size_t taste = 0;
  };

  const DemoOptions options_;
  std::vector<engine::Item> items_;
  std::vector<User> users_;
  std::uint64_t next_visit_ = 0;
  std::size_t story_visits_ = 0;
};

// Plays the world against an engine on a thread of its own, until it is destroyed.
class Demo {
 public:
  // Puts the catalogue into the engine, which outlives the demo, and starts.
  static Result<std::unique_ptr<Demo>> Start(engine::Engine& engine, const DemoOptions& options);
  ~Demo();
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  // Whether the burst is over.
  bool warm() const;
  const DemoWorld& world() const { return world_; }

 private:
  Demo(engine::Engine& engine, const DemoOptions& options);
  void Run();
  void Play(std::size_t visits);

  engine::Engine& engine_;
  const DemoOptions options_;
  DemoWorld world_;
  std::string run_;  // prefix of event ids, different for every run on the same data
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  bool warm_ = false;
  std::thread thread_;
};

}  // namespace codband::server
