#include "codband/data/yahoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "codband/base/excerpt.h"
#include "codband/base/parse.h"
#include "codband/data/data_set.h"
#include "codband/data/line_reader.h"
#include "codband/data/text.h"

namespace codband::data {
namespace {

constexpr std::string_view kFilePrefix = "ydata-fp-td-clicks-v1_0.";
constexpr std::size_t kLinesBetweenReports = 1024;

// Removes the next word from the text; empty at its end.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// Removes "2:0.1 3:0.2 ... 1:1" from the text, up to the next '|'.
std::string TakeFeatures(std::string_view& text, YahooFeatures& features) {
  std::array<bool, kYahooFeatures> seen{};
  while (true) {
    std::string_view rest = text;
    const std::string_view word = TakeWord(rest);
    if (word.empty() || word.front() == '|') break;
    text = rest;
    const std::size_t colon = word.find(':');
    const auto number = ParseNumber<std::size_t>(word.substr(0, colon));
    const auto value =
        colon == word.npos ? std::nullopt : ParseNumber<double>(word.substr(colon + 1));
    if (!number || *number < 1 || *number > kYahooFeatures || !value || !std::isfinite(*value)) {
      return fmt::format("feature '{}', expected 1:value to {}:value", Excerpt(word),
                         kYahooFeatures);
    }
    const std::size_t place = (*number + kYahooFeatures - 2) % kYahooFeatures;
    if (std::exchange(seen[place], true)) return fmt::format("feature {} a second time", *number);
    features[place] = *value;
  }
  const auto count = std::ranges::count(seen, true);
  if (count == static_cast<std::ptrdiff_t>(kYahooFeatures)) return {};
  return fmt::format("{} features, expected {}", count, kYahooFeatures);
}

}  // namespace

std::string ParseYahooVisit(std::string_view line, YahooVisit& visit) {
  std::string_view rest = line;
  const auto time = ParseNumber<std::int64_t>(TakeWord(rest));
  if (!time) return fmt::format("'{}', expected a timestamp first", Excerpt(line));
  const std::string_view displayed_word = TakeWord(rest);
  const auto displayed = ParseNumber<std::uint32_t>(displayed_word);
  if (!displayed) {
    return fmt::format("displayed article '{}', expected a number", Excerpt(displayed_word));
  }
  const std::string_view click = TakeWord(rest);
  if (click != "0" && click != "1") {
    return fmt::format("click '{}', expected 0 or 1", Excerpt(click));
  }
  const std::string_view user = TakeWord(rest);
  if (user != "|user") return fmt::format("'{}', expected |user", Excerpt(user));
  if (std::string why = TakeFeatures(rest, visit.user); !why.empty()) return "user: " + why;
  visit.time = *time;
  visit.displayed = *displayed;
  visit.click = click == "1";
  visit.articles.clear();
  while (true) {
    const std::string_view word = TakeWord(rest);
    if (word.empty()) break;
    const auto id = ParseNumber<std::uint32_t>(word.substr(1));
    if (!id) return fmt::format("'{}', expected |article", Excerpt(word));
    if (std::ranges::find(visit.articles, *id, &YahooVisit::Article::id) != visit.articles.end()) {
      return fmt::format("article {} a second time", *id);
    }
    YahooVisit::Article& article = visit.articles.emplace_back(YahooVisit::Article{*id, {}});
    if (std::string why = TakeFeatures(rest, article.features); !why.empty()) {
      return fmt::format("article {}: {}", *id, why);
    }
  }
  if (std::ranges::find(visit.articles, *displayed, &YahooVisit::Article::id) ==
      visit.articles.end()) {
    return fmt::format("displayed article {} is not in the pool of {}", *displayed,
                       visit.articles.size());
  }
  return {};
}

Result<std::vector<std::filesystem::path>> FindYahooFiles(const std::filesystem::path& in) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(in, error)) {
    if (entry.path().filename().string().starts_with(kFilePrefix)) files.push_back(entry.path());
  }
  if (error)
    return Status::IoError(fmt::format("cannot list {}: {}", in.string(), error.message()));
  if (files.empty()) return MissingFile(DataSet::kYahoo, in, "ydata-fp-td-clicks-v1_0.20090501.gz");
  std::ranges::sort(files);
  // A day that exists both compressed and uncompressed counts once.
  const auto day = [](const std::filesystem::path& path) {
    return path.filename().string().substr(kFilePrefix.size(), 8);
  };
  const auto repeated = std::ranges::unique(files, {}, day);
  files.erase(repeated.begin(), repeated.end());
  return files;
}

Status ReadYahooVisits(const std::vector<std::filesystem::path>& files, InputLog& log,
                       const WorkPart& part, const std::function<bool(const YahooVisit&)>& handle) {
  YahooVisit visit;
  for (std::size_t f = 0; f < files.size(); ++f) {
    auto reader = LineReader::Open(files[f]);
    if (!reader.ok()) return reader.status();
    LineReader& lines = reader.value();
    log.BeginFile(files[f]);
    bool more = true;
    bool malformed = false;
    while (more && lines.Next()) {
      if (lines.number() % kLinesBetweenReports == 1) {
        CODBAND_RETURN_IF_ERROR(part.Report((static_cast<double>(f) + lines.share()) /
                                            static_cast<double>(files.size())));
      }
      if (lines.line().empty()) continue;
      const std::string why = ParseYahooVisit(lines.line(), visit);
      malformed = !why.empty();
      if (malformed) {
        CODBAND_RETURN_IF_ERROR(log.AddMalformed(lines.number(), why));
        continue;
      }
      log.AddRow();
      more = handle(visit);
    }
    CODBAND_RETURN_IF_ERROR(lines.status());
    CODBAND_RETURN_IF_ERROR(
        log.EndFile("lines of the Today Module click log R6A: timestamp, displayed article, click, "
                    "|user features, |article features ..."));
    if (!more) break;
    CODBAND_RETURN_IF_ERROR(lines.CheckEnd(malformed));
  }
  return part.Report(1);
}

}  // namespace codband::data
