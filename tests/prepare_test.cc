// codband prepare: the real program on small files in the published formats.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "tests/cli_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  std::string part;
  while (std::getline(stream, part, separator)) parts.push_back(part);
  return parts;
}

struct Event {
  std::uint64_t user;
  std::int64_t time;
  std::vector<std::uint64_t> items;
};

class PrepareTest : public CliTest {
 protected:
  PrepareTest() : root_(directory_) {
    fs::create_directories(root_ / "in");
    fs::create_directories(root_ / "results");
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
  Json Meta() const { return Json::parse(Text("meta.json")); }
  std::vector<Event> Events() const {
    std::vector<Event> events;
    for (const std::string& line : Split(Text("events.tsv"), '\n')) {
      const std::vector<std::string> fields = Split(line, '\t');
      Event event{std::stoull(fields.at(0)), std::stoll(fields.at(1)), {}};
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
    for (const auto& entry : fs::directory_iterator(root_ / "results")) {
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

  const fs::path root_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> positives_;
};

TEST_F(PrepareTest, LastFmFollowsTheProtocol) {
  WriteLastFm();
  const Outcome outcome = Prepare(kLastFm);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no progress bar in a pipe
  EXPECT_NE(outcome.out.find("codband replay results/a"), std::string::npos);
  EXPECT_EQ(Results(), std::vector<std::string>{"a"});

  const std::vector<Event> events = Events();
  const std::vector<std::string> origins = Split(Text("origins.tsv"), '\n');
  ASSERT_EQ(origins.size(), events.size());
  ASSERT_EQ(events.size(), 320U);  // all but that of user 98
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::map<std::uint64_t, std::size_t> sizes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::uint64_t source = std::stoull(origins[i]);
    const std::vector<std::uint64_t>& items = events[i].items;
    ASSERT_EQ(items.size(), 5U);
    EXPECT_TRUE(positives_.contains({source, items[0]}));
    EXPECT_TRUE(seen.insert({source, items[0]}).second);  // every pair once
    for (std::size_t k = 1; k < items.size(); ++k) {
      EXPECT_FALSE(positives_.contains({source, items[k]}));
    }
    EXPECT_EQ(std::set(items.begin(), items.end()).size(), 5U);
    ++sizes[events[i].user];
    if (i == 0) continue;
    // Stacked: numbered as they come, each in time.
    EXPECT_GE(events[i].user, events[i - 1].user);
    if (events[i].user == events[i - 1].user) {
      EXPECT_GE(events[i].time, events[i - 1].time);
    }
  }
  // Two groups of 160 events in three parts.
  std::multiset<std::size_t> parts;
  for (const auto& [user, size] : sizes) parts.insert(size);
  EXPECT_EQ(parts, (std::multiset<std::size_t>{53, 53, 53, 53, 54, 54}));
  // A group is a circle of friends.
  for (const std::string& origin : origins) {
    const std::vector<std::string> fields = Split(origin, '\t');
    EXPECT_EQ(fields.at(1), origins[0].substr(0, 1) == fields.at(0).substr(0, 1)
                                ? Split(origins[0], '\t').at(1)
                                : (Split(origins[0], '\t').at(1) == "0" ? "1" : "0"));
  }
}

TEST_F(PrepareTest, TimesAreOfTheFirstTagOrElseTheUsersMedian) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const std::vector<Event> events = Events();
  const std::vector<std::string> origins = Split(Text("origins.tsv"), '\n');
  std::size_t at_median = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto user = static_cast<int>(std::stoul(origins[i]) % 10);
    const int circle = static_cast<int>(std::stoul(origins[i]) / 10) - 1;
    const int place =
        (static_cast<int>(events[i].items[0]) - 100 - 40 * circle - 7 * user + 4000) % 40;
    // Ten tags at 0, 2, ..., 18: the median is 9.
    const int expected = place % 2 == 0 ? place : 9;
    at_median += place % 2;
    EXPECT_EQ(events[i].time, 1'200'000'000'000 + 1000 * user + expected);
  }
  EXPECT_EQ(at_median, 160U);
}

TEST_F(PrepareTest, FilesAreWhatReplayReads) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const Outcome replay = Run("replay results/a --policies random,linucb --format json");
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  const Json json = Json::parse(replay.out);
  EXPECT_EQ(json["stream"]["events"], 320);
  EXPECT_EQ(json["stream"]["users"], 6);
  EXPECT_EQ(json["stream"]["items"], 80);
  EXPECT_EQ(json["stream"]["dim"], 4);
  EXPECT_NEAR(json["stream"]["chance"].get<double>(), 64, 1e-9);
  EXPECT_EQ(Meta()["stream"]["chance"], 64);
}

