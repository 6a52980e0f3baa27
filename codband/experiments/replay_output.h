#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codband/replay/replay.h"
#include "codband/replay/stream_notes.h"
#include "codband/report/table.h"
#include "codband/sim/summary.h"

namespace codband::experiments {

// A finished comparison on recorded events, with all that is needed to tell and to repeat it.
struct ReplayRecord {
  std::string directory;
  std::string order = "recorded";  // of the events: recorded or interleaved
  replay::RecordedStream stream;
  std::optional<replay::ItemTags> tags = {};
  std::optional<replay::EventOrigins> origins = {};
  std::size_t window = 10;  // how many events of a user belong to a boundary
  std::uint64_t first_seed = 1;
  std::string command = {};  // that repeats it
  double seconds = 0;
  replay::ReplayComparison comparison = {};
};

// The parts that text, JSON and report share -----------------------------------------------------

// One row a policy, means over seeds; the best reward is emphasised.
report::ReportTable SummaryTable(const ReplayRecord& record);

// Accumulated reward at each checkpoint, and divided by what random choice has by then; of a log
// the click rate so far, over that of the log so far.
sim::CurveSpread RewardCurves(const replay::ReplayResults& policy);
sim::CurveSpread NormalisedCurves(const ReplayRecord& record, const replay::ReplayResults& policy);

// How the detected changes go with true boundaries: a row for each policy that detects changes and
// each kind of boundary that there is. None where nothing is known about origins, or no row is
// left.
std::optional<report::ReportTable> BoundaryTable(const ReplayRecord& record);
// What its columns mean. Precondition: the origins are known.
std::string BoundaryLegend(const ReplayRecord& record);

// How many items a model is judged by, as in the paper.
inline constexpr std::size_t kBestItems = 100;

// A model that users share, with the tags of the items that it scores best.
struct Group {
  ModelDescription model;
  std::vector<replay::WeightedTag> tags;
};

// The most popular models at the end of the first seed's run; none without tags, or if the policy
// describes no models.
std::vector<Group> Groups(const ReplayRecord& record, const replay::ReplayResults& policy);

// What is printed ---------------------------------------------------------------------------------

// For people: a line a policy and, where the origins of events are known, how the detected changes
// go with true boundaries.
std::string ToText(const ReplayRecord& record);

// One JSON object; apart from timings it is a function of the stream, the seeds and the policies.
std::string ToJson(const ReplayRecord& record);

// One line a run.
std::string ToCsv(const ReplayRecord& record);

}  // namespace codband::experiments
