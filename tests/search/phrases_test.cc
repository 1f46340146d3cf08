// Forced phrases: the automaton against looking for each text, a full beam against all outputs of
// toy languages, narrow beams, values of JSON, and what a step costs.
#include "src/decode/search/phrases.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/search/toy_language.h"

namespace pawl {
namespace {

std::vector<TokenId> ByBytes(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(static_cast<TokenId>(static_cast<uint8_t>(c)));
  return tokens;
}

std::string RandomText(std::mt19937& random, size_t most) {
  std::string text;
  for (size_t n = 1 + random() % most; n > 0; --n) text += "01"[random() % 2];
  return text;
}

// Whether each is there; in an order: whether they end one behind the other.
bool HasAll(const std::string& text, const std::vector<std::string>& phrases, bool ordered) {
  size_t least = 0;  // where the next one may end
  for (const std::string& phrase : phrases) {
    const size_t from = least > phrase.size() ? least - phrase.size() : 0;
    const size_t at = text.find(phrase, ordered ? from : 0);
    if (at == std::string::npos) return false;
    least = at + phrase.size();
  }
  return true;
}

TEST(PhrasesTest, AutomatonFindsWhatLookingFinds) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> texts;
    for (size_t n = 1 + random() % 5; n > 0; --n) texts.push_back(RandomText(random, 4));
    const bool ordered = random() % 2 == 0;
    ForcedPhrases phrases(texts, ordered, ForceIn::kText, ByBytes,
                          [](TokenId) { return size_t{1}; });
    const std::string text = RandomText(random, 14);
    int32_t state = ForcedPhrases::kStart;
    int progress = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t count = 1 + random() % 3;
      state = phrases.After(state, std::string_view(text).substr(at, count));
      at += count;
    }
    EXPECT_EQ(phrases.all_met(state), HasAll(text, texts, ordered)) << text;
    progress = phrases.progress(state);
    EXPECT_EQ(progress == phrases.total(), phrases.all_met(state));
    if (!ordered) {
      for (const std::string& missing : phrases.Missing(text)) {
        EXPECT_EQ(text.find(missing), std::string::npos);
      }
    }
  }
}

TEST(PhrasesTest, ValuesOfJsonWithoutEscapesAndKeys) {
  const auto met = [](std::string_view json, std::string_view phrase) {
    ForcedPhrases phrases({std::string(phrase)}, false, ForceIn::kValue, ByBytes,
                          [](TokenId) { return size_t{1}; });
    return phrases.all_met(phrases.After(ForcedPhrases::kStart, json));
  };
  EXPECT_TRUE(met(R"({"k":"a\"b"})", "a\"b"));
  EXPECT_TRUE(met(R"(["x","a\u00e9\n"])", "a\xc3\xa9\n"));
  EXPECT_TRUE(met(R"({"k":{"l":["\ud83d\ude00 yes"]}})", "\xf0\x9f\x98\x80 y"));
  EXPECT_TRUE(met(R"("plain")", "lai"));
  EXPECT_FALSE(met(R"({"plain":"x"})", "plain"));  // a key
  EXPECT_FALSE(met(R"(["pl","ain"])", "plain"));   // two strings
  EXPECT_FALSE(met(R"({"k":"a\\n"})", "a\n"));
  EXPECT_TRUE(met(R"({"a":1,"b":"c,d:e"})", "c,d:e"));
  EXPECT_TRUE(met(R"({"a":{"b":1},"c":"d"})", "d"));
  EXPECT_FALSE(met(R"({"a":{"b":1},"c":"d"})", "c"));
}

TEST(PhrasesTest, FullBeamEqualsBruteForce) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed) + 77);
    ToySearch search(seed);
    SearchOptions options{.num_beams = 2000, .max_tokens = 3 + static_cast<int>(seed % 2)};
    options.length_penalty = static_cast<double>(seed % 2);
    options.merge_spellings = false;
    options.force_ordered = seed % 3 == 0;
    for (size_t n = 1 + random() % 3; n > 0; --n)
      options.force_phrases.push_back(RandomText(random, 2));
    std::optional<ToySearch::Output> best;
    const auto vocabulary = ToyVocabulary();
    for (const ToySearch::Output& output : search.All(options.max_tokens, options.length_penalty)) {
      std::string text;
      for (const TokenId t : output.tokens) {
        if (t != kTheEnd) text += vocabulary->bytes(t);
      }
      if (HasAll(text, options.force_phrases, options.force_ordered)) {
        best = output;
        break;
      }
    }
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    SCOPED_TRACE(search.regex + " " + std::to_string(seed));
    ASSERT_FALSE(result->outputs.empty());
    const SearchOutput& got = result->outputs[0];
    EXPECT_EQ(got.missing_phrases.empty(), best.has_value());
    if (!best) continue;
    ++compared;
    EXPECT_NEAR(got.score, best->score, 1e-5);
  }
  EXPECT_GE(compared, 100);
}

// Narrow beams meet what a grammar leaves room for, or say what is missing.
TEST(PhrasesTest, NarrowBeamsMeetManyPhrases) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ToySearch search(seed);
    search.grammar = search.toy.Compile("[01\n]{40,60}");
    search.toy.constraint = MakeConstraint(*search.grammar);
    SearchOptions options{.num_beams = 6, .max_tokens = 60};
    options.force_phrases = {"0101", "1\n1\n1", "00000", "\n\n", "11011"};
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->outputs.at(0).missing_phrases.empty()) << result->outputs[0].text;
    options.force_phrases.push_back("2");  // what the grammar never allows
    const Result<SearchResult> lacks = search.Run(options);
    ASSERT_TRUE(lacks.ok());
    EXPECT_EQ(lacks->outputs.at(0).missing_phrases, std::vector<std::string>{"2"});
  }
}

// Rows do not depend on the number of phrases: each step has one for each beam, and a look-up of a
// mask. A beam that forks copies what it shares with another one.
TEST(PhrasesTest, RowsOfAStepAreTheSameForAnyNumberOfPhrases) {
  for (const size_t count : {1, 4, 16, 64}) {
    ToySearch search(5);
    search.grammar = search.toy.Compile("([01\n]){150}");
    search.toy.constraint = MakeConstraint(*search.grammar);
    SearchOptions options{.num_beams = 4, .merge_spellings = false, .max_tokens = 150};
    std::mt19937 random(6);
    while (options.force_phrases.size() < count) {
      const std::string text = RandomText(random, 8) + "1\n";
      if (std::ranges::find(options.force_phrases, text) == options.force_phrases.end()) {
        options.force_phrases.push_back(text);
      }
    }
    int64_t full = 0, other = 0;
    search.toy.model.before = [&](std::span<const Row> rows) -> Status {
      if (rows[0].position == 0) return {};  // the prompt
      ++(rows.size() == 4 ? full : other);
      EXPECT_LE(rows.size(), 4u) << count;
      return {};
    };
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->outputs.at(0).missing_phrases.empty(), count < 64);
    // Where outputs end there are fewer beams.
    // More phrases than there is room for: the search looks for a way to as many as it can.
    EXPECT_LE(other, count < 64 ? 4 : 200) << count;
    EXPECT_GE(full, 60) << count;
    EXPECT_LE(result->nodes, 9 + 4 * (full + other)) << count;
    search.toy.ExpectNoPages();
  }
}

}  // namespace
}  // namespace pawl
