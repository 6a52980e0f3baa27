// codband prepare: what holds for all data sets.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codband/base/file.h"
#include "tests/prepare_testing.h"

namespace codband {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

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

TEST_F(PrepareTest, MetaRecordsEveryOptionAndWhatWasRead) {
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

TEST_F(PrepareTest, FilesInASubdirectoryAreFound) {
  WriteLastFm();
  fs::rename(root_ / "in", root_ / "unpacked");
  fs::create_directories(root_ / "in");
  fs::rename(root_ / "unpacked", root_ / "in" / "unpacked");
  ExpectRefused(Prepare(kLastFm), {"in/tags.dat is missing", "They seem to be in in/unpacked"});
}

// Replaces each file of a data set in turn by something else.
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

TEST_F(PrepareTest, RefusalLeavesNoParentDirectoriesEither) {
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

TEST_F(PrepareTest, OptionsThatTheDataCannotMeetAreRefused) {
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
  // A file that never ends. It can be opened for writing once the program has opened it, and a
  // second later it is being read.
  ASSERT_EQ(mkfifo((root_ / "in" / "user_artists.dat").c_str(), 0600), 0);
  const Outcome outcome =
      Run(std::string("prepare ") + kLastFm + "--in in --out results/a",
          R"(sh -c '"$@" & exec 3>in/user_artists.dat; sleep 1; kill -TERM $!; wait $!' sh)");
  EXPECT_NE(outcome.err.find("interrupted; results/a was not written"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(Results(), std::vector<std::string>{});
}

}  // namespace
}  // namespace codband
