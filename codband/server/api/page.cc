#include "codband/server/api/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "codband/base/text.h"
#include "codband/base/time.h"
#include "codband/base/version.h"

namespace codband::server {
namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--fg:#1b1f26;--muted:#5d6673;--line:#e2e6eb;
--accent:#2563c9;--soft:#e4edfb;--good:#1a7f4b;--good-bg:#e2f4ea;--bad:#b3261e;--bad-bg:#fbe6e4}
@media (prefers-color-scheme:dark){
:root{--bg:#13161b;--card:#1b2027;--fg:#e6e9ee;--muted:#9aa4b2;--line:#2d343e;
--accent:#7db0ff;--soft:#223250;--good:#6fd69b;--good-bg:#17362a;--bad:#ff9a91;--bad-bg:#43211f}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);overflow-wrap:anywhere;
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:64rem;margin:0 auto;padding:2rem 1.25rem 3rem}
a{color:var(--accent)}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem 1rem;margin-bottom:1.5rem}
h1{font-size:1.6rem;line-height:1.2;margin:0;letter-spacing:-.01em}
h2{font-size:1.05rem;margin:2rem 0 .6rem}
nav{margin-left:auto;display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.9rem}
.what{flex-basis:100%;color:var(--muted);font-size:.9rem;margin:0}
.state{padding:.1rem .7rem;border-radius:1rem;font-size:.85rem;font-weight:600;
color:var(--good);background:var(--good-bg)}
.bad{color:var(--bad);background:var(--bad-bg)}
.trouble{padding:.75rem 1rem;border-radius:10px;margin:0 0 1rem;color:var(--bad);background:var(--bad-bg)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:.75rem}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:.75rem 1rem}
.tile b{display:block;font-size:1.55rem;line-height:1.25;font-weight:650;white-space:nowrap;font-variant-numeric:tabular-nums}
.tile span{color:var(--muted);font-size:.85rem}
.card{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.5rem 1rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
th{color:var(--muted);font-weight:600;font-size:.8rem;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
.share{min-width:9rem;width:22%}
.bar{height:.55rem;border-radius:.3rem;background:var(--soft);margin-top:.45rem}
.bar i{display:block;height:100%;border-radius:.3rem;background:var(--accent);min-width:2px}
.tag{display:inline-block;padding:0 .5rem;margin:0 .3rem .25rem 0;border-radius:.8rem;
background:var(--soft);font-size:.82rem;line-height:1.5rem}
.muted{color:var(--muted)}
.empty{padding:1rem;color:var(--muted);margin:0}
@media (max-width:36rem){main{padding:1rem .75rem 2rem}th,td{padding:.45rem .6rem}nav{margin-left:0}}
)css";

std::string Bytes(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, kUnits[unit]);
}

// 5'000 → "5 s", 5'000'000 → "1 h 23 min": at most the two largest units.
std::string Duration(std::int64_t ms) {
  const std::int64_t seconds = std::max<std::int64_t>(ms, 0) / 1000;
  const std::int64_t minutes = seconds / 60;
  const std::int64_t hours = minutes / 60;
  if (minutes == 0) return fmt::format("{} s", seconds);
  if (hours == 0) return fmt::format("{} min", minutes);
  if (hours < 24) return fmt::format("{} h {} min", hours, minutes % 60);
  return fmt::format("{} d {} h", hours / 24, hours % 24);
}

std::string Group(ModelId model) { return model == kNoModel ? "–" : fmt::format("{}", model); }

class Page {
 public:
  explicit Page(const PageFacts& facts) : facts_(facts) {}

  std::string Render() {
    Head();
    Tiles();
    Groups();
    Changes();
    out_ += "</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void Head() {
    const engine::EngineStats& stats = facts_.stats;
    Write(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta http-equiv=\"refresh\" content=\"5\">\n<title>codband</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<main>\n<header>\n<h1>codband</h1>\n",
        kStyle);
    out_ += stats.last_error.empty() ? "<span class=\"state\">ready</span>\n"
                                     : "<span class=\"state bad\">not ready</span>\n";
    out_ +=
        "<nav><a href=\"/metrics\">Metrics</a><a href=\"/openapi.json\">API</a>"
        "<a href=\"/v1/health/ready\">Health</a></nav>\n";
    Write("<p class=\"what\">Version {} · policy {} · {} features", EscapeXml(kVersion),
          EscapeXml(stats.policy), stats.dim);
    if (!facts_.mode.empty()) Write(" · mode {}", EscapeXml(facts_.mode));
    Write(" · up {}</p>\n</header>\n", Duration(facts_.now_ms - facts_.start_time_ms));
    if (stats.shared_columns > 0) {
      Write(
          "<p class=\"trouble\">All {} columns are taken: what is new shares {} more, which blurs "
          "it, {} names so far. <a href=\"/v1/features\">Which</a>; raise features.max_columns."
          "</p>\n",
          stats.columns_limit, stats.shared_columns, stats.sharing_names);
    }
    if (!stats.last_error.empty()) {
      Write("<p class=\"trouble\">Not ready: {}</p>\n", EscapeXml(stats.last_error));
    }
  }

