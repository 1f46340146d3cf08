// Options and limits of compiling a grammar, and the languages that grammars are written in.
#ifndef PAWL_GRAMMAR_OPTIONS_H_
#define PAWL_GRAMMAR_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/json_schema_options.h"

namespace pawl {

// The languages of grammars, see docs/grammars.md.
enum class GrammarLanguage : uint8_t {
  kEbnf,          // as XGrammar reads it
  kGbnf,          // as llama.cpp reads it
  kLark,          // in llguidance's dialect
  kLarkXgrammar,  // in XGrammar's dialect
  kLlguidance,    // several of those and JSON Schemas that name each other, as llguidance's JSON
};

struct GrammarOptions {
  // The rule that the whole text is (EBNF and GBNF; Lark's is "start", and another name is an
  // error).
  std::string root = "root";
  // Lark and llguidance: grammars inside are in XGrammar's dialect (kLarkXgrammar says so itself).
  bool lark_as_xgrammar = false;
  // For JSON Schemas inside of grammars (Lark's %json).
  JsonSchemaOptions json_schema;
  size_t max_bytes = size_t{4} << 20;
  int max_nesting = 250;  // groups in groups
  // Parts of masks that many states share are found while the grammar is compiled, so that fewer
  // masks take long: for each terminal, which tokens stay inside of it where it begins and where
  // most tokens lead. At most so many steps, of about 5 ns; a grammar of few terminals takes fewer.
  // The masks are the same with any number; 0 leaves all to the first mask that needs it, and a
  // million or more is for a grammar in long use. Not for JSON Schemas inside of the grammar, nor
  // structural tags.
  uint64_t prepare_steps = 0;
};

// "ebnf", "gbnf", "lark", "lark_xgrammar" or "llguidance": the name of a language, or the extension
// of a file's name without its dot.
inline std::optional<GrammarLanguage> GrammarLanguageOf(std::string_view name) {
  if (name == "ebnf") return GrammarLanguage::kEbnf;
  if (name == "gbnf") return GrammarLanguage::kGbnf;
  if (name == "lark") return GrammarLanguage::kLark;
  if (name == "lark_xgrammar") return GrammarLanguage::kLarkXgrammar;
  if (name == "llguidance") return GrammarLanguage::kLlguidance;
  return std::nullopt;
}

}  // namespace pawl

#endif  // PAWL_GRAMMAR_OPTIONS_H_
