// Masks inside strings against Advance, token by token. The vocabulary is large enough for the walk
// over classes of characters (schemas/scalar/class_walk.cc), which small random ones never reach,
// and has all kinds of tokens that it treats apart.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_access.h"
#include "grammar/vocabulary_tables.h"
#include "pawl/compiler.h"
#include "schemas/scalar/class_trie.h"
#include "schemas/scalar/string_search.h"
#include "tests/schemas/property_generators.h"
#include "tests/support/vocabularies.h"

namespace pawl::property {
namespace {

std::shared_ptr<const Vocabulary> WideVocabulary() {
  Dice dice(5);
  std::vector<std::string> tokens = AllBytes();
  for (int number = 0; number < 1000; number += 1 + number / 100)
    tokens.push_back(std::to_string(number));
  const auto word = [&] {
    static const std::string_view kSyllables[] = {"a",   "b",   "to",  "zip", "tar", "foo", "No",
                                                  "r",   "mal", "Fi",  "ght", "x",   "in",  "q",
                                                  "dis", "al",  "low", "Z",   "e",   "com"};
    std::string out;
    for (size_t n = 1 + dice.Below(4); n > 0; --n) out += dice.Pick(kSyllables);
    return out;
  };
  const auto beyond = [&] {
    static const std::string_view kTexts[] = {"\u00e9",       "\u0430\u0431", "\u4e2d",
                                              "\u6587\u5b57", "\U0001F600",   "\u00df",
                                              "\u0130",       "\uFFFD"};
    return std::string(dice.Pick(kTexts));
  };
  const auto apart = [&] {
    static const std::string_view kSpaces[] = {"\u00a0", "\u1680", "\u2000", "\u200a",
                                               "\u2028", "\u2029", "\u202f", "\u205f",
                                               "\u3000", "\ufeff", "\u0085", "\u200b"};
    return std::string(dice.Pick(kSpaces));
  };
  const auto mark = [&] {
    static const std::string_view kMarks = " -_.,:/@#+*(){}[]<>%$&=;!?'|~^`\x7f";
    return std::string(1, dice.Pick(kMarks));
  };
  const auto cut = [&](std::string text) { return text.substr(0, text.size() - 1); };
  for (int i = 0; i < 2600; ++i) {
    const std::string plain = word();
    tokens.push_back(plain);
    tokens.push_back(" " + plain);
    if (i % 3 == 0) tokens.push_back(mark() + plain);
    if (i % 4 == 0) tokens.push_back(plain + mark() + word());
    if (i % 5 == 0) tokens.push_back(mark() + mark() + mark());
    if (i % 6 == 0) tokens.push_back(std::to_string(i % 97) + mark() + std::to_string(i % 13));
    if (i % 8 == 0) tokens.push_back(beyond() + beyond());
    if (i % 9 == 0) tokens.push_back(plain + beyond());
    if (i % 10 == 0) tokens.push_back(" " + beyond() + plain);
    if (i % 11 == 0) tokens.push_back(plain + cut(beyond()));
    if (i % 12 == 0) tokens.push_back(cut(apart()));
    if (i % 13 == 0) tokens.push_back(beyond().substr(1) + plain);
    if (i % 14 == 0) tokens.push_back(word() + apart() + mark());
    if (i % 15 == 0) tokens.push_back(plain + "\n");
    if (i % 16 == 0) tokens.push_back(plain + "\"");
    if (i % 17 == 0) tokens.push_back(mark() + "\": ");
    if (i % 18 == 0) tokens.push_back(plain + "\",\"" + word());
    if (i % 19 == 0) tokens.push_back(plain + "\\" + "\"\\/bfnrtu"[i % 9]);
    if (i % 40 == 0) tokens.push_back(beyond() + "\\u00" + (i % 80 == 0 ? "e9" : "1F") + plain);
  }
  for (const char* text : {"\"",
                           "\",",
                           "\":",
                           "\": ",
                           "\": \"",
                           "\"}",
                           "\"]",
                           "\\",
                           "\\\\",
                           "\\\"",
                           "\\u",
                           "\\u0",
                           "\\u00",
                           "\\u0041",
                           "\\u2028",
                           "\\ud83d",
                           "\\ud83d\\ude00",
                           "\\n\\n",
                           "\\\"a",
                           "a\\\\\"",
                           "\xE2",
                           "\xE2\x80",
                           "\xE2\x81",
                           "\xE3\x80",
                           "\xED",
                           "\xED\xA0\x80",
                           "\xC0\x80",
                           "\xE0\x80",
                           "\xF0\x9F",
                           "\xF4",
                           "\xF4\x8F",
                           "\xF4\x90",
                           "\xF8",
                           " \xE2\x80",
                           "a\xC2",
                           "\xEF\xBB"})
    tokens.push_back(text);
  return VocabularyOf(std::move(tokens));
}

// A token that keeps the string open, where one is found soon.
TokenId PickInside(Dice& dice, const Vocabulary& vocabulary, const std::vector<TokenId>& allowed) {
  TokenId token = dice.Pick(allowed);
  for (int i = 0; i < 8; ++i) {
    const bool closes = vocabulary.bytes(token).find('"') != std::string_view::npos;
    if (!closes && !vocabulary.is_end(token)) break;
    token = dice.Pick(allowed);
  }
  return token;
}

// The masks after `begun` and a few tokens more, on several paths.
void Check(const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& schema,
           const std::string& begun, uint64_t seed,
           int64_t step_fuel = JsonSchemaOptions().step_fuel) {
  for (const bool canonical : {true, false}) {
    Dice dice(seed * 2 + canonical);
    JsonSchemaOptions options;
    options.canonical_spelling = canonical;
    options.step_fuel = step_fuel;
    const auto grammar = Compiler(vocabulary).CompileJsonSchema(schema, options);
    ASSERT_TRUE(grammar.ok()) << schema << ": " << grammar.error().ToString();
    for (int way = 0; way < 2; ++way) {
      std::string text = begun;
      std::optional<State> state = grammar->Start().Advance(begun);
      ASSERT_TRUE(state.has_value()) << schema << " after " << begun;
      for (int step = 0; step < 3; ++step) {
        const auto mask = state->mask();
        for (TokenId token = 0; token < vocabulary->size(); ++token) {
          const bool expected =
              vocabulary->is_end(token) ? state->accepting() : state->Advance(token).has_value();
          ASSERT_EQ(mask->Allows(token), expected)
              << schema << (canonical ? " canonical" : "") << " after <<" << text << ">> token "
              << token << " <<" << vocabulary->bytes(token) << ">>";
        }
        // Looking for a way to an end must not change what was said before.
        state->Completion();
        ASSERT_EQ(state->mask(), mask);
        for (const TokenId token : mask->Tokens()) {
          ASSERT_TRUE(vocabulary->is_end(token) || state->Advance(token))
              << schema << " after a completion of <<" << text << ">> token " << token;
        }
        const std::vector<TokenId> allowed = mask->Tokens();
        if (allowed.empty()) break;
        const TokenId token = PickInside(dice, *vocabulary, allowed);
        state = state->Advance(token);
        if (!state) break;
        text += vocabulary->bytes(token);
      }
    }
  }
}

class StringWalkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { vocabulary_ = new auto(WideVocabulary()); }
  static void TearDownTestSuite() { delete vocabulary_; }
  static const std::shared_ptr<const Vocabulary>& vocabulary() { return *vocabulary_; }

