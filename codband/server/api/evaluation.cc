#include "codband/server/api/evaluation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "codband/base/file.h"
#include "codband/eval/evaluate.h"
#include "codband/eval/log_reader.h"
#include "codband/eval/make_target.h"
#include "codband/eval/verdict.h"
#include "codband/server/api/api_error.h"
#include "codband/server/api/json_text.h"
#include "codband/server/api/run_on.h"
#include "codband/server/http/router.h"

namespace codband::server {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kMostPolicies = 8;
constexpr std::size_t kResamples = 400;

struct EvaluationEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<std::string> LogFileNames(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("decisions-") && name.ends_with(".json")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// "linucb:alpha=1,lambda=2,codband": a part with '=' and no ':' belongs to the one before.
std::vector<std::string> SplitPolicies(std::string_view text) {
  std::vector<std::string> policies;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const bool goes_on = part.find('=') != part.npos && part.find(':') == part.npos;
    if (goes_on && !policies.empty()) {
      policies.back() += "," + std::string(part);
    } else if (!part.empty()) {
      policies.emplace_back(part);
    }
  }
  return policies;
}

Json TargetJson(const eval::TargetReport& target) {
  Json json{{"name", target.name},
            {"logged", target.on_policy},
            {"effectiveEvents", target.effective_sample},
            {"warnings", target.warnings}};
  Json estimates = Json::array();
  for (const eval::Estimate& estimate : target.estimates) {
    Json one{{"estimator", eval::EstimatorName(estimate.estimator)}};
    if (estimate.value) one["value"] = *estimate.value;
    if (estimate.bootstrap) {
      one["low"] = estimate.bootstrap->interval.low;
      one["high"] = estimate.bootstrap->interval.high;
    }
    if (estimate.guaranteed) {
      one["guaranteedLow"] = estimate.guaranteed->low;
      one["guaranteedHigh"] = estimate.guaranteed->high;
    }
    one["headline"] = &estimate == eval::HeadlineOf(target);
    estimates.push_back(std::move(one));
  }
  json["estimates"] = std::move(estimates);
  return json;
}

// They are read at once.
Status CheckSizes(const std::vector<std::string>& files) {
  std::uintmax_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(file, error);
    bytes += error ? 0 : size;
  }
  if (bytes <= kMostLogBytes) return {};
  return Status::InvalidArgument(
      fmt::format("log: has {} bytes, expected at most {}; 'codband evaluate' takes larger ones",
                  bytes, kMostLogBytes));
}

Result<eval::LoggedData> ReadLog(const std::vector<std::string>& files,
                                 const EvaluationRequest& request,
                                 const std::function<void()>& between) {
  CODBAND_RETURN_IF_ERROR(CheckSizes(files));
  const eval::LogSource source{
      .files = files,
      .limits = {.line_bytes = kMostLineBytes, .memory_bytes = kMostLogMemory, .between = between}};
  if (request.input == "csv") return eval::ReadCsvLog(source, {});
  return eval::ReadDsJsonLog(source, {});
}

}  // namespace

Result<EvaluationRequest> ParseEvaluation(std::string_view text) {
  constexpr std::array<std::string_view, 3> kKnown = {"log", "policies", "input"};
  const auto query = ParseQuery(text, kKnown);
  if (!query.ok()) return query.status();
  EvaluationRequest request;
  for (const auto& [name, value] : query.value()) {
    if (name == "log") request.log = value;
    if (name == "input") request.input = value;
    if (name == "policies") request.policies = SplitPolicies(value);
  }
  if (request.input != "dsjson" && request.input != "csv") {
    return Status::InvalidArgument(
        fmt::format("input: is '{}', expected dsjson or csv", request.input));
  }
  if (request.policies.empty() || request.policies.size() > kMostPolicies) {
    return Status::InvalidArgument(fmt::format("policies: has {} of them, expected 1 to {}",
                                               request.policies.size(), kMostPolicies));
  }
  for (const std::string& policy : request.policies) {
    if (policy.starts_with("table:")) {
      return Status::InvalidArgument("policies: has a table, which only 'codband evaluate' reads");
    }
  }
  return request;
}

std::string ListLogsJson(const fs::path& directory) {
  Json logs = Json::array();
  for (const std::string& name : LogFileNames(directory)) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(directory / name, error);
    logs.push_back({{"name", name}, {"bytes", error ? 0 : size}});
  }
  return JsonText({{"enabled", !directory.empty()}, {"logs", std::move(logs)}});
}

