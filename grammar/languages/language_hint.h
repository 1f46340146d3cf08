// A remark for errors in a text that was read as the wrong language.
#ifndef PAWL_GRAMMAR_LANGUAGES_LANGUAGE_HINT_H_
#define PAWL_GRAMMAR_LANGUAGES_LANGUAGE_HINT_H_

#include <string_view>

namespace pawl {

// For the end of an error's message: that the grammar looks like EBNF or GBNF where it was read as
// Lark, or the reverse; empty where it does not.
std::string_view LanguageHint(std::string_view text, bool read_as_lark);

// The text without a byte order mark at its front.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace pawl

#endif  // PAWL_GRAMMAR_LANGUAGES_LANGUAGE_HINT_H_
