// The readers of the data sets, on small files in the published formats.
#include "codband/data/hetrec.h"
#include "codband/data/movielens.h"
#include "codband/data/test_support.h"
#include "codband/data/yahoo.h"

namespace codband::data {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class DataSetsTest : public DirectoryTest {
 protected:
  void WriteLastFm() const {
    Write("tags.dat", "tagID\ttagValue\r\n1\tmetal\r\n2\tm\xFAsica\r\n");  // Latin-1
    Write("user_artists.dat",
          "userID\tartistID\tweight\r\n2\t51\t13883\r\n2\t52\t11690\r\n2\t51\t3\r\n3\t52\t1\r\n");
    Write("user_friends.dat", "userID\tfriendID\r\n2\t3\r\n3\t2\r\n");
    Write("user_taggedartists-timestamps.dat",
          "userID\tartistID\ttagID\ttimestamp\r\n2\t52\t1\t1238536800000\r\n"
          "3\t52\t2\t-428720400000\r\n");
  }

  InputLog log_;
};

TEST_F(DataSetsTest, LastFmIsReadAsPublished) {
  WriteLastFm();
  const auto data = ReadSocialTagging(DataSet::kLastFm, directory_, log_, part_);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data.value().tags.at(1), "metal");
  EXPECT_EQ(data.value().tags.at(2), "música");
  EXPECT_EQ(data.value().positives, (Pairs{{2, 51}, {2, 52}, {3, 52}}));
  EXPECT_EQ(data.value().friends, (Pairs{{2, 3}, {3, 2}}));
  ASSERT_EQ(data.value().assignments.size(), 2U);
  EXPECT_EQ(data.value().assignments[1].user, 3U);
  EXPECT_EQ(data.value().assignments[1].item, 52U);
  EXPECT_EQ(data.value().assignments[1].tag, 2U);
  EXPECT_EQ(data.value().assignments[1].time, -428720400000);
  EXPECT_EQ(log_.malformed(), 0U);
}

TEST_F(DataSetsTest, UnknownTagIsAMalformedLine) {
  WriteLastFm();
  Write("user_taggedartists-timestamps.dat",
        "userID\tartistID\ttagID\ttimestamp\n2\t52\t1\t1\n2\t52\t1\t2\n3\t52\t9\t5\n");
  ASSERT_TRUE(ReadSocialTagging(DataSet::kLastFm, directory_, log_, part_).ok());
  ASSERT_EQ(log_.malformed(), 1U);
  EXPECT_EQ(log_.examples().front(),
            "user_taggedartists-timestamps.dat:4: tagID = '9', expected one of tags.dat");
}

TEST_F(DataSetsTest, DeliciousIsReadAsPublished) {
  Write("tags.dat", "id\tvalue\n1\tcollection_development\n2\tlibros_espa\xC3\xB1ol\n");
  Write("user_contacts-timestamps.dat",
        "userID\tcontactID\ttimestamp\n8\t28371\t1286151259000\n28371\t8\t1286151259000\n");
  Write("user_taggedbookmarks-timestamps.dat",
        "userID\tbookmarkID\ttagID\ttimestamp\n8\t7\t1\t1289255362000\n8\t1\t1\t1289255362000\n"
        "8\t1\t2\t1289255362000\n");
  const auto data = ReadSocialTagging(DataSet::kDelicious, directory_, log_, part_);
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data.value().tags.at(2), "libros_español");
  EXPECT_EQ(data.value().positives, (Pairs{{8, 1}, {8, 7}}));
  EXPECT_EQ(data.value().friends, (Pairs{{8, 28371}, {28371, 8}}));
  EXPECT_EQ(data.value().assignments.size(), 3U);
}

TEST_F(DataSetsTest, MissingFileIsNamedWithItsSource) {
  WriteLastFm();
  std::filesystem::remove(directory_ / "user_friends.dat");
  const Status status = ReadSocialTagging(DataSet::kLastFm, directory_, log_, part_).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find((directory_ / "user_friends.dat").string()), std::string::npos);
  EXPECT_NE(status.message().find("hetrec2011-lastfm-2k.zip"), std::string::npos);
  const Status other = MovieLensReader::Open(directory_).status();
  EXPECT_NE(other.message().find("'codband prepare lastfm' reads it"), std::string::npos)
      << other.message();
}

struct MovieLensContent {
  std::vector<Movie> movies;
  std::vector<Rating> ratings;
  std::vector<MovieTag> tags;
};

Result<MovieLensContent> ReadAll(const std::filesystem::path& in, InputLog& log,
                                 const WorkPart& part) {
  const auto reader = MovieLensReader::Open(in);
  if (!reader.ok()) return reader.status();
  MovieLensContent content;
  const auto into = [](auto& list) {
    return [&list](const auto& value, TableRow&) { list.push_back(value); };
  };
  CODBAND_RETURN_IF_ERROR(reader.value().ReadMovies(log, part, into(content.movies)));
  CODBAND_RETURN_IF_ERROR(reader.value().ReadRatings(log, part, into(content.ratings)));
  CODBAND_RETURN_IF_ERROR(reader.value().ReadTags(log, part, into(content.tags)));
  return content;
}

