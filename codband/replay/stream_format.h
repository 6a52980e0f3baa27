#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "codband/base/status.h"
#include "codband/data/output_directory.h"
#include "codband/replay/recorded_stream.h"

namespace codband::replay {

// The files of a recorded stream: this header and its source are the only place that knows their
// names and columns. Lines of tab-separated fields, without a header:
//
//   features.tsv  item id, then its features, as many on every line
//   events.tsv    user id, timestamp, item ids separated by commas, the positive one first
//   log.tsv       user id, timestamp, item shown, click (0 or 1), item ids separated by commas, the
//                 one shown among them
//   tags.tsv      item id, tag, how often it was given (a positive number); optional
//   origins.tsv   for each line of events.tsv: user in the data set, group; optional. meta.tsv is
//                 read in its place if it is missing; its first line may be a heading
//
// Ids are whole numbers; the timestamp is a number that nothing depends on: events are played in
// the order of the file. Lines may end in "\r\n". Files are UTF-8.
inline constexpr std::string_view kFeaturesFile = "features.tsv";
inline constexpr std::string_view kEventsFile = "events.tsv";
inline constexpr std::string_view kLogFile = "log.tsv";
inline constexpr std::string_view kTagsFile = "tags.tsv";
inline constexpr std::string_view kOriginsFile = "origins.tsv";
inline constexpr std::string_view kForeignOriginsFile = "meta.tsv";  // never written

inline constexpr std::array kStreamFiles = {kFeaturesFile, kEventsFile, kTagsFile, kOriginsFile,
                                            kLogFile};

// Readers. kInvalidArgument names the file, the line, what is wrong and what was expected;
// kNotFound and kIoError name the file. Time and memory are proportional to the files.

// features.tsv and events.tsv.
Result<RecordedStream> ReadStream(const std::filesystem::path& directory);
// features.tsv and log.tsv. kInvalidArgument also if nothing in the log was rewarded.
Result<RecordedStream> ReadLog(const std::filesystem::path& directory);
// None if the file is missing or empty.
Result<std::optional<ItemTags>> ReadTags(const std::filesystem::path& directory,
                                         const RecordedStream& stream);
// None if neither file exists.
Result<std::optional<EventOrigins>> ReadOrigins(const std::filesystem::path& directory,
                                                const RecordedStream& stream);

// Writers: one line each, for the file of the name. Features keep nine significant digits.

void WriteItem(std::uint64_t item, std::span<const double> features, data::OutputFile& file);
void WriteEvent(UserId user, std::int64_t time, std::span<const std::uint64_t> candidates,
                data::OutputFile& file);
void WriteLogged(UserId user, std::int64_t time, std::uint64_t shown, bool click,
                 std::span<const std::uint64_t> candidates, data::OutputFile& file);
// Precondition: the tag is neither empty nor holds a tab or a line break.
void WriteTag(std::uint64_t item, std::string_view tag, std::size_t count, data::OutputFile& file);
void WriteOrigin(std::uint64_t source, std::uint64_t group, data::OutputFile& file);

}  // namespace codband::replay
