#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace codband::data {

// Text of data sets. Pure functions, safe from any thread.

// Every byte as the code point of that number (ISO 8859-1).
std::string Latin1ToUtf8(std::string_view text);

// The text unchanged if it is valid UTF-8, else decoded as Latin-1, which the older data sets use.
std::string ToUtf8(std::string_view text);

// Normal form of a tag: NFKC, case folded, control characters and runs of white space collapsed to
// one space and trimmed. Text that is not UTF-8 is decoded as Latin-1.
std::string NormaliseTag(std::string_view text);

enum class Stemming { kNone, kEnglish };

struct TokenOptions {
  bool stop_words = true;  // drop English stop words
  Stemming stemming = Stemming::kNone;
  std::size_t min_characters = 2;  // drop shorter words; numbers are always kept
};

// The words of a text in order: runs of letters, marks and digits of any script after NFKC and case
// folding. An apostrophe joins the letters around it; English 's is removed ("Amélie's" →
// "amélie"). Stop words are dropped before Snowball stemming.
std::vector<std::string> Tokenise(std::string_view text, const TokenOptions& options = {});

// Whether the case-folded word is an English stop word, which Tokenise drops.
bool IsStopWord(std::string_view word);

}  // namespace codband::data