TEST_F(DataSetsTest, MovieLensCsvIsReadAsPublished) {
  Write("movies.csv",
        "movieId,title,genres\n11,\"American President, The (1995)\",Comedy|Drama\n"
        "12,\"\"\"Great Performances\"\" Cats (1998)\",Musical\n13,X (2000),(no genres listed)\n");
  Write("ratings.csv", "userId,movieId,rating,timestamp\n1,11,4.0,964982703\n2,12,0.5,964981247\n");
  Write("tags.csv", "userId,movieId,tag,timestamp\n2,11,\"politics, \"\"US\"\"\",1445714994\n");
  const auto read = ReadAll(directory_, log_, part_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const MovieLensContent& content = read.value();
  ASSERT_EQ(content.movies.size(), 3U);
  EXPECT_EQ(content.movies[0].title, "American President, The (1995)");
  EXPECT_EQ(content.movies[0].genres, (std::vector<std::string>{"Comedy", "Drama"}));
  EXPECT_EQ(content.movies[1].title, "\"Great Performances\" Cats (1998)");
  EXPECT_TRUE(content.movies[2].genres.empty());
  ASSERT_EQ(content.ratings.size(), 2U);
  EXPECT_EQ(content.ratings[1].user, 2U);
  EXPECT_EQ(content.ratings[1].movie, 12U);
  EXPECT_EQ(content.ratings[1].stars, 0.5);
  EXPECT_EQ(content.ratings[1].time, 964981247);
  ASSERT_EQ(content.tags.size(), 1U);
  EXPECT_EQ(content.tags[0].tag, "politics, \"US\"");
}

TEST_F(DataSetsTest, MovieLensWithColonsIsReadAsPublished) {
  Write("movies.dat",
        "1::Toy Story (1995)::Animation|Children's|Comedy\n73::Mis\xE9rables, Les (1995)::Drama\n");
  Write("ratings.dat", "1::1::5::978300760\n1::73::3.5::978302109\n1::73::6::1\n");
  auto read = ReadAll(directory_, log_, part_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().movies[1].title, "Misérables, Les (1995)");
  EXPECT_EQ(read.value().movies[0].genres[1], "Children's");
  EXPECT_EQ(read.value().ratings[1].stars, 3.5);
  EXPECT_EQ(log_.examples(),
            std::vector<std::string>{"ratings.dat:3: rating = '6', expected a number from 0 to 5"});
  EXPECT_TRUE(read.value().tags.empty());  // 1M has none
  Write("tags.dat", "15::73::a::b::1215184630\n");
  read = ReadAll(directory_, log_, part_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().tags.at(0).tag, "a::b");
}

constexpr std::string_view kVisit =
    "1241160900 109513 0 |user 2:0.000012 3:0.000000 4:0.000006 5:0.000023 6:0.999958 1:1.000000 "
    "|109498 2:0.306008 3:0.000450 4:0.077048 5:0.230439 6:0.386055 1:1.000000 "
    "|109513 2:0.211406 3:0.000036 4:0.002773 5:0.569886 6:0.215900 1:1.000000";

TEST(YahooTest, VisitIsReadAsPublished) {
  YahooVisit visit;
  ASSERT_EQ(ParseYahooVisit(kVisit, visit), "");
  EXPECT_EQ(visit.time, 1241160900);
  EXPECT_EQ(visit.displayed, 109513U);
  EXPECT_FALSE(visit.click);
  EXPECT_EQ(visit.user, (YahooFeatures{0.000012, 0, 0.000006, 0.000023, 0.999958, 1}));
  ASSERT_EQ(visit.articles.size(), 2U);
  EXPECT_EQ(visit.articles[0].id, 109498U);
  EXPECT_EQ(visit.articles[1].features,
            (YahooFeatures{0.211406, 0.000036, 0.002773, 0.569886, 0.2159, 1}));
}

TEST(YahooTest, MalformedLinesSayWhy) {
  const auto why = [](const std::string& what, const std::string& by) {
    std::string line(kVisit);
    line.replace(line.find(what), what.size(), by);
    YahooVisit visit;
    return ParseYahooVisit(line, visit);
  };
  EXPECT_EQ(why("109513 0", "109513 2"), "click '2', expected 0 or 1");
  EXPECT_EQ(why("109513 0", "109999 0"), "displayed article 109999 is not in the pool of 2");
  EXPECT_EQ(why("109513 0", "id-560620 0"), "displayed article 'id-560620', expected a number");
  EXPECT_EQ(why("|user", "|u"), "'|u', expected |user");
  EXPECT_EQ(why("6:0.386055 ", ""), "article 109498: 5 features, expected 6");
  EXPECT_EQ(why("6:0.386055", "2:0.386055"), "article 109498: feature 2 a second time");
  EXPECT_EQ(why("2:0.000012", "2:nan"), "user: feature '2:nan', expected 1:value to 6:value");
  EXPECT_EQ(why("|109498", "|109513"), "article 109513 a second time");
  EXPECT_EQ(why("1241160900", "x"),
            "'x 109513 0 |user 2:0.000012 3:0.000000 4...', expected a "
            "timestamp first");
}

TEST_F(DataSetsTest, YahooFilesAreReadByDayAndAMissingOneIsNamed) {
  const Status none = FindYahooFiles(directory_).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_NE(none.message().find("Webscope"), std::string::npos);
  const std::string prefix = "ydata-fp-td-clicks-v1_0.200905";
  Write(prefix + "02", std::string(kVisit) + "\n");
  Write(prefix + "01", std::string(kVisit) + "\nbroken\n" + std::string(kVisit) + "\n");
  Write(prefix + "01.gz", "the same, packed");
  const auto files = FindYahooFiles(directory_);
  ASSERT_EQ(files.value().size(), 2U);
  EXPECT_EQ(files.value()[0].filename(), prefix + "01");
  int visits = 0;
  const auto count = [&](const YahooVisit&) { return ++visits != 10; };
  ASSERT_TRUE(ReadYahooVisits(files.value(), log_, part_, count).ok());
  EXPECT_EQ(visits, 3);
  EXPECT_EQ(log_.malformed(), 1U);
  visits = 9;
  ASSERT_TRUE(ReadYahooVisits(files.value(), log_, part_, count).ok());
  EXPECT_EQ(visits, 10);  // the handler said enough
}

}  // namespace
}  // namespace codband::data
