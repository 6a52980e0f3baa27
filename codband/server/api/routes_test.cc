// The documents of the API describe the routes of the table, all of them and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "codband/base/file.h"
#include "codband/server/api/api.h"
#include "codband/server/api/metrics.h"
#include "codband/server/api/openapi.h"
#include "codband/server/config/config_keys.h"

namespace codband::server {
namespace {

using nlohmann::json;
using Names = std::set<std::string>;

std::string Document(const std::string& name) {
  return ReadFile(CODBAND_SOURCE_DIR "/docs/" + name).value();
}

// All documents by their names.
std::map<std::string, std::string> Documents() {
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(CODBAND_SOURCE_DIR "/docs")) {
    if (entry.path().extension() != ".md") continue;
    texts[entry.path().filename()] = Document(entry.path().filename());
  }
  texts["README.md"] = Document("../README.md");
  return texts;
}

// What the first groups of all matches have captured, joined by blanks.
Names Captures(const std::string& text, const std::string& pattern) {
  Names found;
  const std::regex expression(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end;
       ++match) {
    std::string captured = (*match)[1];
    if (match->size() > 2) captured += " " + (*match)[2].str();
    found.insert(captured);
  }
  return found;
}

std::string NameOf(const Route& route) {
  return std::string(MethodName(route.method)) + " " + std::string(route.pattern);
}

Names RouteNames() {
  Names names;
  for (const Route& route : Api::Routes()) names.insert(NameOf(route));
  return names;
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(toupper(c)); });
  return text;
}

// By "POST /v1/rank".
std::map<std::string, json> Operations() {
  std::map<std::string, json> operations;
  const json api = json::parse(kOpenApiJson);
  for (const auto& [path, methods] : api.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      operations[Upper(method) + " " + path] = operation;
    }
  }
  return operations;
}

TEST(RouteTableTest, HasEveryPathAndEveryOperationOnce) {
  Names operations;
  for (const Route& route : Api::Routes()) {
    EXPECT_TRUE(operations.insert(std::string(route.operation)).second) << route.operation;
  }
  EXPECT_EQ(RouteNames().size(), Api::Routes().size());
}

TEST(RouteTableTest, OnlyHealthLoginAndTheFilesOfTheDashboardAreOpen) {
  Names open;
  for (const Route& route : Api::Routes()) {
    if (route.access == Access::kOpen) open.insert(NameOf(route));
  }
  EXPECT_EQ(open,
            (Names{"GET /v1/health/live", "GET /v1/health/ready", "GET /v1/session",
                   "POST /v1/session", "GET /", "GET /app.js", "GET /app.css", "GET /icon.svg"}));
}

// Open to everybody, who then shows a key.
bool ChecksKey(const Route& route) {
  return route.access != Access::kOpen || route.operation == "openSession";
}

TEST(OpenApiTest, DescribesTheRoutesOfTheTableAndNoOthers) {
  const std::map<std::string, json> operations = Operations();
  Names described;
  for (const auto& [name, operation] : operations) described.insert(name);
  EXPECT_EQ(described, RouteNames());
  for (const Route& route : Api::Routes()) {
    const auto found = operations.find(NameOf(route));
    if (found == operations.end()) continue;
    const json& operation = found->second;
    EXPECT_EQ(operation.at("operationId"), route.operation);
    EXPECT_EQ(operation.contains("requestBody"), route.body != BodyKind::kNone) << route.operation;
    EXPECT_EQ(operation.at("responses").contains("413"), route.body != BodyKind::kNone)
        << route.operation;
    EXPECT_EQ(operation.at("responses").contains("415"), route.body != BodyKind::kNone)
        << route.operation;
    if (route.body == BodyKind::kStreamed) {
      EXPECT_TRUE(operation["requestBody"]["content"].contains("application/x-ndjson"));
    }
  }
}

// The roles that are let in, besides admin.
Names RolesOf(const Route& route) {
  Names roles;
  for (const Access role : kRoles) {
    if (role != Access::kAdmin && route.access != Access::kOpen && Allows(role, route.access)) {
      roles.insert(AccessText(role));
    }
  }
  return roles;
}

TEST(OpenApiTest, SaysWhichRolesARouteIsFor) {
  const std::map<std::string, json> operations = Operations();
  for (const Route& route : Api::Routes()) {
    Names roles = RolesOf(route);
    if (route.access != Access::kOpen) roles.insert("admin");
    EXPECT_EQ(operations.at(NameOf(route)).at("x-codband-roles").get<Names>(), roles)
        << route.operation;
  }
}

