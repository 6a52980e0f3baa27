#include "codband/replay/event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "codband/replay/stream_format.h"

namespace codband::replay {
namespace {

constexpr std::size_t kEventsBetweenReports = 4096;

auto TimeOrder(const StreamEvent& event) {
  return std::tuple(event.time, event.user, event.source, event.item);
}

std::uint32_t UserCount(std::span<const StreamEvent> events) {
  std::uint32_t count = 0;
  for (const StreamEvent& event : events) count = std::max(count, event.user + 1);
  return count;
}

// Sorts by the users' places in a random order.
void Stack(std::uint64_t seed, bool renumber, std::vector<StreamEvent>& events) {
  std::vector<std::uint32_t> order(UserCount(events));
  std::iota(order.begin(), order.end(), 0U);
  DrawStream(seed, StreamDraw::kUserOrder).Shuffle(std::span(order));
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (StreamEvent& event : events) event.user = place[event.user];
  std::ranges::sort(events, {}, [](const StreamEvent& event) {
    return std::tuple(event.user, event.time, event.source, event.item);
  });
  if (renumber) return;
  for (StreamEvent& event : events) event.user = order[event.user];
}

// A random order of the users' turns; each turn takes its user's next event.
void Interleave(std::uint64_t seed, std::vector<StreamEvent>& events) {
  std::vector<std::uint32_t> turns;
  turns.reserve(events.size());
  for (const StreamEvent& event : events) turns.push_back(event.user);
  DrawStream(seed, StreamDraw::kInterleaving).Shuffle(std::span(turns));
  std::ranges::sort(events, {}, [](const StreamEvent& event) {
    return std::tuple(event.user, event.time, event.source, event.item);
  });
  std::vector<std::size_t> next(UserCount(events));
  for (std::size_t i = events.size(); i > 0; --i) next[events[i - 1].user] = i - 1;
  std::vector<StreamEvent> mixed;
  mixed.reserve(events.size());
  for (const std::uint32_t user : turns) mixed.push_back(events[next[user]++]);
  events = std::move(mixed);
}

}  // namespace

void OrderEvents(StreamOrder order, std::uint64_t seed, bool renumber,
                 std::vector<StreamEvent>& events) {
  switch (order) {
    case StreamOrder::kStacked:
      Stack(seed, renumber, events);
      break;
    case StreamOrder::kInterleaved:
      Interleave(seed, events);
      break;
    case StreamOrder::kTime:
      std::ranges::sort(events, {}, TimeOrder);
      break;
  }
}

void DrawEvents(std::size_t count, std::uint64_t seed, std::vector<StreamEvent>& events) {
  if (count == 0 || count >= events.size()) return;
  // Selection sampling: each event is kept with the remaining probability (Knuth's algorithm S).
  RandomStream random = DrawStream(seed, StreamDraw::kEvents);
  std::size_t kept = 0;
  for (std::size_t i = 0; kept < count; ++i) {
    if (random.Below(events.size() - i) < count - kept) events[kept++] = events[i];
  }
  events.resize(count);
  events.shrink_to_fit();
}

PositiveItems::PositiveItems(std::size_t sources, std::span<const StreamEvent> events)
    : begin_(sources + 1), items_(events.size()) {
  for (const StreamEvent& event : events) ++begin_[event.source + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (const StreamEvent& event : events) items_[next[event.source]++] = event.item;
  for (std::size_t source = 0; source < sources; ++source) {
    std::sort(items_.begin() + static_cast<std::ptrdiff_t>(begin_[source]),
              items_.begin() + static_cast<std::ptrdiff_t>(begin_[source + 1]));
  }
}

bool PositiveItems::Has(std::size_t source, std::uint32_t item) const {
  return std::ranges::binary_search(of(source), item);
}

Status WriteEvents(std::span<const StreamEvent> events, const PositiveItems& positives,
                   std::span<const std::uint64_t> user_ids, std::span<const std::uint64_t> item_ids,
                   const EventsOptions& options, data::OutputFile& file,
                   const data::WorkPart& part) {
  std::vector<std::uint32_t> candidates;
  std::vector<std::uint64_t> ids;
  for (std::size_t number = 0; number < events.size(); ++number) {
    if (number % kEventsBetweenReports == 0) {
      CODBAND_RETURN_IF_ERROR(
          part.Report(static_cast<double>(number) / static_cast<double>(events.size())));
    }
    const StreamEvent& event = events[number];
    if (positives.of(event.source).size() + options.candidates - 1 > item_ids.size()) {
      return Status::InvalidArgument(
          fmt::format("{} candidates of {} items: user {} has {} positive ones, which leaves too "
                      "few to draw from",
                      options.candidates, item_ids.size(), user_ids[event.user],
                      positives.of(event.source).size()));
    }
    RandomStream random = DrawStream(options.seed, StreamDraw::kCandidates, number);
    candidates.assign(1, event.item);
    while (candidates.size() < options.candidates) {
      const auto item = static_cast<std::uint32_t>(random.Below(item_ids.size()));
      const bool fresh = std::ranges::find(candidates, item) == candidates.end();
      if (fresh && !positives.Has(event.source, item)) candidates.push_back(item);
    }
    ids.clear();
    for (const std::uint32_t item : candidates) ids.push_back(item_ids[item]);
    WriteEvent(user_ids[event.user], event.time, ids, file);
  }
  return part.Report(1);
}

}  // namespace codband::replay
