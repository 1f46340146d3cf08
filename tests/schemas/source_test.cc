// Fields that are copied from a text. An oracle lists all spans of a small text by trying each pair
// of places against the rules, and the grammar is asked for every one of them, and for texts that
// are none. Masks are compared with trying each token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "schemas/read/source_values.h"
#include "src/base/json.h"
#include "src/base/source_text.h"
#include "src/base/utf8.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr const char* kSpanSchema = R"({"type":"string","x-pawl-source":"span"})";

// The rules again, in another form: the text with white space as spans have it, and each pair of
// borders of it.
std::u32string PlainSpaces(const std::u32string& text) {
  std::u32string out;
  for (const char32_t c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

constexpr char32_t kMarkInTest = U'\uFE0F';

// A mark is of the word before it, or of the sign before it, or else a word.
bool IsWordInTest(const std::u32string& text, size_t at) {
  while (at > 0 && text[at] == kMarkInTest && text[at - 1] != ' ') --at;
  const char32_t c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || c == U'\u00e9' ||
         c == kMarkInTest;
}

bool IsBorderInTest(const std::u32string& text, size_t at) {
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  const auto mark = [&](size_t i) {
    const bool three = digit(i + 1) && digit(i + 2) && digit(i + 3) && !digit(i + 4);
    return text[i] == '.' || text[i] == ',' || (text[i] == '\'' && three);
  };
  if (at == 0 || at == text.size()) return true;
  if (IsWordInTest(text, at - 1) && IsWordInTest(text, at)) return false;
  if (text[at] == kMarkInTest && text[at - 1] != ' ') return false;
  const auto number = [&](size_t i) {
    while (i > 0 && text[i] == kMarkInTest) --i;
    return digit(i);
  };
  if (number(at - 1) && mark(at) && digit(at + 1)) return false;
  return !(at >= 2 && number(at - 2) && mark(at - 1) && digit(at));
}

std::set<std::u32string> SpansByBruteForce(const std::u32string& given, bool any) {
  const std::u32string text = PlainSpaces(given);
  std::set<std::u32string> out;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t end = begin + 1; end <= text.size(); ++end) {
      const bool borders = IsBorderInTest(text, begin) && IsBorderInTest(text, end) &&
                           text[begin] != ' ' && text[end - 1] != ' ';
      if (any || borders) out.insert(text.substr(begin, end - begin));
    }
  }
  return out;
}

class SourceTest : public ::testing::Test {
 protected:
  Grammar Bound(const std::string& schema, const std::string& text) {
    JsonSchemaOptions options = options_;
    options.source = text;
    Result<Grammar> grammar = compiler_.CompileJsonSchema(schema, options);
    EXPECT_TRUE(grammar.ok()) << schema << " " << text << ": " << grammar.error().ToString();
    return *std::move(grammar);
  }
  Error Fails(const std::string& schema, const std::string& text) {
    JsonSchemaOptions options = options_;
    options.source = text;
    Result<Grammar> grammar = compiler_.CompileJsonSchema(schema, options);
    EXPECT_FALSE(grammar.ok()) << schema;
    return grammar.ok() ? Error{} : grammar.error();
  }
  static bool Takes(const Grammar& grammar, const std::string& text) {
    const auto end = grammar.Start().Advance(text);
    return end && end->accepting();
  }
  // From random states: masks are what each token says, no state is a dead end, and the shortest
  // completion fits. The texts that were written.
  std::set<std::string> Walk(const Grammar& grammar, uint64_t seed, int walks) {
    std::set<std::string> texts;
    std::mt19937_64 random(seed);
    for (int i = 0; i < walks; ++i) {
      State state = grammar.Start();
      std::string text;
      for (int step = 0; step < 60 && !state.accepting(); ++step) {
        const auto mask = state.mask();
        std::vector<TokenId> allowed;
        for (TokenId token = 0; token < vocabulary_->size(); ++token) {
          if (token == vocabulary_->end_tokens()[0]) continue;
          const bool fits = state.Advance(token).has_value();
          EXPECT_EQ(mask->Allows(token), fits) << text << " + " << vocabulary_->bytes(token);
          if (fits) allowed.push_back(token);
        }
        const auto completion = state.CompletionBytes();
        EXPECT_TRUE(completion.has_value()) << text;
        if (allowed.empty() || !completion) {
          ADD_FAILURE() << "dead end after " << text;
          break;
        }
        const auto closed = state.Advance(*completion);
        EXPECT_TRUE(closed && closed->accepting()) << text << " + " << *completion;
        // What a budget of so many tokens ends with.
        std::optional<State> end = state;
        const auto closing = state.CompletionTokens();
        EXPECT_TRUE(closing.has_value()) << text;
        for (const TokenId token : closing.value_or(std::vector<TokenId>())) {
          if (end) end = end->Advance(token);
        }
        EXPECT_TRUE(end && end->accepting()) << text;
        if (closing) {
          EXPECT_EQ(static_cast<int>(closing->size()), state.completion_length());
        }
        const TokenId token = allowed[random() % allowed.size()];
        text += vocabulary_->bytes(token);
        state = *state.Advance(token);
      }
      if (state.accepting()) texts.insert(text);
    }
    return texts;
  }

