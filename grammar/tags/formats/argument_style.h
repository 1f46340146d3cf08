// Styles of arguments that are no JSON: what stands around the key and the value of a parameter.
//
//   const ArgumentStyle* style = ArgumentStyleOf("glm_xml");
//   // style->before KEY style->after_key style->value_open VALUE style->end
//
// Two sides read the one table: the grammar of a style (structural_tag_xml.cc), and the parser that
// turns such arguments back into JSON (src/engine/call_arguments.*).
#ifndef PAWL_GRAMMAR_TAGS_FORMATS_ARGUMENT_STYLE_H_
#define PAWL_GRAMMAR_TAGS_FORMATS_ARGUMENT_STYLE_H_

#include <string_view>

#include "pawl/result.h"

namespace pawl {

struct ArgumentStyle {
  enum class Marks {
    kNone,       // a value's type is not written
    kIsString,   // string="true" or "false"
    kCohere,     // type="raw", "json", "dict" or "list"; dicts and lists in the same notation
    kMinimaxM3,  // a value's type is not written; objects and lists as elements in elements
    kKimi,       // type="string", "number", "boolean", "null", "object" or "array"
    kCdata,      // a string with '<' stands in <![CDATA[...]]>
    kGemma,      // {key:value,...}, strings between marks, objects and lists in the same notation
    kPython,     // key=value, ...: the keyword arguments of a call in Python
  };
  std::string_view name;
  Marks marks = Marks::kNone;
  std::string_view before, after_key, value_open, end;
};

// nullptr for other names.
PAWL_EXPORT const ArgumentStyle* ArgumentStyleOf(std::string_view name);

inline constexpr std::string_view kCdataOpen = "<![CDATA[", kCdataClose = "]]>";
// Around a string of the style kGemma.
inline constexpr std::string_view kGemmaQuote = "<|\"|>";

}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_FORMATS_ARGUMENT_STYLE_H_
