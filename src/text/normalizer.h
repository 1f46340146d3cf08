// TextNormalizer: the "normalizer" of a tokenizer.json, a chain of rewritings of the text before it
// is split. Immutable after Load; thread-safe.
#ifndef PAWL_SRC_TEXT_NORMALIZER_H_
#define PAWL_SRC_TEXT_NORMALIZER_H_

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_reader.h"
#include "src/text/split_regex.h"
#include "src/text/unicode_normalize.h"

namespace pawl {

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