  std::shared_ptr<const Vocabulary> vocabulary_ = VocabularyOf([] {
    std::vector<std::string> tokens = AllBytes();
    for (const char* token : {"ab", "a b", "12", ".5", "\"}", "\",", "b\"", "1.", "a\"}", " a",
                              "\xC3\xA9", "b\xC3", "\\\"", "null", "\":\"", "\":"})
      tokens.emplace_back(token);
    return tokens;
  }());
  Compiler compiler_{vocabulary_};
  JsonSchemaOptions options_ = [] {
    JsonSchemaOptions options;
    options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    return options;
  }();
};

std::u32string RandomSource(std::mt19937_64& random, size_t most) {
  constexpr char32_t kLetters[] = {U'a', U'b', U'1', U'2',  U' ',      U'\n',     U'.',
                                   U',', U'_', U'"', U'\\', U'\u00e9', U'\u5b57', kMarkInTest};
  std::u32string out;
  for (size_t n = 1 + random() % most; n > 0; --n) out += kLetters[random() % std::size(kLetters)];
  return out;
}

TEST_F(SourceTest, SpansAreThoseOfTheRules) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 150; ++i) {
    const std::u32string text = RandomSource(random, 12);
    for (const bool any : {false, true}) {
      const std::set<std::u32string> spans = SpansByBruteForce(text, any);
      if (spans.empty()) continue;
      const Grammar grammar =
          Bound(any ? R"({"type":"string","x-pawl-source":"chars"})" : kSpanSchema,
                EncodeCodepoints(text));
      std::set<std::u32string> tried = spans;
      for (const std::u32string& part : SpansByBruteForce(text, true)) tried.insert(part);
      for (int n = 0; n < 20; ++n) tried.insert(RandomSource(random, 3));
      for (const std::u32string& value : tried) {
        const std::string quoted = json::Quote(EncodeCodepoints(value));
        EXPECT_EQ(Takes(grammar, quoted), spans.contains(value))
            << EncodeCodepoints(text) << ": " << quoted;
      }
    }
  }
}

TEST_F(SourceTest, MasksAreWhatEachTokenSays) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 25; ++i) {
    options_.ascii = i % 5 == 1;
    options_.canonical_spelling = i % 5 != 2;
    const std::u32string text = U"ab 12.5 " + RandomSource(random, 25);
    const bool narrow = i % 2 == 1;
    const Grammar grammar = Bound(
        narrow ? R"({"type":"string","x-pawl-source":"span","pattern":"[b5é]$","maxLength":9})"
               : kSpanSchema,
        EncodeCodepoints(text));
    std::set<std::u32string> spans = SpansByBruteForce(text, false);
    std::erase_if(spans, [narrow](const std::u32string& span) {
      const bool ends = std::u32string_view(U"b5\u00e9").find(span.back()) != span.npos;
      return narrow && !(ends && span.size() <= 9);
    });
    for (const std::string& written : Walk(grammar, random(), 4)) {
      const auto value = json::Parse(written);
      ASSERT_TRUE(value.ok()) << written;
      EXPECT_TRUE(spans.contains(DecodeCodepoints(value->text))) << written;
    }
  }
}

TEST_F(SourceTest, ConditionsHoldOfTheSpan) {
  const std::string text = "ab 12.5 a-b, 1 é a_b (b 2) 字字";
  const std::set<std::u32string> spans = SpansByBruteForce(DecodeCodepoints(text), false);
  struct Case {
    const char* keywords;
    bool (*fits)(const std::u32string&);
  };
  const Case cases[] = {
      {R"("minLength":3,"maxLength":5)",
       [](const std::u32string& s) { return s.size() >= 3 && s.size() <= 5; }},
      {R"("pattern":"^[0-9]+$")",
       [](const std::u32string& s) { return s.find_first_not_of(U"0123456789") == s.npos; }},
      {R"("enum":["ab","b","x","a_b","12"])",
       [](const std::u32string& s) { return s == U"ab" || s == U"b" || s == U"x" || s == U"a_b"; }},
      {R"("pattern":"b$","maxLength":4)",
       [](const std::u32string& s) { return s.back() == 'b' && s.size() <= 4; }},
  };
  for (const Case& one : cases) {
    const Grammar grammar = Bound(
        std::string(R"({"type":"string","x-pawl-source":"span",)") + one.keywords + "}", text);
    size_t expected = 0;
    for (const std::u32string& span : SpansByBruteForce(DecodeCodepoints(text), true)) {
      const bool fits = spans.contains(span) && one.fits(span);
      expected += fits ? 1 : 0;
      EXPECT_EQ(Takes(grammar, json::Quote(EncodeCodepoints(span))), fits)
          << one.keywords << " " << EncodeCodepoints(span);
    }
    EXPECT_GT(expected, 0u);
    Walk(grammar, 3, 6);
  }
}

