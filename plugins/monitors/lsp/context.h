// What the text alone says about a place where a language server is to be asked.
#ifndef PAWL_PLUGINS_MONITORS_LSP_CONTEXT_H_
#define PAWL_PLUGINS_MONITORS_LSP_CONTEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/scan.h"

namespace pawl::monitors {

// Whether the word stands in the text, not as a part of another name.
bool HasWord(std::string_view text, std::string_view word);

// The text ends with "." or, in C++, "->" behind an expression; not the point of a number.
bool BehindMember(Language language, std::string_view text);

// Whether a server can know all members here. Not in templates, whose types depend on what is not
// known, and not in classes that are not finished; not for `self`, whose attributes come into being
// where they are written. `whole`: what stands behind the cursor is known too.
bool CertainPlace(Language language, std::string_view text, bool whole);

// Names that no server lists, and that may stand where a member does: macros of the text, types of
// which one may be a base class (`a.Base::member`), the words `template` and `operator`.
std::vector<std::string> AlsoPossible(Language language, std::string_view text);

// Python: the classes in whose body the end of the text stands.
std::vector<std::string> EnclosingClasses(std::string_view text);

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_LSP_CONTEXT_H_
