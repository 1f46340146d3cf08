// Grammars made of compiled grammars: gaps, words, intersection, complement, spans of a text.
#include "pawl/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/utf8.h"
#include "tests/grammar/mask_oracle.h"
#include "tests/source_dir.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

std::shared_ptr<const Vocabulary> BytesAndPieces() {
  return VocabularyOf(AllBytes({"\": ", "},", "return", "    ", "\n    ", "],", "true", "ab", "abc",
                                "), ", "<end>"}),
                      {"<tool>"});
}

class CombineTest : public testing::Test {
 protected:
  CombineTest() : vocabulary_(BytesAndPieces()), compiler_(vocabulary_) {}

  Grammar File(const std::string& name, GrammarLanguage language) {
    const auto text = ReadFile(SourceDir() + "/grammar/examples/" + name);
    EXPECT_TRUE(text.ok());
    auto grammar = compiler_.CompileGrammar(*text, language);
    EXPECT_TRUE(grammar.ok());
    return *grammar;
  }
  static bool Accepts(const Grammar& grammar, std::string_view text) {
    const auto state = grammar.Start().Advance(text);
    return state && state->accepting();
  }
  // Random tokens; every mask is what trying every token says, and every state completes to a text
  // that `whole` has with what stands around it.
  void Walk(const Grammar& gap, const Grammar& whole, const std::string& before,
            const std::string& after, uint32_t seed, int steps) {
    std::mt19937 random(seed);
    State state = gap.Start();
    std::string text;
    for (int step = 0; step < steps; ++step) {
      const std::vector<TokenId> allowed = AllowedTokens(state, *vocabulary_, "after " + text);
      const auto completion = state.CompletionBytes();
      ASSERT_TRUE(completion) << "after " << text;
      ASSERT_TRUE(Accepts(whole, before + text + *completion + after))
          << before << '|' << text << '|' << *completion << '|' << after;
      ASSERT_EQ(state.accepting(), Accepts(whole, before + text + after)) << text;
      if (allowed.empty()) return;
      const TokenId token = allowed[random() % allowed.size()];
      text += vocabulary_->bytes(token);
      state = *state.Advance(token);
    }
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  Compiler compiler_;
};

TEST_F(CombineTest, GapsInJson) {
  const Grammar json = File("json.gbnf", GrammarLanguage::kGbnf);
  const Infilling gap{R"({"name": "Ann", "list": [1, {)", {R"(: 2}, "end")", "]}"}};
  auto first = Infill(json, gap);
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  EXPECT_TRUE(Accepts(*first, R"("k")"));
  EXPECT_TRUE(Accepts(*first, R"("k": 1, "l")"));
  EXPECT_FALSE(Accepts(*first, R"("k": 1)"));
  EXPECT_FALSE(Accepts(*first, ""));
  Infilling next = gap;
  ASSERT_TRUE(next.Fill(R"("k")"));
  auto second = Infill(json, next);
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  EXPECT_TRUE(Accepts(*second, ""));
  EXPECT_TRUE(Accepts(*second, R"(, "more", [7])"));
  EXPECT_FALSE(Accepts(*second, "]"));
  for (uint32_t seed = 0; seed < 20; ++seed)
    Walk(*second, json, next.prefix, next.after[0], seed, 8);
  EXPECT_FALSE(next.Fill(""));
  EXPECT_TRUE(Accepts(json, next.prefix));
}

TEST_F(CombineTest, GapsInPython) {
  const Grammar python = File("python.ebnf", GrammarLanguage::kEbnf);
  const std::string before = "def area(w, h):\n    total = w", after = "h\n    return total\n";
  ASSERT_TRUE(Accepts(python, before + " * " + after));
  auto gap = Infill(python, {before, {after}});
  ASSERT_TRUE(gap.ok()) << gap.error().ToString();
  EXPECT_TRUE(Accepts(*gap, " * "));
  EXPECT_FALSE(Accepts(*gap, " * ("));
  for (uint32_t seed = 0; seed < 10; ++seed) Walk(*gap, python, before, after, seed, 10);
}

TEST_F(CombineTest, GapsInRegexes) {
  auto date = compiler_.CompileRegex(R"(\d{4}-\d{2}-\d{2}|today(?!x)|(?=.*b)[abc]{3})");
  ASSERT_TRUE(date.ok());
  auto gap = Infill(*date, {"20", {"-31"}});
  ASSERT_TRUE(gap.ok()) << gap.error().ToString();
  EXPECT_TRUE(Accepts(*gap, "24-12"));
  EXPECT_FALSE(Accepts(*gap, "24-1"));
  auto letters = Infill(*date, {"a", {"c"}});
  ASSERT_TRUE(letters.ok()) << letters.error().ToString();
  EXPECT_TRUE(Accepts(*letters, "b"));
  EXPECT_FALSE(Accepts(*letters, "a"));  // the lookahead wants a b
  EXPECT_EQ(Infill(*date, {"x", {""}}).error().ToString(), "prefix, byte 0: does not fit");
  EXPECT_EQ(Infill(*date, {"", {"x"}}).error().code, ErrorCode::kUnsatisfiable);
  EXPECT_EQ(Infill(*date, {"\xFF", {""}}).error().code, ErrorCode::kInvalid);
}

TEST_F(CombineTest, GapsInSchemas) {
  auto closed = compiler_.CompileJsonSchema(R"({"type": "object", "properties": {
      "name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["x", "yy"]}}},
      "required": ["name", "tags"], "additionalProperties": false})");
  ASSERT_TRUE(closed.ok());
  auto gap = Infill(*closed, {R"({"name":"A)", {R"(","yy"]})"}});
  ASSERT_TRUE(gap.ok()) << gap.error().ToString();
  EXPECT_TRUE(Accepts(*gap, R"(nn","tags":["x)"));
  EXPECT_FALSE(Accepts(*gap, R"(nn","tags":[")"));
  for (uint32_t seed = 0; seed < 20; ++seed)
    Walk(*gap, *closed, R"({"name":"A)", R"(","yy"]})", seed, 10);
  // A prefix alone needs no list of states.
  auto open = compiler_.CompileJsonSchema(R"({"type": "object"})");
  ASSERT_TRUE(open.ok());
  auto rest = Infill(*open, {R"({"a":[)", {""}});
  ASSERT_TRUE(rest.ok()) << rest.error().ToString();
  EXPECT_TRUE(Accepts(*rest, "]}"));
  EXPECT_EQ(Infill(*open, {"", {"}"}}).error().code, ErrorCode::kUnsupported);
}

// A schema inside of a grammar that the suffix does not cut into may be anything.
TEST_F(CombineTest, GapsBesideSchemas) {
  auto call = compiler_.CompileGrammar(
      "start: \"<call>\" %json {\"type\": \"object\"} \"</call>\" /[a-z]*/",
      GrammarLanguage::kLark);
  ASSERT_TRUE(call.ok()) << call.error().ToString();
  auto gap = Infill(*call, {"<ca", {"</call>xyz"}});
  ASSERT_TRUE(gap.ok()) << gap.error().ToString();
  EXPECT_TRUE(Accepts(*gap, R"(ll>{"a":{}})"));
  EXPECT_FALSE(Accepts(*gap, R"(ll>{"a":{})"));
}

TEST_F(CombineTest, WordsInAGrammar) {
  const Grammar json = File("json.gbnf", GrammarLanguage::kGbnf);
  const std::vector<std::string> words = {"\"id\"", "42"};
  auto both = RequireWords(json, words);
  ASSERT_TRUE(both.ok()) << both.error().ToString();
  EXPECT_TRUE(Accepts(*both, R"({"id": 142})"));
  EXPECT_TRUE(Accepts(*both, R"([42, "id"])"));
  EXPECT_FALSE(Accepts(*both, R"({"id": 4})"));
  EXPECT_FALSE(Accepts(*both, "42"));
  for (uint32_t seed = 0; seed < 10; ++seed) Walk(*both, json, "", "", seed, 6);
  auto gap = Infill(*both, {"[", {""}});
  ASSERT_TRUE(gap.ok()) << gap.error().ToString();
  EXPECT_TRUE(Accepts(*gap, R"("id",42])"));
  EXPECT_FALSE(Accepts(*gap, R"("id"])"));
}

// Five words took a quarter of a minute.
TEST_F(CombineTest, ManyWordsInALargeGrammarAreRefusedInTime) {
  const Grammar c = File("c.ebnf", GrammarLanguage::kEbnf);
  const std::vector<std::string> words = {"foo", "bar", "quux1", "zip", "zap"};
  EXPECT_TRUE(RequireWords(c, std::span(words).first(3)).ok());
  const auto all = RequireWords(c, words);
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, ErrorCode::kLimit);
}

