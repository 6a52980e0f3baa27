// Requests per second of a server, compared in the same run with a request that does nothing: the
// speed of a shared machine varies from minute to minute, the ratio does not.
//   serve_load --serve build/release/codband/codband
//   serve_load --port 8080
//   serve_load --port 8081 --port 8082 --pairs --json    nodes of one cluster (bench/scaling.py)
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/load_client.h"
#include "bench/open_dashboards.h"
#include "bench/own_server.h"
#include "bench/synthetic_load.h"
#include "codband/base/clock.h"
#include "codband/base/random.h"

namespace codband {
namespace {

constexpr std::size_t kTastes = 10;
constexpr double kNoEnd = 1e9;  // seconds

struct Flags {
  std::string serve;  // a codband program to start
  std::vector<std::uint16_t> ports = {8080};
  int pid = 0;
  std::size_t connections = 64;
  std::size_t candidates = 50;
  std::size_t items = 1000;
  std::size_t users = 1000;
  std::size_t warm = 30;  // rewards of each user before the measurement
  std::size_t dim = 25;
  std::size_t rounds = 5;
  double seconds = 2;          // of a phase; every round has each phase once
  std::size_t dashboards = 0;  // if any: what they cost
  double soak_minutes = 0;
  double run_in_minutes = 3;   // before the soak: fills the caches
  bool put_items = true;       // before everything
  bool pairs = false;          // nothing but rank and reward
  bool ranks = false;          // nothing but ranks
  std::uint64_t requests = 0;  // of these, as many instead of so many seconds; 0: by the time
  double rate = 0;             // pairs a second; 0: as many as it can
  std::vector<std::string> settings;
  bool json = false;
};

// The text between `"key":"` and the next quote.
std::string_view Member(std::string_view json, std::string_view key) {
  const std::size_t at = json.find(key);
  if (at == json.npos) return {};
  const std::size_t start = at + key.size();
  return json.substr(start, json.find('"', start) - start);
}

class Load {
 public:
  Load(const Flags& flags, const std::vector<std::uint16_t>& ports)
      : flags_(flags),
        client_(ports, flags.connections),
        sent_(flags.connections),
        user_(flags.connections) {
    for (std::size_t i = 0; i < flags.items; ++i) items_.push_back(UnitVector(i, 2, flags.dim));
    for (std::size_t i = 0; i < kTastes; ++i) tastes_.push_back(UnitVector(i, 3, flags.dim));
    RandomStream random({1, 0}, 1);
    // One request for each user.
    for (std::size_t user = 0; user < flags.users; ++user) {
      std::string body = fmt::format(R"({{"userId":"user{}","actions":[)", user);
      const char* separator = "";
      for (const std::uint64_t item :
           Candidates(random.Below(flags.items), flags.candidates, flags.items)) {
        body += fmt::format(R"({}"{}")", std::exchange(separator, ","), ItemName(item));
      }
      ranks_.push_back(MakePost("/v1/rank", body + "]}"));
    }
  }

  void PutItems() {
    std::string lines;
    for (std::size_t i = 0; i < flags_.items; ++i) {
      lines += fmt::format("{{\"id\":\"{}\",\"features\":[{:.6f}]}}\n", ItemName(i),
                           fmt::join(items_[i], ","));
    }
    const std::string request = MakePost("/v1/items", lines, "application/x-ndjson");
    Check(client_.Run([&](std::size_t connection, std::string_view reply) {
      return connection == 0 && reply.empty() ? std::string_view(request) : std::string_view();
    }));
  }

  LoadResult Live(double seconds) {
    static const std::string request = MakeGet("/v1/health/live");
    const double end = WallSeconds() + seconds;
    return Check(client_.Run([&](std::size_t, std::string_view) {
      return WallSeconds() < end ? std::string_view(request) : std::string_view();
    }));
  }

  // Until the time is over or so many are done.
  LoadResult Ranks(double seconds, std::uint64_t most = ~std::uint64_t{0}) {
    const double end = WallSeconds() + seconds;
    std::uint64_t started = 0;
    return Check(client_.Run([&](std::size_t, std::string_view) {
      if (started == most || WallSeconds() >= end) return std::string_view();
      ++started;
      return NextRank();
    }));
  }

