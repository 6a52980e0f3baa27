#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace codband {

// Text helpers shared by tables, charts and pages. Pure functions, safe from any thread. Input is
// UTF-8; a byte that is not part of a valid sequence counts as the replacement character U+FFFD.

// Reads the code point that starts at `*position` and moves `*position` past it.
// Precondition: *position < text.size().
char32_t DecodeUtf8(std::string_view text, std::size_t* position);

// Columns that the text takes in a terminal: one per code point, none for combining marks, two for
// East Asian wide characters and emoji.
int DisplayWidth(std::string_view text);

// The text cut to at most `columns` terminal columns; a cut text ends in "…".
std::string Truncate(std::string_view text, int columns);

// The text with every control character, line breaks included, turned into a space.
std::string OneLine(std::string_view text);

// Safe as content or as a quoted attribute of XML and HTML. Control characters that XML forbids,
// and invalid UTF-8, become U+FFFD, so the result is always well formed.
std::string EscapeXml(std::string_view text);

// "1234567.5" → "1,234,567.5". Precondition: plain decimal notation.
std::string GroupThousands(std::string_view number);

// A number for people: four significant digits, or all digits before the point, grouped.
// 0.12345 → "0.1234", 20000 → "20,000", 1e-7 → "1e-07".
std::string FormatNumber(double value);

}  // namespace codband