  void Tiles() {
    const engine::EngineStats& stats = facts_.stats;
    const auto tile = [&](const std::string& number, std::string_view label) {
      Write("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", number, label);
    };
    out_ += "<section class=\"tiles\">\n";
    tile(GroupThousands(stats.ranks), "decisions since start");
    tile(GroupThousands(stats.rewards_accepted), "rewards accepted");
    tile(GroupThousands(stats.users), "users");
    tile(GroupThousands(stats.models), "taste groups");
    tile(GroupThousands(stats.changes_last_hour), "changes in the last hour");
    tile(GroupThousands(stats.items), "items");
    tile(GroupThousands(stats.pending), "waiting for a reward");
    tile(Bytes(stats.store.disk_bytes), "on disk");
    out_ += "</section>\n";
  }

  void Groups() {
    out_ += "<h2>Taste groups</h2>\n<div class=\"card\">\n";
    if (facts_.models.empty()) {
      out_ += "<p class=\"empty\">None yet: the first rewards create them.</p>\n</div>\n";
      return;
    }
    out_ +=
        "<table>\n<tr><th>Group</th><th class=\"share\">Users now</th><th class=\"n\">Share of "
        "periods</th><th class=\"n\">Rewards</th><th>Likes</th><th>Best items</th></tr>\n";
    std::uint64_t most = 1;
    for (const engine::ModelReport& model : facts_.models) most = std::max(most, model.users);
    constexpr std::size_t kMostRows = 50;
    const std::size_t rows = std::min(facts_.models.size(), kMostRows);
    for (std::size_t i = 0; i < rows; ++i) GroupRow(facts_.models[i], most);
    out_ += "</table>\n";
    if (rows < facts_.models.size()) {
      Write("<p class=\"empty\">and {} less popular ones: <a href=\"/v1/models\">all</a></p>\n",
            facts_.models.size() - rows);
    }
    out_ += "</div>\n";
  }

  void GroupRow(const engine::ModelReport& model, std::uint64_t most) {
    Write(
        "<tr><td><a href=\"/v1/models/{0}\">{0}</a></td><td class=\"share\">{1}"
        "<div class=\"bar\"><i style=\"width:{2:.1f}%\"></i></div></td>",
        model.id, GroupThousands(model.users),
        100.0 * static_cast<double>(model.users) / static_cast<double>(most));
    Write("<td class=\"n\">{:.1f}%</td><td class=\"n\">{}</td><td>", 100 * model.popularity,
          GroupThousands(model.observations));
    for (const engine::ModelReport::Top& tag : model.tags) {
      Write("<span class=\"tag\">{}</span>", EscapeXml(tag.name));
    }
    out_ += model.tags.empty() ? "<span class=\"muted\">–</span></td><td>" : "</td><td>";
    for (std::size_t i = 0; i < model.items.size(); ++i) {
      Write("{}{} <span class=\"muted\">{:.2f}</span>", i == 0 ? "" : "<br>",
            EscapeXml(model.items[i].name), model.items[i].weight);
    }
    out_ += model.items.empty() ? "<span class=\"muted\">–</span></td></tr>\n" : "</td></tr>\n";
  }

  void Changes() {
    out_ += "<h2>Latest changes</h2>\n<div class=\"card\">\n";
    if (facts_.changes.empty()) {
      out_ += "<p class=\"empty\">None yet.</p>\n</div>\n";
      return;
    }
    out_ += "<table>\n<tr><th>When</th><th>User</th><th>From group</th><th>To group</th></tr>\n";
    for (const engine::Change& change : facts_.changes) {
      Write(
          "<tr><td><time datetime=\"{0}\" title=\"{0}\">{1} ago</time></td><td>{2}</td>"
          "<td>{3}</td><td>{4}</td></tr>\n",
          FormatRfc3339(change.time_ms), Duration(facts_.now_ms - change.time_ms),
          EscapeXml(change.user), Group(change.from), Group(change.to));
    }
    out_ += "</table>\n</div>\n";
  }

  const PageFacts& facts_;
  std::string out_;
};

}  // namespace

std::string RenderPage(const PageFacts& facts) { return Page(facts).Render(); }

}  // namespace codband::server
