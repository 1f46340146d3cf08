// Where in a text the values of a record were copied from.
//
//   for (const Span& span : FindSpans(record, text)) Mark(span.pointer, span.begin, span.end);
//
// A value was copied when it stands in the text: a string as a span (docs/extraction.md), a number,
// a date or a time by its value. Values come in the order of the record, and of several places each
// takes the first one behind the place before it, or else the first one of all. Places are counted
// in characters (Unicode code points) of the text as it came. With SpanKind::kChars a string that
// is no whole span may stand inside of a word.
#ifndef PAWL_SRC_ENGINE_SPANS_H_
#define PAWL_SRC_ENGINE_SPANS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"
#include "src/base/source_text.h"

namespace pawl {

struct Span {
  std::string pointer;                  // "/lines/0/total"
  size_t begin = 0, end = 0;            // in characters
  size_t begin_byte = 0, end_byte = 0;  // in bytes of the text as it came
};

// `text`: UTF-8, with cuts of words at its ends (src/base/source_text.h).
std::vector<Span> FindSpans(const json::Value& record, std::string_view text,
                            SpanKind kind = SpanKind::kSpan);

// kChars where the schema has "x-pawl-source": "chars" somewhere.
SpanKind SpanKindOf(const json::Value& schema);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_SPANS_H_