TEST_F(PrepareTest, MetaTellsEveryChoiceAndWhatWasRead) {
  WriteLastFm();
  ASSERT_EQ(Prepare(std::string(kLastFm) +
                    "--seed 7 --order interleaved --scale unit --terms words --stop-words none "
                    "--stem english --tf log --min-items 2 --regularise 0.5 --embedding plain "
                    "--earliest 5 --min-observations 2")
                .exit_code,
            0);
  const Json meta = Meta();
  EXPECT_EQ(meta["data_set"], "lastfm");
  const Json expected = {{"seed", 7},
                         {"dim", 4},
                         {"candidates", 5},
                         {"max_events", 0},
                         {"order", "interleaved"},
                         {"scale", "unit"},
                         {"terms", "words"},
                         {"stop_words", "none"},
                         {"stem", "english"},
                         {"tf", "log"},
                         {"min_items", 2},
                         {"groups", 2},
                         {"parts", 3},
                         {"regularise", 0.5},
                         {"embedding", "plain"},
                         {"earliest", 5},
                         {"min_observations", 2}};
  EXPECT_EQ(meta["options"], expected);
  EXPECT_EQ(meta["files"][3]["name"], "user_artists.dat");
  EXPECT_EQ(meta["files"][3]["rows"], 321);
  EXPECT_EQ(meta["files"][3]["malformed"], 0);
  EXPECT_EQ(meta["stream"]["events"], 320);
  EXPECT_EQ(meta["stream"]["group_sizes"], Json({8, 8}));
  EXPECT_GT(meta["stream"]["variance_share"], 0.1);
}

TEST_F(PrepareTest, BytesAreAFunctionOfTheSeed) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm, "a").exit_code, 0);
  ASSERT_EQ(Prepare(kLastFm, "b").exit_code, 0);
  ASSERT_EQ(Prepare(std::string(kLastFm) + "--seed 2", "c").exit_code, 0);
  for (const char* file : {"features.tsv", "events.tsv", "tags.tsv", "origins.tsv", "meta.json"}) {
    EXPECT_EQ(Text(file, "a"), Text(file, "b")) << file;
  }
  EXPECT_NE(Text("events.tsv", "a"), Text("events.tsv", "c"));
  EXPECT_EQ(Text("features.tsv", "a"), Text("features.tsv", "c"));
}

TEST_F(PrepareTest, TagsAreUtf8WithTheirCounts) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const std::string tags = Text("tags.tsv");
  EXPECT_NE(tags.find("\ttäg 3\t"), std::string::npos);
  std::size_t sum = 0;
  for (const std::string& line : Split(tags, '\n')) {
    const std::vector<std::string> fields = Split(line, '\t');
    ASSERT_EQ(fields.size(), 3U);
    sum += std::stoul(fields[2]);
  }
  EXPECT_EQ(sum, 160U);
}

