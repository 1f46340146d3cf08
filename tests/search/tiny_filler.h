// A tiny random model that fills masks, with a vocabulary of letters, digits and JSON's marks.
#ifndef PAWL_TESTS_SEARCH_TINY_FILLER_H_
#define PAWL_TESTS_SEARCH_TINY_FILLER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/model/transformer_cpu.h"
#include "tests/search/toy_language.h"
#include "tests/source_dir.h"

namespace pawl {

// Tokens 0 to 44 are letters and digits, 45 is the end, 46 the mask.
struct TinyFiller {
  explicit TinyFiller(const std::string& name) {
    ModelOptions options;
    options.threads = 1;
    model = *LoadModel(SourceDir() + "/tests/data/models/diffusion/" + name, options);
    std::vector<std::string> tokens;
    for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
    for (char c = '0'; c <= '9'; ++c) tokens.emplace_back(1, c);
    for (const char* more : {"{", "}", "\"", ":", ",", "[", "]", "12", "ab"}) {
      tokens.emplace_back(more);
    }
    vocabulary = VocabularyOf(tokens);
  }
  std::vector<Result<Generation>> Run(int count, const std::string& regex,
                                      const GenerateOptions& options) {
    if (regex.empty()) return RunIn(count, std::nullopt, options);
    return RunIn(count, *Compiler(vocabulary).CompileRegex(regex), options);
  }
  std::vector<Result<Generation>> RunIn(int count, const std::optional<Grammar>& grammar,
                                        const GenerateOptions& options) {
    BatchEngine engine(*model, vocabulary, {}, {.max_batch = 4});
    std::vector<Result<Generation>> outputs;
    for (int i = 0; i < count; ++i) {
      BatchRequest request;
      for (int t = 0; t < 5 + 3 * i; ++t) request.prompt.push_back((7 * t + i) % 40);
      if (grammar) request.constraint = MakeConstraint(*grammar);
      request.options = options;
      outputs.emplace_back(Error{ErrorCode::kInternal, "", ""});
      request.done = [&outputs, i](Result<Generation> output) {
        outputs[static_cast<size_t>(i)] = std::move(output);
      };
      engine.Add(std::move(request));
    }
    while (engine.Step()) {
    }
    calls = engine.stats().steps;
    return outputs;
  }
  std::unique_ptr<Model> model;
  std::shared_ptr<const Vocabulary> vocabulary;
  int64_t calls = 0;
};

}  // namespace pawl

#endif  // PAWL_TESTS_SEARCH_TINY_FILLER_H_
