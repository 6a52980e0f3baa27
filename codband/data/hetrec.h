#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codband/data/data_set.h"
#include "codband/data/hooks.h"
#include "codband/data/table_reader.h"

namespace codband::data {

// The common structure of the HetRec 2011 data sets of Last.fm and Delicious. Ids are those of the
// files.
struct SocialTagging {
  struct Assignment {  // a user gave an item a tag
    std::uint32_t user;
    std::uint32_t item;
    std::uint32_t tag;
    std::int64_t time;  // milliseconds since 1970, as the file has it
  };

  std::vector<Assignment> assignments;
  // (user, item), ascending and unique: artists listened to, addresses bookmarked.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> positives;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> friends;
  std::unordered_map<std::uint32_t, std::string> tags;  // UTF-8
};

// Last.fm: tags.dat, user_artists.dat, user_friends.dat, user_taggedartists-timestamps.dat.
// Delicious: tags.dat, user_contacts-timestamps.dat, user_taggedbookmarks-timestamps.dat; a user
// who tagged an address has bookmarked it.
Result<SocialTagging> ReadSocialTagging(DataSet set, const std::filesystem::path& in, InputLog& log,
                                        const WorkPart& part);

}  // namespace codband::data
