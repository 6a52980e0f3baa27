#include "codband/data/hetrec.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "codband/data/data_set.h"
#include "codband/data/text.h"

namespace codband::data {
namespace {

struct Layout {
  std::string tags_file;
  std::vector<std::string> tags_columns;
  std::string assignments_file;
  std::vector<std::string> assignments_columns;
  std::string friends_file;
  std::vector<std::string> friends_columns;
  std::string positives_file;  // empty: users have a positive reward for what they tagged
  std::vector<std::string> positives_columns;
};

Layout LayoutOf(DataSet set) {
  if (set == DataSet::kLastFm) {
    return {"tags.dat",
            {"tagID", "tagValue"},
            "user_taggedartists-timestamps.dat",
            {"userID", "artistID", "tagID", "timestamp"},
            "user_friends.dat",
            {"userID", "friendID"},
            "user_artists.dat",
            {"userID", "artistID", "weight"}};
  }
  return {"tags.dat",
          {"id", "value"},
          "user_taggedbookmarks-timestamps.dat",
          {"userID", "bookmarkID", "tagID", "timestamp"},
          "user_contacts-timestamps.dat",
          {"userID", "contactID", "timestamp"},
          "",
          {}};
}

void SortUnique(std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) {
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

}  // namespace

Result<SocialTagging> ReadSocialTagging(DataSet set, const std::filesystem::path& in, InputLog& log,
                                        const WorkPart& part) {
  const Layout layout = LayoutOf(set);
  for (const std::string& file :
       {layout.tags_file, layout.assignments_file, layout.friends_file, layout.positives_file}) {
    std::error_code error;
    if (!file.empty() && !std::filesystem::exists(in / file, error)) {
      return MissingFile(set, in, file);
    }
  }
  SocialTagging data;
  const auto read = [&](const std::string& file, const std::vector<std::string>& columns,
                        const RowHandler& handle) {
    return ReadTable(in / file, {.separator = Separator::kTab, .columns = columns}, log, part,
                     handle);
  };
  CODBAND_RETURN_IF_ERROR(read(layout.tags_file, layout.tags_columns, [&](TableRow& row) {
    const auto id = row.Number<std::uint32_t>(0);
    if (row.ok() && !data.tags.try_emplace(id, ToUtf8(row[1])).second) {
      row.Reject(fmt::format("tag {} a second time, expected each once", id));
    }
  }));
  CODBAND_RETURN_IF_ERROR(
      read(layout.assignments_file, layout.assignments_columns, [&](TableRow& row) {
        const SocialTagging::Assignment assignment{.user = row.Number<std::uint32_t>(0),
                                                   .item = row.Number<std::uint32_t>(1),
                                                   .tag = row.Number<std::uint32_t>(2),
                                                   .time = row.Number<std::int64_t>(3)};
        if (row.ok() && !data.tags.contains(assignment.tag)) {
          row.RejectField(2, fmt::format("one of {}", layout.tags_file));
        }
        if (row.ok()) data.assignments.push_back(assignment);
      }));
  CODBAND_RETURN_IF_ERROR(read(layout.friends_file, layout.friends_columns, [&](TableRow& row) {
    const auto a = row.Number<std::uint32_t>(0);
    const auto b = row.Number<std::uint32_t>(1);
    if (row.ok()) data.friends.emplace_back(a, b);
  }));
  if (layout.positives_file.empty()) {
    for (const SocialTagging::Assignment& a : data.assignments) {
      data.positives.emplace_back(a.user, a.item);
    }
  } else {
    CODBAND_RETURN_IF_ERROR(
        read(layout.positives_file, layout.positives_columns, [&](TableRow& row) {
          const auto user = row.Number<std::uint32_t>(0);
          const auto item = row.Number<std::uint32_t>(1);
          row.Number<std::uint64_t>(2);
          if (row.ok()) data.positives.emplace_back(user, item);
        }));
  }
  SortUnique(data.positives);
  return data;
}

}  // namespace codband::data