 private:
  static const std::shared_ptr<const Vocabulary>* vocabulary_;
};
const std::shared_ptr<const Vocabulary>* StringWalkTest::vocabulary_ = nullptr;

TEST_F(StringWalkTest, Patterns) {
  uint64_t seed = 0;
  for (const std::string_view pattern :
       {// Loops over classes, counts, single marks.
        R"(^[a-z]+$)", R"(^[A-Za-z0-9]*$)", R"(^\\w+$)", R"(^[-a-zA-Z0-9_]{2,9}$)",
        R"(^[a-zA-Z0-9_\\-\\./]+$)", R"(^[a-z0-9]{8}-[a-z0-9]{4}$)", R"(^(\\w+ )*\\w+\\.$)",
        R"(^.{3,7}$)", R"(^[^/]+/[^/]+$)",
        // Letters of their own among the others.
        R"(^[a-f0-9 ]+$)", R"(^([a-z]+|[A-Z]{2,}x)$)", R"(^(foo|tar|[A-Z][a-z]+)+$)",
        R"(^(zip|[b-y ]+)$)", R"(^a[a-z ]*$|^ b.*$)", R"(^([bcdfghx]|[aeiou][^a])*$)",
        R"(^[ab]*[ \\w]*$)", R"(^( ?[A-Z][a-y]*)+$)",
        // Searches.
        R"(Normal|Fight|dis)", R"(^zip|tar$)", R"([\\w-]+:[0-9a-f-]+)", R"(\\d{4}-\\d{2})",
        R"(\\w+@(\\w+\\.)+\\w+)", R"(/.*/)", R"(.)", R"([^a]$)",
        // Look-ahead and word boundaries.
        R"(^(?!foo).*$)", R"(^(?!.*zip)[ -~]+$)", R"(^(?=.*\\d)(?=.*[a-z]).{4,}$)", R"(\\btar\\b)",
        // Spaces and characters beyond ASCII.
        R"(^\\S+$)", R"(^\\s*$)", R"(^\\S+( \\S+)*$)", R"(^[^\\s@]+@[^\\s@]+$)", R"(^.*$)",
        R"(^[\\u0430-\\u044f ]+$)", R"(^[\\p{L} ]+$)", R"(^\\P{Lu}*$)", R"(^[^\\u4e2d]*$)",
        R"(^[\\x00-\\x7f]*$)", R"(^[a-z\\u2000-\\u20ff\\u3000]*$)",
        R"(^[\\u00e9\\ud83d\\ude00a-z]+$)",
        // What JSON has to escape.
        R"(^[^\\n]*$)", R"(^[a-z\\n\\t]*$)", R"(^[^\"]*$)", R"(^(\\\\|[a-z])*$)",
        R"(^[a-z\"]*$)"}) {
    Check(vocabulary(), R"({"type":"string","pattern":")" + std::string(pattern) + "\"}", "\"",
          ++seed);
  }
}

