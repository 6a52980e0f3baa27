// codband import: what happened before, learned by a server.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "codband/cli/command.h"
#include "codband/cli/run_flags.h"
#include "codband/server/admin/data_directory.h"
#include "codband/server/admin/history_file.h"
#include "codband/server/http/http_client.h"

namespace codband::cli {
namespace {

struct ImportFlags {
  std::string file, data, url, input;
  server::HistoryFileOptions columns;
};

constexpr std::string_view kImportFooter = R"(
Sends past events (user, item, reward) to a running server, which learns them in the order of the
file: a warm start. The server is the one on the data directory (--data), or at an address (--url). If
it requires a key, put one with the role admin into the environment variable CODBAND_API_KEY.

FILE is one of
  csv     a header; the columns user, item, reward and, if there, time (see the flags)
  ndjson  {"userId", "itemId", "value", "features"?, "time"?} on each line
  dsjson  decisions as 'codband serve' and Vowpal Wabbit's services log them: the action taken, with its
          own features, and minus its cost
Items without features must be in the server's catalogue; events of others are left out and counted.
Propensities are not needed: learning from a choice does not use them.

FILE.imported beside it tells how far it is sent: after an interruption the same command goes on there,
and a file that was sent completely is not sent again. Lines may be appended later.

Examples:
  codband import purchases.csv --data /var/lib/codband --item-column sku --reward-column bought
  codband import decisions.json --url http://127.0.0.1:8080 --input dsjson)";

constexpr std::string_view kHistoryInputs[] = {"csv", "ndjson", "dsjson"};  // by HistoryFormat
constexpr int kAttempts = 8;

Result<server::HttpUrl> FindServer(const ImportFlags& flags) {
  if (flags.data.empty() == flags.url.empty()) {
    return Status::InvalidArgument("--data and --url, expected one of them");
  }
  if (!flags.url.empty()) return server::ParseHttpUrl(flags.url);
  const auto note = server::FindRunningServer(flags.data);
  if (!note) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("no server is running on {0}; start one: codband serve --data {0}",
                              flags.data));
  }
  auto url = server::ParseHttpUrl(note->url);
  if (url.ok()) url.value().fingerprint = note->fingerprint;
  return url;
}

// Posts until the server answers, a few times: the events' ids make that safe.
server::PostHistory Poster(const server::HttpUrl& url) {
  return [url](const std::string& body) -> Result<std::string> {
    server::HttpRequest request{.method = "POST", .target = "/v1/history", .body = body};
    if (const char* key = std::getenv("CODBAND_API_KEY")) {
      request.headers = {{"X-API-Key", key}};
    }
    Status failure;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100 << attempt));
      auto client = server::HttpClient::Connect(url, std::chrono::seconds(10));
      if (!client.ok()) {
        failure = client.status();
        continue;
      }
      const auto reply = client.value()->Send(request, std::chrono::seconds(60));
      if (!reply.ok()) {
        failure = reply.status();
        continue;
      }
      if (reply.value().status == 200) return reply.value().body;
      failure = {
          reply.value().status < 500 ? StatusCode::kInvalidArgument : StatusCode::kIoError,
          fmt::format("the server answered {}: {}", reply.value().status, reply.value().body)};
      if (reply.value().status < 500) return failure;
    }
    return failure;
  };
}

Status RunImport(const ImportFlags& flags) {
  server::HistoryFileOptions options = flags.columns;
  options.file = flags.file;
  options.server =
      flags.url.empty() ? std::filesystem::weakly_canonical(flags.data).string() : flags.url;
  const std::string input = !flags.input.empty()           ? flags.input
                            : flags.file.ends_with(".csv") ? "csv"
                                                           : "ndjson";
  std::size_t format = 0;
  CODBAND_RETURN_IF_ERROR(Assign(ParseWord("--input", input, kHistoryInputs), format));
  options.format = static_cast<server::HistoryFormat>(format);
  const auto url = FindServer(flags);
  if (!url.ok()) return url.status();
  PercentBar bar(1, "file");
  options.progress = bar.Shares();
  const auto report = server::SendHistoryFile(options, Poster(url.value()));
  bar.Finish();
  if (!report.ok()) return report.status();
  const server::HistoryFileReport& r = report.value();
  fmt::print("{} records: {} learned, {} known before, {} left out, {} sent by an earlier run\n",
             r.records, r.accepted, r.duplicates, r.left_out, r.resumed);
  for (const std::string& problem : r.problems) fmt::print("left out: {}\n", problem);
  if (r.left_out > r.problems.size()) {
    fmt::print("left out: {} more\n", r.left_out - r.problems.size());
  }
  if (r.left_out > 0 && r.accepted + r.duplicates + r.resumed == 0) {
    return Status::InvalidArgument(
        fmt::format("no record of {} can be used as {}", flags.file, input));
  }
  return {};
}

}  // namespace

void AddImportCommand(CLI::App& app, Status& status) {
  auto flags = std::make_shared<ImportFlags>();
  const Command command(app, "import", "Let a server learn from past events", kImportFooter);
  command.Option("FILE", flags->file, "FILE", "Past events: user, item, reward",
                 Command::kRequired);
  command.Option("--data", flags->data, "DIR", "The data directory that the server runs on");
  command.Option("--url", flags->url, "URL", "Address of the server: http://127.0.0.1:8080");
  command.Option("--input", flags->input, "csv|ndjson|dsjson",
                 "Format of the file (default: csv if its name ends so, else ndjson)");
  command.Option("--user-column", flags->columns.user, "NAME", "CSV: the user (default user)");
  command.Option("--item-column", flags->columns.item, "NAME", "CSV: the item (default item)");
  command.Option("--reward-column", flags->columns.reward, "NAME",
                 "CSV: what it brought (default reward)");
  command.Option("--time-column", flags->columns.time, "NAME",
                 "CSV: when (default time, if there)");
  command.Option("--user-field", flags->columns.user_field, "PATH",
                 "DSJSON: path of the user id in c (default User.id)");
  command.Run(status, [flags] { return RunImport(*flags); });
}

}  // namespace codband::cli
