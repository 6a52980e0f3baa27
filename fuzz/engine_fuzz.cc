// Any sequence of requests, with any numbers, against a live engine. Nothing fails a check (nothing
// goes into quarantine), whatever comes out is a number, and the engine may be killed at any time:
// it goes on as its twin does, which is never killed, keeps all users in memory and makes no
// checkpoints. The first bytes are the settings, the others the requests.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codband/engine/engine.h"
#include "codband/engine/fake_store.h"

namespace {

using namespace codband;

constexpr std::size_t kMostRequests = 48;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "engine_fuzz: %s\n", what);
  std::abort();
}

void Expect(bool condition, const char* what) {
  if (!condition) Fail(what);
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool empty() const { return at_ >= size_; }
  std::uint8_t Byte() { return empty() ? 0 : data_[at_++]; }
  std::size_t Below(std::size_t n) { return Byte() % n; }
  // One of those that matter, or any eight bytes.
  double Number() {
    static constexpr double kNumbers[] = {0,
                                          1,
                                          -1,
                                          0.5,
                                          -0.25,
                                          3,
                                          100,
                                          1e4,
                                          1e8,
                                          1e9,
                                          1e15,
                                          -1e15,
                                          1.0000001e15,
                                          1e-300,
                                          std::numeric_limits<double>::denorm_min(),
                                          std::numeric_limits<double>::max(),
                                          std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};
    const std::uint8_t kind = Byte();
    if (kind < 128) return kNumbers[kind % 6];  // usual ones
    if (kind < 240) return kNumbers[kind % std::size(kNumbers)];
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | Byte();
    return std::bit_cast<double>(bits);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

template <typename T, typename Start>
T Wait(const Start& start) {
  std::promise<T> promise;
  start([&promise](T value) { promise.set_value(std::move(value)); });
  return promise.get_future().get();
}

// An engine on a store in memory, which may be killed.
class Box {
 public:
  explicit Box(engine::EngineOptions options) : options_(std::move(options)) {
    Open(std::make_unique<engine::FakeStore>());
  }

  // What was written is there, nothing else.
  void Kill() {
    auto store = std::make_unique<engine::FakeStore>();
    store_->CopyTablesTo(*store);
    engine_.reset();
    Open(std::move(store));
  }

  engine::Engine& engine() { return *engine_; }

 private:
  void Open(std::unique_ptr<engine::FakeStore> store) {
    store_ = store.get();
    auto opened = engine::Engine::Open(std::move(store), options_);
    if (!opened.ok()) Fail(opened.status().ToString().c_str());
    engine_ = std::move(opened).value();
  }

  engine::EngineOptions options_;
  engine::FakeStore* store_ = nullptr;
  std::unique_ptr<engine::Engine> engine_;
};

// What an engine answered, for a comparison bit by bit.
struct Answer {
  StatusCode code = StatusCode::kOk;
  std::vector<double> numbers = {};

  bool operator==(const Answer& other) const {
    const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number); };
    return code == other.code && std::ranges::equal(numbers, other.numbers, {}, bits, bits);
  }
};

struct Request {
  std::size_t kind = 0;
  std::string user, event, item;
  std::vector<engine::Candidate> candidates = {};
  std::vector<features::NamedFeature> context = {};
  double number = 0;
  bool defer = false;
};

Request Read(Input& in, std::size_t dim) {
  Request request{.kind = in.Below(10),
                  .user = std::string(1, static_cast<char>('u' + in.Below(4))),
                  .event = "e" + std::to_string(in.Below(16)),
                  .item = "i" + std::to_string(in.Below(4))};
  if (request.kind <= 3 || request.kind == 8) {
    for (std::size_t c = 1 + in.Below(3); c > 0; --c) {
      engine::Candidate candidate{.id = "i" + std::to_string(c)};
      for (std::size_t i = 0; i < dim; ++i) candidate.features.push_back(in.Number());
      if (dim == 0) {
        candidate.named = {{"n" + std::to_string(in.Below(12)), in.Number()}, {"p", in.Number()}};
      }
      request.candidates.push_back(std::move(candidate));
    }
    if (dim == 0 && in.Below(2) == 1) request.context = {{"c", in.Number()}};
    request.defer = request.kind == 3;
  } else {
    request.number = in.Number();
  }
  return request;
}

