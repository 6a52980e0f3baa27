#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace codband::data {

// Text of data sets. Pure functions, safe from any thread.

// Every byte as the character of that number (ISO 8859-1).
std::string Latin1ToUtf8(std::string_view text);

// The text as it is if it is UTF-8, else read as Latin-1: the older data sets are.
std::string ToUtf8(std::string_view text);

// Normal form of a tag: compatibility characters replaced (NFKC), case folded, control characters
// and runs of white space turned into one blank, none at the ends. Bytes that are not UTF-8 are
// read as Latin-1.
std::string NormaliseTag(std::string_view text);

enum class Stemming { kNone, kEnglish };

struct TokenOptions {
  bool stop_words = true;  // leave out English function words
  Stemming stemming = Stemming::kNone;
  std::size_t min_characters = 2;  // leave out shorter words; a number always stays
};

// The words of a text in their order: runs of letters, marks and digits of any script after NFKC
// and case folding ("Amélie's" → "amélie"; an apostrophe joins what stands around it, and English
// 's is taken off). Stemming is Snowball's, after the stop words.
std::vector<std::string> Tokenise(std::string_view text, const TokenOptions& options = {});

// Whether the word, case folded, is one of the English function words that Tokenise leaves out.
bool IsStopWord(std::string_view word);

}  // namespace codband::data
