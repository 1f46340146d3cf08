// The "normalizer" of a tokenizer.json (TextNormalizer), a chain of rewritings of the text before
// it is split, and the normalization of Unicode that it applies. No state, or immutable after Load;
// thread-safe.
#ifndef PAWL_SRC_TEXT_NORMALIZER_H_
#define PAWL_SRC_TEXT_NORMALIZER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/base/utf8.h"
#include "src/text/split_regex.h"

namespace pawl {

// Unicode normalization forms (UAX #15) and lower case, on UTF-8 text. Normalization is that of
// Unicode 9.0, which Hugging Face's library applies: a model has to be given the ids that it was
// trained on, so code points added later keep their places and their forms.

enum class NormalizationForm { kNfc, kNfd, kNfkc, kNfkd };

// Bytes that are not UTF-8 stay as they are, and nothing is reordered or composed across them.
std::string NormalizeUnicode(std::string_view text, NormalizationForm form);

// The lower case of each code point by itself: no rules that look at neighbours (final sigma) or at
// the language. Bytes that are not UTF-8 stay as they are.
std::string LowercaseUnicode(std::string_view text);

// General category P in Unicode 8.0, the version that Hugging Face's Punctuation pre-tokenizer
// knows. Sorted.
std::span<const CodepointRange> PunctuationRanges();

// {"String": text} or {"Regex": pattern}, as several parts of the file have it.
SplitRegex LoadPattern(const JsonReader& node);
// `text` with every match replaced.
std::string ReplaceMatches(std::string_view text, const SplitRegex& pattern,
                           std::string_view content);

class TextNormalizer {
 public:
  // Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip; anything else is an error.
  // `node` may be null or absent: nothing is rewritten.
  static TextNormalizer Load(const JsonReader& node);

  bool empty() const { return steps_.empty(); }
  std::string Apply(std::string_view text) const;

 private:
  enum class Kind { kUnicode, kLowercase, kPrepend, kReplace, kStrip };
  struct Step {
    Kind kind;
    NormalizationForm form = NormalizationForm::kNfc;
    std::string content = {};
    SplitRegex pattern = {};
    bool left = false, right = false;
  };
  void Add(const JsonReader& node, const std::string& type);
  std::vector<Step> steps_;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_NORMALIZER_H_