TEST_F(SourceTest, ObjectsAndListsCloseFromEveryState) {
  const std::string text = "Ann, Bob and Cy paid 12.5 on 2024-03-05";
  const Grammar grammar = Bound(
      R"({"type":"object","properties":{
          "who":{"type":"array","items":{"type":"string","x-pawl-source":"span","maxLength":4},
                 "uniqueItems":true,"minItems":2,"maxItems":3},
          "sum":{"type":["number","null"],"x-pawl-source":"span"},
          "day":{"type":"string","format":"date","x-pawl-source":"span"},
          "mail":{"type":["string","null"],"pattern":"@","x-pawl-source":"span"}},
          "required":["who","sum","day","mail"],"additionalProperties":false})",
      text);
  for (const std::string& written : Walk(grammar, 5, 8)) {
    const auto value = json::Parse(written);
    ASSERT_TRUE(value.ok()) << written;
    EXPECT_EQ(value->Find("day")->text, "2024-03-05");
    EXPECT_EQ(value->Find("mail")->type, json::Type::kNull);  // no span has an @
  }
  EXPECT_TRUE(Takes(grammar, R"({"who":["Ann","Bob"],"sum":12.5,"day":"2024-03-05","mail":null})"));
  EXPECT_FALSE(
      Takes(grammar, R"({"who":["Ann","Ann"],"sum":12.5,"day":"2024-03-05","mail":null})"));
  EXPECT_FALSE(Takes(grammar, R"({"who":["Ann","Bob"],"sum":12,"day":"2024-03-05","mail":null})"));
}

// A field of a random schema, and what its values have to be.
struct RandomField {
  std::string schema;
  std::function<bool(const json::Value&)> fits;
  bool can_be = true;  // some value other than null fits
};

std::vector<RandomField> FieldsFor(const std::u32string& text) {
  const auto spans =
      std::make_shared<const std::set<std::u32string>>(SpansByBruteForce(text, false));
  const auto chars =
      std::make_shared<const std::set<std::u32string>>(SpansByBruteForce(text, true));
  const auto numbers = schema::NumbersIn(PlainSpaces(text));
  const auto string_of = [](const json::Value& value) { return DecodeCodepoints(value.text); };
  const auto is_string = [](const json::Value& v) { return v.type == json::Type::kString; };
  const auto any = [](const auto& all, const auto& fits) {
    return std::any_of(all->begin(), all->end(), fits);
  };
  const auto short_span = [](const std::u32string& s) { return s.size() <= 3; };
  const auto begins = [](const std::u32string& s) { return s[0] == 'a' || s[0] == '1'; };
  const auto listed = [](const std::u32string& s) { return s == U"ab" || s == U"1" || s == U"zz"; };
  const auto is_number = [numbers](const json::Value& value) {
    const Result<Decimal> number = Decimal::Parse(value.text);
    return number.ok() &&
           std::ranges::any_of(numbers, [&](const auto& one) { return one.value == *number; });
  };
  const auto is_null = [](const json::Value& value) { return value.type == json::Type::kNull; };
  const auto span_that = [=](const auto& fits) {
    return [=](const json::Value& v) {
      return is_string(v) && spans->contains(string_of(v)) && fits(string_of(v));
    };
  };
  const auto always = [](const std::u32string&) { return true; };
  const std::string span = R"({"x-pawl-source":"span",)";
  return {
      {span + R"("type":"string"})", span_that(always), !spans->empty()},
      {span + R"("type":"string","maxLength":3})", span_that(short_span), any(spans, short_span)},
      {R"({"type":"string","x-pawl-source":"chars","maxLength":4})",
       [=](const json::Value& v) {
         return is_string(v) && chars->contains(string_of(v)) && string_of(v).size() <= 4;
       },
       !chars->empty()},
      {span + R"("type":["string","null"],"pattern":"^[a1]"})",
       [=](const json::Value& v) { return is_null(v) || span_that(begins)(v); }},
      {span + R"("enum":["ab","1","zz"]})", span_that(listed), any(spans, listed)},
      {span + R"("type":"number"})", is_number, !numbers.empty()},
      {span + R"("type":["integer","null"]})",
       [=](const json::Value& v) { return is_null(v) || is_number(v); }},
      {R"({"type":"array","maxItems":2,"uniqueItems":true,"items":)" + span +
           R"("type":"string"}})",
       [=](const json::Value& v) {
         return std::ranges::all_of(v.items, span_that(always)) &&
                (v.items.size() < 2 || v.items[0].text != v.items[1].text);
       }},
      {R"({"type":"boolean"})", [](const json::Value& value) { return value.is_bool(); }},
  };
}

