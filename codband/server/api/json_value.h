#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codband/base/status.h"

namespace codband::server {

// Reading one value of a request's JSON: the parts that request_json.cc is made of.

namespace dom = simdjson::dom;

// Where a value stands in the body; a chain on the stack that becomes text only in a refusal.
struct Place {
  const Place* parent = nullptr;
  std::string_view key = {};
  std::size_t index = 0;  // if the key is empty

  std::string Text() const;  // "actions[3].features", "" for the body itself
};

// kInvalidArgument "place: reason".
Status Refuse(const Place& place, std::string_view reason);
// The reason is what the value is, and what was expected.
Status Expected(const Place& place, dom::element value, std::string_view what);
// The reason is that the object at `place` may not have the key.
Status Unknown(const Place& place, std::string_view key, std::span<const std::string_view> known);

// The body as an object without repeated names, however deep. What it returns lives until the next
// call on this thread.
Result<dom::object> ParseObject(std::string_view body);

// A finite number; none if the value is anything else.
std::optional<double> AsNumber(dom::element value);

// A string of 1 to kMaxIdBytes bytes.
Status ReadId(dom::element value, const Place& place, std::string& out);
// Appends an array of them.
Status ReadIds(dom::element value, const Place& place, std::vector<std::string>& out);
Status ReadFlag(dom::element value, const Place& place, bool& out);

}  // namespace codband::server
