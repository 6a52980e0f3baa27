// Every route of the API. A new one is a row here, a handler in handlers.cc (declared in api.h), an
// operation in openapi.json and a row in docs/http_api.md; the router, the metrics, the limits and
// the check of the key follow from the row.
#include <array>

#include "codband/server/api/api.h"

namespace codband::server {

std::span<const Api::Row> Api::Table() {
  using enum Method;
  using enum BodyKind;
  using enum Access;
  // Method, path, operation in OpenAPI, body, role that a key needs; handler.
  static constexpr Row kTable[] = {
      {{kPost, "/v1/rank", "rank", kWhole, kRank}, &Api::Rank},
      {{kPost, "/v1/events/{id}/reward", "reward", kWhole, kRank}, &Api::Reward},
      {{kPost, "/v1/events/{id}/activate", "activate", kNone, kRank}, &Api::Activate},
      {{kPost, "/v1/history", "importHistory", kWhole, kAdmin}, &Api::ImportHistory},
      {{kPost, "/v1/items", "importItems", kStreamed, kItems}, nullptr, &Api::ImportItems},
      {{kGet, "/v1/items", "listItems", kNone, kItemsOrRead}, &Api::ListItems},
      {{kPut, "/v1/items/{id}", "putItem", kWhole, kItems}, &Api::PutItem},
      {{kGet, "/v1/items/{id}", "getItem", kNone, kItemsOrRead}, &Api::GetItem},
      {{kDelete, "/v1/items/{id}", "deleteItem", kNone, kItems}, &Api::DeleteItem},
      {{kGet, "/v1/users/{id}", "getUser", kNone, kRead}, &Api::GetUser},
      {{kDelete, "/v1/users/{id}", "forgetUser", kNone, kAdmin}, &Api::ForgetUser},
      {{kGet, "/v1/erasures/{id}", "getErasure", kNone, kAdmin}, &Api::GetErasure},
      {{kGet, "/v1/models", "listModels", kNone, kRead}, &Api::ListModels},
      {{kGet, "/v1/models/{id}", "getModel", kNone, kRead}, &Api::GetModel},
      {{kGet, "/v1/changes", "listChanges", kNone, kRead}, &Api::ListChanges},
      {{kGet, "/v1/features", "listFeatures", kNone, kRead}, &Api::ListFeatures},
      {{kPost, "/v1/backup", "backup", kWhole, kAdmin}, &Api::Backup},
      {{kGet, "/v1/health/live", "live", kNone, kOpen}, &Api::Alive},
      {{kGet, "/v1/health/ready", "ready", kNone, kOpen}, &Api::Ready},
      {{kGet, "/metrics", "metrics", kNone, kRead}, &Api::Metrics},
      {{kGet, "/openapi.json", "openapi", kNone, kAnyKey}, &Api::OpenApi},
      {{kGet, "/v1/stats", "stats", kNone, kRead}, &Api::Stats},
      {{kGet, "/v1/live", "liveEvents", kNone, kRead}, &Api::Live},
      {{kGet, "/v1/session", "getSession", kNone, kOpen}, &Api::GetSession},
      {{kPost, "/v1/session", "openSession", kWhole, kOpen}, &Api::OpenSession},
      {{kDelete, "/v1/session", "closeSession", kNone, kAnyKey}, &Api::CloseSession},
      {{kGet, "/v1/settings", "settings", kNone, kAdmin}, &Api::Settings},
      {{kGet, "/v1/keys", "listKeys", kNone, kAdmin}, &Api::ListKeys},
      {{kGet, "/v1/logs", "listLogs", kNone, kRead}, &Api::ListLogs},
      {{kPost, "/v1/evaluate", "evaluate", kStreamed, kRead}, nullptr, &Api::Evaluate},
      {{kGet, "/", "page", kNone, kOpen}, &Api::Page},
      {{kGet, "/app.js", "script", kNone, kOpen}, &Api::Script},
      {{kGet, "/app.css", "style", kNone, kOpen}, &Api::Style},
      {{kGet, "/icon.svg", "icon", kNone, kOpen}, &Api::Icon},
      {{kPost, "/personalizer/v1.0/rank", "personalizerRank", kWhole, kRank},
       &Api::PersonalizerRank},
      {{kPost, "/personalizer/v1.0/events/{id}/reward", "personalizerReward", kWhole, kRank},
       &Api::PersonalizerReward},
      {{kPost, "/personalizer/v1.0/events/{id}/activate", "personalizerActivate", kNone, kRank},
       &Api::Activate},
      {{kPost, "/personalizer/v1.1/multislot/rank", "multiSlotRank", kWhole, kRank},
       &Api::MultiSlotRank},
      {{kPost, "/personalizer/v1.1/multislot/events/{id}/reward", "multiSlotReward", kWhole, kRank},
       &Api::MultiSlotReward},
      {{kPost, "/personalizer/v1.1/multislot/events/{id}/activate", "multiSlotActivate", kNone,
        kRank},
       &Api::MultiSlotActivate},
  };
  return kTable;
}

std::span<const Route> Api::Routes() {
  // The same rows without their handlers, which the router does not know.
  static const std::vector<Route> routes = [] {
    std::vector<Route> all;
    for (const Row& row : Table()) all.push_back(row.route);
    return all;
  }();
  return routes;
}

const Router& Api::router() const {
  static const Router router(Routes());
  return router;
}

}  // namespace codband::server
