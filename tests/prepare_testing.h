#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "tests/cli_testing.h"

namespace codband {

// For tests of codband prepare: the real program on small files in the published formats.

inline std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, separator)) parts.push_back(part);
  return parts;
}

// A line of events.tsv.
struct PreparedEvent {
  std::uint64_t user;
  std::int64_t time;
  std::vector<std::uint64_t> items;
};

class PrepareTest : public CliTest {
 protected:
  PrepareTest() : root_(directory_) {
    std::filesystem::create_directories(root_ / "in");
    std::filesystem::create_directories(root_ / "results");
  }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(root_ / "in" / name, std::ios::binary) << content;
  }

  Outcome Run(const std::string& arguments, const std::string& before = "") const {
    return CliTest::Run(arguments, fmt::format("cd {} && {}", directory_, before));
  }
  Outcome Prepare(const std::string& arguments, const std::string& out = "a") const {
    return Run(fmt::format("prepare {} --in in --out results/{}", arguments, out));
  }

  std::string Text(const std::string& file, const std::string& out = "a") const {
    return ReadFile(root_ / "results" / out / file).value();
  }
  nlohmann::json Meta() const { return nlohmann::json::parse(Text("meta.json")); }
  std::vector<PreparedEvent> Events() const {
    std::vector<PreparedEvent> events;
    for (const std::string& line : Split(Text("events.tsv"), '\n')) {
      const std::vector<std::string> fields = Split(line, '\t');
      PreparedEvent event{std::stoull(fields.at(0)), std::stoll(fields.at(1)), {}};
      for (const std::string& item : Split(fields.at(2), ',')) {
        event.items.push_back(std::stoull(item));
      }
      events.push_back(std::move(event));
    }
    return events;
  }
  // Names below results/, hidden ones too.
  std::vector<std::string> Results() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / "results")) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  // Nothing was written, and the message has all of the parts.
  void ExpectRefused(const Outcome& outcome, const std::vector<std::string>& parts) const {
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err << "\nlacks " << part;
    }
    EXPECT_EQ(Results(), std::vector<std::string>{});
  }

  // Two circles of friends: users 10 to 17 listen to artists 100 to 139, which have the tags 1 to
  // 6, and users 20 to 27 to artists 140 to 179 with the tags 7 to 12. Users 98 and 99 know only
  // each other.
  void WriteLastFm() {
    std::string friends = "userID\tfriendID\r\n98\t99\r\n";
    std::string listened = "userID\tartistID\tweight\r\n98\t100\t5\r\n";
    std::string tagged = "userID\tartistID\ttagID\ttimestamp\r\n";
    std::string tags = "tagID\ttagValue\r\n";
    for (int tag = 1; tag <= 12; ++tag) tags += fmt::format("{}\tT\xE4g {}\r\n", tag, tag);
    for (int circle = 0; circle < 2; ++circle) {
      for (int user = 0; user < 8; ++user) {
        const int id = 10 * (circle + 1) + user;
        for (int other = 0; other < user; ++other) {
          friends += fmt::format("{}\t{}\r\n", id, 10 * (circle + 1) + other);
        }
        for (int i = 0; i < 20; ++i) {
          const int artist = 100 + 40 * circle + (7 * user + i) % 40;
          listened += fmt::format("{}\t{}\t{}\r\n", id, artist, 1 + i);
          positives_.insert({id, artist});
          if (i % 2 == 1) continue;  // the others are not tagged by this user
          const int tag = 1 + 6 * circle + (artist * (user + 1)) % 6;
          const std::int64_t time = 1'200'000'000'000 + 1000 * user + i;
          tagged += fmt::format("{}\t{}\t{}\t{}\r\n", id, artist, tag, time);
        }
      }
    }
    friends += "10\t20\r\n";
    Write("tags.dat", tags);
    Write("user_artists.dat", listened);
    Write("user_friends.dat", friends);
    Write("user_taggedartists-timestamps.dat", tagged);
  }
  static constexpr const char* kLastFm =
      "lastfm --dim 4 --groups 2 --parts 3 --candidates 5 --max-events 0 ";

  void WriteMovieLens() const {
    std::string movies = "movieId,title,genres\n";
    std::string ratings = "userId,movieId,rating,timestamp\n";
    std::string tags = "userId,movieId,tag,timestamp\n";
    const std::array<const char*, 4> genres = {"Drama", "Comedy|Sci-Fi", "Horror", "Drama|War"};
    for (int m = 1; m <= 60; ++m) {
      movies += fmt::format("{},\"Film no. {}, The\",{}\n", m, m % 7, genres[m % 4]);
      tags += fmt::format("1,{},Tag {},5\n", m, m % 5);
    }
    for (int user = 1; user <= 6; ++user) {
      for (int i = 0; i < 5 * user; ++i) {
        ratings += fmt::format("{},{},{},{}\n", user, 1 + (i * 7 + user) % 60,
                               i % 2 == 0 ? 4.5 : 2.0, 1000 * i + user);
      }
    }
    Write("movies.csv", movies);
    Write("ratings.csv", ratings);
    Write("tags.csv", tags);
  }

  void WriteYahoo() const {
    std::string log;
    for (int visit = 0; visit < 200; ++visit) {
      const int displayed = 100 + visit * 7 % 20;
      log +=
          fmt::format("{} {} {} |user 2:0.{:06} 3:0.{:06} 4:0 5:0 6:0 1:1", 1'241'160'900 + visit,
                      displayed, visit % 10 == 0 ? 1 : 0, (visit % 4) * 200'000 + visit, visit);
      for (int article = 100; article < 120; ++article) {
        log += fmt::format(" |{} 2:0.{} 3:0.1 4:0 5:0.2 6:0.3 1:1.000000", article, article);
      }
      log += visit == 77 ? " |broken\n" : "\n";
    }
    Write("ydata-fp-td-clicks-v1_0.20090501", log);
  }

  const std::filesystem::path root_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> positives_;
};

}  // namespace codband
