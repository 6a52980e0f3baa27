#include "codband/replay/stream_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codband/base/file.h"
#include "codband/base/lines.h"
#include "codband/base/parse.h"
#include "codband/base/text.h"

namespace codband::replay {
namespace {

// By item id: which row of the features.
using ItemRows = std::unordered_map<std::uint64_t, std::uint32_t>;

Status ReadFeatures(const std::filesystem::path& path, RecordedStream& stream, ItemRows& rows) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  TsvLines lines(path.string(), text.value());
  while (lines.Next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    const std::size_t dim = fields.size() - 1;
    if (stream.dim == 0) {
      if (dim < 1 || dim > kMaxFeatures) {
        return lines.Wrong(fmt::format("{} features, expected an item id and 1 to {} features", dim,
                                       kMaxFeatures));
      }
      stream.dim = dim;
    }
    if (dim != stream.dim) {
      return lines.Wrong(
          fmt::format("{} features, expected {} as on the first line", dim, stream.dim));
    }
    const auto id = ParseNumber<std::uint64_t>(fields[0]);
    if (!id) return lines.Wrong("item", fields[0], kWholeNumber);
    if (!rows.emplace(*id, static_cast<std::uint32_t>(rows.size())).second) {
      return lines.Wrong(fmt::format("item {} a second time, expected each item once", *id));
    }
    stream.item_ids.push_back(*id);
    for (std::size_t i = 1; i <= dim; ++i) {
      const auto value = ParseNumber<double>(fields[i]);
      if (!value || !(std::abs(*value) <= kLargestNumber)) {
        return lines.Wrong(fmt::format("feature {}", i), fields[i],
                           fmt::format("a number within ±{:g}", kLargestNumber));
      }
      stream.features.push_back(*value);
    }
  }
  if (rows.empty()) return lines.Empty("a line for each item");
  return {};
}

// Reads the lines of events.tsv, or of log.tsv if the stream is a log.
class EventReader {
 public:
  EventReader(const ItemRows& rows, RecordedStream& stream)
      : rows_(rows), stream_(stream), last_event_(rows.size()) {}

  Status Read(const std::filesystem::path& path) {
    const auto text = ReadFile(path);
    if (!text.ok()) return text.status();
    TsvLines lines(path.string(), text.value());
    while (lines.Next()) CODBAND_RETURN_IF_ERROR(ReadLine(lines));
    if (stream_.events.empty()) return lines.Empty("a line for each event");
    stream_.user_count = users_.size();
    if (stream_.total_reward() > 0) return {};
    return Status::InvalidArgument(
        fmt::format("{}: none of {} events has a click, expected some to compare with",
                    path.string(), stream_.events.size()));
  }

 private:
  Status ReadLine(const TsvLines& lines) {
    const std::vector<std::string_view>& fields = lines.fields();
    const std::size_t expected = stream_.logged ? 5 : 3;
    if (fields.size() != expected) {
      return lines.Wrong(fmt::format("{} fields, expected {}: user id, timestamp, {}item ids",
                                     fields.size(), expected,
                                     stream_.logged ? "item shown, click, " : ""));
    }
    RecordedStream::Event event{.begin = stream_.candidates.size()};
    const auto user = ParseNumber<UserId>(fields[0]);
    if (!user) return lines.Wrong("user", fields[0], kWholeNumber);
    event.user = *user;
    if (!ParseNumber<double>(fields[1])) return lines.Wrong("timestamp", fields[1], "a number");
    if (fields.back().empty()) {
      return lines.Wrong(fmt::format("no candidates, expected at least 1, {}",
                                     stream_.logged ? "the shown one" : "the positive one first"));
    }
    SplitText(fields.back(), ",", items_);
    for (const std::string_view item : items_) CODBAND_RETURN_IF_ERROR(ReadItem(lines, item));
    event.end = stream_.candidates.size();
    if (stream_.logged) {
      if (fields[3] != "0" && fields[3] != "1") return lines.Wrong("click", fields[3], "0 or 1");
      event.reward = fields[3] == "1" ? 1 : 0;
      const auto shown = std::ranges::find(items_, fields[2]);
      if (shown == items_.end()) {
        return lines.Wrong("item shown", fields[2], "one of the candidates");
      }
      std::swap(stream_.candidates[event.begin],
                stream_.candidates[event.begin + static_cast<std::size_t>(shown - items_.begin())]);
    }
    event.number = stream_.events.size();
    stream_.events.push_back(event);
    users_.insert(event.user);
    return {};
  }