// The bar of 1,000 schemas and texts: scripts/verbatim_bar.sh sets their number.
TEST_F(SourceTest, RandomSchemasAndTexts) {
  const char* const asked = std::getenv("PAWL_SOURCE_CASES");
  const int cases = asked != nullptr ? std::atoi(asked) : 12;
  std::mt19937_64 random(9);
  int bound = 0, values = 0;
  for (int i = 0; i < cases; ++i) {
    options_.ascii = random() % 4 == 0;
    options_.canonical_spelling = random() % 4 != 0;
    options_.keys =
        random() % 2 == 0 ? JsonSchemaOptions::Keys::kAll : JsonSchemaOptions::Keys::kRequired;
    options_.additional_properties = false;
    options_.bind_source = true;
    const std::u32string text = RandomSource(random, 30);
    const std::vector<RandomField> fields = FieldsFor(text);
    std::map<std::string, const RandomField*> chosen;
    std::string properties, required;
    bool possible = true;
    for (size_t n = 1 + random() % 3; chosen.size() < n;) {
      const RandomField& field = fields[random() % fields.size()];
      const std::string key(1, static_cast<char>('p' + chosen.size()));
      properties += (chosen.empty() ? "\"" : ",\"") + key + "\":" + field.schema;
      if (random() % 2 == 0) {
        required += (required.empty() ? "\"" : ",\"") + key + "\"";
        possible = possible && field.can_be;
      }
      chosen[key] = &field;
    }
    const std::string schema =
        R"({"type":"object","properties":{)" + properties + R"(},"required":[)" + required + "]}";
    const Result<Grammar> unbound = compiler_.CompileJsonSchema(schema, options_);
    ASSERT_TRUE(unbound.ok()) << schema << unbound.error().ToString();
    const Result<Grammar> grammar = unbound->Bind(EncodeCodepoints(text));
    ASSERT_EQ(grammar.ok(), possible) << schema << " " << EncodeCodepoints(text);
    if (!grammar.ok()) continue;
    ++bound;
    for (const std::string& written : Walk(*grammar, random(), 2)) {
      const auto record = json::Parse(grammar->Record(written));
      ASSERT_TRUE(record.ok()) << written;
      for (const json::Member& member : record->members) {
        ++values;
        const bool left_out = options_.keys == JsonSchemaOptions::Keys::kAll &&
                              member.second.type == json::Type::kNull;
        EXPECT_TRUE(left_out || chosen.at(member.first)->fits(member.second))
            << schema << " " << EncodeCodepoints(text) << ": " << written;
      }
    }
  }
  EXPECT_GT(bound, cases / 3);
  EXPECT_GT(values, cases / 2);
}

