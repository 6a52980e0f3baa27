#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/data/data_set.h"
#include "codband/data/hooks.h"
#include "codband/data/output_directory.h"
#include "codband/data/table_reader.h"
#include "codband/data/text.h"
#include "codband/replay/event_stream.h"

namespace codband::replay {

// Turns public data sets into recorded streams; docs/data.md describes how, and why.

enum class TermKind {
  kTags,   // each tag is a term
  kWords,  // each word of titles, genres and tags is a term
};

// Options that do not apply to a data set are ignored.
struct PrepareOptions {
  std::uint64_t seed = 1;
  std::size_t dim = 25;              // number of features; not Yahoo!, which has its own
  std::size_t candidates = 25;       // per event, including the positive one; 0: all (Yahoo! only)
  std::size_t max_events = 30'000;   // sampled uniformly, for Yahoo! the first ones; 0: all
  std::size_t min_observations = 1;  // of a user in the data set
  StreamOrder order = StreamOrder::kStacked;
  bool unit_variance = false;  // scale each feature to variance 1
  bool strict = false;         // the first malformed line is an error

  // Text.
  TermKind terms = TermKind::kTags;
  data::TokenOptions tokens = {};
  bool log_tf = false;
  std::size_t min_documents = 1;  // terms of fewer items are dropped

  // Groups of users: by friendship (HetRec), by their features (Yahoo!).
  std::size_t groups = 10;
  std::size_t parts = 3;            // of a group, by time; each part is a user (HetRec)
  double graph_regularisation = 1;  // times the mean degree
  bool normalise_rows = true;       // of the spectral embedding
  std::int64_t earliest_time = 0;   // milliseconds; earlier tags have no usable time (HetRec)

  double positive_rating = 0.5;      // ratings from here on are positive (MovieLens)
  std::size_t days = 1;              // files, from the first (Yahoo!)
  std::size_t user_sample = 20'000;  // visits on which k-means is fitted (Yahoo!)

  // The defaults: the paper's protocol.
  static PrepareOptions For(data::DataSet set);
};

// The size of the result.
struct PreparedStream {
  std::size_t items = 0;
  std::size_t terms = 0;  // 0 for Yahoo!
  std::size_t dim = 0;
  std::size_t users = 0;    // as policies see them
  std::size_t sources = 0;  // users in the data set; 0 if it has none
  std::size_t events = 0;
  std::size_t possible_events = 0;            // before max_events
  double chance = 0;                          // expected reward of random choice
  double variance_share = 0;                  // explained by the features; 0 for Yahoo!
  std::vector<std::size_t> group_sizes = {};  // users (HetRec) or visits (Yahoo!)
  std::size_t unusable_times = 0;             // tags before earliest_time
  std::size_t visits = 0;                     // logged (Yahoo!)
  std::size_t clicks = 0;                     // of them
  std::size_t changed_articles = 0;           // visits with other features of a known article
};

// Describes how a stream was prepared.
inline constexpr std::string_view kMetaFile = "meta.json";

// The names of all files that a preparation may write.
std::vector<std::string> PreparedFiles();

// Reads the data set in `in` and writes the files of a stream (stream_format.h) into `out`, which
// the caller commits. Deterministic: the bytes are a function of the input and the options. Skipped
// lines are counted in the log. kNotFound or kInvalidArgument says which file was expected where,
// and where to get it; kUnavailable if the caller cancels.
Result<PreparedStream> Prepare(data::DataSet set, const std::filesystem::path& in,
                               const PrepareOptions& options, const data::OutputDirectory& out,
                               data::InputLog& log, const data::WorkHooks& hooks);

}  // namespace codband::replay