  // Rank and reward, until the time is over or so many pairs are done.
  LoadResult Pairs(double seconds, std::uint64_t most = ~std::uint64_t{0}) {
    const double end = WallSeconds() + seconds;
    std::uint64_t started = 0;
    std::vector<bool> rewarding(flags_.connections);
    return Check(client_.Run([&](std::size_t connection, std::string_view reply) {
      if (!reply.empty() && !rewarding[connection]) {
        rewarding[connection] = true;
        sent_[connection] =
            MakePost(fmt::format("/v1/events/{}/reward", Member(reply, R"("eventId":")")),
                     fmt::format(R"({{"value":{:.4f}}})",
                                 Value(user_[connection], Member(reply, R"("rewardActionId":")"))));
        return std::string_view(sent_[connection]);
      }
      rewarding[connection] = false;
      if (started == most || WallSeconds() >= end) return std::string_view();
      ++started;
      user_[connection] = next_user_ % ranks_.size();
      return NextRank();
    }));
  }

 private:
  // The reward of an item for a user, with noise.
  double Value(std::size_t user, std::string_view item) {
    const std::vector<double>& x = items_.at(std::stoul(std::string(item.substr(4))));
    return MeanReward(x, tastes_[user % kTastes]) + 0.1 * noise_.Normal();
  }

  std::string_view NextRank() { return ranks_[next_user_++ % ranks_.size()]; }

  LoadResult Check(LoadResult result) const {
    if (result.failures > 0) {
      throw std::runtime_error(
          fmt::format("{} requests failed; the first: {}", result.failures, result.first_failure));
    }
    return result;
  }

  const Flags& flags_;
  LoadClient client_;
  std::vector<std::string> ranks_;
  std::vector<std::string> sent_;  // the reward request of each connection
  std::vector<std::size_t> user_;  // of the last rank of each connection
  std::vector<std::vector<double>> items_;
  std::vector<std::vector<double>> tastes_;
  RandomStream noise_{{1, 0}, 4};
  std::size_t next_user_ = 0;
};

struct Row {
  double per_second = 0;
  double p50 = 0, p90 = 0, p99 = 0;
};

Row Summarize(LoadResult& result, double requests_each) {
  return {.per_second = result.per_second() / requests_each,
          .p50 = result.Percentile(0.5),
          .p90 = result.Percentile(0.9),
          .p99 = result.Percentile(0.99)};
}

void Measure(const Flags& flags, Load& load) {
  LoadResult live;
  LoadResult ranks;
  LoadResult pairs;
  for (std::size_t round = 0; round < flags.rounds; ++round) {
    live.Add(load.Live(flags.seconds / 2));
    ranks.Add(load.Ranks(flags.seconds));
    live.Add(load.Live(flags.seconds / 2));
    pairs.Add(load.Pairs(flags.seconds));
  }
  const Row reference = Summarize(live, 1);
  const Row rank = Summarize(ranks, 1);
  const Row pair = Summarize(pairs, 2);
  const double rank_ratio = rank.per_second / reference.per_second;
  const double pair_ratio = pair.per_second / reference.per_second;
  const double tail = rank.p99 / reference.p99;
  if (flags.json) {
    const auto row = [](const Row& each) {
      return fmt::format(
          R"({{"per_second": {:.0f}, "p50_us": {:.0f}, "p90_us": {:.0f}, "p99_us": {:.0f}}})",
          each.per_second, each.p50, each.p90, each.p99);
    };
    fmt::print(
        "{{\"connections\": {}, \"candidates\": {}, \"live\": {}, \"rank\": {}, \"pair\": {},"
        " \"rank_over_live\": {:.3f}, \"pair_over_live\": {:.3f}, "
        "\"rank_p99_over_live_p99\": {:.2f}}}\n",
        flags.connections, flags.candidates, row(reference), row(rank), row(pair), rank_ratio,
        pair_ratio, tail);
    return;
  }
  fmt::print("{:<22}{:>12}{:>10}{:>10}{:>10}\n", "", "a second", "p50 us", "p90 us", "p99 us");
  const auto print = [](std::string_view name, const Row& row) {
    fmt::print("{:<22}{:>12.0f}{:>10.0f}{:>10.0f}{:>10.0f}\n", name, row.per_second, row.p50,
               row.p90, row.p99);
  };
  print("GET /v1/health/live", reference);
  print(fmt::format("rank of {}", flags.candidates), rank);
  print("rank and reward", pair);
  fmt::print(
      "rank/live {:.2f} (wanted: at least 0.25), pairs/live {:.2f} (0.12), "
      "p99 rank/live {:.1f} (below 4)\n",
      rank_ratio, pair_ratio, tail);
}

// Rank and reward with and without open dashboards, alternating.
void MeasureDashboards(const Flags& flags, Load& load, std::uint16_t port) {
  LoadResult without;
  LoadResult with;
  std::uint64_t bytes = 0;
  std::uint64_t curves = 0;
  for (std::size_t round = 0; round < flags.rounds; ++round) {
    without.Add(load.Pairs(flags.seconds / 2));
    {
      const OpenDashboards open(port, flags.dashboards);
      with.Add(load.Pairs(flags.seconds));
      bytes += open.bytes();
      curves += open.curves();
    }
    without.Add(load.Pairs(flags.seconds / 2));
  }
  const Row alone = Summarize(without, 2);
  const Row watched = Summarize(with, 2);
  const double ratio = watched.per_second / alone.per_second;
  if (flags.json) {
    fmt::print(
        "{{\"dashboards\": {}, \"pairs_per_second_without\": {:.0f}, "
        "\"pairs_per_second_with\": {:.0f}, \"with_over_without\": {:.3f}}}\n",
        flags.dashboards, alone.per_second, watched.per_second, ratio);
    return;
  }
  fmt::print(
      "{:.0f} pairs of rank and reward a second without dashboards, {:.0f} with {} open ({:.1f} MB "
      "of "
      "live events, {} curves): {:.3f} (wanted: at least 0.95)\n",
      alone.per_second, watched.per_second, flags.dashboards, static_cast<double>(bytes) / 1e6,
      curves, ratio);
}

void PrintAlone(std::string_view name, LoadResult& result, std::uint64_t requests_each) {
  const Row row = Summarize(result, static_cast<double>(requests_each));
  fmt::print(
      "{{\"{}\": {}, \"seconds\": {:.3f}, \"per_second\": {:.1f}, \"p50_us\": {:.0f}, "
      "\"p99_us\": {:.0f}}}\n",
      name, result.requests / requests_each, result.seconds, row.per_second, row.p50, row.p99);
}

// Rank and reward alone, at a rate if one is given: so many every twentieth of a second.
void MeasurePairs(const Flags& flags, Load& load) {
  constexpr double kBeat = 0.05;
  LoadResult pairs;
  if (flags.requests > 0) {
    pairs = load.Pairs(kNoEnd, flags.requests);
  } else if (flags.rate == 0) {
    pairs = load.Pairs(flags.seconds);
  } else {
    const double start = WallSeconds();
    double owed = 0;
    for (double beat = 0; beat < flags.seconds; beat += kBeat) {
      owed += flags.rate * kBeat;
      const auto most = static_cast<std::uint64_t>(owed);
      owed -= static_cast<double>(most);
      pairs.Add(load.Pairs(kNoEnd, most));
      const double left = start + beat + kBeat - WallSeconds();
      if (left > 0) usleep(static_cast<useconds_t>(1e6 * left));
    }
    pairs.seconds = WallSeconds() - start;
  }
  PrintAlone("pairs", pairs, 2);
}

void MeasureRanks(const Flags& flags, Load& load) {
  LoadResult ranks =
      flags.requests > 0 ? load.Ranks(kNoEnd, flags.requests) : load.Ranks(flags.seconds);
  PrintAlone("ranks", ranks, 1);
}

double RssMegabytes(int pid) { return ResidentBytes(pid) / 1e6; }

// The slope of the least-squares line through the points.
double Slope(const std::vector<std::pair<double, double>>& points) {
  double x = 0;
  double y = 0;
  for (const auto& point : points) {
    x += point.first / static_cast<double>(points.size());
    y += point.second / static_cast<double>(points.size());
  }
  double xy = 0;
  double xx = 0;
  for (const auto& point : points) {
    xy += (point.first - x) * (point.second - y);
    xx += (point.first - x) * (point.first - x);
  }
  return xx > 0 ? xy / xx : 0;
}

// Resident memory of the server over time, with the same users throughout.
void Soak(const Flags& flags, Load& load, int pid) {
  if (pid == 0) throw std::runtime_error("--soak needs --serve or --pid");
  std::uint64_t requests = 0;
  const auto run = [&](double minutes) {
    std::vector<std::pair<double, double>> samples;  // minutes, MB
    const double start = WallSeconds();
    while (WallSeconds() - start < 60 * minutes) {
      requests += load.Pairs(std::min(2.0, 6 * minutes)).requests;
      samples.emplace_back((WallSeconds() - start) / 60, RssMegabytes(pid));
      if (isatty(STDERR_FILENO) != 0) {
        fmt::print(stderr, "\r{:.1f} min, {:.1f} MB ", samples.back().first, samples.back().second);
      }
    }
    return samples;
  };
  const double fresh = RssMegabytes(pid);
  run(flags.run_in_minutes);
  const std::vector<std::pair<double, double>> samples = run(flags.soak_minutes);
  double largest = 0;
  for (const auto& [minutes, megabytes] : samples) largest = std::max(largest, megabytes);
  const double first = samples.front().second;
  const double last = samples.back().second;
  if (flags.json) {
    fmt::print(
        "{{\"run_in_minutes\": {:.1f}, \"minutes\": {:.1f}, \"requests\": {}, "
        "\"rss_fresh_mb\": {:.1f}, \"rss_start_mb\": {:.1f}, \"rss_end_mb\": {:.1f}, "
        "\"rss_largest_mb\": {:.1f}, \"slope_mb_per_minute\": {:.3f}}}\n",
        flags.run_in_minutes, flags.soak_minutes, requests, fresh, first, last, largest,
        Slope(samples));
    return;
  }
  fmt::print(
      "{:.1f} minutes after {:.1f} to run in, {} requests: {:.1f} MB when fresh, {:.1f} at the "
      "start, {:.1f} at the end, {:.1f} at most; {:+.3f} MB a minute\n",
      flags.soak_minutes, flags.run_in_minutes, requests, fresh, first, last, largest,
      Slope(samples));
}

void Run(const Flags& flags) {
  std::optional<OwnServer> server;
  if (!flags.serve.empty()) {
    std::vector<std::string> settings = {fmt::format("features.dimension={}", flags.dim)};
    settings.insert(settings.end(), flags.settings.begin(), flags.settings.end());
    server.emplace(flags.serve, settings);
  }
  const std::vector<std::uint16_t> ports =
      server ? std::vector<std::uint16_t>{server->port()} : flags.ports;
  Load load(flags, ports);
  if (flags.put_items) load.PutItems();
  load.Pairs(kNoEnd, flags.users * flags.warm);
  if (flags.soak_minutes > 0) {
    Soak(flags, load, server ? server->pid() : flags.pid);
  } else if (flags.dashboards > 0) {
    MeasureDashboards(flags, load, ports[0]);
  } else if (flags.pairs) {
    MeasurePairs(flags, load);
  } else if (flags.ranks) {
    MeasureRanks(flags, load);
  } else {
    Measure(flags, load);
  }
}

}  // namespace
}  // namespace codband

int main(int argc, char** argv) {
  using namespace codband;
  Flags flags;
  CLI::App app("Load on a codband server");
  app.add_option("--serve", flags.serve,
                 "The codband program to start, on a temporary data directory");
  app.add_option("--set", flags.settings, "A setting of that server: section.key=value")
      ->expected(1)
      ->take_all();
  app.add_option("--port", flags.ports, "Port of a running server on this machine, or of several")
      ->capture_default_str();
  app.add_option("--pid", flags.pid, "Process id of that server, for --soak");
  app.add_option("--connections", flags.connections, "Number of connections")
      ->capture_default_str();
  app.add_option("--candidates", flags.candidates, "Candidates of a rank request")
      ->capture_default_str();
  app.add_option("--users", flags.users, "Number of users")->capture_default_str();
  app.add_option("--warm", flags.warm, "Rewards of each user before the measurement")
      ->capture_default_str();
  app.add_option("--dim", flags.dim, "Features of an item")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Rounds; each has every phase once")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Seconds of a phase")->capture_default_str();
  app.add_option("--dashboards", flags.dashboards,
                 "Compares rank and reward with so many open dashboards to those without");
  app.add_option("--soak", flags.soak_minutes,
                 "Minutes of rank and reward; prints memory over time");
  app.add_option("--run-in", flags.run_in_minutes, "Minutes before the soak, to fill the caches")
      ->capture_default_str();
  app.add_flag("!--items-are-there", flags.put_items, "The catalogue is not put first");
  app.add_flag("--pairs", flags.pairs, "Rank and reward alone, for --seconds");
  app.add_flag("--ranks", flags.ranks, "Ranks alone, for --seconds");
  app.add_option("--requests", flags.requests,
                 "Of --pairs and --ranks: so many, however long they take");
  app.add_option("--rate", flags.rate, "Of --pairs: so many a second (default: as many as it can)");
  app.add_flag("--json", flags.json, "One JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    Run(flags);
  } catch (const std::exception& error) {
    fmt::print(stderr, "serve_load: {}\n", error.what());
    return 1;
  }
  return 0;
}