  Status ReadItem(const TsvLines& lines, std::string_view item) {
    const auto id = ParseNumber<std::uint64_t>(item);
    if (!id) return lines.Wrong("item", item, kWholeNumber);
    const auto row = rows_.find(*id);
    if (row == rows_.end()) {
      return lines.Wrong(fmt::format("item {} is unknown, expected one of {}", *id, kFeaturesFile));
    }
    const std::size_t event = stream_.events.size() + 1;
    if (std::exchange(last_event_[row->second], event) == event) {
      return lines.Wrong(fmt::format("item {} a second time, expected each candidate once", *id));
    }
    stream_.candidates.push_back(row->second);
    return {};
  }

  const ItemRows& rows_;
  RecordedStream& stream_;
  std::vector<std::size_t> last_event_;  // of each item: where it was a candidate, from 1
  std::vector<std::string_view> items_;
  std::unordered_set<UserId> users_;
};

Result<RecordedStream> ReadFiles(const std::filesystem::path& directory, bool logged) {
  RecordedStream stream;
  stream.logged = logged;
  ItemRows rows;
  CODBAND_RETURN_IF_ERROR(ReadFeatures(directory / kFeaturesFile, stream, rows));
  CODBAND_RETURN_IF_ERROR(
      EventReader(rows, stream).Read(directory / (logged ? kLogFile : kEventsFile)));
  return stream;
}

// The text of the file; none if there is no such file.
Result<std::optional<std::string>> ReadIfThere(const std::filesystem::path& path) {
  auto text = ReadFile(path);
  if (text.ok()) return std::optional<std::string>(std::move(text).value());
  if (text.status().code() == StatusCode::kNotFound) return std::optional<std::string>();
  return text.status();
}

Result<EventOrigins> ParseOrigins(const std::filesystem::path& path, std::string_view text,
                                  const RecordedStream& stream) {
  std::vector<std::uint64_t> sources;  // line by line
  std::vector<std::uint64_t> groups;
  TsvLines lines(path.string(), text);
  while (lines.Next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    if (fields.size() != 2) {
      return lines.Wrong(
          fmt::format("{} fields, expected 2: user in the data set, group", fields.size()));
    }
    const auto source = ParseNumber<std::uint64_t>(fields[0]);
    const auto group = ParseNumber<std::uint64_t>(fields[1]);
    if (lines.number() == 1 && !source && !group) continue;
    if (!source) return lines.Wrong("user in the data set", fields[0], kWholeNumber);
    if (!group) return lines.Wrong("group", fields[1], kWholeNumber);
    sources.push_back(*source);
    groups.push_back(*group);
  }
  const std::size_t event_count = stream.events.size();
  if (sources.size() != event_count) {
    return Status::InvalidArgument(
        fmt::format("{} tells the origin of {} events, expected {}, as many as {} has",
                    path.string(), sources.size(), event_count, kEventsFile));
  }
  EventOrigins origins{.file = path.filename().string(), .sources = {}, .groups = {}};
  for (const RecordedStream::Event& event : stream.events) {
    origins.sources.push_back(sources[event.number]);
    origins.groups.push_back(groups[event.number]);
  }
  return origins;
}

}  // namespace

Result<RecordedStream> ReadStream(const std::filesystem::path& directory) {
  return ReadFiles(directory, /*logged=*/false);
}

