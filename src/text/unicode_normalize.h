// Unicode normalization forms (UAX #15) and lower case, on UTF-8 text. No state, thread-safe.
//
// Normalization is that of Unicode 9.0, which Hugging Face's library applies: a model has to be
// given the ids that it was trained on, so code points added later keep their places and their
// forms.
#ifndef PAWL_SRC_TEXT_UNICODE_NORMALIZE_H_
#define PAWL_SRC_TEXT_UNICODE_NORMALIZE_H_

#include <span>
#include <string>
#include <string_view>

#include "src/base/utf8.h"

namespace pawl {

enum class NormalizationForm { kNfc, kNfd, kNfkc, kNfkd };

// Bytes that are not UTF-8 stay as they are, and nothing is reordered or composed across them.
std::string NormalizeUnicode(std::string_view text, NormalizationForm form);

// The lower case of each code point by itself: no rules that look at neighbours (final sigma) or at
// the language. Bytes that are not UTF-8 stay as they are.
std::string LowercaseUnicode(std::string_view text);

// General category P in Unicode 8.0, the version that Hugging Face's Punctuation pre-tokenizer
// knows. Sorted.
std::span<const CodepointRange> PunctuationRanges();

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_UNICODE_NORMALIZE_H_
