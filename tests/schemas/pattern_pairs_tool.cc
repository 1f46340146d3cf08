// pattern_pairs_tool FOLDER: writes each pair of a format and a pattern that has texts
// (pattern_pairs.h) as a file of MaskBench, for `pawl maskbench --data FOLDER`.
//
// pattern_pairs_tool FOLDER TOKENIZER [FILTER [TOKENS]]: nothing is written; prints the dearest
// tokens of walks in counted steps, those of pairs whose names contain FILTER.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/text/tokenizer.h"
#include "tests/schemas/pattern_pairs.h"
#include "tests/schemas/property_generators.h"
#include "tests/support/vocabularies.h"

namespace pawl::property {
namespace {

// Valid texts: the shortest, and some that begin with random bytes.
std::vector<std::string> ValidTexts(const Grammar& grammar, uint64_t seed) {
  std::vector<std::string> texts;
  Dice dice(seed);
  for (const int random : {0, 3, 12}) {
    State state = grammar.Start();
    std::string text;
    for (int i = 0; i < random; ++i) {
      const std::vector<TokenId> tokens = state.mask()->Tokens();
      if (tokens.empty()) break;
      const TokenId token = dice.Pick(tokens);
      const auto next = state.Advance(token);
      if (!next) break;
      text += grammar.vocabulary().bytes(token);
      state = *next;
    }
    if (const auto end = state.CompletionBytes()) texts.push_back(text + *end);
  }
  return texts;
}

int Write(const std::string& folder) {
  const auto vocabulary = Bytes();
  int written = 0;
  for (const PatternPair& pair : PatternPairs()) {
    const auto grammar = Compiler(vocabulary).CompileJsonSchema(pair.schema);
    if (!grammar.ok()) continue;
    std::vector<std::string> texts = pair.texts;
    for (std::string& text : ValidTexts(*grammar, 1)) texts.push_back(std::move(text));
    std::string tests;
    for (const std::string& text : texts) {
      if (!json::Parse(text).ok()) continue;
      const auto end = grammar->Start().Advance(text);
      const bool valid = end.has_value() && end->accepting();
      tests += std::string(tests.empty() ? "" : ",") + R"({"valid":)" + (valid ? "true" : "false") +
               R"(,"data":)" + text + "}";
    }
    std::string name = pair.name;
    std::ranges::replace(name, ' ', '-');
    std::ranges::replace(name, '^', 'b');
    std::ranges::replace(name, '$', 'e');
    const std::string file = R"({"schema":)" + pair.schema + R"(,"tests":[)" + tests + "]}";
    if (!WriteFile(folder + "/" + name + ".json", file).ok()) return 2;
    ++written;
  }
  std::printf("%d of %zu pairs have texts\n", written, PatternPairs().size());
  return 0;
}

int Walk(const char* path, const std::string& filter, int tokens) {
  const auto tokenizer = Tokenizer::FromFile(path);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().ToString().c_str());
    return 2;
  }
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  std::vector<Dearest> all;
  for (const PatternPair& pair : PatternPairs()) {
    if (pair.name.find(filter) == std::string::npos) continue;
    Dearest dearest;
    WalkPair(
        pair, vocabulary, [&](const std::string& text) { return (*tokenizer)->Encode(text); },
        tokens, 1, dearest);
    all.push_back(dearest);
  }
  std::ranges::sort(all, [](const Dearest& a, const Dearest& b) { return a.steps > b.steps; });
  for (size_t i = 0; i < all.size() && i < 40; ++i)
    std::printf("%12lu %10lu  %s  after %s\n", static_cast<unsigned long>(all[i].steps),
                static_cast<unsigned long>(all[i].nodes), all[i].name.c_str(), all[i].text.c_str());
  const auto over = std::ranges::count_if(all, [](const Dearest& d) { return d.steps > 100'000; });
  std::printf("%zu pairs, %ld with a token of more than 100,000 steps\n", all.size(),
              static_cast<long>(over));
  return over == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pawl::property

int main(int argc, char** argv) {
  if (argc == 2) return pawl::property::Write(argv[1]);
  if (argc < 3) {
    std::fprintf(stderr, "pattern_pairs_tool FOLDER | FOLDER TOKENIZER [FILTER [TOKENS]]\n");
    return 2;
  }
  return pawl::property::Walk(argv[2], argc > 3 ? argv[3] : "", argc > 4 ? std::atoi(argv[4]) : 16);
}
