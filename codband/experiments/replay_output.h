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

// A finished comparison on recorded events, with what is needed to report and to repeat it.
struct ReplayRecord {
  std::string directory;
  std::string order = "recorded";  // of the events: recorded or interleaved
  replay::RecordedStream stream;
  std::optional<replay::ItemTags> tags = {};
  std::optional<replay::EventOrigins> origins = {};
  std::size_t window = 10;  // events of a user, from a boundary on, that count as at it
  std::uint64_t first_seed = 1;
  std::string command = {};  // that repeats it
  double seconds = 0;
  replay::ReplayComparison comparison = {};
};

// The parts that text, JSON and report share -----------------------------------------------------

// One row for each policy, means over seeds; the best reward is emphasised.
report::ReportTable SummaryTable(const ReplayRecord& record);

// Accumulated reward at each checkpoint, plain and divided by the expected reward of random choice
// so far; for a log the latter is the click-through rate so far over that of the log so far.
sim::CurveSpread RewardCurves(const replay::ReplayResults& policy);
sim::CurveSpread NormalisedCurves(const ReplayRecord& record, const replay::ReplayResults& policy);

// How well detected changes match true boundaries: a row for each policy that detects changes and
// each kind of boundary. None if the origins are unknown or there is no such row.
std::optional<report::ReportTable> BoundaryTable(const ReplayRecord& record);
// What its columns mean. Precondition: the origins are known.
std::string BoundaryLegend(const ReplayRecord& record);

// Number of top-scored items that describe a model, as in the paper.
inline constexpr std::size_t kBestItems = 100;

// A model that users share, with the tags of its top-scored items.
struct Group {
  ModelDescription model;
  std::vector<replay::WeightedTag> tags;
};

// The most popular models at the end of the first seed's run; none without tags, or if the policy
// describes no models.
std::vector<Group> Groups(const ReplayRecord& record, const replay::ReplayResults& policy);

// What is printed ---------------------------------------------------------------------------------

// For people: a row for each policy and, if the origins of events are known, how well detected
// changes match true boundaries.
std::string ToText(const ReplayRecord& record);

// One JSON object. A function of the stream, the seeds and the policies, apart from timings.
std::string ToJson(const ReplayRecord& record);

// One line for each run.
std::string ToCsv(const ReplayRecord& record);

}  // namespace codband::experiments