TEST_F(StringWalkTest, OtherConditionsOnStrings) {
  uint64_t seed = 100;
  for (const std::string_view schema :
       {R"({"type":"string","format":"email"})", R"({"type":"string","format":"uri"})",
        R"({"type":"string","format":"date-time"})", R"({"type":"string","format":"hostname"})",
        R"({"type":"string","maxLength":6})", R"({"type":"string","minLength":3,"maxLength":9})",
        R"({"type":"string","pattern":"^[a-z ]*$","maxLength":5})",
        R"({"type":"string","pattern":"a","minLength":4})",
        R"({"not":{"pattern":"^[a-z]*$"},"type":"string"})",
        R"({"type":"string","not":{"enum":["foo","tar","atom"]}})",
        R"({"type":"string","anyOf":[{"pattern":"^[a-z]+$"},{"enum":["Normal","zip file"]}]})",
        R"({"type":"string","allOf":[{"pattern":"No"},{"pattern":"tar"}]})"}) {
    Check(vocabulary(), std::string(schema), "\"", ++seed);
  }
}

TEST_F(StringWalkTest, Keys) {
  uint64_t seed = 200;
  for (
      const std::string_view schema :
      {R"({"type":"object","patternProperties":{"Normal|Fight|tar":{}},"additionalProperties":false})",
       R"({"type":"object","patternProperties":{"^.*$":{"type":"string"}}})",
       R"({"type":"object","patternProperties":{"[al|dis]":{"type":"array"}}})",
       R"({"type":"object","patternProperties":{"^[a-z]{2}$":{"type":"number"}}})",
       R"({"type":"object","patternProperties":{"^x-":{"type":"number"}},)"
       R"("properties":{"foo":{},"tar":{},"zip":{}},"additionalProperties":false})",
       R"({"type":"object","propertyNames":{"pattern":"^[a-z ]+$"},)"
       R"("properties":{"foo":{"type":"null"},"No":{},"tartar":{"type":"string"}}})",
       R"({"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2})",
       R"({"type":"object","propertyNames":{"maxLength":4},"properties":{"low":true}})",
       R"({"type":"object","propertyNames":{"pattern":"^[^\\s]*$"},"maxProperties":2})"}) {
    for (const std::string_view begun : {"{\"", "{\"a\":1,\""}) {
      auto grammar = Compiler(vocabulary()).CompileJsonSchema(schema);
      ASSERT_TRUE(grammar.ok()) << schema;
      JsonSchemaOptions any;
      any.canonical_spelling = false;
      auto other = Compiler(vocabulary()).CompileJsonSchema(schema, any);
      if (!grammar->Start().Advance(begun) || !other->Start().Advance(begun)) continue;
      Check(vocabulary(), std::string(schema), std::string(begun), ++seed);
    }
  }
}