TEST_F(PrepareTest, DeliciousCountsBookmarks) {
  Write("tags.dat", "id\tvalue\n1\ta\n2\tb\n3\tc\n");
  std::string contacts = "userID\tcontactID\ttimestamp\n";
  std::string tagged = "userID\tbookmarkID\ttagID\ttimestamp\n";
  for (int user = 1; user <= 6; ++user) {
    contacts += fmt::format("{}\t{}\t5\n", user, user % 6 + 1);
    for (int i = 0; i < 4; ++i) {
      const int bookmark = 50 + user * 3 + i;
      tagged += fmt::format("{}\t{}\t{}\t{}\n", user, bookmark, 1 + i % 3, 1000 * user + i);
      tagged += fmt::format("{}\t{}\t{}\t{}\n", user, bookmark, 1 + bookmark % 3, 1000 * user + i);
    }
  }
  Write("user_contacts-timestamps.dat", contacts);
  Write("user_taggedbookmarks-timestamps.dat", tagged);
  const Outcome outcome = Prepare("delicious --dim 2 --groups 2 --parts 1 --candidates 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Meta()["stream"]["events"], 24);
  EXPECT_EQ(Meta()["stream"]["users"], 2);
  EXPECT_EQ(Run("replay results/a --policies random").exit_code, 0);
}

TEST_F(PrepareTest, MovieLensKeepsUsersWithEnoughRatings) {
  WriteMovieLens();
  const Outcome outcome = Prepare("movielens --dim 3 --candidates 6 --min-observations 20");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 20U + 25U + 30U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_GE(events[i].user, 4U);
    EXPECT_EQ(events[i].items.size(), 6U);
    EXPECT_EQ(events[i].items[0],
              1 + (static_cast<std::uint64_t>(events[i].time) / 1000 * 7 + events[i].user) % 60);
    if (i > 0) {
      EXPECT_GE(events[i].time, events[i - 1].time);
    }
  }
  // Zero mean and unit variance.
  std::array<double, 3> sums{};
  std::array<double, 3> squares{};
  const std::vector<std::string> lines = Split(Text("features.tsv"), '\n');
  ASSERT_EQ(lines.size(), 60U);
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = Split(line, '\t');
    for (std::size_t i = 0; i < 3; ++i) {
      sums[i] += std::stod(fields.at(i + 1));
      squares[i] += std::stod(fields.at(i + 1)) * std::stod(fields.at(i + 1));
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(sums[i], 0, 1e-6);
    EXPECT_NEAR(squares[i], 60, 1e-5);
  }
  EXPECT_NE(Text("tags.tsv").find("\n2\thorror\t1\n"), std::string::npos);
  EXPECT_EQ(Run("replay results/a --policies random,codband").exit_code, 0);
}

TEST_F(PrepareTest, MovieLensRatingsBelowThePositiveOnesAreNoEvents) {
  WriteMovieLens();
  ASSERT_EQ(Prepare("movielens --dim 3 --candidates 6 --min-observations 30 --positive-rating 4")
                .exit_code,
            0);
  EXPECT_EQ(Events().size(), 15U);
  ASSERT_EQ(Prepare("movielens --dim 3 --min-observations 10 --max-events 33", "b").exit_code, 0);
  EXPECT_EQ(Split(Text("events.tsv", "b"), '\n').size(), 33U);
  fs::remove_all(root_ / "results" / "a");
  fs::remove_all(root_ / "results" / "b");
  ExpectRefused(Prepare("movielens"), {"--min-observations = 3000", "at most 30"});
}

