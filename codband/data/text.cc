#include "codband/data/text.h"

#include <fmt/format.h>
#include <libstemmer.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "codband/base/check.h"
#include "codband/base/text.h"

namespace codband::data {
namespace {

constexpr std::string_view kStopWords[] = {
    "a",       "about",   "above",   "after",   "again",  "against", "all",     "am",     "an",
    "and",     "any",     "are",     "as",      "at",     "be",      "because", "been",   "before",
    "being",   "below",   "between", "both",    "but",    "by",      "can",     "cannot", "could",
    "did",     "do",      "does",    "doing",   "down",   "during",  "each",    "few",    "for",
    "from",    "further", "had",     "has",     "have",   "having",  "he",      "her",    "here",
    "hers",    "herself", "him",     "himself", "his",    "how",     "i",       "if",     "in",
    "into",    "is",      "it",      "its",     "itself", "just",    "me",      "more",   "most",
    "my",      "myself",  "no",      "nor",     "not",    "now",     "of",      "off",    "on",
    "once",    "only",    "or",      "other",   "our",    "ours",    "out",     "over",   "own",
    "same",    "she",     "should",  "so",      "some",   "such",    "than",    "that",   "the",
    "their",   "theirs",  "them",    "then",    "there",  "these",   "they",    "this",   "those",
    "through", "to",      "too",     "under",   "until",  "up",      "very",    "was",    "we",
    "were",    "what",    "when",    "where",   "which",  "while",   "who",     "whom",   "why",
    "will",    "with",    "would",   "you",     "your",   "yours",   "yourself"};
static_assert(std::ranges::is_sorted(kStopWords));

// The code points of a text after NFKC and case folding.
std::vector<utf8proc_int32_t> Fold(std::string_view text) {
  const std::string utf8 = ToUtf8(text);
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data());
  const auto size = static_cast<utf8proc_ssize_t>(utf8.size());
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
  const utf8proc_ssize_t needed = utf8proc_decompose(bytes, size, nullptr, 0, options);
  CODBAND_CHECK(needed >= 0);  // the text is UTF-8
  std::vector<utf8proc_int32_t> points(static_cast<std::size_t>(needed) + 1);
  utf8proc_decompose(bytes, size, points.data(), needed, options);
  const utf8proc_ssize_t length = utf8proc_normalize_utf32(points.data(), needed, options);
  points.resize(static_cast<std::size_t>(length));
  return points;
}

void Append(std::string& text, utf8proc_int32_t point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(point, bytes.data());
  text.append(bytes.begin(), bytes.begin() + length);
}

enum class CharacterKind { kWord, kApostrophe, kOther };

CharacterKind KindOf(utf8proc_int32_t point) {
  if (point == '\'' || point == 0x2019) return CharacterKind::kApostrophe;
  const utf8proc_category_t category = utf8proc_category(point);
  const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  const bool number = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
  return letter || mark || number ? CharacterKind::kWord : CharacterKind::kOther;
}

bool IsNumber(std::string_view word) {
  return std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

std::size_t CharacterCount(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (c & '\xC0') != '\x80'; }));
}

class EnglishStemmer {
 public:
  EnglishStemmer() : stemmer_(sb_stemmer_new("english", "UTF_8")) { CODBAND_CHECK(stemmer_); }

  std::string Stem(std::string_view word) {
    const auto* const stem =
        sb_stemmer_stem(stemmer_.get(), reinterpret_cast<const sb_symbol*>(word.data()),
                        static_cast<int>(word.size()));
    CODBAND_CHECK(stem != nullptr);
    return {reinterpret_cast<const char*>(stem),
            static_cast<std::size_t>(sb_stemmer_length(stemmer_.get()))};
  }

 private:
  struct Deleter {
    void operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
  };
  std::unique_ptr<sb_stemmer, Deleter> stemmer_;
};

}  // namespace

std::string Latin1ToUtf8(std::string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char c : text) Append(utf8, static_cast<unsigned char>(c));
  return utf8;
}

std::string ToUtf8(std::string_view text) {
  return IsUtf8(text) ? std::string(text) : Latin1ToUtf8(text);
}

std::string NormaliseTag(std::string_view text) {
  std::string tag;
  for (const utf8proc_int32_t point : Fold(text)) {
    const utf8proc_category_t category = utf8proc_category(point);
    const bool blank = (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP) ||
                       category == UTF8PROC_CATEGORY_CC;
    if (!blank) {
      Append(tag, point);
    } else if (!tag.empty() && tag.back() != ' ') {
      tag += ' ';
    }
  }
  if (tag.ends_with(' ')) tag.pop_back();
  return tag;
}

bool IsStopWord(std::string_view word) { return std::ranges::binary_search(kStopWords, word); }

std::vector<std::string> Tokenise(std::string_view text, const TokenOptions& options) {
  std::unique_ptr<EnglishStemmer> stemmer;
  if (options.stemming == Stemming::kEnglish) stemmer = std::make_unique<EnglishStemmer>();
  std::vector<std::string> tokens;
  std::string word;
  const auto finish = [&] {
    if (word.ends_with("'s")) word.resize(word.size() - 2);
    std::erase(word, '\'');
    const bool keep = !word.empty() &&
                      (IsNumber(word) || CharacterCount(word) >= options.min_characters) &&
                      !(options.stop_words && IsStopWord(word));
    if (keep) tokens.push_back(stemmer ? stemmer->Stem(word) : word);
    word.clear();
  };
  const std::vector<utf8proc_int32_t> points = Fold(text);
  for (std::size_t i = 0; i < points.size(); ++i) {
    switch (KindOf(points[i])) {
      case CharacterKind::kWord:
        Append(word, points[i]);
        break;
      case CharacterKind::kApostrophe:
        if (!word.empty()) word += '\'';
        break;
      case CharacterKind::kOther:
        finish();
        break;
    }
  }
  finish();
  return tokens;
}

}  // namespace codband::data
