#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"
#include "codband/server/http/service.h"

namespace codband::server {

// The query of POST /v1/evaluate.
struct EvaluationRequest {
  std::string log = {};  // a file of the server's decision log, "all" of them; empty: the body
  std::vector<std::string> policies = {"logged", "first", "uniform", "codband"};
  std::string input = "dsjson";  // or "csv", of the body
};
Result<EvaluationRequest> ParseEvaluation(std::string_view query);

// The files of a decision log, newest last, as GET /v1/logs lists them.
std::string ListLogsJson(const std::filesystem::path& directory);

// Compares policies on logged decisions (eval/evaluate.h) and says the result in JSON, the verdict
// first. Slow: not on a worker's thread.
Result<std::string> EvaluateFiles(const std::vector<std::string>& files,
                                  const EvaluationRequest& request);

// A log on its way to being evaluated: kept in a file of its own until then. Bodies of more than
// kMostBytes are refused.
class EvaluationStream final : public BodyStream {
 public:
  static constexpr std::uint64_t kMostBytes = 256U << 20U;

  // All are borrowed; evaluations run on the pool. `logs`: the directory of the decision log.
  EvaluationStream(const Call& call, boost::asio::thread_pool& pool, std::filesystem::path logs);
  ~EvaluationStream() override;
  EvaluationStream(const EvaluationStream&) = delete;
  EvaluationStream& operator=(const EvaluationStream&) = delete;

  Awaitable<bool> Take(std::string_view piece, bool last) override;

 private:
  Status Keep(std::string_view piece);
  Result<std::vector<std::string>> FilesToRead() const;

  Worker& worker_;
  Reply& reply_;
  boost::asio::thread_pool& pool_;
  const std::filesystem::path logs_;
  Result<EvaluationRequest> request_;
  std::string file_ = {};  // of the body; empty: none yet
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace codband::server
