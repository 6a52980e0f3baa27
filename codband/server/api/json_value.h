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

// Reading the values of a JSON body: the building blocks of request_json.cc.

namespace dom = simdjson::dom;

// The path of a value in the body: a linked list on the stack that becomes text only in an error.
struct Place {
  const Place* parent = nullptr;
  std::string_view key = {};
  std::size_t index = 0;  // if the key is empty

  std::string Text() const;  // "actions[3].features", "" for the body itself
};

// Errors are kInvalidArgument "place: reason".
Status Refuse(const Place& place, std::string_view reason);
// The reason says what the value is and what was expected.
Status Expected(const Place& place, dom::element value, std::string_view what);
// The reason says that the object at `place` has an unknown key; lists the known ones.
Status Unknown(const Place& place, std::string_view key, std::span<const std::string_view> known);

// A parser that reuses its buffers. Not thread-safe: one per thread.
class JsonParser {
 public:
  // The body as an object in which no name is repeated, at any depth. The object refers to the
  // parser's buffers: it is valid until the next call, or until the parser is destroyed.
  Result<dom::object> ParseObject(std::string_view body);

 private:
  dom::parser parser_;
};

// A finite number; nothing if the value is anything else.
std::optional<double> AsNumber(dom::element value);

// A string of 1 to kMaxIdBytes bytes.
Status ReadId(dom::element value, const Place& place, std::string& out);
// Appends an array of them.
Status ReadIds(dom::element value, const Place& place, std::vector<std::string>& out);
Status ReadFlag(dom::element value, const Place& place, bool& out);

}  // namespace codband::server
