#include "codband/replay/stream_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "codband/base/check.h"
#include "codband/base/file.h"
#include "codband/base/parse.h"
#include "codband/base/tsv_lines.h"

namespace codband::replay {
namespace {

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
        fmt::format("{} tells the origin of {} events, expected {}, as many as events.tsv has",
                    path.string(), sources.size(), event_count));
  }
  EventOrigins origins{.file = path.filename().string(), .sources = {}, .groups = {}};
  for (const RecordedStream::Event& event : stream.events) {
    origins.sources.push_back(sources[event.number]);
    origins.groups.push_back(groups[event.number]);
  }
  return origins;
}

}  // namespace

Result<std::optional<ItemTags>> ReadTags(const std::filesystem::path& directory,
                                         const RecordedStream& stream) {
  const std::filesystem::path path = directory / "tags.tsv";
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
      return lines.Wrong(fmt::format("item {} is unknown, expected one of features.tsv", *id));
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
  for (const char* name : {"origins.tsv", "meta.tsv"}) {
    const auto text = ReadIfThere(directory / name);
    if (!text.ok()) return text.status();
    if (!text.value()) continue;
    auto origins = ParseOrigins(directory / name, *text.value(), stream);
    if (!origins.ok()) return origins.status();
    return std::optional<EventOrigins>(std::move(origins).value());
  }
  return std::optional<EventOrigins>();
}

std::vector<WeightedTag> TagsOfBestItems(const RecordedStream& stream, const ItemTags& tags,
                                         std::span<const double> theta, std::size_t item_count,
                                         std::size_t tag_count) {
  CODBAND_CHECK(theta.size() == stream.dim);
  std::vector<double> scores(stream.item_count());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double* const row = stream.features.data() + i * stream.dim;
    scores[i] = std::inner_product(theta.begin(), theta.end(), row, 0.0);
  }
  std::vector<std::size_t> best(scores.size());
  std::iota(best.begin(), best.end(), std::size_t{0});
  std::ranges::stable_sort(best,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  best.resize(std::min(best.size(), item_count));

  std::vector<double> weights(tags.names.size());
  for (const std::size_t item : best) {
    double sum = 0;
    for (const ItemTags::Count& tag : tags.of_item[item]) sum += tag.count;
    for (const ItemTags::Count& tag : tags.of_item[item]) weights[tag.tag] += tag.count / sum;
  }
  std::vector<WeightedTag> heaviest;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) heaviest.push_back({.tag = tags.names[i], .weight = weights[i]});
  }
  std::ranges::sort(heaviest, [](const WeightedTag& a, const WeightedTag& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.tag < b.tag;
  });
  heaviest.resize(std::min(heaviest.size(), tag_count));
  return heaviest;
}

}  // namespace codband::replay
