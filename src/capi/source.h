// Source: what a grammar was compiled from, and its form as bytes.
//
// A grammar's automaton is made while it is used, so a compiled grammar is small beside what it
// grows into, and compiling is cheap. What is kept is therefore what it takes to compile it again:
// the text, the options, the documents that references led to, and a fingerprint of the vocabulary
// that says when the bytes have met the wrong one.
#ifndef PAWL_SRC_CAPI_SOURCE_H_
#define PAWL_SRC_CAPI_SOURCE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/grammar_options.h"
#include "pawl/json_schema_options.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl::capi {

using Fingerprint = std::array<uint64_t, 2>;

// Of the tokens' bytes and of what they are. Not cryptographic.
Fingerprint FingerprintOf(const Vocabulary& vocabulary);

struct Source {
  std::string kind;                // as pawl_compile takes it
  std::vector<std::string> texts;  // one, or each of the choices
  JsonSchemaOptions options;       // of kinds that take some; without the resolver
  bool resolves = false;           // there was a resolver, and these are its answers, by URI
  std::vector<std::pair<std::string, std::string>> documents;
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

// `options`: those of the source with its resolver are in its json_schema; schemas want these only.
// Errors: kUnsupported for a kind that there is not; what the compiler says.
Result<Grammar> Compile(const Compiler& compiler, const Source& source,
                        const GrammarOptions& options);
// Compiles a source that was kept, with its documents and all its steps.
Result<Grammar> CompileKept(const Compiler& compiler, const Source& source,
                            const Fingerprint& fingerprint, uint64_t prepare_steps,
                            int depth = kMostNested);
// Whether the kind takes JsonSchemaOptions; kUnsupported for a kind that there is not.
Result<bool> TakesOptions(std::string_view kind);

std::string Serialize(const Source& source, const Fingerprint& fingerprint);
// Errors: kInvalid for damaged bytes and for another vocabulary, kUnsupported for another version.
Result<Source> Deserialize(std::string_view bytes, const Fingerprint& fingerprint);

}  // namespace pawl::capi

#endif  // PAWL_SRC_CAPI_SOURCE_H_
