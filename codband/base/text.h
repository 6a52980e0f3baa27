#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace codband {

// Text helpers. Pure functions, safe from any thread. Input is UTF-8; a byte that is not part of a
// valid sequence counts as the replacement character U+FFFD.

// In UTF-8.
inline constexpr char32_t kReplacementPoint = 0xFFFD;
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Decodes the code point that starts at `*position` and moves `*position` past it; an invalid byte
// is passed over alone, as U+FFFD. Precondition: *position < text.size().
char32_t DecodeUtf8(std::string_view text, std::size_t* position);

bool IsUtf8(std::string_view text);

// Whether objects and arrays of a JSON text are nested deeper than that. Parsers that build trees
// of a hostile text walk them by recursion.
bool NestsDeeper(std::string_view json, std::size_t most);

// Columns that the text takes in a terminal: one per code point, none for combining marks, two for
// East Asian wide characters and emoji.
int DisplayWidth(std::string_view text);

// The text cut to at most `columns` terminal columns; a cut text ends in "…".
std::string Truncate(std::string_view text, int columns);

// Safe to show on one line of a terminal: every control character, line breaks included, becomes a
// space; invalid UTF-8 becomes U+FFFD.
std::string OneLine(std::string_view text);

// Safe as content or as a quoted attribute of XML and HTML. Control characters other than white
// space, and invalid UTF-8, become U+FFFD, so the result is always well formed.
std::string EscapeXml(std::string_view text);

// Replaces `parts` by what stands between separators: at least one part, which may be empty.
// Precondition: the separator is not empty.
void SplitText(std::string_view text, std::string_view separator,
               std::vector<std::string_view>& parts);

// The items of a comma-separated list: "" has none, and a comma at the end adds none.
std::vector<std::string_view> SplitList(std::string_view list);

// The number of letters (bytes) to insert, delete, replace or swap with their neighbour to turn one
// text into the other (optimal string alignment). O(|a|·|b|).
std::size_t EditDistance(std::string_view a, std::string_view b);

// The name that somebody who wrote `name` may have meant: the nearest of `known`, if at most a
// third of the letters (or two) are other ones.
std::optional<std::string> NearestName(std::string_view name, std::span<const std::string> known);

// "1234567.5" → "1,234,567.5". Precondition: plain decimal notation.
std::string GroupThousands(std::string_view number);
std::string GroupThousands(std::uint64_t number);

// A number for people: four significant digits, or all digits before the point, grouped.
// 0.12345 → "0.1234", 20000 → "20,000", 1e-7 → "1e-07".
std::string FormatNumber(double value);

}  // namespace codband
