// What partitions take columns to be (shared_pool.h).
#include <algorithm>
#include <cmath>
#include <map>

#include "codband/policy/codband/column_scales.h"

namespace codband {
namespace {

using State = ColumnScales::State;

// Whether values are looked at as they are given.
bool IsAsGiven(State state) { return state == State::kPlain || state == State::kOwnUnits; }

void SaveView(const ColumnScales::View& view, ByteWriter& out) {
  out.U8(static_cast<std::uint8_t>(view.state));
  out.U32(static_cast<std::uint32_t>(view.exponent));
  out.Double(view.centre);
}

ColumnScales::View LoadView(ByteReader& in) {
  const std::uint8_t state = in.U8("state of a column");
  if (state > static_cast<std::uint8_t>(State::kCentred))
    in.Fail("state of a column", "is unknown");
  ColumnScales::View view{.state = static_cast<State>(in.ok() ? state : 0)};
  view.exponent = static_cast<int>(in.U32("scale of a column"));
  if (std::abs(view.exponent) > 60) in.Fail("scale of a column", "is out of range");
  view.centre = in.Double("centre of a column");
  return view;
}

}  // namespace

void ColumnScales::SaveProposals(std::span<const Proposal> proposals, ByteWriter& out) {
  out.U64(proposals.size());
  for (const Proposal& each : proposals) {
    out.U32(each.column);
    out.U64(each.count);
    SaveView(each.proposed, out);
    SaveView(each.used, out);
  }
}

std::vector<ColumnScales::Proposal> ColumnScales::LoadProposals(ByteReader& in) {
  std::vector<Proposal> out(in.Count("number of columns", 38));
  for (std::size_t i = 0; i < out.size() && in.ok(); ++i) {
    out[i].column = in.U32("column");
    out[i].count = in.U64("values of a column");
    out[i].proposed = LoadView(in);
    out[i].used = LoadView(in);
    if (i > 0 && out[i].column <= out[i - 1].column) in.Fail("column", "is out of order");
  }
  return out;
}

void ColumnScales::BePartition() {
  agreed_.assign(columns_.size(), {});
  Refresh();
}

std::vector<ColumnScales::Proposal> ColumnScales::Propose() const {
  std::vector<Proposal> out;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    if (column.count == 0) continue;
    out.push_back({.column = static_cast<std::uint32_t>(j),
                   .count = column.count,
                   .proposed = {column.state, column.exponent, column.centre},
                   .used = ViewOf(j)});
  }
  return out;
}

// A column that somebody has learned from as it was given is not centred any more; one that is
// centred stays so. All else is as the partition proposes that has seen the most of it.
std::vector<ColumnScales::Proposal> ColumnScales::Agree(
    std::span<const std::vector<Proposal>> partitions, std::span<const Proposal> before) {
  std::map<std::uint32_t, Proposal> agreed;
  std::map<std::uint32_t, std::uint64_t> most;
  std::map<std::uint32_t, bool> as_given;
  for (const std::vector<Proposal>& partition : partitions) {
    for (const Proposal& each : partition) {
      as_given[each.column] |= IsAsGiven(each.used.state);
      if (each.count <= most[each.column]) continue;
      most[each.column] = each.count;
      agreed[each.column] = {.column = each.column, .used = each.proposed};
    }
  }
  for (auto& [column, each] : agreed) {
    if (as_given[column] && !IsAsGiven(each.used.state)) {
      each.used.state = State::kOwnUnits;
      each.used.centre = 0;
    }
  }
  for (const Proposal& each : before) {
    if (each.used.state != State::kCentred) continue;
    Proposal& now = agreed.try_emplace(each.column, each).first->second;
    now.used.state = State::kCentred;
    now.used.centre = each.used.centre;
  }
  std::vector<Proposal> out;
  for (const auto& [column, each] : agreed) out.push_back(each);
  return out;
}

void ColumnScales::Adopt(std::span<const Proposal> agreed) {
  for (const Proposal& each : agreed) {
    if (each.column >= agreed_.size()) continue;
    agreed_[each.column] = each.used;
  }
  Refresh();
}

// Each column as the partition knows it that has seen the most of it.
void ColumnScales::BeWhole(std::span<const ColumnScales* const> partitions) {
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    View view = ViewOf(j);
    Column whole = columns_[j];
    std::uint64_t count = 0;
    for (const ColumnScales* partition : partitions) {
      const Column& column = partition->columns_[j];
      if (view == View{}) view = partition->ViewOf(j);
      if (column.count > whole.count) whole = column;
      count += column.count;
    }
    whole.count = count;
    whole.state = view.state;
    whole.exponent = view.exponent;
    whole.centre = view.centre;
    columns_[j] = whole;
  }
  agreed_.clear();
  Refresh();
}

std::vector<ColumnScales::Proposal> ColumnScales::Agreed() const {
  std::vector<Proposal> out;
  for (std::size_t j = 0; j < agreed_.size(); ++j) {
    if (agreed_[j] == View{}) continue;
    out.push_back({.column = static_cast<std::uint32_t>(j), .used = agreed_[j]});
  }
  return out;
}

std::vector<double> ColumnScales::Weights(std::span<const Proposal> agreed, std::size_t features) {
  std::vector<double> weights;
  if (std::ranges::all_of(agreed, [](const Proposal& p) { return p.used.exponent == 0; })) {
    return weights;
  }
  weights.assign(features, 1.0);
  for (const Proposal& each : agreed) {
    if (each.column < features) weights[each.column] = std::ldexp(1, -2 * each.used.exponent);
  }
  return weights;
}

}  // namespace codband