// A word that is most of the text, at each of whose characters the nearest end is asked for.
TEST_F(SourceTest, NearestEndsOfALongWordTakeNoWalk) {
  std::string text(200'000, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * i % 25);
  SourceText source(text + " end");
  SourceText::Occurrences at = source.All(SpanKind::kSpan);
  for (size_t i = 0; i < text.size(); ++i) {
    at = source.Next(SpanKind::kSpan, at, static_cast<char32_t>(text[i]));
    ASSERT_EQ(source.Nearest(SpanKind::kSpan, at).missing, text.size() - i - 1);
  }
}

// Many places go on alike, so that not each of them is looked at.
TEST_F(SourceTest, BeginningsWithManyPlaces) {
  std::mt19937_64 random(11);
  std::u32string text;
  while (text.size() < 4'000) text += U"aab1122.,' "[random() % 11];
  SourceText source(EncodeCodepoints(text));
  const std::u32string_view read = source.text();
  for (int walk = 0; walk < 60; ++walk) {
    SourceText::Occurrences at = source.All(SpanKind::kSpan);
    std::u32string value;
    while (!at.empty() && value.size() < 8) {
      std::vector<char32_t> following;
      source.ForFollowing(SpanKind::kSpan, at, [&](char32_t c, const SourceText::Occurrences& of) {
        EXPECT_EQ(of, source.Next(SpanKind::kSpan, at, c));
        following.push_back(c);
      });
      if (following.empty()) break;
      value += following[random() % following.size()];
      at = source.Next(SpanKind::kSpan, at, value.back());
      EXPECT_EQ(at, source.After(SpanKind::kSpan, source.All(SpanKind::kSpan), value));
      bool ends = false;
      size_t nearest = SIZE_MAX;
      for (size_t i = read.find(value); i != read.npos; i = read.find(value, i + 1)) {
        if (!source.BeginsAt(SpanKind::kSpan, i)) continue;
        size_t end = i + value.size();
        ends = ends || source.EndsAt(SpanKind::kSpan, end);
        while (!source.EndsAt(SpanKind::kSpan, end)) ++end;
        nearest = std::min(nearest, end - i - value.size());
      }
      EXPECT_EQ(source.EndsSpan(SpanKind::kSpan, at), ends) << EncodeCodepoints(value);
      EXPECT_EQ(source.Nearest(SpanKind::kSpan, at).missing, nearest) << EncodeCodepoints(value);
    }
  }
  const SourceText::Occurrences all = source.All(SpanKind::kSpan);
  EXPECT_TRUE(source.After(SpanKind::kSpan, all, std::u32string(read) + U"a").empty());
  EXPECT_FALSE(source.After(SpanKind::kSpan, all, read).empty());
}

// The rest of a long word is copied, and spelled once.
TEST_F(SourceTest, LongWordsCloseAtTheirEnd) {
  std::string word;
  for (size_t i = 0; i < 3'000; ++i) word += static_cast<char>('a' + i * i % 25);
  options_.bind_source = true;
  const Result<Grammar> schema = compiler_.CompileJsonSchema(
      R"({"type":"object","properties":{"a":)" + std::string(kSpanSchema) +
          R"(,"b":{"type":"boolean"}},"required":["a","b"],"additionalProperties":false})",
      options_);
  ASSERT_TRUE(schema.ok()) << schema.error().ToString();
  const Result<Grammar> grammar = schema->Bind(word + "\u00e9\" end");
  ASSERT_TRUE(grammar.ok());
  for (const size_t read : {1, 2, 700, 1'500, 2'999, 3'000}) {
    const auto state = grammar->Start().Advance("{\"a\":\"" + word.substr(0, read));
    ASSERT_TRUE(state);
    const std::string rest = word.substr(read) + "\u00e9\",\"b\":true}";
    const auto bytes = state->CompletionBytes();
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->substr(0, bytes->find(':')), rest.substr(0, rest.find(':')));
    EXPECT_EQ(*state->CompletionTokens(), vocabulary_->FewestTokens(*bytes));
  }
}

TEST_F(SourceTest, ErrorsNameTheKeyword) {
  const auto error = [&](const std::string& schema) { return Fails(schema, "some text 1"); };
  EXPECT_EQ(error(R"({"properties":{"a":{"x-pawl-source":"words"}}})").ToString(),
            R"(#/properties/a/x-pawl-source: must be "span" or "chars")");
  for (const char* type : {R"("array")", R"("boolean")", R"(["object","null"])"}) {
    const Error wrong = error(R"({"type":)" + std::string(type) + R"(,"x-pawl-source":"span"})");
    EXPECT_EQ(wrong.place, "#/x-pawl-source") << type;
    EXPECT_EQ(wrong.message, "is for strings, numbers and dates");
  }
  EXPECT_EQ(error(R"({"not":{"x-pawl-source":"span"}})").place, "#/not/x-pawl-source");
  EXPECT_EQ(error(R"({"if":{"x-pawl-source":"span"},"then":{}})").place, "#/if/x-pawl-source");
  EXPECT_EQ(error(R"({"propertyNames":{"x-pawl-source":"span"}})").code, ErrorCode::kUnsupported);
  EXPECT_EQ(error(R"({"not":{"$ref":"#/$defs/s"},"$defs":{"s":{"x-pawl-source":"span"}}})").place,
            "#/$defs/s/x-pawl-source");
  const Error none = Fails(R"({"type":"object","properties":{"a":{"type":"string"},
      "b":{"type":"string","pattern":"@","x-pawl-source":"span"}},"required":["a","b"]})",
                           "no such span");
  EXPECT_EQ(none.code, ErrorCode::kUnsatisfiable);
  EXPECT_EQ(none.place, "#/properties/b/x-pawl-source");
  const Error few = Fails(R"({"type":"array","minItems":3,"uniqueItems":true,"items":)" +
                              std::string(kSpanSchema) + "}",
                          "ab");
  EXPECT_NE(few.message.find("uniqueItems"), std::string::npos) << few.message;
  options_.verbatim = JsonSchemaOptions::Verbatim::kStrings;
  const Error of_option = Fails(R"({"properties":{"b":{"type":"string","pattern":"@"}},)"
                                R"("required":["b"],"type":"object"})",
                                "no such span");
  EXPECT_EQ(of_option.place, "#/properties/b");
  EXPECT_NE(of_option.message.find("verbatim"), std::string::npos) << of_option.message;
  options_.verbatim = JsonSchemaOptions::Verbatim::kNone;
  const Result<Grammar> unbound = compiler_.CompileJsonSchema(kSpanSchema);
  ASSERT_FALSE(unbound.ok());
  EXPECT_EQ(unbound.error().place, "#/x-pawl-source");
}

// A validator takes the keyword for an annotation: a date is of both branches, whatever the text.
TEST_F(SourceTest, OneOfExcludesWhatAValidatorSees) {
  const Grammar grammar = Bound(
      R"({"oneOf":[{"type":"string","format":"date","x-pawl-source":"span"},
                   {"type":"string","x-pawl-source":"span"}]})",
      "Due 03/05/2024 for Ann");
  EXPECT_FALSE(Takes(grammar, R"("2024-03-05")"));
  EXPECT_TRUE(Takes(grammar, R"("Ann")"));
  EXPECT_FALSE(Takes(grammar, R"("Bob")"));
}

TEST_F(SourceTest, NumbersWithoutATypeAreOfTheText) {
  const Grammar one = Bound(R"({"enum":[999,7,"Acme","Bob"],"x-pawl-source":"span"})", "Acme 7");
  EXPECT_TRUE(Takes(one, "7"));
  EXPECT_TRUE(Takes(one, R"("Acme")"));
  EXPECT_FALSE(Takes(one, "999"));
  EXPECT_FALSE(Takes(one, R"("Bob")"));
}

TEST_F(SourceTest, OneCompilationServesManyTexts) {
  options_.bind_source = true;
  const Result<Grammar> schema = compiler_.CompileJsonSchema(kSpanSchema, options_);
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->unbound(), "#/x-pawl-source");
  for (const char* text : {"one two", "three"}) {
    const Result<Grammar> bound = schema->Bind(text);
    ASSERT_TRUE(bound.ok());
    EXPECT_EQ(bound->unbound(), "");
    EXPECT_EQ(Takes(*bound, R"("two")"), std::string(text) == "one two");
    EXPECT_EQ(Takes(*bound, R"("three")"), std::string(text) == "three");
  }
  for (const char* text : {"", " \n"})
    EXPECT_EQ(schema->Bind(text).error().code, ErrorCode::kUnsatisfiable);
  // A schema without such fields is bound to every text.
  const Result<Grammar> plain = compiler_.CompileJsonSchema("{}", options_);
  EXPECT_EQ(plain->unbound(), "");
  EXPECT_TRUE(Takes(*plain->Bind("text"), "1"));
}

