// Any body of a request is understood or refused with a reason that starts with the field; what is
// understood keeps its promises. The first byte says which request it is.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "codband/engine/catalogue.h"
#include "codband/server/api/evaluation.h"
#include "codband/server/api/history_json.h"
#include "codband/server/api/item_import.h"
#include "codband/server/api/personalizer_json.h"
#include "codband/server/api/request_json.h"

namespace {

using namespace codband;

constexpr std::size_t kDim = 2;

// One for all inputs, as a server's thread has.
server::JsonParser& Parser() {
  static server::JsonParser parser;
  return parser;
}

void ExpectReason(const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument || status.message().empty()) std::abort();
}

void ExpectNumbers(const std::vector<double>& features) {
  if (features.size() != kDim) std::abort();
  if (!std::ranges::all_of(features, [](double x) { return std::isfinite(x); })) std::abort();
}

void ExpectNames(const std::vector<features::NamedFeature>& named) {
  if (named.size() > engine::kMaxNamedFeatures) std::abort();
  for (const features::NamedFeature& feature : named) {
    if (feature.name.empty() || feature.name.size() > server::kMaxNameBytes) std::abort();
    if (!std::isfinite(feature.value)) std::abort();
  }
}

// Where every name has a column.
void RankByName(std::string_view body) {
  const auto request = server::ParseRank(Parser(), body, 0, "user.id");
  if (!request.ok()) return ExpectReason(request.status());
  if (request.value().user.size() > server::kMaxIdBytes) std::abort();
  ExpectNames(request.value().context_features);
  ExpectNames(request.value().user_features);
  for (const engine::Candidate& candidate : request.value().candidates) {
    ExpectNames(candidate.named);
    if (candidate.features.size() > engine::kMaxNamedFeatures) std::abort();
  }
}

void Slots(std::string_view body) {
  const auto request = server::ParseMultiSlot(Parser(), body, 0, "user.id", "event");
  if (!request.ok()) return ExpectReason(request.status());
  if (request.value().slots.empty()) std::abort();
  for (const auto& slot : request.value().slots) {
    if (slot.id.empty() || slot.baseline.empty()) std::abort();
  }
}

void SlotRewards(std::string_view body) {
  const auto rewards = server::ParseSlotRewards(Parser(), body);
  if (!rewards.ok()) return ExpectReason(rewards.status());
  if (rewards.value().empty()) std::abort();
}

void Rank(std::string_view body) {
  const auto request = server::ParseRank(Parser(), body, kDim);
  if (!request.ok()) return ExpectReason(request.status());
  for (const engine::Candidate& candidate : request.value().candidates) {
    if (candidate.id.empty() || candidate.id.size() > server::kMaxIdBytes) std::abort();
    if (!candidate.features.empty()) ExpectNumbers(candidate.features);
  }
}

void Reward(std::string_view body) {
  const auto value = server::ParseReward(Parser(), body);
  if (!value.ok()) return ExpectReason(value.status());
  if (!std::isfinite(value.value())) std::abort();
}

void OneItem(std::string_view body, std::string_view id) {
  const auto item = server::ParseItem(Parser(), body, kDim, id);
  if (!item.ok()) return ExpectReason(item.status());
  if (item.value().id.empty() || (!id.empty() && item.value().id != id)) std::abort();
  ExpectNumbers(item.value().features);
}

// In pieces of a few bytes.
void ManyItems(std::string_view body) {
  server::ItemImport import(Parser(), kDim, 4096);
  Status status;
  for (std::size_t i = 0; i < body.size() && status.ok(); i += 7) {
    status = import.Feed(body.substr(i, 7));
  }
  if (status.ok()) status = import.Finish();
  if (!status.ok()) ExpectReason(status);
  for (const engine::Item& item : import.Take()) ExpectNumbers(item.features);
}

void History(std::string_view body, std::size_t dim) {
  const auto events = server::ParseHistory(Parser(), body, dim);
  if (!events.ok()) return ExpectReason(events.status());
  if (events.value().empty() || events.value().size() > server::kMaxHistoryEvents) std::abort();
  for (const server::HistoryEvent& event : events.value()) {
    if (event.id.empty() || event.user.empty() || event.item.id.empty()) std::abort();
    if (!std::isfinite(event.value)) std::abort();
    ExpectNames(event.item.named);
  }
}

void Login(std::string_view body) {
  const auto key = server::ParseLogin(Parser(), body);
  if (!key.ok()) return ExpectReason(key.status());
  if (key.value().empty()) std::abort();
}

void Evaluation(std::string_view query) {
  const auto request = server::ParseEvaluation(query);
  if (!request.ok()) return ExpectReason(request.status());
  if (request.value().policies.empty()) std::abort();
}

void Backup(std::string_view body) {
  const auto name = server::ParseBackup(Parser(), body);
  if (!name.ok()) return ExpectReason(name.status());
  const std::string& text = name.value();
  if (text.empty() || text[0] == '.' || text.find('/') != text.npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'r':
      Rank(body);
      break;
    case 'n':
      RankByName(body);
      break;
    case 's':
      Slots(body);
      break;
    case 'w':
      SlotRewards(body);
      break;
    case 'v':
      Reward(body);
      break;
    case 'i':
      OneItem(body, {});
      break;
    case 'p':
      OneItem(body, "a");
      break;
    case 'm':
      ManyItems(body);
      break;
    case 'h':
      History(body, kDim);
      break;
    case 'H':
      History(body, 0);
      break;
    case 'l':
      Login(body);
      break;
    case 'e':
      Evaluation(body);
      break;
    default:
      Backup(body);
  }
  return 0;
}
