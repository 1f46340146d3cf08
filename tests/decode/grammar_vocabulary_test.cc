// Masks of the example grammars on real vocabularies, whose tries have the long words, punctuation
// and broken characters that made-up vocabularies lack: equal to advancing by every token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

// Compares the masks at `positions` places of the text that the example's benchmark reads.
void Compare(const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& name,
             int positions, uint64_t seed) {
  const auto source = ReadFile(SourceDir() + "/grammar/examples/" + name + ".ebnf");
  const auto text = ReadFile(SourceDir() + "/bench/texts/" + name + ".txt");
  ASSERT_TRUE(source.ok() && text.ok()) << name;
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileGrammar(*source, GrammarLanguage::kEbnf);
  ASSERT_TRUE(grammar.ok()) << name << ": " << grammar.error().ToString();
  const std::vector<TokenId> tokens = vocabulary->FewestTokens(*text);
  std::mt19937_64 random(seed);
  std::vector<size_t> places = {0};
  while (static_cast<int>(places.size()) < positions) places.push_back(random() % tokens.size());
  std::sort(places.begin(), places.end());
  State state = grammar->Start();
  size_t place = 0;
  for (size_t i = 0; i < tokens.size() && place < places.size(); ++i) {
    for (; place < places.size() && places[place] == i; ++place) {
      const auto mask = state.mask();
      for (TokenId token = 0; token < vocabulary->size(); ++token) {
        if (vocabulary->is_special(token)) continue;
        ASSERT_EQ(mask->Allows(token), state.Advance(token).has_value())
            << name << ", token " << i << ": " << token << " \"" << vocabulary->bytes(token) << '"';
      }
    }
    const auto next = state.Advance(tokens[i]);
    ASSERT_TRUE(next.has_value()) << name << ", token " << i;
    state = *next;
  }
}

void CompareAll(const std::string& path, int positions) {
  const auto tokenizer = Tokenizer::FromFile(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
  const auto vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  uint64_t seed = 1;
  for (const char* name : {"arithmetic", "python", "sql", "c", "xml"})
    Compare(*vocabulary, name, positions, seed++);
}

TEST(GrammarVocabularyTest, ShippedTokenizer) {
  CompareAll(SourceDir() + "/models/tiny-extract", 200);
}

TEST(GrammarVocabularyTest, RealTokenizers) {
  const char* data = std::getenv("PAWL_DATA_DIR");
  if (data == nullptr) GTEST_SKIP() << "PAWL_DATA_DIR does not name a folder with tokenizers";
  for (const char* name : {"gpt2", "llama2", "qwen2_5"})
    CompareAll(std::string(data) + "/tokenizers/" + name, 25);
}

}  // namespace
}  // namespace pawl