// The bug: before there was a text it was said to have no span.
TEST_F(SourceTest, ContradictionsNeedNoText) {
  options_.bind_source = true;
  const Result<Grammar> made = compiler_.CompileJsonSchema(
      R"({"type":"object","properties":{"a":{"type":"string","x-pawl-source":"span","minLength":4,)"
      R"("pattern":"^.{3}$"}},"required":["a"]})",
      options_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().ToString(),
            "#/properties/a/x-pawl-source: no value can ever fit this field");
}

// The bug: an alternative for which the text has no span made the whole grammar an error.
TEST_F(SourceTest, AlternativesWithoutASpanFitNothing) {
  GrammarOptions options;
  options.json_schema = options_;
  options.json_schema.bind_source = true;
  const std::string schema = R"({"type":"string","x-pawl-source":"span","pattern":"^ORD-[0-9]+$"})";
  const auto lark = [&](const std::string& start) {
    return compiler_.CompileGrammar("start: " + start + " %json " + schema + "\n",
                                    GrammarLanguage::kLark, options);
  };
  const Result<Grammar> either = lark(R"("no" | "v=")");
  ASSERT_TRUE(either.ok()) << either.error().ToString();
  for (const bool has : {false, true}) {
    const Result<Grammar> bound = either->Bind(has ? "see ORD-12." : "hello");
    ASSERT_TRUE(bound.ok()) << bound.error().ToString();
    EXPECT_TRUE(Takes(*bound, "no"));
    EXPECT_EQ(Takes(*bound, "v=\"ORD-12\""), has);
    EXPECT_FALSE(bound->Bind("again").ok());
    Matcher matcher(*bound);
    EXPECT_EQ(matcher.AcceptBytes("v"), has);
  }
  const Result<Grammar> only = lark(R"("v=")");
  ASSERT_TRUE(only.ok());
  const Result<Grammar> none = only->Bind("hello");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().ToString().find("no span of the text fits"), std::string::npos);
  const Result<Grammar> tag = compiler_.CompileStructuralTag(
      R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f>"],"tags":[)"
      R"({"begin":"<f>","content":{"type":"json_schema","json_schema":)" +
          schema + R"(},"end":"</f>"}]}})",
      options);
  ASSERT_TRUE(tag.ok()) << tag.error().ToString();
  const Result<Grammar> bound = tag->Bind("hello");
  ASSERT_TRUE(bound.ok()) << bound.error().ToString();
  EXPECT_TRUE(Takes(*bound, "a < b"));
  EXPECT_FALSE(Matcher(*bound).AcceptBytes("<f>"));
  // What fits no text is an error all the same.
  options.json_schema.bind_source = false;
  options.json_schema.source = "hello";
  EXPECT_EQ(compiler_
                .CompileGrammar(
                    R"(start: "no" | %json {"type":"string","x-pawl-source":"span","enum":[1]})",
                    GrammarLanguage::kLark, options)
                .error()
                .code,
            ErrorCode::kUnsatisfiable);
}

// The bug: records of chunks were merged by a grammar that waits for its text, which refused the
// numbers and strings of the text that are longer than the bounds of canonical spelling.
TEST_F(SourceTest, AGrammarThatWaitsForItsTextHasNoBoundsOfSpelling) {
  const char* schema = R"({"type":"array","items":{"type":["number","string"],
    "x-pawl-source":"span"}})";
  const std::string text = "123456789012345678901234567890 and a-long-name";
  JsonSchemaOptions options = options_;
  options.max_string = 4;
  options.bind_source = true;
  const Grammar waits = *compiler_.CompileJsonSchema(schema, options);
  const Grammar bound = *waits.Bind(text);
  for (const char* value : {"[123456789012345678901234567890]", R"(["and a-long-name"])"}) {
    EXPECT_TRUE(Takes(bound, value)) << value;
    EXPECT_TRUE(Takes(waits, value)) << value;
  }
  // Without such a field the bounds hold.
  const Grammar other =
      *compiler_.CompileJsonSchema(R"({"type":"array","items":{"type":"number"}})", options);
  EXPECT_FALSE(Takes(other, "[123456789012345678901234567890]"));
}

TEST_F(SourceTest, VerbatimMakesFieldsSpans) {
  const std::string schema = R"({"type":"object","properties":{"name":{"type":"string"},
      "kind":{"enum":["x"]},"n":{"type":"integer"}},"required":["name","kind","n"],
      "additionalProperties":false})";
  options_.verbatim = JsonSchemaOptions::Verbatim::kStrings;
  const Grammar strings = Bound(schema, "Ann has 3");
  EXPECT_TRUE(Takes(strings, R"({"name":"Ann","kind":"x","n":7})"));
  EXPECT_FALSE(Takes(strings, R"({"name":"An","kind":"x","n":7})"));
  options_.verbatim = JsonSchemaOptions::Verbatim::kAll;
  const Grammar all = Bound(schema, "Ann has 3");
  EXPECT_TRUE(Takes(all, R"({"name":"Ann","kind":"x","n":3})"));
  EXPECT_FALSE(Takes(all, R"({"name":"Ann","kind":"x","n":7})"));
}

