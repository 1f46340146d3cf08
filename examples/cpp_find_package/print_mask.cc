// Prints which tokens a choice allows, step by step.
#include <cstdio>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/matcher.h"

int main() {
  pawl::VocabularyInit init;
  init.tokens = {"r", "re", "d", "g", "reen", "green", "blue", "<end>"};
  init.end_tokens = {7};
  const auto vocabulary = pawl::Vocabulary::Create(std::move(init));
  if (!vocabulary.ok()) return 1;
  const pawl::Compiler compiler(*vocabulary);
  const auto grammar = compiler.CompileChoice(std::vector<std::string>{"red", "green"});
  if (!grammar.ok()) {
    std::fprintf(stderr, "%s\n", grammar.error().ToString().c_str());
    return 1;
  }
  pawl::Matcher matcher(*grammar);
  std::vector<uint32_t> row(static_cast<size_t>((*vocabulary)->mask_words()));
  for (const pawl::TokenId token : {1, 2, 7}) {
    matcher.FillMask(row);
    std::printf("allowed: %02x, taken: %s\n", row[0],
                std::string((*vocabulary)->bytes(token)).c_str());
    if (!matcher.Accept(token)) return 1;
  }
  return matcher.terminated() ? 0 : 1;
}
