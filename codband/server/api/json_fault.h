#pragma once

#include <string>
#include <string_view>

namespace codband::server {

// Says where and why a text is not JSON that we accept, as "field: reason": a syntax error, nesting
// deeper than `max_depth`, a number that neither a 64-bit integer nor a finite double can hold.
// Slow: for texts that the fast parser has rejected. Empty if it finds nothing wrong.
std::string DescribeJsonFault(std::string_view text, std::size_t max_depth);

}  // namespace codband::server
