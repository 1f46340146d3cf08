// Compiler: turns a JSON Schema, a regex, a list of choices, a context-free grammar or a
// structural tag into a Grammar over one vocabulary.
//
//   pawl::Compiler compiler(vocabulary);
//   auto grammar = compiler.CompileJsonSchema(schema_text, options);
//
// Thread safety: all methods may be called from several threads at once.
#ifndef PAWL_COMPILER_H_
#define PAWL_COMPILER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "pawl/export.h"
#include "pawl/grammar.h"
#include "pawl/grammar_options.h"
#include "pawl/json_schema_options.h"
#include "pawl/result.h"
#include "pawl/stop_flag.h"
#include "pawl/vocabulary.h"

namespace pawl {

namespace schema {
class Witnesses;
}

struct CompilerOptions {
  // Grammars to keep, with the masks found so far, for when the same text comes again with the same
  // options; those used longest ago go first. Not those compiled with resolve_document, whose
  // answers may change. Threads that ask for the same grammar at once compile it once.
  size_t cached_grammars = 0;
  // Bytes that all grammars of the compiler together may keep: what was found of their states and
  // masks, and the texts they were made of. When it is spent, grammars give back what no state in
  // use needs and find it again when it is wanted, the largest first; which changes the time and
  // nothing else. States in use stay valid, as do masks that somebody holds; what they need may go
  // beyond the budget. The vocabulary, which may have other users, does not count.
  size_t memory_budget = size_t{256} << 20;
};

class PAWL_EXPORT Compiler {
 public:
  explicit Compiler(std::shared_ptr<const Vocabulary> vocabulary,
                    const CompilerOptions& options = {});

  // Errors name the keyword by JSON Pointer; kUnsatisfiable when no value fits. `stop`, here and
  // below, lets another thread end it, with kLimit.
  Result<Grammar> CompileJsonSchema(std::string_view schema, const JsonSchemaOptions& options = {},
                                    const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The output matches the whole pattern (ECMA-262 syntax, see docs/regex.md). Place: "byte N".
  Result<Grammar> CompileRegex(std::string_view pattern) const;
  // The output is one of the strings.
  Result<Grammar> CompileChoice(std::span<const std::string> choices) const;
  // The output is a span of the text, from any place to any other; it may be empty. With
  // `whole_words` it is made of whole runs of white space, of word characters (letters, numbers,
  // '_') and of others. Takes time and space linear in the text, of which a million characters (or
  // runs) are the most: kLimit. Place: "byte N".
  Result<Grammar> CompileSubstring(std::string_view text, bool whole_words = false) const;
  // The output is a text of the grammar's root rule. Place: "line:column". kUnsatisfiable when the
  // root has no text at all.
  Result<Grammar> CompileGrammar(std::string_view text, GrammarLanguage language,
                                 const GrammarOptions& options = {},
                                 const std::shared_ptr<StopFlag>& stop = nullptr) const;
  // The output is a text of this structural tag, free text in which triggers start constrained
  // regions (docs/structural_tags.md). Place: a JSON Pointer into the structural tag.
  Result<Grammar> CompileStructuralTag(std::string_view json_text,
                                       const GrammarOptions& options = {},
                                       const std::shared_ptr<StopFlag>& stop = nullptr) const;

  // Bytes that the grammars keep now (CompilerOptions::memory_budget). Walks over all of it: for
  // reports, not for every token.
  size_t memory_bytes() const;
  // Frees grammars beyond the memory budget that no state uses and that were not used since the
  // previous call; they are compiled again when they are used. A grammar frees memory when a
  // grammar grows, so only a process that may stay idle has to call this, every few seconds.
  void FreeUnused() const;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<class MemoryBudget> budget_;
  std::shared_ptr<schema::Witnesses> witnesses_;  // what its schemas share
  std::shared_ptr<class GrammarCache> cache_;     // none when nothing is kept
};

}  // namespace pawl

#endif  // PAWL_COMPILER_H_
