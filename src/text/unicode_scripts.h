// The scripts of characters, as the pre-tokenizer "UnicodeScripts" of a tokenizer.json counts them.
#ifndef PAWL_SRC_TEXT_UNICODE_SCRIPTS_H_
#define PAWL_SRC_TEXT_UNICODE_SCRIPTS_H_

namespace pawl {

inline constexpr int kNoScript = -1;
// A number for the script of a unit (src/text/codepoint_set.h); kNoScript for a space, bytes that
// are not UTF-8, and characters younger than Unicode 9.0. Hiragana and Katakana count as Han.
int ScriptForSplitting(char32_t unit);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_UNICODE_SCRIPTS_H_
