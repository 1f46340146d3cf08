// What a mask costs where a format meets a pattern, in counted steps: no clock is asked, so the
// bound holds on every machine. With the shipped tokenizer some of the pairs that took most steps
// are walked; with Llama 3.1's, where PAWL_DATA_DIR has it, all of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "src/text/tokenizer.h"
#include "tests/schemas/pattern_pairs.h"
#include "tests/source_dir.h"

namespace pawl::property {
namespace {

constexpr uint64_t kSteps = 100'000;

Dearest WalkAll(const std::string& path, const std::set<std::string>& names, int tokens) {
  Dearest dearest;
  const auto tokenizer = Tokenizer::FromFile(path);
  EXPECT_TRUE(tokenizer.ok()) << path;
  if (!tokenizer.ok()) return dearest;
  const auto vocabulary = *(*tokenizer)->MakeVocabulary();
  for (const PatternPair& pair : PatternPairs()) {
    if (!names.empty() && !names.contains(pair.name)) continue;
    WalkPair(
        pair, vocabulary, [&](const std::string& text) { return (*tokenizer)->Encode(text); },
        tokens, 1, dearest);
  }
  return dearest;
}

TEST(PatternStepsTest, ThereAreAllPairs) {
  const std::vector<PatternPair> pairs = PatternPairs();
  EXPECT_EQ(pairs.size(), 40u * 8u * 4u);
  std::set<std::string> schemas;
  for (const PatternPair& pair : pairs) schemas.insert(pair.schema);
  EXPECT_EQ(schemas.size(), pairs.size());
}

TEST(PatternStepsTest, PairsOfTheShippedTokenizerStayBelowTheBound) {
  const Dearest dearest =
      WalkAll(SourceDir() + "/models/tiny-extract/tokenizer.json",
              {"date-time 01 ", "date-time 05 ", "date-time 05 $", "date-time 20 ", "time 11 $",
               "uuid 09 ", "date 04 ^$", "email 08 ", "email 27 "},
              8);
  EXPECT_GT(dearest.steps, 0u);
  EXPECT_LE(dearest.steps, kSteps) << dearest.name << " after " << dearest.text;
}

TEST(PatternStepsTest, AllPairsWithLlamasVocabularyStayBelowTheBound) {
  const char* const data = std::getenv("PAWL_DATA_DIR");
  const std::string path = data == nullptr ? "" : std::string(data) + "/tokenizers/llama3_1";
  if (data == nullptr || !std::filesystem::exists(path)) {
    GTEST_SKIP() << "PAWL_DATA_DIR does not name a folder with tokenizers/llama3_1";
  }
  const Dearest dearest = WalkAll(path, {}, 12);
  EXPECT_GT(dearest.steps, 0u);
  EXPECT_LE(dearest.steps, kSteps) << dearest.name << " after " << dearest.text;
  EXPECT_LE(dearest.nodes, 300'000u);
}

}  // namespace
}  // namespace pawl::property
