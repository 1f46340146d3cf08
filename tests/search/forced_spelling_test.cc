// Where forced text has several spellings, searches at their limits (one beam, no pause, one trial,
// one draft, no contrast) write what plain decoding writes, token for token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/compiler.h"
#include "src/base/random.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/source.h"
#include "src/decode/search/run.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// Names with many spellings, one behind the other.
constexpr char kNamesAndWords[] = R"({"type":"object","properties":{
  "name":{"enum":["red name","red","nam"]},"customer name":{"type":"boolean"},
  "items: count":{"enum":[1,12,123]},"a\":\"b":{"type":"object","properties":{
  "currency_code":{"enum":["EUR","USD"]},"amount":{"type":"integer","minimum":0,"maximum":99}},
  "required":["currency_code","amount"],"additionalProperties":false},
  "list":{"type":"array","items":{"const":"name\": \"name"},"minItems":1,"maxItems":3}},
  "required":["name","customer name","items: count","a\":\"b","list"],
  "additionalProperties":false})";

struct Speller {
  std::shared_ptr<const Vocabulary> vocabulary;
  Encoder encode;
};

Speller ToySpeller() {
  std::vector<std::string> tokens = JsonTokens(60);
  for (const char* const more :
       {"\"n",    "\"na",   "na",    "ame",  "name\"",  "\"name", "e\":",     "d\":",  "\":\"",
        "\":\"r", "red",    "re",    "ed\"", "cust",    "omer",   "customer", " name", ": ",
        "count",  "items",  "true,", ",\"",  "urrency", "c",      "_code",    "EU",    "UR",
        "R\"",    "amount", "mount", "\"a",  "a\\\"",   "\\\":"}) {
    if (std::ranges::find(tokens, more) == tokens.end()) tokens.emplace_back(more);
  }
  const auto vocabulary = VocabularyOf(tokens);
  return {vocabulary, [vocabulary](std::string_view text) {
            std::vector<TokenId> out;
            while (!text.empty()) {
              out.push_back(vocabulary->LongestPrefix(text));
              text.remove_prefix(vocabulary->bytes(out.back()).size());
            }
            return out;
          }};
}

Speller SpellerOf(const std::string& folder) {
  const auto tokenizer = Tokenizer::FromFile(folder);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
  return {*(*tokenizer)->MakeVocabulary(),
          [own = *tokenizer](std::string_view text) { return own->Encode(text); }};
}

std::shared_ptr<Drafter> DrafterFor(const Speller& speller) {
  DraftSetting setting;
  setting.vocabulary = speller.vocabulary;
  setting.encode = speller.encode;
  setting.vocabulary_size = speller.vocabulary->size();
  setting.options.sources = "forced,history";
  setting.options.always = true;
  const auto indices = ParseDraftSources(setting.options);
  EXPECT_TRUE(indices.ok());
  return *Drafter::Make(std::move(setting), *indices);
}

// Compares all strategies; how many tokens were forced.
int Compare(const Speller& speller, uint64_t seeds) {
  const auto grammar = Compiler(speller.vocabulary).CompileJsonSchema(kNamesAndWords);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  const auto constraint = MakeConstraint(*grammar);
  ToyModel model({.vocabulary_size = speller.vocabulary->size(), .context_length = 400},
                 HashedLogits);
  int forced = 0;
  const auto drafter = DrafterFor(speller);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<TokenId> prompt = {static_cast<TokenId>(seed), 3, 2};
    const auto plain = [&](float temperature) {
      GenerateOptions options;
      options.sampling = {.temperature = temperature, .seed = seed};
      options.max_tokens = 300;
      Session session(model, speller.vocabulary, speller.encode);
      Session drafting(model, speller.vocabulary, speller.encode, drafter);
      const auto output = session.Generate(prompt, constraint, options);
      const auto drafted = drafting.Generate(prompt, constraint, options);
      EXPECT_TRUE(output.ok() && drafted.ok());
      EXPECT_EQ(output->tokens, drafted->tokens) << seed;
      EXPECT_EQ(output->stop, StopReason::kEnd);
      forced += output->stats.forced_tokens;
      return output->tokens;
    };
    const std::vector<TokenId> greedy = plain(0), drawn = plain(1);
    const auto search = [&](SearchOptions options, bool contrasts = false) {
      options.max_tokens = 300;
      options.seed = seed;
      SearchInput input{model, *speller.vocabulary, speller.encode, prompt, constraint};
      if (contrasts) input.contrast = std::vector<TokenId>{5, 6};
      if (contrasts) options.contrast_prompt = "x";
      const auto result = RunSearch(input, options);
      EXPECT_TRUE(result.ok());
      std::vector<TokenId> tokens = result->outputs.at(0).tokens;
      tokens.pop_back();
      return tokens;
    };
    EXPECT_EQ(search({.strategy = "beam", .num_beams = 1}), greedy) << seed;
    EXPECT_EQ(search({.strategy = "beam", .num_beams = 1, .contrast = 0}, true), greedy) << seed;
    EXPECT_EQ(search({.strategy = "superposed"}), greedy) << seed;
    EXPECT_EQ(search({.strategy = "contrastive", .arguments = {{"penalty_alpha", 0}}}), greedy)
        << seed;
    for (const double drafts : {0, 4}) {
      EXPECT_EQ(
          search({.strategy = "adadec", .arguments = {{"threshold", 1e9}, {"drafts", drafts}}}),
          greedy)
          << seed;
      EXPECT_EQ(search({.strategy = "cntp", .arguments = {{"max_trials", 1}, {"drafts", drafts}}}),
                drawn)
          << seed;
    }
  }
  return forced;
}

TEST(SearchSpellingTest, ForcedTextIsThatOfPlainDecoding) {
  EXPECT_GT(Compare(ToySpeller(), 40), 1000);
  EXPECT_GT(Compare(SpellerOf(SourceDir() + "/models/tiny-extract/tokenizer.json"), 12), 100);
  if (const char* const folder = std::getenv("PAWL_DATA_DIR"); folder != nullptr) {
    EXPECT_GT(Compare(SpellerOf(std::string(folder) + "/tokenizers/gpt2"), 2), 30);
  }
}

}  // namespace
}  // namespace pawl