// What can happen to a request of any route, by the facts in its row.
TEST(OpenApiTest, DescribesTheErrorsThatEveryRouteCanGive) {
  const std::map<std::string, json> operations = Operations();
  for (const Route& route : Api::Routes()) {
    const json& responses = operations.at(NameOf(route)).at("responses");
    const bool writes = route.method != Method::kGet;
    const bool has_body = route.body != BodyKind::kNone;
    const std::map<std::string, bool> expected = {
        {"400", true},
        {"401", ChecksKey(route)},
        {"403", true},  // a page of another site, if not the
                        // role
        {"413", has_body},
        {"415", has_body},
        {"429", ChecksKey(route)},
        {"503", true},
        {"507", writes},
    };
    for (const auto& [status, can_happen] : expected) {
      EXPECT_EQ(responses.contains(status), can_happen) << route.operation << " " << status;
    }
  }
  EXPECT_TRUE(operations.at("POST /v1/backup").at("responses").contains("409"));
}

TEST(OpenApiTest, SaysWhichRoutesNeedTheKey) {
  EXPECT_FALSE(json::parse(kOpenApiJson).at("security").empty());
  const std::map<std::string, json> operations = Operations();
  for (const Route& route : Api::Routes()) {
    const json& operation = operations.at(NameOf(route));
    const bool open = operation.contains("security") && operation["security"].empty();
    EXPECT_EQ(open, route.access == Access::kOpen) << route.operation;
    EXPECT_EQ(operation.at("responses").contains("401"), ChecksKey(route)) << route.operation;
  }
}

void CollectReferences(const json& value, std::set<std::string>& out) {
  if (value.is_object() && value.contains("$ref")) out.insert(value["$ref"].get<std::string>());
  if (value.is_structured()) {
    for (const json& child : value) CollectReferences(child, out);
  }
}

TEST(OpenApiTest, ReferencesLeadSomewhereAndEverySchemaIsUsed) {
  const json api = json::parse(kOpenApiJson);
  std::set<std::string> references;
  CollectReferences(api, references);
  for (const std::string& reference : references) {
    ASSERT_EQ(reference.front(), '#');
    EXPECT_TRUE(api.contains(json::json_pointer(reference.substr(1)))) << reference;
  }
  for (const auto& [name, ignored] : api["components"]["schemas"].items()) {
    EXPECT_TRUE(references.contains("#/components/schemas/" + name)) << name;
  }
}

TEST(OpenApiTest, EveryOperationHasAnAnswerAndItsParameters) {
  const json api = json::parse(kOpenApiJson);
  for (const auto& [path, methods] : api["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(operation.contains("operationId")) << path;
      EXPECT_TRUE(operation.contains("summary")) << path;
      bool good = false;
      for (const auto& [status, ignored] : operation["responses"].items()) {
        good = good || status[0] == '2';
      }
      EXPECT_TRUE(good) << path;
      const bool has_id = path.find("{id}") != std::string::npos;
      const std::string parameters = operation.value("parameters", json::array()).dump();
      EXPECT_EQ(parameters.find("\"in\":\"path\"") != std::string::npos, has_id) << path;
    }
  }
}

// Each route has a row of the first table, with a link to the section that describes it.
TEST(HttpApiDocumentTest, ListsTheRoutesOfTheTableAndNoOthers) {
  const std::string text = Document("http_api.md");
  EXPECT_EQ(Captures(text, "\\n\\| \\[`([A-Z]+) ([^`]+)`\\]\\(#"), RouteNames());
}

TEST(HttpApiDocumentTest, SaysWhichRoleARouteNeeds) {
  const std::string text = Document("http_api.md");
  Names listed;
  for (const std::string& row :
       Captures(text, "\\n\\| \\[`([A-Z]+ [^`]+`\\]\\(#[a-z-]+\\) \\| [^|]+) \\|")) {
    listed.insert(std::regex_replace(row, std::regex("`\\].*\\| "), ": "));
  }
  Names expected;
  for (const Route& route : Api::Routes()) {
    expected.insert(NameOf(route) + ": " + AccessText(route.access));
  }
  EXPECT_EQ(listed, expected);
}