TEST_F(PrepareTest, YahooBecomesALogAndItsClicks) {
  WriteYahoo();
  const Outcome outcome = Prepare("yahoo --groups 4");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("Left out 1 malformed lines of 200"), std::string::npos);
  EXPECT_NE(outcome.err.find("ydata-fp-td-clicks-v1_0.20090501:78: '|broken'"), std::string::npos);
  const std::vector<std::string> log = Split(Text("log.tsv"), '\n');
  ASSERT_EQ(log.size(), 199U);
  std::map<std::string, std::set<std::string>> groups;  // by what the visitors' features begin with
  std::map<std::string, int> displayed_at;
  for (const std::string& line : log) {
    const std::vector<std::string> fields = Split(line, '\t');
    ASSERT_EQ(fields.size(), 5U);
    const std::vector<std::string> candidates = Split(fields[4], ',');
    EXPECT_EQ(candidates.size(), 10U);
    EXPECT_EQ(std::ranges::count(candidates, fields[2]), 1);
    groups[fields[0]].insert(std::to_string(std::stoll(fields[1]) % 4));
    ++displayed_at[fields[2] == candidates.front() ? "first" : "later"];
  }
  EXPECT_EQ(groups.size(), 4U);
  for (const auto& [group, kinds] : groups) EXPECT_EQ(kinds.size(), 1U);
  EXPECT_GT(displayed_at["later"], 100);  // its place does not tell
  const std::vector<Event> events = Events();
  EXPECT_EQ(events.size(), 20U);
  for (const Event& event : events) EXPECT_EQ((event.time - 1'241'160'900) % 10, 0);
  EXPECT_EQ(Meta()["stream"]["clicks"], 20);
  EXPECT_EQ(Meta()["stream"]["visits"], 199);
  EXPECT_EQ(Run("replay results/a --play events --policies random").exit_code, 0);
}

TEST_F(PrepareTest, YahooLogIsReplayedWithoutBias) {
  WriteYahoo();
  ASSERT_EQ(Prepare("yahoo --groups 4 --candidates 2").exit_code, 0);
  const Outcome outcome =
      Run("replay results/a --policies random,linucb:alpha=0 --seeds 3 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["stream"]["played"], "log");
  EXPECT_EQ(json["stream"]["events"], 199);
  EXPECT_EQ(json["stream"]["clicks"], 20);
  EXPECT_NEAR(json["stream"]["ctr"].get<double>(), 20.0 / 199, 1e-12);
  for (const Json& policy : json["policies"]) {
    for (std::size_t run = 0; run < 3; ++run) {
      const auto number = [&](const char* name) { return policy[name]["runs"][run].get<double>(); };
      // Of two candidates one is shown: about every second event counts.
      EXPECT_NEAR(number("matched"), 99.5, 30);
      EXPECT_NEAR(number("ctr"), number("reward") / number("matched"), 1e-12);
      EXPECT_NEAR(number("relative_ctr"), number("ctr") / (20.0 / 199), 1e-9);
    }
  }
  const Outcome table = Run("replay results/a --policies random");
  EXPECT_NE(table.out.find("times log"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("CTR of the log: 0.10050"), std::string::npos) << table.out;
  const Outcome mixed = Run("replay results/a --order interleaved");
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_NE(mixed.err.find("--order = 'interleaved', expected recorded"), std::string::npos);
}

// All articles but 103 have next to no features, so that a policy that follows uncertainty alone
// takes that one forever.
TEST_F(PrepareTest, ConstantChoiceHasTheClickRateThatTheYahooLogHasForIt) {
  std::string log;
  int shown = 0;
  int clicked = 0;
  int clicks = 0;
  for (int visit = 0; visit < 600; ++visit) {
    const int displayed = 101 + visit * 7919 % 5;
    const bool click = visit * visit % 11 < (displayed == 103 ? 4 : 1);
    clicks += click ? 1 : 0;
    shown += displayed == 103 ? 1 : 0;
    clicked += displayed == 103 && click ? 1 : 0;
    log += fmt::format("{} {} {} |user 2:0.{} 3:0.1 4:0.2 5:0.3 6:0.4 1:1.000000",
                       1'241'160'900 + visit, displayed, click ? 1 : 0, 1 + visit % 3);
    for (int article = 101; article <= 105; ++article) {
      const char* const value = article == 103 ? "1.000000" : "0.000001";
      log += fmt::format(" |{0} 2:{1} 3:{1} 4:{1} 5:{1} 6:{1} 1:{1}", article, value);
    }
    log += "\n";
  }
  Write("ydata-fp-td-clicks-v1_0.20090501", log);
  ASSERT_EQ(Prepare("yahoo --groups 3 --candidates 0").exit_code, 0);
  const Outcome outcome =
      Run("replay results/a --policies linucb:alpha=1000 --seeds 2 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json policy = Json::parse(outcome.out)["policies"][0];
  ASSERT_EQ(shown, 120);
  for (std::size_t run = 0; run < 2; ++run) {
    EXPECT_EQ(policy["matched"]["runs"][run], shown);
    EXPECT_EQ(policy["reward"]["runs"][run], clicked);
    EXPECT_NEAR(policy["ctr"]["runs"][run].get<double>(), clicked / 120.0, 1e-12);
    EXPECT_NEAR(policy["relative_ctr"]["runs"][run].get<double>(),
                (clicked / 120.0) / (clicks / 600.0), 1e-9);
  }
}

TEST_F(PrepareTest, MissingFilesAreNamedWithTheirSource) {
  ExpectRefused(Prepare("lastfm"), {"in/tags.dat is missing", "hetrec2011-lastfm-2k.zip"});
  ExpectRefused(Prepare("delicious"), {"in/tags.dat is missing", "hetrec2011-delicious-2k.zip"});
  ExpectRefused(Prepare("movielens"), {"in/ratings.csv is missing", "GroupLens", "ml-20m"});
  ExpectRefused(Prepare("yahoo"), {"in/ydata-fp-td-clicks-v1_0.20090501.gz", "Webscope"});
  ExpectRefused(Run("prepare lastfm --in nowhere --out results/a"),
                {"nowhere is not a directory", "hetrec2011-lastfm-2k.zip"});
}

TEST_F(PrepareTest, DataSetOfAnotherKindIsRecognised) {
  WriteLastFm();
  ExpectRefused(Prepare("movielens"), {"'codband prepare lastfm' reads it"});
  ExpectRefused(Prepare("delicious"), {"'codband prepare lastfm' reads it"});
  ExpectRefused(Prepare("netflix"),
                {"'netflix' is unknown", "lastfm, delicious, movielens, yahoo"});
}

TEST_F(PrepareTest, FilesInADirectoryBelowAreFound) {
  WriteLastFm();
  fs::rename(root_ / "in", root_ / "unpacked");
  fs::create_directories(root_ / "in");
  fs::rename(root_ / "unpacked", root_ / "in" / "unpacked");
  ExpectRefused(Prepare(kLastFm), {"in/tags.dat is missing", "They seem to be in in/unpacked"});
}

// Of each file of a data set in turn, what is in it instead, and what the message says.
TEST_F(PrepareTest, GarbageAndTruncatedFilesAreRefused) {
  std::string garbage(100'000, '\0');
  for (std::size_t i = 0; i < garbage.size(); ++i) {
    garbage[i] = static_cast<char>((i * i * 2'654'435'761U) >> 13U);
  }
  struct Case {
    const char* set;
    const char* source;
    std::vector<std::string> files;
  };
  const std::vector<Case> cases = {
      {kLastFm,
       "hetrec2011-lastfm-2k.zip",
       {"tags.dat", "user_artists.dat", "user_friends.dat", "user_taggedartists-timestamps.dat"}},
      {"movielens --dim 3 --candidates 6 --min-observations 20",
       "GroupLens",
       {"movies.csv", "ratings.csv", "tags.csv"}},
      {"yahoo --groups 4", "Webscope", {"ydata-fp-td-clicks-v1_0.20090501"}}};
  for (const Case& data_set : cases) {
    for (const std::string& file : data_set.files) {
      SCOPED_TRACE(file);
      for (const auto& entry : fs::directory_iterator(root_ / "in")) fs::remove(entry);
      WriteLastFm();
      WriteMovieLens();
      WriteYahoo();
      const std::string whole = ReadFile(root_ / "in" / file).value();
      const char separator = file.ends_with(".dat") ? '\t' : file.ends_with(".csv") ? ',' : ' ';
      const auto refused = [&](const std::string& content, const std::string& why) {
        Write(file, content);
        ExpectRefused(Prepare(data_set.set), {"in/" + file, data_set.source, why});
      };
      refused(garbage, "expected");
      refused(std::string("\x89PNG\r\n\x1A\n\0\0\0", 11), "expected");
      refused(std::string(3 << 20, '\0'), "expected");
      refused("", file.starts_with("ydata") ? "has no rows" : "the file is empty");
      // Cut off within its last line, before the last separator.
      refused(whole.substr(0, whole.find_last_of(separator)), "it has been cut off");
      // Packed, and cut off; then packed, and damaged.
      Write("whole", whole);
      const std::string in = (root_ / "in").string();
      ASSERT_EQ(std::system(fmt::format("gzip -c {0}/whole > {0}/packed", in).c_str()), 0);
      std::string packed = ReadFile(root_ / "in" / "packed").value();
      refused(packed.substr(0, packed.size() / 2), "it ends too early");
      packed[packed.size() / 2] ^= 0x55;
      refused(packed, "is damaged");
      // A file of another data set under this name.
      refused(file == "movies.csv" ? "a\tb\n1\t2\n" : "movieId,title,genres\n1,Film,Drama\n",
              "expected");
      fs::remove(root_ / "in" / file);
      fs::create_directories(root_ / "in" / file);
      ExpectRefused(Prepare(data_set.set), {"in/" + file + " is a directory", data_set.source});
      fs::remove(root_ / "in" / file);
      ExpectRefused(Prepare(data_set.set), {"in/" + file, "is missing", data_set.source});
    }
  }
}

TEST_F(PrepareTest, MessagesShowGarbageAsText) {
  WriteLastFm();
  Write("user_artists.dat", std::string("\x89PNG\r\n\x1A\n\0\0\0", 11));
  ExpectRefused(Prepare(kLastFm), {"in/user_artists.dat, line 1", "'\\x89PNG'", "userID<tab>"});
  Write("user_artists.dat", "userID\tartistID\tweight\r\n");
  ExpectRefused(Prepare(kLastFm), {"in/user_artists.dat has no rows"});
}

TEST_F(PrepareTest, RefusalLeavesNoDirectoriesAboveEither) {
  const Outcome outcome = Run("prepare lastfm --in in --out results/some/where/a");
  ExpectRefused(outcome, {"in/tags.dat is missing"});
  WriteLastFm();
  const std::string arguments = std::string("prepare ") + kLastFm + "--in in --out ";
  EXPECT_EQ(Run(arguments + "results/some/where/a").exit_code, 0);
  EXPECT_TRUE(fs::exists(root_ / "results/some/where/a/events.tsv"));
}

TEST_F(PrepareTest, MalformedLinesAreReportedOrWithStrictAnError) {
  WriteLastFm();
  std::ofstream(root_ / "in" / "user_artists.dat", std::ios::app) << "10\tx\t1\r\n10\t100\r\n";
  ExpectRefused(Prepare(std::string(kLastFm) + "--strict"),
                {"in/user_artists.dat:323: artistID = 'x', expected a number"});
  const Outcome outcome = Prepare(kLastFm);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("Left out 2 malformed lines"), std::string::npos);
  EXPECT_NE(outcome.err.find("user_artists.dat:324: 2 fields, expected 3"), std::string::npos);
  EXPECT_EQ(Meta()["malformed_examples"].size(), 2U);
}

TEST_F(PrepareTest, WrongFlagsAreRefusedBeforeAnythingIsRead) {
  ExpectRefused(Prepare("lastfm --days 2"), {"--days is not for lastfm, but for yahoo"});
  ExpectRefused(Prepare("yahoo --dim 2"), {"--dim is not for yahoo"});
  ExpectRefused(Prepare("lastfm --dim 0"), {"--dim = '0', expected a whole number from 1"});
  ExpectRefused(Prepare("lastfm --order random"),
                {"--order = 'random', expected stacked, interleaved or time"});
  ExpectRefused(Prepare("lastfm --candidates 1"), {"--candidates = '1', expected 2 or more"});
  ExpectRefused(Prepare("movielens --positive-rating nan"), {"--positive-rating = 'nan'"});
}

TEST_F(PrepareTest, ChoicesThatTheDataCannotMeetAreRefused) {
  WriteLastFm();
  ExpectRefused(Prepare("lastfm --groups 2 --dim 50"), {"components"});
  ExpectRefused(Prepare("lastfm --dim 4 --groups 17"), {"17 groups of 16 users"});
  ExpectRefused(Prepare("lastfm --dim 4 --groups 2 --candidates 70"),
                {"70 candidates of 80 items"});
  ExpectRefused(Prepare("lastfm --dim 4 --groups 2 --min-observations 21"), {"21"});
}

TEST_F(PrepareTest, EarlierResultsAreReplacedOnlyIfAskedTo) {
  WriteLastFm();
  ASSERT_EQ(Prepare(kLastFm).exit_code, 0);
  const std::string before = Text("events.tsv");
  const Outcome refused = Prepare(std::string(kLastFm) + "--seed 2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos);
  EXPECT_EQ(Text("events.tsv"), before);
  EXPECT_EQ(Prepare(std::string(kLastFm) + "--seed 2 --overwrite").exit_code, 0);
  EXPECT_NE(Text("events.tsv"), before);
  EXPECT_EQ(Results(), std::vector<std::string>{"a"});
}

TEST_F(PrepareTest, InterruptedRunLeavesNothing) {
  WriteLastFm();
  fs::remove(root_ / "in" / "user_artists.dat");
  // A file that never comes to an end.
  ASSERT_EQ(mkfifo((root_ / "in" / "user_artists.dat").c_str(), 0600), 0);
  const Outcome outcome =
      Run(std::string("prepare ") + kLastFm + "--in in --out results/a", "timeout -s TERM 3");
  EXPECT_NE(outcome.err.find("interrupted; results/a was not written"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(Results(), std::vector<std::string>{});
}

}  // namespace
}  // namespace codband