// Where no fuel is left to look ahead, each condition is asked by itself and states are not kept
// (StringSearch::Apart); what a mask allows is still what Advance takes.
TEST_F(StringWalkTest, ProductsWithoutFuel) {
  struct Case {
    const char *schema, *begun;
  };
  uint64_t seed = 300;
  for (const Case& c : {
           Case{R"j({"type":"string","allOf":[{"pattern":"(No|al)+"},{"pattern":"tar.*(x|q)"},
                   {"pattern":"^[^z]*(zip|[ab]{2,5})?$"},{"not":{"pattern":"low.*low"}}]})j",
                "\""},
           Case{R"j({"type":"string","oneOf":[{"pattern":"^[a-m]*(a|b)[a-z]{3}$"},
                   {"pattern":"o.*e"},{"pattern":"^[ -~]*dis"},{"pattern":"\\u4e2d|\\s"}]})j",
                "\"fo"},
           Case{R"j({"type":"object","patternProperties":{"a.*b":{"type":"null"},"^[a-z]+x":{},
                   "fo+.*\\d$":{"type":"number"},"[A-Z]r":{"type":"string"}},
                   "additionalProperties":false})j",
                "{\"fo"},
       }) {
    for (const int64_t fuel : {1, 8, 100}) Check(vocabulary(), c.schema, c.begun, ++seed, fuel);
  }
}

// Schemas of twelve conditions and more, whose product has hardly a state twice.
std::string ManyPatterns(const std::string& begin, const std::string& between,
                         const std::string& end) {
  static const std::string_view kPairs[] = {"f.{1}o", "t.{2}r", "z.*p",        "a.{3}l", "d.{1}s",
                                            "g.{2}t", "l.{1}w", "m.{1}l",      "o.{4}e", "No.*x",
                                            "q.{2}i", "r.{3}o", "\\u4e2d.{1}a"};
  std::string out = begin;
  for (size_t i = 0; i < std::size(kPairs); ++i) {
    const std::string pattern =
        "^.*" + std::string(kPairs[i]) + ".*" + (i % 4 == 3 ? "[a-z]$" : "$");
    out += (i == 0 ? "\"" : between + "\"") + pattern + "\"";
  }
  return out + end;
}

