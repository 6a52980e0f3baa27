#pragma once

#include <string>
#include <string_view>

namespace codband::server {

// Says where and why a text is not the JSON that we take, in the form "field: reason": a syntax
// error, nesting deeper than `max_depth`, a number that no 64-bit integer or finite double holds.
// Slow and thorough: for texts that the fast parser has refused. Empty if it finds nothing wrong.
std::string DescribeJsonFault(std::string_view text, std::size_t max_depth);

}  // namespace codband::server