Result<std::string> EvaluateFiles(const std::vector<std::string>& files,
                                  const EvaluationRequest& request,
                                  const std::function<void()>& between) {
  auto read = ReadLog(files, request, between);
  if (!read.ok()) return read.status();
  eval::LoggedDecisions& log = read.value().log;
  if (read.value().summary.timed) log.SortByTime();
  std::vector<std::unique_ptr<eval::Target>> targets;
  for (const std::string& policy : request.policies) {
    auto target = eval::MakeTarget(policy, log, {});
    if (!target.ok()) return Status::InvalidArgument("policies: " + target.status().message());
    targets.push_back(std::move(target).value());
  }
  eval::EvaluationOptions options;
  options.resamples = kResamples;
  options.between = between;
  const auto evaluation = eval::Evaluate(log, targets, options);
  if (!evaluation.ok()) return Status::InvalidArgument("log: " + evaluation.status().message());
  Json policies = Json::array();
  for (const eval::TargetReport& target : evaluation.value().targets) {
    policies.push_back(TargetJson(target));
  }
  const eval::LogSummary& summary = read.value().summary;
  return JsonText({{"verdict", eval::Verdict(evaluation.value(), options.confidence)},
                   {"events", evaluation.value().events},
                   {"users", log.users.size()},
                   {"actions", log.action_names.size()},
                   {"skippedLines", summary.skipped},
                   {"firstProblem", summary.first_problem},
                   {"confidence", options.confidence},
                   {"warnings", evaluation.value().warnings},
                   {"policies", std::move(policies)}});
}

std::unique_ptr<EvaluationDesk::Place> EvaluationDesk::Take() {
  if (++taken_ <= kMost) return std::make_unique<Place>(*this);
  --taken_;
  return nullptr;
}

EvaluationStream::EvaluationStream(const Call& call, EvaluationDesk& desk, fs::path logs)
    : worker_(call.worker),
      reply_(call.reply),
      desk_(desk),
      place_(desk.Take()),
      logs_(std::move(logs)),
      request_(ParseEvaluation(call.match.query)) {}

EvaluationStream::~EvaluationStream() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status EvaluationStream::Keep(std::string_view piece) {
  bytes_ += piece.size();
  if (bytes_ > kMostLogBytes) {
    return Status::InvalidArgument(
        fmt::format("body: has more than {} bytes, use 'codband evaluate'", kMostLogBytes));
  }
  if (piece.empty()) return {};
  if (descriptor_ < 0) {
    std::string name = (fs::temp_directory_path() / "codband-log-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());  // for its owner alone
    if (descriptor_ < 0) return Status::IoError("cannot keep the log for its evaluation");
    // Nameless at once: nothing of it is left, however this process ends.
    ::unlink(name.c_str());
    file_ = fmt::format("/proc/self/fd/{}", descriptor_);
  }
  while (!piece.empty()) {
    const ssize_t written = ::write(descriptor_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Status::IoError("cannot keep the log for its evaluation");
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::vector<std::string>> EvaluationStream::FilesToRead() const {
  const std::string& log = request_.value().log;
  if (log.empty() == file_.empty()) {
    return Status::InvalidArgument(
        "log: expected the name of one of GET /v1/logs, 'all', or a log in the body");
  }
  if (log.empty()) return std::vector<std::string>{file_};
  std::vector<std::string> files;
  // By comparison with what is there: no path comes from the request.
  for (const std::string& name : LogFileNames(logs_)) {
    if (log == "all" || log == name) files.push_back((logs_ / name).string());
  }
  if (files.empty()) return Status::NotFound(fmt::format("log: there is no '{}'", log));
  return files;
}

Result<std::string> EvaluationStream::Evaluate(const std::vector<std::string>& files) const {
  const auto end = std::chrono::steady_clock::now() + EvaluationDesk::kLongest;
  try {
    return EvaluateFiles(files, request_.value(), [&] {
      if (desk_.ended()) throw EvaluationEnded("the server is stopping");
      if (std::chrono::steady_clock::now() > end) {
        throw EvaluationEnded(
            fmt::format("took longer than {} minutes; 'codband evaluate' takes as long as it needs",
                        EvaluationDesk::kLongest.count()));
      }
    });
  } catch (const EvaluationEnded& ended) {
    return Status(StatusCode::kUnavailable, ended.what());
  }
}

Awaitable<bool> EvaluationStream::Take(std::string_view piece, bool last) {
  Status status = request_.status();
  if (place_ == nullptr) {
    status = Status(StatusCode::kUnavailable, "other evaluations are under way; try again later");
  }
  if (status.ok()) status = Keep(piece);
  if (status.ok() && !last) co_return true;
  Result<std::vector<std::string>> files = std::vector<std::string>();
  if (status.ok()) {
    files = FilesToRead();
    status = files.status();
  }
  if (!status.ok()) {
    SetApiError(reply_, status);
    co_return false;
  }
  Pending<Result<std::string>> done(worker_);
  RunOn(desk_.pool(), done, [this, &files] { return Evaluate(files.value()); });
  co_await done.Wait();
  std::exception_ptr failure;
  try {
    const Result<std::string> json = done.Take();
    if (json.ok()) {
      reply_.body = json.value();
    } else {
      SetApiError(reply_, Status(json.status().code(), WithoutPaths(json.status().message())));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) SetApiError(reply_, ErrorOfException(failure));
  co_return true;
}

}  // namespace codband::server