TEST_F(SourceTest, MaxStringCutsNoSpan) {
  options_.max_string = 3;
  EXPECT_TRUE(Takes(Bound(kSpanSchema, "a long span"), R"("a long span")"));
}

TEST_F(SourceTest, PlacesLeadBackToTheTextAsItCame) {
  SourceText source("  Invoice\n\n 7  from é");
  const auto found = source.Find(SpanKind::kSpan, U"7 from");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(source.CharacterAt(found[0]), 12u);
  EXPECT_EQ(source.CharacterBehind(found[0] + 6), 19u);
  EXPECT_TRUE(source.Find(SpanKind::kSpan, U"rom").empty());
  EXPECT_EQ(source.Find(SpanKind::kChars, U"o").size(), 2u);
}

// A text that repeats itself takes linear time, and about 17 bytes a character.
TEST_F(SourceTest, LongTextsThatRepeatThemselves) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "a ";
  SourceText source(text);
  EXPECT_EQ(source.Find(SpanKind::kSpan, U"a a a").size(), 199'998u);
  EXPECT_LT(source.MemoryBytes(), 20 * text.size());
}

// The tables of docs/extraction.md.
TEST_F(SourceTest, NumbersOfTheTable) {
  const std::map<std::u32string, std::vector<std::string>> rows = {
      {U"7", {"7"}},
      {U"-7", {"-7", "7"}},
      {U"+7", {"7"}},
      {U"12.5", {"12.5"}},
      {U"12,5", {"12.5"}},
      {U"1240", {"1240"}},
      {U"1,240", {"1.24", "1240"}},
      {U"1.240", {"1.24", "1240"}},
      {U"1,240.50", {"1240.5"}},
      {U"1.240,50", {"1240.5"}},
      {U"1'240", {"1240"}},
      {U"1_240", {"1240"}},
      {U"1 240", {"1", "240", "1240"}},
      {U"1,240,000", {"1240000"}},
      {U"$30.", {"30"}},
      {U"A4", {}},
      {U"007", {"7"}},
      {U".5", {}},
      {U"10,20,30", {}},
      {U"10, 20", {"10", "20"}},
      {U"10-20", {"10", "20"}},
      {U"\u0663\u0660", {}},
      {U"No.5", {"5"}},
      {U"6.02e23", {}},
      {U"5'11\"", {"5", "11"}},
      {U"5\u201911", {"5", "11"}},
      {U"1\u2019240", {"1240"}},
      {U"9 and\u20135", {"9", "5"}},
      {U"EUR30", {"30"}},
      {U"USD1,240.50", {"1240.5"}},
      {U"5\u0308.12", {"5"}},
      {U"XEUR30, EUX30, eur30", {}},
  };
  for (const auto& [text, values] : rows) {
    std::set<std::string> expected(values.begin(), values.end()), found;
    for (const auto& one : schema::NumbersIn(text)) found.insert(one.value.ToString());
    std::set<std::string> canonical;
    for (const std::string& value : expected) canonical.insert(Decimal::Parse(value)->ToString());
    EXPECT_EQ(found, canonical) << EncodeCodepoints(text);
  }
}

TEST_F(SourceTest, LongRunsOfDigitsAreNoNumber) {
  const auto count = [](const std::u32string& text) { return schema::NumbersIn(text).size(); };
  EXPECT_EQ(count(std::u32string(1001, U'7')), 0u);
  EXPECT_EQ(count(std::u32string(1000, U'7')), 1u);
  EXPECT_EQ(count(U"0." + std::u32string(1500, U'0')), 0u);
  EXPECT_EQ(count(U"0." + std::u32string(1500, U'0') + U"1"), 0u);
  // Each of the groups is one, and those of at most 30 digits together.
  for (const char32_t mark : {U' ', U'\u00A0', U','}) {
    std::u32string column;
    for (char32_t i = 0; i < 5000; ++i) column += {U'1' + i % 9, U'2', U'3', mark};
    const auto found = schema::NumbersIn(column);
    EXPECT_LE(found.size(), 2u * 5000);
    EXPECT_EQ(found.empty(), mark == ',');
    for (const auto& one : found) EXPECT_LE(one.value.digits().size(), 30u);
    options_.source = EncodeCodepoints(column);
    const auto grammar = compiler_.CompileJsonSchema(
        R"({"type":["number","null"],"x-pawl-source":"span"})", options_);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    EXPECT_EQ(Takes(*grammar, "423"), mark != ',');
    EXPECT_TRUE(Takes(*grammar, "null"));
  }
}

