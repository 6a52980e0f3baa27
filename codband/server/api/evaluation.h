#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
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
// first. Slow: not on a worker's thread. `between` is called again and again, and may end it by
// throwing. Logs of more than kMostLogBytes, or that need more than kMostLogMemory, are refused.
inline constexpr std::uint64_t kMostLogBytes = 256U << 20U;
inline constexpr std::size_t kMostLogMemory = 512U << 20U;
inline constexpr std::size_t kMostLineBytes = 16U << 20U;
Result<std::string> EvaluateFiles(const std::vector<std::string>& files,
                                  const EvaluationRequest& request,
                                  const std::function<void()>& between);

// What the evaluations of a server share: one runs at a time, a few may wait, none takes longer
// than kLongest. Thread-safe.
class EvaluationDesk {
 public:
  static constexpr int kMost = 4;  // being sent, waiting or running
  static constexpr std::chrono::minutes kLongest{10};

  boost::asio::thread_pool& pool() { return pool_; }

  // A place at the desk, given back at the end; nullptr if there is none.
  class Place {
   public:
    explicit Place(EvaluationDesk& desk) : desk_(desk) {}
    ~Place() { --desk_.taken_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    EvaluationDesk& desk_;
  };
  std::unique_ptr<Place> Take();

  // The server stops: those that run or wait end.
  void End() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  boost::asio::thread_pool pool_{1};
  std::atomic<int> taken_ = 0;
  std::atomic<bool> ended_ = false;
};

// A log on its way to being evaluated: kept in a file of its own until then.
class EvaluationStream final : public BodyStream {
 public:
  // All are borrowed. `logs`: the directory of the decision log.
  EvaluationStream(const Call& call, EvaluationDesk& desk, std::filesystem::path logs);
  ~EvaluationStream() override;
  EvaluationStream(const EvaluationStream&) = delete;
  EvaluationStream& operator=(const EvaluationStream&) = delete;

  Awaitable<bool> Take(std::string_view piece, bool last) override;

 private:
  Status Keep(std::string_view piece);
  Result<std::vector<std::string>> FilesToRead() const;
  Result<std::string> Evaluate(const std::vector<std::string>& files) const;

  Worker& worker_;
  Reply& reply_;
  EvaluationDesk& desk_;
  const std::unique_ptr<EvaluationDesk::Place> place_;
  const std::filesystem::path logs_;
  Result<EvaluationRequest> request_;
  std::string file_ = {};  // of the body, which has no name but this process's; empty: none yet
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace codband::server