TEST_F(StringWalkTest, ManyPatternsWithoutFuel) {
  const std::string one_of =
      ManyPatterns(R"({"type":"string","oneOf":[{"pattern":)", R"(},{"pattern":)", "}]}");
  const std::string none_of =
      ManyPatterns(R"({"type":"string","allOf":[{"not":{"pattern":)", R"(}},{"not":{"pattern":)",
                   R"(}},{"pattern":"^[^#]*$"}]})");
  // Each ends as it must, so no text that goes on settles one.
  const std::string keys = ManyPatterns(
      R"({"type":"object","patternProperties":{"^.*xy$":{},)", R"(:{"type":"integer"},)",
      R"(:{"type":"null"}},"additionalProperties":{"type":"string"}})");
  uint64_t seed = 400;
  for (const int64_t fuel : {1, 30}) {
    for (const char* begun : {"\"", "\"foo", "\"zipto"})
      Check(vocabulary(), one_of, begun, ++seed, fuel);
    for (const char* begun : {"\"", "\"t\u2028", "\"za"})
      Check(vocabulary(), none_of, begun, ++seed, fuel);
    for (const char* begun : {"{\"", "{\"foto", "{\"a\":\"\",\""})
      Check(vocabulary(), keys, begun, ++seed, fuel);
  }
}

// Bug: the mask of each state of such a product took a walk over all tokens with all conditions.
TEST_F(StringWalkTest, ManyPatternsTakeFewSteps) {
  const auto nodes = TrieOf(*vocabulary()).size();
  JsonSchemaOptions options;
  options.step_fuel = 1;
  struct Case {
    std::string schema, begun;
  };
  for (const Case& c : {
           Case{ManyPatterns(R"({"type":"string","oneOf":[{"pattern":)", R"(},{"pattern":)", "}]}"),
                "\""},
           Case{ManyPatterns(R"({"type":"object","patternProperties":{"^.*xy$":{},)",
                             R"(:{"type":"integer"},)", R"(:{}}})"),
                "{\""},
       }) {
    const auto grammar = Compiler(vocabulary()).CompileJsonSchema(c.schema, options);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    const std::shared_ptr<Machine> machine = GrammarAccess::Of(*grammar).machine;
    std::optional<State> state = grammar->Start().Advance(c.begun);
    uint64_t steps = 0, masks = 0;
    const std::string text = "fat 1 boa 22 gin 333 hat dog 4444 ran big 55 mud cab 666 nine";
    for (size_t i = 0; i < text.size() && state; ++i) {
      const uint64_t before = machine->steps();
      state->mask();
      if (i >= text.size() / 2) {
        steps += machine->steps() - before;
        ++masks;
      }
      state = state->Advance(text.substr(i, 1));
    }
    ASSERT_TRUE(state.has_value()) << c.schema;
    EXPECT_LE(steps / masks, nodes / 3) << c.schema;
  }
}

// What was left undecided when the steps of all searches were spent counts as live, and stays that
// when a way to an end is looked for (bug: masks had allowed what Advance then refused).
TEST(StringSearchTest, LookingForAWayDecidesNothing) {
  schema::SchemaTable table;
  std::vector<schema::AtomId> atoms;
  for (const std::vector<std::u32string>& literals :
       {std::vector<std::u32string>{U"abcdefghijkl"}, {U"adxyz"}}) {
    schema::StringAtom atom;
    atom.type = schema::StringAtom::Type::kLiterals;
    atom.literals = literals;
    atoms.push_back(table.formulas.value(table.AddString(std::move(atom))));
  }
  std::sort(atoms.begin(), atoms.end());
  schema::StringProgram program(table, atoms);
  const auto first = [&](schema::StringSearch::StateId state) {
    return program.Literal(state, atoms[0]) == 0;
  };
  for (const bool spent : {false, true}) {
    table.spending->steps = 0;
    table.spending->max_steps = spent ? -1 : 1000000;
    table.spending->max_bytes = size_t{1} << 20;
    schema::StringSearch search(program, first, 80);
    const auto a = search.Next(program.start(), U'a');
    ASSERT_TRUE(a);
    EXPECT_EQ(search.Next(*a, U'd').has_value(), spent);
    search.Shortest(program.start(), 100);  // further than one search may look, not than all
    EXPECT_EQ(search.Next(*a, U'd').has_value(), spent);
  }
}

// Every token is plain, on the way of the intricate ones, or nowhere.
TEST_F(StringWalkTest, ClassesOfTokens) {
  const Vocabulary& v = *vocabulary();
  const auto& classes = TableOf<schema::ClassTrie>(v);
  std::vector<int> times(static_cast<size_t>(v.size()));
  for (const TokenId token : classes.order()) {
    ++times[static_cast<size_t>(token)];
    for (const char c : v.bytes(token))
      EXPECT_TRUE(static_cast<uint8_t>(c) >= 0x80 || schema::IsPlainAscii(static_cast<uint8_t>(c)));
  }
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), 1);
  EXPECT_GT(classes.order().size(), size_t{6000});
  for (const auto& [from, to] : std::vector<std::pair<size_t, size_t>>{
           {0, classes.order().size()}, {0, 1}, {5, 5000}, {700, 6000}, {100, 900}}) {
    std::vector<uint32_t> words(static_cast<size_t>(v.mask_words()));
    classes.SetBits(static_cast<uint32_t>(from), static_cast<uint32_t>(to), words.data());
    std::vector<uint32_t> expected(words.size());
    for (size_t i = from; i < to; ++i) {
      const auto token = static_cast<size_t>(classes.order()[i]);
      expected[token >> 5] |= 1u << (token & 31);
    }
    EXPECT_EQ(words, expected) << from << " to " << to;
  }
}

// The classes of ASCII characters are the numbers up to kCharClasses, each used.
TEST(CharClassTest, Ascii) {
  std::vector<int> members(schema::kCharClasses);
  for (int c = 0; c < 128; ++c) {
    if (schema::IsPlainAscii(static_cast<uint8_t>(c)))
      ++members.at(schema::ClassOfAscii(static_cast<uint8_t>(c)));
  }
  for (int like = 0; like < schema::kCharClasses; ++like) {
    const int expected = like < schema::kDigitClass     ? 26
                         : like == schema::kDigitClass  ? 10
                         : like == schema::kBeyondClass ? 0
                                                        : 1;
    EXPECT_EQ(members[static_cast<size_t>(like)], expected) << like;
  }
  for (char32_t lo = 0x80; lo < 0x3100; ++lo) {
    bool any = false;
    for (char32_t hi = lo; hi < lo + 20; ++hi) {
      any = any || schema::IsSetApart(hi);
      EXPECT_EQ(schema::AnySetApart(lo, hi), any)
          << static_cast<uint32_t>(lo) << " " << static_cast<uint32_t>(hi);
    }
  }
}

}  // namespace
}  // namespace pawl::property