TEST_F(CombineTest, IntersectionAndComplement) {
  auto words = compiler_.CompileRegex("[a-c]{1,4}"), with_b = compiler_.CompileRegex(".*b.*");
  ASSERT_TRUE(words.ok() && with_b.ok());
  auto both = Intersect(*words, *with_b);
  ASSERT_TRUE(both.ok());
  auto other = Complement(*with_b);
  ASSERT_TRUE(other.ok());
  auto without = Intersect(*words, *other);
  ASSERT_TRUE(without.ok());
  for (const char* text : {"a", "b", "abc", "aaaa", "cacb", "", "bbbbb", "d"}) {
    const std::string_view view = text;
    const bool word = Accepts(*words, view), b = view.find('b') != view.npos;
    EXPECT_EQ(Accepts(*both, view), word && b) << text;
    EXPECT_EQ(Accepts(*other, view), !b) << text;
    EXPECT_EQ(Accepts(*without, view), word && !b) << text;
  }
  const Grammar json = File("json.gbnf", GrammarLanguage::kGbnf);
  auto short_json = Intersect(json, *compiler_.CompileRegex(R"(\[[^\n]{0,5}\])"));
  ASSERT_TRUE(short_json.ok()) << short_json.error().ToString();
  EXPECT_TRUE(Accepts(*short_json, "[1,[]]"));
  EXPECT_FALSE(Accepts(*short_json, "[1,[],1]"));
  EXPECT_FALSE(Accepts(*short_json, "{}"));
  EXPECT_EQ(Intersect(json, json).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Intersect(json, json).error().message,
            "one of the two must be a regex, choices, a substring or a schema: whether two "
            "grammars have a text in common cannot be decided");
  EXPECT_EQ(Complement(json).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Intersect(*with_b, *other).error().code, ErrorCode::kUnsatisfiable);
}