TEST(HttpApiDocumentTest, MentionsNoOtherRoute) {
  const Names routes = RouteNames();
  for (const auto& [name, text] : Documents()) {
    for (const std::string& mentioned : Captures(text, "`(GET|POST|PUT|DELETE) (/[^`? ]*)")) {
      EXPECT_TRUE(routes.contains(mentioned)) << name << ": " << mentioned;
    }
  }
}

TEST(HttpApiDocumentTest, LinksLeadToSections) {
  const std::string text = Document("http_api.md");
  Names sections;
  for (std::string section : Captures(text, "\\n##+ ([^\\n]+)")) {
    std::ranges::transform(section, section.begin(),
                           [](char c) { return c == ' ' ? '-' : static_cast<char>(tolower(c)); });
    sections.insert(section);
  }
  for (const std::string& link : Captures(text, "\\]\\(#([^)]+)\\)")) {
    EXPECT_TRUE(sections.contains(link)) << link;
  }
}

TEST(HttpApiDocumentTest, ListsTheErrorCodesOfTheDescription) {
  const json api = json::parse(kOpenApiJson);
  Names described;
  for (const json& code :
       api.at("/components/schemas/Error/properties/error/properties/code/enum"_json_pointer)) {
    described.insert(code.get<std::string>());
  }
  const std::string text = Document("http_api.md");
  Names listed;
  for (const std::string& row : Captures(text, "\\n\\| [45]\\d\\d \\| ([^|]+)\\|")) {
    listed.merge(Captures(row, "`([A-Za-z]+)`"));
  }
  EXPECT_EQ(listed, described);
}

TEST(HttpApiDocumentTest, ListsTheMetricsThatThereAre) {
  const std::vector<RouteMetrics::Totals> totals(Api::Routes().size() + 1);
  const std::string metrics = RenderMetrics({.routes = Api::Routes(),
                                             .totals = totals,
                                             .decision_log = DecisionLogStats{},
                                             .cluster = ClusterFacts{}});
  const Names rendered = Captures(metrics, "# TYPE codband_([a-z_]+) ");
  const std::string text = Document("http_api.md");
  const std::size_t start = text.find("| Metric |");
  ASSERT_NE(start, std::string::npos);
  const std::string table = text.substr(start, text.find("\n\n", start) - start);
  Names listed;
  for (const std::string& cell : Captures(table, "\\n\\| ([^|]+)\\|")) {
    listed.merge(Captures(cell, "`([a-z_]+)[`{]"));
  }
  EXPECT_EQ(listed, rendered);
  for (const char* document : {"cluster.md", "operations.md"}) {
    for (const std::string& name : Captures(Document(document), "codband_([a-z_]+)")) {
      std::string family = name;
      for (const char* suffix : {"_bucket", "_count", "_sum"}) {
        if (family.ends_with(suffix)) family.resize(family.size() - std::string(suffix).size());
      }
      EXPECT_TRUE(rendered.contains(family)) << document << ": " << name;
    }
  }
}

TEST(DocumentsTest, SettingsThatTheyNameExist) {
  Names settings;
  std::string sections;
  for (const ConfigKey& key : ConfigKeys()) {
    settings.insert(key.FullName());
    sections += (sections.empty() ? "" : "|") + std::string(key.section);
  }
  std::size_t count = 0;
  for (const auto& [name, text] : Documents()) {
    for (const std::string& setting : Captures(text, "`((?:" + sections + ")\\.[a-z_]+)")) {
      static const std::set<std::string> kFiles = {".cc", ".h", ".json", ".md", ".tsv"};
      if (kFiles.contains(std::filesystem::path(setting).extension())) continue;
      EXPECT_TRUE(settings.contains(setting)) << name << ": " << setting;
      ++count;
    }
  }
  EXPECT_GT(count, 50U);
}

// The HTTP server serves any Service: what the routes mean is not its concern.
TEST(HttpFolderTest, IncludesNothingOfTheApiOrTheEngine) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(CODBAND_SOURCE_DIR "/codband/server/http")) {
    if (entry.path().stem().string().ends_with("_test")) continue;
    ++files;
    const Names includes =
        Captures(ReadFile(entry.path()).value(), "#include \"codband/([a-z/_]+\\.h)\"");
    for (const std::string& include : includes) {
      EXPECT_TRUE(include.starts_with("base/") || include.starts_with("server/http/"))
          << entry.path() << ": " << include;
    }
  }
  EXPECT_GT(files, 10);
}

}  // namespace
}  // namespace codband::server
