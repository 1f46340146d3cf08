// Forced phrases with few beams, against all texts of a language: where one has them all, the
// output has them. The same on the decoded strings of JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <regex>

#include "src/base/json.h"
#include "src/decode/search/phrases.h"
#include "tests/search/toy_language.h"

namespace pawl {
namespace {

// Whether each is there; in an order: whether they end one behind the other.
bool HoldsAll(const std::string& text, const std::vector<std::string>& phrases, bool ordered) {
  size_t least = 0;
  for (const std::string& phrase : phrases) {
    const size_t from = least > phrase.size() ? least - phrase.size() : 0;
    const size_t at = text.find(phrase, ordered ? from : 0);
    if (at == std::string::npos) return false;
    least = at + phrase.size();
  }
  return true;
}

// The texts of all outputs of at most so many tokens.
std::vector<std::string> AllTexts(const Grammar& grammar, const Vocabulary& vocabulary, int most) {
  std::vector<std::string> texts;
  const std::function<void(const State&, const std::string&, int)> follow =
      [&](const State& state, const std::string& text, int left) {
        if (state.accepting()) texts.push_back(text);
        if (left == 0) return;
        for (const TokenId token : state.mask()->Tokens()) {
          if (vocabulary.is_end(token)) continue;
          const std::optional<State> next = state.Advance(token);
          if (next) follow(*next, text + std::string(vocabulary.bytes(token)), left - 1);
        }
      };
  follow(grammar.Start(), "", most);
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

TEST(ForcedTest, FewBeamsHaveAllPhrasesWhereAnOutputHas) {
  int possible = 0, impossible = 0, closed = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed) + 5);
    ToySearch search(seed);
    search.regex = RandomRegex(random, 5);
    search.grammar = search.toy.Compile(search.regex);
    search.toy.constraint = MakeConstraint(*search.grammar);
    SearchOptions options{.num_beams = 1 + static_cast<int>(seed % 4), .max_tokens = 6};
    options.force_ordered = seed % 3 == 0;
    for (size_t n = 1 + random() % 4; n > 0; --n) {
      std::string& phrase = options.force_phrases.emplace_back();
      for (size_t size = 1 + random() % 3; size > 0; --size) phrase += "01"[random() % 2];
    }
    bool exists = false;
    for (const std::string& text : AllTexts(*search.grammar, *search.toy.vocabulary, 6)) {
      exists = exists || HoldsAll(text, options.force_phrases, options.force_ordered);
    }
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;  // no output fits
    SCOPED_TRACE(search.regex + " " + std::to_string(seed));
    ASSERT_FALSE(result->outputs.empty());
    const SearchOutput& got = result->outputs[0];
    EXPECT_EQ(HoldsAll(got.text, options.force_phrases, options.force_ordered), exists);
    EXPECT_EQ(got.missing_phrases.empty(), exists);
    EXPECT_TRUE(got.ended);
    ++(exists ? possible : impossible);
    // At a limit of rows too.
    options.max_rows = 2;
    const Result<SearchResult> cut = search.Run(options);
    ASSERT_TRUE(cut.ok());
    EXPECT_LE(cut->model_rows, 7);
    if (exists && cut->at_limit == "rows" && cut->outputs.at(0).closed) {
      ++closed;
      EXPECT_TRUE(HoldsAll(cut->outputs[0].text, options.force_phrases, options.force_ordered));
      EXPECT_TRUE(std::regex_match(cut->outputs[0].text, std::regex(search.regex)));
    }
  }
  EXPECT_GE(closed, 20);
  EXPECT_GE(possible, 80);
  EXPECT_GE(impossible, 80);
}

// Without a constraint the output is cut at the budget.
TEST(ForcedTest, WithoutAConstraint) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ToySearch search(seed);
    search.toy.constraint = nullptr;
    SearchOptions options{.num_beams = 1 + static_cast<int>(seed % 3), .max_tokens = 9};
    options.force_phrases = {"0110", "\n1\n", "001", "11"};
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->outputs.at(0).missing_phrases.empty()) << result->outputs[0].text;
  }
}

// The strings of a JSON text, each with a separator behind it.
std::string StringsOf(const json::Value& value) {
  std::string all;
  if (value.type == json::Type::kString) all += value.text + "\x01";
  for (const json::Value& item : value.items) all += StringsOf(item);
  for (const auto& [name, member] : value.members) all += StringsOf(member);
  return all;
}

