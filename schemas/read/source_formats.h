// Values of a format that a text has, as they stand there.
//
//   FormatsIn(U"Mail ann@example.org.", "email", arena, *FormatRegex(arena, "email"));
//                                              // ann@example.org, at 5 to 20
#ifndef PAWL_SCHEMAS_READ_SOURCE_FORMATS_H_
#define PAWL_SCHEMAS_READ_SOURCE_FORMATS_H_

#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/regex_arena.h"
#include "schemas/read/source_values.h"

namespace pawl::schema {

// email, idn-email, uri, iri, hostname, idn-hostname, ipv4, ipv6 and uuid.
bool HasFormatsIn(std::string_view format);

// The longest ones, none inside of another, without punctuation that ends a sentence. What fits by
// chance is left out: a URI has "://" or one of a few other schemes, and a host name has a dot.
// Of a text that takes too many steps, those that were found by then.
// REQUIRES: HasFormatsIn(format), of which `regex` is the term.
std::vector<SourceValue<std::u32string>> FormatsIn(std::u32string_view text,
                                                   std::string_view format, RegexArena& arena,
                                                   ReId regex);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_READ_SOURCE_FORMATS_H_
