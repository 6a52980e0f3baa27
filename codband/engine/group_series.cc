#include "codband/engine/group_series.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codband/engine/record_codec.h"

namespace codband::engine {
namespace {

using Series = TimeSeries<GroupActivity>;

}  // namespace

std::string EncodeGroups(const GroupActivity& activity) {
  ByteWriter out;
  out.U64(activity.changes);
  out.U64(activity.users);
  out.U64(activity.groups.size());
  for (const auto& [model, users] : activity.groups) {
    out.U64(model);
    out.U64(users);
  }
  return out.Take();
}

Result<GroupActivity> DecodeGroups(std::string_view bytes) {
  return DecodeWith<GroupActivity>(bytes, [](ByteReader& in, GroupActivity& activity) {
    activity.changes = in.U64("number of changes");
    activity.users = in.U64("number of users");
    const std::size_t count = in.Count("number of groups", 16);
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const std::uint64_t model = in.U64("model");
      activity.groups.emplace_back(model, in.U64("users of a model"));
    }
  });
}

GroupActivity GroupSeries::Now(const std::vector<ModelDescription>& models, std::uint64_t users) {
  GroupActivity now{.users = users};
  for (const ModelDescription& model : models) {
    if (model.users > 0) now.groups.emplace_back(model.id, model.users);
  }
  std::ranges::sort(now.groups, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (now.groups.size() > kMostGroups) now.groups.resize(kMostGroups);
  return now;
}

void GroupSeries::Begin(std::int64_t time_ms, const Policy& policy, std::uint64_t users) {
  if (minute_ >= 0) Add(minute_ * Series::kMinuteMs, Now(policy.DescribeModels(), users));
  minute_ = time_ms / Series::kMinuteMs;
  Add(time_ms, {});
}

void GroupSeries::AddChange(std::int64_t time_ms) { Add(time_ms, {.changes = 1}); }

void GroupSeries::Add(std::int64_t time_ms, const GroupActivity& activity) {
  changed_minutes_.insert(time_ms / Series::kMinuteMs);
  if (series_.HasMinute(time_ms)) return series_.Add(time_ms, activity);
  // Once a minute: what else Add() changes.
  for (const auto& [hour, over] : series_.OverBy(time_ms)) changed_hours_.insert(hour);
  const auto first_of = [](const Series::Buckets& buckets) {
    return buckets.empty() ? std::optional<std::int64_t>() : buckets.begin()->first;
  };
  const auto minute = first_of(series_.minutes());
  const auto hour = first_of(series_.hours());
  series_.Add(time_ms, activity);
  if (minute && !series_.minutes().contains(*minute)) changed_minutes_.insert(*minute);
  if (hour && !series_.hours().contains(*hour)) changed_hours_.insert(*hour);
}

void GroupSeries::SaveChanged(store::StoreBatch& batch) const {
  const auto save = [&](bool hour, const std::set<std::int64_t>& changed,
                        const Series::Buckets& buckets) {
    for (const std::int64_t number : changed) {
      const auto found = buckets.find(number);
      if (found == buckets.end()) {
        batch.Delete(store::Table::kCheckpoint, BucketKey(kPrefix, hour, number));
      } else {
        batch.Put(store::Table::kCheckpoint, BucketKey(kPrefix, hour, number),
                  EncodeGroups(found->second));
      }
    }
  };
  if (changed_minutes_.empty()) return;
  batch.Put(store::Table::kCheckpoint, std::string(kLastKey),
            NumberKey(static_cast<std::uint64_t>(minute_)));
  save(false, changed_minutes_, series_.minutes());
  save(true, changed_hours_, series_.hours());
}

Status GroupSeries::Load(const store::Store& store) {
  std::vector<store::Store::Lost> lost;
  return store.ScanPastDamage(
      store::Table::kCheckpoint,
      [&](std::string_view key, std::string_view value) {
        if (key == kLastKey) {
          const auto minute = ReadNumberKey(value);
          if (minute.ok()) minute_ = static_cast<std::int64_t>(minute.value());
          return true;
        }
        const auto name = ReadBucketKey(kPrefix, key);
        if (!name) return true;
        auto activity = DecodeGroups(value);
        if (!activity.ok()) return true;
        if (name->hour) {
          series_.SetHour(name->number, std::move(activity).value());
        } else {
          series_.SetMinute(name->number, std::move(activity).value());
        }
        return true;
      },
      lost);
}

}  // namespace codband::engine
