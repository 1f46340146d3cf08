// The first rule tells: EBNF and GBNF write `name ::=`, Lark writes `name:` and begins statements
// with '%'. What stands between the name and the colons may be options in brackets.
#include "grammar/languages/language_options.h"

#include <algorithm>

namespace pawl {

std::string_view LanguageHint(std::string_view text, bool read_as_lark) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r?!"), line.size()));
    if (line.empty() || line.starts_with('#') || line.starts_with("//")) continue;
    bool lark = line.starts_with('%');
    if (!lark) {
      constexpr std::string_view kName =
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
      line.remove_prefix(std::min(line.find_first_not_of(kName), line.size()));
      if (line.starts_with('[')) line.remove_prefix(std::min(line.find(']'), line.size() - 1) + 1);
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (line.starts_with("::=") && read_as_lark)
        return " (this looks like EBNF or GBNF, which write \"::=\"; it was read as Lark)";
      lark = line.starts_with(':') && !line.starts_with("::=");
    }
    if (lark && !read_as_lark) return " (this looks like Lark; it was read as EBNF or GBNF)";
    break;
  }
  return "";
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace pawl