TEST_F(SourceTest, DatesOfTheTable) {
  struct Row {
    const char32_t* text;
    const char* format;
    std::set<std::string> values;
  };
  const Row rows[] = {
      {U"2024-03-05", "date", {"2024-03-05"}},
      {U"2024/03/05", "date", {"2024-03-05"}},
      {U"25.12.2024", "date", {"2024-12-25"}},
      {U"03/05/2024", "date", {"2024-03-05", "2024-05-03"}},
      {U"5 March 2024", "date", {"2024-03-05"}},
      {U"March 5, 2024", "date", {"2024-03-05"}},
      {U"Mar. 5th 2024", "date", {"2024-03-05"}},
      {U"the 5th of March 2024", "date", {"2024-03-05"}},
      {U"5 Sept 24", "date", {"1924-09-05", "2024-09-05"}},
      {U"30.02.2024", "date", {}},
      {U"05 03 2024", "date", {"2024-03-05", "2024-05-03"}},
      {U"25 12 2024", "date", {"2024-12-25"}},
      {U"12 25 2024", "date", {"2024-12-25"}},
      {U"2024 03 05", "date", {"2024-03-05"}},
      {U"5, 3, 2024 and 5 of 3 2024", "date", {}},
      {U"March the 5th, 2024", "date", {"2024-03-05"}},
      {U"5th March '24", "date", {"1924-03-05", "2024-03-05"}},
      {U"'24 March 5, 5 '24 March", "date", {}},
      {U"14:05", "time", {"14:05:00Z"}},
      {U"2:05 pm", "time", {"14:05:00Z"}},
      {U"2.05 p.m.", "time", {"14:05:00Z"}},
      {U"12 am", "time", {"00:00:00Z"}},
      {U"midnight", "time", {"00:00:00Z"}},
      {U"12 pm", "time", {"12:00:00Z"}},
      {U"At noon, not afternoon", "time", {"12:00:00Z"}},
      {U"14:05:30 +0200", "time", {"14:05:30+02:00"}},
      {U"14:05:30 GMT+2", "time", {"14:05:30+02:00"}},
      {U"14:05 UTC-03:30", "time", {"14:05:00-03:30"}},
      {U"14:05 GMT+5:30", "time", {"14:05:00+05:30"}},
      {U"14:05 UTC+5:45", "time", {"14:05:00+05:45"}},
      {U"14:05 GMT-3:30", "time", {"14:05:00-03:30"}},
      {U"14:05 UTC+530", "time", {"14:05:00+05:30"}},
      {U"14:05 UTC +2", "time", {"14:05:00+02:00"}},
      {U"14:05 UTC - 15:00 UTC", "time", {"14:05:00Z", "15:00:00Z"}},
      {U"14:05 (CET)", "time", {"14:05:00+01:00"}},
      {U"14:05 (GMT+2)", "time", {"14:05:00+02:00"}},
      {U"14:05 (CET or so)", "time", {"14:05:00Z"}},
      {U"noon EST", "time", {"12:00:00-05:00"}},
      {U"noon, midnight (UTC+1)", "time", {"12:00:00Z", "00:00:00+01:00"}},
      {U"14:05 CET", "time", {"14:05:00+01:00"}},
      {U"2 pm EST.", "time", {"14:00:00-05:00"}},
      {U"14:05 CETI, 15:05 est", "time", {"14:05:00Z", "15:05:00Z"}},
      {U"14:05 UTC", "time", {"14:05:00Z"}},
      {U"14:05 IST", "time", {"14:05:00Z"}},
      {U"9 am\u20135 pm", "time", {"09:00:00Z", "17:00:00Z"}},
      {U"Tue, 5 Mar 2024 14:05:30 GMT", "date-time", {"2024-03-05T14:05:30Z"}},
      {U"9:00-17:00", "time", {"09:00:00Z", "17:00:00Z"}},
      {U"9:00-07:00", "time", {"09:00:00Z", "07:00:00Z", "09:00:00-07:00"}},
      {U"14:05:30-07:00", "time", {"14:05:30-07:00"}},
      {U"11.10 pm is 2.5 h, 3.10 is not", "time", {"23:10:00Z"}},
      {U"14:05-ish +4912345", "time", {"14:05:00Z"}},
      {U"14:05:30+02:00", "time", {"14:05:30+02:00"}},
      {U"2024-03-05T14:05:30Z", "date-time", {"2024-03-05T14:05:30Z"}},
      {U"5 March 2024 at 2 pm", "date-time", {"2024-03-05T14:00:00Z"}},
      {U"Tue, 5 Mar 2024 14:05:30 -0500", "date-time", {"2024-03-05T14:05:30-05:00"}},
      {U"2024-03-05T14:05-07:00", "date-time", {"2024-03-05T14:05:00-07:00"}},
      {U"2 pm on 5 March 2024", "date-time", {"2024-03-05T14:00:00Z"}},
      {U"14:05 GMT+5:30 on Tuesday, the 5th of March 2024",
       "date-time",
       {"2024-03-05T14:05:00+05:30"}},
      {U"noon, 5 March 2024", "date-time", {"2024-03-05T12:00:00Z"}},
      {U"9:00, 2024-03-05 10:00", "date-time", {"2024-03-05T10:00:00Z"}},
      {U"on 5 March 2024 14:05 GMT-3:30", "date-time", {"2024-03-05T14:05:00-03:30"}},
  };
  for (const Row& row : rows) {
    std::set<std::string> found;
    for (const auto& one : schema::DatesIn(row.text, row.format)) found.insert(one.value);
    EXPECT_EQ(found, row.values) << EncodeCodepoints(row.text);
  }
}

}  // namespace
}  // namespace pawl
