// GrammarSource: what a grammar is compiled from, and its form as bytes.
//
//   const GrammarSource source{.kind = "regex", .texts = {"[a-z]+"}};
//   Result<Grammar> grammar = CompileSource(compiler, source, {});
//
// The command, the server and the C library describe their constraints by it, and there is one
// table of kinds. A grammar's automaton is made while it is used, so a compiled grammar is small
// next to what it grows into, and compiling is cheap. The bytes therefore hold what it takes to
// compile the grammar again: the text, the options, the documents that references led to, and a
// fingerprint of the vocabulary that tells when the bytes are read with another one.
#ifndef PAWL_SCHEMAS_GRAMMAR_SOURCE_H_
#define PAWL_SCHEMAS_GRAMMAR_SOURCE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

using Fingerprint = std::array<uint64_t, 2>;

// Of the tokens' bytes and of what they are. Not cryptographic.
Fingerprint FingerprintOf(const Vocabulary& vocabulary);

struct GrammarSource {
  std::string kind;                // of GrammarKinds()
  std::vector<std::string> texts;  // one, or each of the choices
  JsonSchemaOptions options = {};  // of kinds that take some; without the resolver
  bool resolves = false;           // there was a resolver, and these are its answers, by URI
  std::vector<std::pair<std::string, std::string>> documents = {};
  // What was made of it afterwards, in this order.
  struct Step {
    std::string name;                // "infill", "words", "intersect", "complement"
    std::vector<std::string> texts;  // prefix and what comes after it; words; the other's bytes
  };
  std::vector<Step> steps = {};
};

// The most that JsonSchemaOptions::max_depth may be here.
inline constexpr int kMostDepth = 1'000'000;

// Intersections whose other side is an intersection and so on.
inline constexpr int kMostNested = 100;

// "json_schema", "regex", "choice", "ebnf", "gbnf", "lark", "lark_xgrammar", "llguidance",
// "substring", "structural_tag".
std::vector<std::string_view> GrammarKinds();
// The kind of a grammar in this language.
std::string_view KindOf(GrammarLanguage language);

// `options`: json_schema are those of the source with its resolver; schemas want these only. `stop`
// lets another thread end it. Errors: kUnsupported for a kind that there is not; what the compiler
// says.
Result<Grammar> CompileSource(const Compiler& compiler, const GrammarSource& source,
                              const GrammarOptions& options,
                              const std::shared_ptr<StopFlag>& stop = nullptr);
// Compiles a source that was kept, with its documents and all its steps.
Result<Grammar> CompileKept(const Compiler& compiler, const GrammarSource& source,
                            const Fingerprint& fingerprint, uint64_t prepare_steps,
                            int depth = kMostNested);
// Whether the kind takes JsonSchemaOptions; kUnsupported for a kind that there is not.
Result<bool> TakesOptions(std::string_view kind);

std::string Serialize(const GrammarSource& source, const Fingerprint& fingerprint);
// Errors: kInvalid for damaged bytes and for another vocabulary, kUnsupported for another version.
Result<GrammarSource> Deserialize(std::string_view bytes, const Fingerprint& fingerprint);

}  // namespace pawl

#endif  // PAWL_SCHEMAS_GRAMMAR_SOURCE_H_