Answer Rank(engine::Engine& engine, const Request& request) {
  Answer answer;
  engine::RankReply reply;
  const Status status = Wait<Status>([&](auto done) {
    engine.Rank(
        {.event_id = request.event,
         .user = request.user,
         .candidates = request.candidates,
         .defer_activation = request.defer,
         .explain = true,
         .context_features = request.context},
        [&](const engine::RankReply& ranked) { reply = ranked; }, std::move(done));
  });
  answer.code = status.code();
  if (!status.ok()) return answer;
  double sum = 0;
  for (const engine::RankedItem& item : reply.ranking) {
    for (const double number : {item.probability, item.score, item.mean, item.width}) {
      Expect(std::isfinite(number), "a ranking is not finite");
      answer.numbers.push_back(number);
    }
    sum += item.probability;
  }
  Expect(std::abs(sum - 1) < 1e-6, "probabilities do not add up to 1");
  return answer;
}

Answer Send(engine::Engine& engine, const Request& request) {
  switch (request.kind) {
    case 0:
    case 1:
    case 2:
    case 3:
      return Rank(engine, request);
    case 4:
    case 5:
    case 6: {
      const auto reply = Wait<Result<engine::RewardReply>>(
          [&](auto done) { engine.Reward(request.event, request.number, std::move(done)); });
      if (!reply.ok()) return {.code = reply.status().code()};
      return {.numbers = {static_cast<double>(reply.value().outcome)}};
    }
    case 7: {
      const Status status =
          Wait<Status>([&](auto done) { engine.Forget(request.user, std::move(done)); });
      return {.code = status.code()};
    }
    case 8: {
      std::vector<engine::Item> items;
      for (const engine::Candidate& candidate : request.candidates) {
        items.push_back({.id = candidate.id,
                         .features = candidate.features,
                         .named = candidate.named,
                         .tags = {}});
      }
      const Status status =
          Wait<Status>([&](auto done) { engine.PutItems(std::move(items), std::move(done)); });
      return {.code = status.code()};
    }
    default: {
      const Status status =
          Wait<Status>([&](auto done) { engine.Activate(request.event, std::move(done)); });
      return {.code = status.code()};
    }
  }
}

Answer Learned(engine::Engine& engine) {
  Answer answer;
  for (const engine::ModelReport& model : engine.Models(0)) {
    answer.numbers.push_back(static_cast<double>(model.observations));
    for (const double value : model.parameter) {
      Expect(std::isfinite(value), "a parameter is not finite");
      answer.numbers.push_back(value);
    }
  }
  return answer;
}

engine::EngineOptions Options(std::size_t dim) {
  engine::EngineOptions options{.dim = dim};
  options.columns.columns = 10;  // soon used up
  options.sync = false;
  options.reward_min = -kLargestNumber;
  options.reward_max = kLargestNumber;
  options.max_abs_feature = kLargestNumber;
  options.now_ms = [] { return std::int64_t{1'000'000}; };
  options.steady_ms = [] { return std::int64_t{500}; };
  options.boot_id = "boot";
  options.checkpoint_interval_ms = 1'000'000'000;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::size_t dim = in.Below(5);  // 0: every name has a column
  engine::EngineOptions options = Options(dim);
  options.checkpoint_events = 1 + in.Below(8);
  const std::size_t room = in.Below(6);
  if (room < 3) options.users_in_memory = 1 + room;
  if (room >= 3) options.user_memory_bytes = 6000 * (room - 3);
  Box box(options);
  Box twin(Options(dim));
  const std::size_t kill_every = 1 + in.Below(16);
  for (std::size_t i = 0; i < kMostRequests && !in.empty(); ++i) {
    const Request request = Read(in, dim);
    Expect(Send(box.engine(), request) == Send(twin.engine(), request),
           "an answer differs from the twin's");
    if (i % kill_every == kill_every - 1) box.Kill();
  }
  Expect(box.engine().Quarantined().empty(), "a request reached a failed check");
  Expect(Learned(box.engine()) == Learned(twin.engine()), "the models differ from the twin's");
  return 0;
}
