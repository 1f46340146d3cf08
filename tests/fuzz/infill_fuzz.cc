// A prefix, a suffix and a word, a line each, and then a grammar in EBNF: what may stand between
// the two, and what holds the word, is refused with a reason or walks soundly, and what is found
// makes a text of the grammar.
#include <array>
#include <string>
#include <string_view>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string input(reinterpret_cast<const char*>(data), size);
  std::string_view rest = input;
  std::array<std::string, 3> lines;
  for (std::string& line : lines) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) return 0;
    line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  const auto& [prefix, suffix, word] = lines;
  const Compiler compiler(fuzz::Bytes());
  const Result<Grammar> grammar = compiler.CompileGrammar(rest, GrammarLanguage::kEbnf);
  if (!grammar.ok()) return 0;  // ebnf_fuzz looks at these
  const auto accepts = [](const Grammar& of, std::string_view text) {
    const std::optional<State> end = of.Start().Advance(text);
    return end.has_value() && end->accepting();
  };
  constexpr int kSteps = 12;
  const Result<Grammar> gap = Infill(*grammar, {prefix, {suffix}});
  if (!gap.ok()) {
    fuzz::RequireGoodError(gap.error(), input);
  } else {
    const std::string text = fuzz::RequireSoundWalk(*gap, fuzz::HashOf(input), kSteps);
    if (accepts(*gap, text)) {
      fuzz::Require(accepts(*grammar, prefix + text + suffix), "the whole is no text", input);
    }
  }
  const std::array<std::string, 1> words = {word};
  const Result<Grammar> both = RequireWords(*grammar, words);
  if (!both.ok()) {
    fuzz::RequireGoodError(both.error(), input);
    return 0;
  }
  const std::string text = fuzz::RequireSoundWalk(*both, fuzz::HashOf(input), kSteps);
  if (!accepts(*both, text)) return 0;
  fuzz::Require(text.find(word) != text.npos, "the word is missing", input);
  fuzz::Require(accepts(*grammar, text), "no text of the grammar", input);
  return 0;
}
