// The outputs of a ChatFormat as formats of structural tags, JSON text (docs/structural_tags.md).
//
//   std::vector<TaggedCall> calls = {{"get", content}};    // a format for the arguments
//   tag::CallsAlone(format, calls, true)                   // calls, at least one
//   tag::TextWithCalls(format, calls, true)                // text, calls, or both
//   tag::Answer(format, content)                           // in its marks
//
// ToolCallTag (pawl/compiler.h) and the plans of chats (src/engine/output_plan.h) are made of
// these.
#ifndef PAWL_GRAMMAR_TAGS_CHAT_TAG_H_
#define PAWL_GRAMMAR_TAGS_CHAT_TAG_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/tags/formats/chat_format.h"
#include "pawl/result.h"

namespace pawl {

struct TaggedCall {
  std::string_view name;  // of the tool
  std::string content;    // a format
  bool raw = false;       // a text that no JSON holds
};

struct ThoughtFormat {
  std::string_view open, close;
  bool opened = false;  // the prompt has the opening mark
  int max_tokens = -1;  // -1: any number
};

namespace tag {

// Formats of a hundred tools are long, and are made for each request anew: no copies on the way.
PAWL_EXPORT std::string Concat(std::initializer_list<std::string_view> parts);
PAWL_EXPORT std::string Const(std::string_view text);
PAWL_EXPORT std::string List(const std::vector<std::string>& parts);
// "sequence" or "or"; one element is itself.
PAWL_EXPORT std::string Elements(const char* type, const std::vector<std::string>& parts);
PAWL_EXPORT std::string Optional(const std::string& content);
PAWL_EXPORT std::string Tag(std::string_view begin, const std::string& content,
                            std::string_view end);
// A schema's value, in a style where one is given.
PAWL_EXPORT std::string Schema(std::string_view schema, std::string_view style);
PAWL_EXPORT std::string AnyText(int max_tokens = -1);

// At least one call, `many`: or more, and nothing else.
PAWL_EXPORT std::string CallsAlone(const ChatFormat& format, const std::vector<TaggedCall>& calls,
                                   bool many);
// Text in which calls may stand.
PAWL_EXPORT std::string TextWithCalls(const ChatFormat& format,
                                      const std::vector<TaggedCall>& calls, bool many);
// The answer in the marks of the format.
PAWL_EXPORT std::string Answer(const ChatFormat& format, const std::string& content);
// Thoughts before what follows; where the prompt has not opened them they may be left out.
// `format` may be nullptr.
PAWL_EXPORT std::string Thoughts(const ChatFormat* format, const ThoughtFormat& thoughts);

}  // namespace tag
}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_CHAT_TAG_H_
