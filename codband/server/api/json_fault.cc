#include "codband/server/api/json_fault.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace codband::server {
namespace {

// Follows a text to its first fault and keeps the path to it.
class FaultFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FaultFinder(std::size_t max_depth) : max_depth_(max_depth) {}

  const std::string& fault() const { return fault_; }

  bool null() override { return Value(); }
  bool boolean(bool /*value*/) override { return Value(); }
  bool number_integer(number_integer_t /*value*/) override { return Value(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return Value(); }
  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    BeginValue();
    if (digits.find_first_of(".eE") == std::string::npos) {
      return Fail(fmt::format("is {}, an integer of more than 64 bits", Short(digits)));
    }
    return true;
  }
  bool string(string_t& /*value*/) override { return Value(); }
  bool binary(binary_t& /*value*/) override { return Value(); }
  bool start_object(std::size_t /*size*/) override { return Open(false); }
  bool key(string_t& name) override {
    path_.back().key = name;
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*size*/) override { return Open(true); }
  bool end_array() override { return Close(); }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override {
    // In an array the element after the last complete one is at fault.
    if (!path_.empty() && path_.back().array) ++path_.back().index;
    if (error.id == 406) return Fail(fmt::format("is {}, not a finite number", Short(last_token)));
    std::string_view reason = error.what();
    reason.remove_prefix(std::min(reason.size(), reason.find("] ") + 2));
    return Fail(fmt::format("is not valid JSON at byte {}: {}", position, Short(reason)));
  }

 private:
  struct Step {
    bool array;
    std::int64_t index = -1;
    std::string key = {};
  };

  static std::string Short(std::string_view text) {
    constexpr std::size_t kMost = 200;
    return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "…";
  }

  void BeginValue() {
    if (!path_.empty() && path_.back().array) ++path_.back().index;
  }
  bool Value() {
    BeginValue();
    return true;
  }
  bool Open(bool array) {
    BeginValue();
    if (path_.size() >= max_depth_) {
      return Fail(fmt::format("is nested deeper than {} levels", max_depth_));
    }
    path_.push_back({.array = array});
    return true;
  }
  bool Close() {
    path_.pop_back();
    return true;
  }
  bool Fail(std::string_view reason) {
    std::string field;
    for (const Step& step : path_) {
      if (step.array) {
        field += fmt::format("[{}]", std::max<std::int64_t>(step.index, 0));
      } else if (!step.key.empty()) {
        field += field.empty() ? "" : ".";
        field += Short(step.key);
      }
      if (field.size() > 300) break;
    }
    fault_ = fmt::format("{}: {}", field.empty() ? "body" : field, reason);
    return false;
  }

  std::size_t max_depth_;
  std::vector<Step> path_;
  std::string fault_;
};

}  // namespace

std::string DescribeJsonFault(std::string_view text, std::size_t max_depth) {
  FaultFinder finder(max_depth);
  nlohmann::json::sax_parse(text.begin(), text.end(), &finder);
  return finder.fault();
}

}  // namespace codband::server
