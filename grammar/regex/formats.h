// The "format" keyword of JSON Schema as regular languages over code points.
//
//   Result<ReId> date = FormatRegex(arena, "date");   // exactly the dates of RFC 3339
//
// docs/regex.md says for each format which text defines it and where the language is wider or
// narrower. Thread safety: as the arena's.
#ifndef PAWL_GRAMMAR_REGEX_FORMATS_H_
#define PAWL_GRAMMAR_REGEX_FORMATS_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/regex_arena.h"
#include "pawl/result.h"
#include "src/base/sync.h"

namespace pawl {

std::vector<std::string_view> KnownFormats();
bool IsKnownFormat(std::string_view format);

// The term for the whole string. Errors: kUnsupported for an unknown name, kLimit from the arena.
Result<ReId> FormatRegex(RegexArena& arena, std::string_view format);

// The same, for callers that ask often: the terms are constants, slow to make (a date knows its
// leap years), so each is made once, in an arena of its own that nothing changes afterwards, and
// copied. Thread-safe. Grows up to the number of formats.
class FormatCache {
 public:
  Result<ReId> Regex(RegexArena& arena, std::string_view format) const;

 private:
  struct Made {
    RegexArena arena;
    Result<ReId> id = RegexArena::kNothing;
  };
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<const Made>, std::less<>> made_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_REGEX_FORMATS_H_
