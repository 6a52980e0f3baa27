#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/hooks.h"
#include "codband/data/table_reader.h"

namespace codband::data {

inline constexpr std::size_t kYahooFeatures = 6;

// In the order of the file: features 2 to 6, then feature 1, which is always 1.
using YahooFeatures = std::array<double, kYahooFeatures>;

// A line of the Yahoo! Front Page Today Module click log (R6A): an article drawn uniformly from the
// pool was shown to a visitor, who clicked on it or not.
struct YahooVisit {
  struct Article {
    std::uint32_t id;
    YahooFeatures features;
  };

  std::int64_t time = 0;  // seconds since 1970
  std::uint32_t displayed = 0;
  bool click = false;
  YahooFeatures user{};
  std::vector<Article> articles;
};

// Reads a line such as
//   1241160900 109513 0 |user 2:0.000012 3:0 4:0.000006 5:0.000023 6:0.999958 1:1 |109498 2:0.3 ...
// into `visit`. Returns what is wrong with it, or nothing. Every feature must be present once and
// finite, and the pool must contain the displayed article, and each article once.
std::string ParseYahooVisit(std::string_view line, YahooVisit& visit);

// The files of the log in `in`, by day: ydata-fp-td-clicks-v1_0.20090501 and so on, compressed
// (.gz) or not. kNotFound if there are none.
Result<std::vector<std::filesystem::path>> FindYahooFiles(const std::filesystem::path& in);

// Passes every visit to `handle`, until it returns false. Malformed lines are skipped and counted.
// Memory does not grow with the files.
Status ReadYahooVisits(const std::vector<std::filesystem::path>& files, InputLog& log,
                       const WorkPart& part, const std::function<bool(const YahooVisit&)>& handle);

}  // namespace codband::data