TEST(ForcedTest, ValuesBehindEscapes) {
  const auto vocabulary = VocabularyOf(
      {"\"", "\\", "u", "0",   "2",  "e",    "9",    "n",   "a", "b", "\\\"", "\\u00", "\xc3\xa9",
       "[",  "]",  ",", "\"a", "00", "\xc3", "\xa9", "\":", "{", "}", "\\u",  "\"k\":"});
  const int size = vocabulary->size();
  const std::vector<std::string> pieces = {"\"", "\\", "\n", "\xc3\xa9", "a", "b", "e", "2", "k"};
  const std::pair<const char*, bool> kSchemas[] = {
      {R"({"type":"string","maxLength":3})", true},
      {R"({"type":"string","maxLength":3})", false},
      {R"({"type":"array","items":{"type":"string","maxLength":1},"maxItems":2})", false},
      {R"({"type":"object","properties":{"k":{"type":"string","maxLength":2}},"required":["k"],)"
       R"("additionalProperties":false})",
       true},
  };
  int possible = 0, impossible = 0, escaped = 0;
  for (const auto& [schema, ascii] : kSchemas) {
    JsonSchemaOptions layout;
    layout.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    layout.ascii = ascii;
    const Grammar grammar = *Compiler(vocabulary).CompileJsonSchema(schema, layout);
    constexpr int kMost = 6;
    std::vector<std::pair<std::string, bool>> all;
    for (const std::string& text : AllTexts(grammar, *vocabulary, kMost)) {
      const Result<json::Value> value = json::Parse(text);
      ASSERT_TRUE(value.ok()) << text;
      all.emplace_back(StringsOf(*value), text.find('\\') != std::string::npos);
    }
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      std::mt19937 random(static_cast<uint32_t>(seed));
      SearchOptions options{.num_beams = 1 + static_cast<int>(seed % 4), .max_tokens = kMost};
      options.force_in = ForceIn::kValue;
      options.force_ordered = seed % 5 == 0;
      for (size_t n = 1 + random() % 2; n > 0; --n) {
        std::string& phrase = options.force_phrases.emplace_back();
        for (size_t i = 1 + random() % 2; i > 0; --i) phrase += pieces[random() % pieces.size()];
      }
      bool exists = false, plainly = false;
      for (const auto& [strings, escapes] : all) {
        if (!HoldsAll(strings, options.force_phrases, options.force_ordered)) continue;
        exists = true;
        plainly = plainly || !escapes;
      }
      ToyModel model({.vocabulary_size = size, .context_length = 200, .pages = 2000, .kept = 50},
                     HashedLogits);
      const std::vector<TokenId> prompt(5, static_cast<TokenId>(seed % 9));
      const Result<SearchResult> result =
          RunSearch({model, *vocabulary, {}, prompt, MakeConstraint(grammar)}, options);
      ASSERT_TRUE(result.ok()) << result.error().ToString();
      const SearchOutput& got = result->outputs.at(0);
      std::string wanted;
      for (const std::string& phrase : options.force_phrases) wanted += " [" + phrase + "]";
      SCOPED_TRACE(std::string(schema) + " " + std::to_string(seed) + wanted + " " + got.text);
      const Result<json::Value> value = json::Parse(got.text);
      ASSERT_TRUE(value.ok());
      EXPECT_EQ(HoldsAll(StringsOf(*value), options.force_phrases, options.force_ordered), exists);
      EXPECT_EQ(got.missing_phrases.empty(), exists);
      ++(exists ? possible : impossible);
      escaped += exists && !plainly ? 1 : 0;
    }
  }
  EXPECT_GE(possible, 40);
  EXPECT_GE(impossible, 10);
  EXPECT_GE(escaped, 25);
}

