// What the examples of the public headers take for granted: variables and functions of the code
// that reads them. Nothing here is ever defined, since the examples are compiled and not run.
#ifndef PAWL_TESTS_EXAMPLES_PRELUDE_H_
#define PAWL_TESTS_EXAMPLES_PRELUDE_H_

#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "pawl/constraint.h"
#include "pawl/cuda_kernels.h"
#include "pawl/engine.h"
#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/matcher.h"
#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"

extern std::shared_ptr<const pawl::Vocabulary> vocabulary;
extern pawl::Compiler compiler;
extern pawl::JsonSchemaOptions options;
extern std::string schema, schema_text, text;
extern pawl::Result<pawl::Engine> engine;
extern pawl::EngineRequest request;
extern std::vector<pawl::EngineRequest> requests;
extern pawl::Result<pawl::Grammar> python;
extern pawl::Grammar grammar;
extern pawl::TokenId token;
extern int threads;
void Count(int64_t tokens);
bool Print(std::string_view text);
bool Show(std::string_view bytes);
int Report(const std::string& message);
pawl::TokenId Sample(const void* logits, std::span<const uint32_t> row);
template <typename... T>
void Use(const T&... values);

namespace from_matcher_h {
extern std::span<const pawl::Matcher* const> matchers;
extern uint32_t* rows;
extern size_t words_per_row;
extern const float* logits;
extern std::vector<pawl::TokenId> tokens;
extern std::vector<int32_t> parents;
extern std::vector<uint8_t> accepted;
}  // namespace from_matcher_h

namespace from_cuda_kernels_h {
extern void* logits;
extern const uint32_t* masks;
extern int rows;
extern void* stream;
}  // namespace from_cuda_kernels_h

#endif  // PAWL_TESTS_EXAMPLES_PRELUDE_H_