TEST_F(CombineTest, SpansOfAText) {
  const std::string text = "the cat sat on the mat, é!";
  auto span = compiler_.CompileSubstring(text);
  ASSERT_TRUE(span.ok());
  EXPECT_TRUE(Accepts(*span, ""));
  EXPECT_TRUE(Accepts(*span, "at, é"));
  EXPECT_FALSE(Accepts(*span, "mat on"));
  auto whole = compiler_.CompileSubstring(text, true);
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(Accepts(*whole, "cat sat"));
  EXPECT_FALSE(Accepts(*whole, "at sat"));
  // A long text: linear in its length.
  std::mt19937 random(3);
  std::string longer;
  while (longer.size() < 100'000) longer += static_cast<char>("abcdefgh \n"[random() % 10]);
  auto spans = compiler_.CompileSubstring(longer);
  ASSERT_TRUE(spans.ok()) << spans.error().ToString();
  EXPECT_TRUE(Accepts(*spans, longer));
  EXPECT_TRUE(Accepts(*spans, longer.substr(41'234, 20'000)));
  EXPECT_FALSE(Accepts(*spans, longer.substr(41'234, 2'000) + "#"));
  ASSERT_TRUE(spans->Start().Advance(longer.substr(500, 30))->mask()->count() > 0);
}

// Random texts against a list of their spans: what is accepted, masks, completions, and the same
// texts as a regex, of which combined grammars are made.
TEST_F(CombineTest, SpansOfRandomTexts) {
  constexpr char32_t kLetters[] = {U'a', U'b', U'1',      U'2',      U' ',      U' ',
                                   U'.', U'_', U'\u00e9', U'\u00ea', U'\u5b57', U'\U0001F600'};
  std::mt19937 random(5);
  const auto draw = [&](size_t length) {
    std::u32string out;
    for (; length > 0; --length) out += kLetters[random() % std::size(kLetters)];
    return out;
  };
  const auto is = [](char32_t c, std::u32string_view of) { return of.find(c) != of.npos; };
  const auto border = [&](const std::u32string& text, size_t at) {
    if (at == 0 || at == text.size()) return true;
    const char32_t before = text[at - 1], behind = text[at];
    if (is(before, U"ab12_\u00e9\u00ea") && is(behind, U"ab12_\u00e9\u00ea")) return false;
    if (is(before, U"12") && behind == '.' && at + 1 < text.size() && is(text[at + 1], U"12"))
      return false;
    return !(before == '.' && is(behind, U"12") && at > 1 && is(text[at - 2], U"12"));
  };
  const auto any = compiler_.CompileRegex("[^]*");
  ASSERT_TRUE(any.ok());
  for (int round = 0; round < 60; ++round) {
    const std::u32string text = draw(random() % 14);
    const bool whole = round % 2 == 0;
    std::set<std::u32string> spans = {U""}, tried = {draw(2), draw(3)};
    for (size_t begin = 0; begin < text.size(); ++begin) {
      for (size_t end = begin + 1; end <= text.size(); ++end) {
        tried.insert(text.substr(begin, end - begin));
        const bool words =
            border(text, begin) && border(text, end) && text[begin] != ' ' && text[end - 1] != ' ';
        if (!whole || words) spans.insert(text.substr(begin, end - begin));
      }
    }
    tried.insert(spans.begin(), spans.end());
    const auto grammar = compiler_.CompileSubstring(EncodeCodepoints(text), whole);
    ASSERT_TRUE(grammar.ok());
    const auto regex = Intersect(*grammar, *any);
    ASSERT_TRUE(regex.ok()) << regex.error().ToString();
    for (const std::u32string& one : tried) {
      const std::string bytes = EncodeCodepoints(one);
      EXPECT_EQ(Accepts(*grammar, bytes), spans.contains(one))
          << EncodeCodepoints(text) << "|" << bytes;
      EXPECT_EQ(Accepts(*regex, bytes), spans.contains(one))
          << EncodeCodepoints(text) << "|" << bytes;
    }
    Walk(*grammar, *grammar, "", "", random(), 8);
  }
}

// What takes the spans as a regex does so in seconds up to a million characters.
TEST_F(CombineTest, SpansOfATextThatIsTooLong) {
  const std::string text(1'000'001, 'a');
  const auto span = compiler_.CompileSubstring(text);
  ASSERT_TRUE(span.ok());
  const auto others = Complement(*span);
  ASSERT_FALSE(others.ok());
  EXPECT_EQ(others.error().code, ErrorCode::kLimit);
  EXPECT_EQ(others.error().ToString(), "the text is too long");
  const std::string bad = "ab\xFF";
  EXPECT_EQ(compiler_.CompileSubstring(bad).error().place, "byte 2");
}

// A grammar whose texts need tokens by name has completions that hold them.
TEST_F(CombineTest, CompletionsHoldTokens) {
  auto call =
      compiler_.CompileGrammar("start: \"ab\" <tool> /[0-9]{3}/ <tool>", GrammarLanguage::kLark);
  ASSERT_TRUE(call.ok()) << call.error().ToString();
  const State start = call->Start();
  EXPECT_FALSE(start.CompletionBytes());
  const auto parts = start.Completion();
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 4u);
  EXPECT_EQ((*parts)[0].bytes, "ab");
  EXPECT_EQ((*parts)[1].token, vocabulary_->size() - 1);
  const auto tokens = start.CompletionTokens();
  ASSERT_TRUE(tokens);
  State at = start;
  for (const TokenId token : *tokens) {
    const auto next = at.Advance(token);
    ASSERT_TRUE(next);
    at = *next;
  }
  EXPECT_TRUE(at.accepting());
  EXPECT_EQ(start.completion_length(), 6);
}

}  // namespace
}  // namespace pawl