// Phrases that have to be packed into several short strings. An output with all of them exists by
// construction.
TEST(ForcedTest, PhrasesFindTheirStrings) {
  const auto vocabulary = VocabularyOf(
      {"\"",  "\\",    "u",   "0",     "1",        "2",    "3",    "4",    "5",    "6",   "7",
       "8",   "9",     "a",   "b",     "c",        "d",    "e",    "f",    "n",    "x",   "y",
       "[",   "]",     ",",   "{",     "}",        ":",    "k",    "00",   "e9",   "xy",  "\",\"",
       "\":", "\\u00", "\\u", "\":\"", "\xc3\xa9", "\xc3", "\xa9", "\x9f", "\xb1", "\x80"});
  const std::vector<std::string> words = {
      "\xc3\xa9", "x\xc3\xa9", "\xc3\xa9y", "y", "\xc3\x9f", "xy", "\n", "\"", "\xc3\xb1"};
  const auto characters = [](const std::string& text) {
    return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  };
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    SearchOptions options{.num_beams = 1 + static_cast<int>(seed % 3), .max_tokens = 150};
    options.force_in = ForceIn::kValue;
    std::string schema, required, written;
    for (int i = 0, strings = 2 + static_cast<int>(seed % 3); i < strings; ++i) {
      std::string text;
      for (size_t n = 1 + random() % 2; n > 0; --n) {
        options.force_phrases.push_back(words[random() % words.size()]);
        text += options.force_phrases.back();
      }
      const std::string name = "\"k" + std::to_string(i) + "\"";
      schema += (i > 0 ? "," : "") + name + R"(:{"type":"string","maxLength":)" +
                std::to_string(characters(text)) + "}";
      required += (i > 0 ? "," : "") + name;
      written += (i > 0 ? "," : "{") + name + ":" + json::Quote(text);
    }
    std::ranges::shuffle(options.force_phrases, random);
    JsonSchemaOptions layout;
    layout.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    layout.ascii = seed % 4 != 0;
    const Grammar grammar = *Compiler(vocabulary)
                                 .CompileJsonSchema(R"({"type":"object","properties":{)" + schema +
                                                        R"(},"required":[)" + required +
                                                        R"(],"additionalProperties":false})",
                                                    layout);
    if (!layout.ascii) {
      const auto tokens = vocabulary->FewestTokens(written + "}");
      std::optional<State> at = grammar.Start();
      for (const TokenId token : tokens) at = at ? at->Advance(token) : at;
      ASSERT_TRUE(at && at->accepting() && !tokens.empty()) << written;
    }
    ToyModel model(
        {.vocabulary_size = vocabulary->size(), .context_length = 400, .pages = 2000, .kept = 50},
        HashedLogits);
    const std::vector<TokenId> prompt(5, static_cast<TokenId>(seed % 9));
    const Result<SearchResult> result =
        RunSearch({model, *vocabulary, {}, prompt, MakeConstraint(grammar)}, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_TRUE(result->outputs.at(0).missing_phrases.empty())
        << seed << " " << result->outputs[0].text << " of " << written;
    const Result<json::Value> value = json::Parse(result->outputs[0].text);
    ASSERT_TRUE(value.ok());
    EXPECT_TRUE(HoldsAll(StringsOf(*value), options.force_phrases, false)) << seed;
  }
}

// The automaton says which tokens bring a phrase on, in each way of writing it.
TEST(ForcedTest, WaysOfWritingAPhraseInJson) {
  const auto spell = [](std::string_view text) {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(static_cast<TokenId>(static_cast<uint8_t>(c)));
    return tokens;
  };
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"\"", "\\",   "\n",           "\xc3\xa9",
                                           "a",  "\x02", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (int round = 0; round < 400; ++round) {
    std::string phrase;
    for (size_t i = 1 + random() % 4; i > 0; --i) phrase += pieces[random() % pieces.size()];
    ForcedPhrases phrases({phrase}, false, ForceIn::kValue, spell,
                          [](TokenId) { return size_t{1}; });
    // Any of the tokens each time; in an escape the phrase may also begin again.
    std::string json = "[\"";
    int32_t state = phrases.After(ForcedPhrases::kStart, json);
    while (!phrases.all_met(state)) {
      const std::vector<TokenId> tokens = phrases.Advancing(state);
      const size_t count = phrases.going_on(state) > 0 ? phrases.going_on(state) : tokens.size();
      ASSERT_GT(count, 0u) << json;
      ASSERT_LT(json.size(), 600u);
      TokenId token = tokens[random() % count];
      if (token == ' ') token = tokens[0];
      json += static_cast<char>(token);
      state = phrases.After(state, json.substr(json.size() - 1));
    }
    const Result<json::Value> value = json::Parse(json + "\"]");
    ASSERT_TRUE(value.ok()) << json;
    EXPECT_TRUE(value->items[0].text.ends_with(phrase)) << json;
    EXPECT_EQ(value->items[0].text.find(phrase), value->items[0].text.size() - phrase.size());
  }
}

}  // namespace
}  // namespace pawl
