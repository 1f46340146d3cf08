// Arbitrary bytes as a regular expression: it compiles or is refused with the byte, within its
// budget. Of what compiles, a random walk over the masks is checked state by state, and its
// complete text by RE2 where RE2 has such a pattern.
#include <optional>
#include <string>
#include <string_view>

#include "pawl/compiler.h"
#include "tests/fuzz/fuzz_util.h"
#include "tests/oracle/ecma_pattern.h"

namespace {

// False where the oracle is known to mean something else: it reads ECMA-262 only, in which a POSIX
// class is a class of other signs, and RE2 takes a count with leading zeros or of more than eight
// digits for plain text.
bool OracleReadsAlike(std::string_view pattern) {
  if (pattern.find("[:") != std::string_view::npos) return false;
  const auto digit = [&](size_t i) {
    return i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9';
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    if ((pattern[i] == '{' || pattern[i] == ',') && digit(i + 2) && pattern[i + 1] == '0') {
      return false;
    }
    size_t digits = 0;
    while ((pattern[i] == '{' || pattern[i] == ',') && digit(i + 1 + digits)) ++digits;
    if (digits > 8) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string pattern(reinterpret_cast<const char*>(data), size);
  const Compiler compiler(fuzz::Bytes());
  const Result<Grammar> grammar = compiler.CompileRegex(pattern);
  if (!grammar.ok()) {
    fuzz::RequireGoodError(grammar.error(), pattern);
    return 0;
  }
  constexpr int kSteps = 24;
  const std::string text = fuzz::RequireSoundWalk(*grammar, fuzz::HashOf(pattern), kSteps);
  const std::optional<State> end = grammar->Start().Advance(text);
  if (!end.has_value() || !end->accepting()) return 0;  // no completion was found
  if (!OracleReadsAlike(pattern)) return 0;
  const std::optional<bool> found = oracle::EcmaSearch("^(?:" + pattern + ")$", text);
  fuzz::Require(found.value_or(true), "RE2 does not match the text", pattern + "\n" + text);
  return 0;
}