Result<RecordedStream> ReadLog(const std::filesystem::path& directory) {
  return ReadFiles(directory, /*logged=*/true);
}

Result<std::optional<ItemTags>> ReadTags(const std::filesystem::path& directory,
                                         const RecordedStream& stream) {
  const std::filesystem::path path = directory / kTagsFile;
  const auto text = ReadIfThere(path);
  if (!text.ok()) return text.status();
  if (!text.value() || text.value()->empty()) return std::optional<ItemTags>();
  std::unordered_map<std::uint64_t, std::size_t> rows;
  for (std::size_t i = 0; i < stream.item_ids.size(); ++i) rows.emplace(stream.item_ids[i], i);
  ItemTags tags{.names = {}, .of_item = std::vector<std::vector<ItemTags::Count>>(rows.size())};
  std::unordered_map<std::string_view, std::uint32_t> numbers;  // of tags
  TsvLines lines(path.string(), *text.value());
  while (lines.Next()) {
    const std::vector<std::string_view>& fields = lines.fields();
    if (fields.size() != 3) {
      return lines.Wrong(
          fmt::format("{} fields, expected 3: item id, tag, how often", fields.size()));
    }
    const auto id = ParseNumber<std::uint64_t>(fields[0]);
    if (!id) return lines.Wrong("item", fields[0], kWholeNumber);
    const auto row = rows.find(*id);
    if (row == rows.end()) {
      return lines.Wrong(fmt::format("item {} is unknown, expected one of {}", *id, kFeaturesFile));
    }
    if (fields[1].empty()) return lines.Wrong("no tag, expected the text of one");
    const auto count = ParseNumber<double>(fields[2]);
    if (!count || !(*count > 0) || !(*count <= kLargestNumber)) {
      return lines.Wrong("how often", fields[2],
                         fmt::format("a number above 0, {:g} at most", kLargestNumber));
    }
    const auto [tag, fresh] =
        numbers.emplace(fields[1], static_cast<std::uint32_t>(tags.names.size()));
    if (fresh) tags.names.emplace_back(fields[1]);
    tags.of_item[row->second].push_back({.tag = tag->second, .count = *count});
  }
  return std::optional<ItemTags>(std::move(tags));
}

Result<std::optional<EventOrigins>> ReadOrigins(const std::filesystem::path& directory,
                                                const RecordedStream& stream) {
  for (const std::string_view name : {kOriginsFile, kForeignOriginsFile}) {
    const auto text = ReadIfThere(directory / name);
    if (!text.ok()) return text.status();
    if (!text.value()) continue;
    auto origins = ParseOrigins(directory / name, *text.value(), stream);
    if (!origins.ok()) return origins.status();
    return std::optional<EventOrigins>(std::move(origins).value());
  }
  return std::optional<EventOrigins>();
}

void WriteItem(std::uint64_t item, std::span<const double> features, data::OutputFile& file) {
  file.Print("{}", item);
  for (const double value : features) file.Print("\t{:.9g}", value);
  file.Write("\n");
}

void WriteEvent(UserId user, std::int64_t time, std::span<const std::uint64_t> candidates,
                data::OutputFile& file) {
  file.Print("{}\t{}\t{}\n", user, time, fmt::join(candidates, ","));
}

void WriteLogged(UserId user, std::int64_t time, std::uint64_t shown, bool click,
                 std::span<const std::uint64_t> candidates, data::OutputFile& file) {
  file.Print("{}\t{}\t{}\t{}\t{}\n", user, time, shown, click ? 1 : 0, fmt::join(candidates, ","));
}

void WriteTag(std::uint64_t item, std::string_view tag, std::size_t count, data::OutputFile& file) {
  file.Print("{}\t{}\t{}\n", item, tag, count);
}

void WriteOrigin(std::uint64_t source, std::uint64_t group, data::OutputFile& file) {
  file.Print("{}\t{}\n", source, group);
}

}  // namespace codband::replay
