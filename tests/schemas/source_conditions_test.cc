// Copied fields with further conditions, in texts of hundreds and thousands of characters: what may
// be written is compared with all spans of the text by brute force, in every state of a walk. What
// masks cost is counted in steps (Machine::steps), so no clock is asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// In ASCII. Words have no marks inside, so borders are where words begin and end.
bool IsWordChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// A random text of a small vocabulary, so that all beginnings repeat.
std::string RepeatedWords(std::mt19937_64& random, size_t size) {
  std::vector<std::string> words;
  for (int i = 0; i < 9; ++i) {
    std::string word;
    for (size_t n = 1 + random() % 4; n > 0; --n) word += "abcAB1"[random() % 6];
    words.push_back(word);
  }
  std::string text = words[0];
  while (text.size() < size) {
    text += random() % 9 == 0 ? "; " : " ";
    text += words[random() % words.size()];
  }
  return text;
}

struct Conditions {
  std::string pattern;  // of ECMAScript; empty: none
  size_t least = 0, most = SIZE_MAX;
  std::vector<std::string> values;  // of an enum; empty: none
  bool any = false;                 // "chars"
  std::string Keywords() const {
    std::string out = any ? R"("x-pawl-source":"chars")" : R"("x-pawl-source":"span")";
    if (!pattern.empty()) out += R"(,"pattern":")" + pattern + '"';
    if (least > 0) out += R"(,"minLength":)" + std::to_string(least);
    if (most != SIZE_MAX) out += R"(,"maxLength":)" + std::to_string(most);
    if (values.empty()) return out;
    out += R"(,"enum":[)";
    for (const std::string& value : values) out += '"' + value + "\",";
    out.back() = ']';
    return out;
  }
};

Conditions RandomConditions(std::mt19937_64& random, const std::string& text) {
  constexpr const char* kPatterns[] = {
      "b1",        "Q",      "^[a-c]+$",  "A.*B",         "c$",    "^(a|b) ?[A-Z]",
      "1.{3,9}1;", "^.b.$",  "(ab|ba)+;", "[AB]{2} [AB]", "^[^;]", "^1.*1$",
      "a a$",      "(..)+x", "x$",        "^x",           "; ;",   "^(...)+$"};
  Conditions out;
  const size_t kind = random() % 8;
  if (kind < 6) out.pattern = kPatterns[random() % std::size(kPatterns)];
  if (kind == 1 || kind == 6) out.least = 1 + random() % 40;
  if (kind == 2 || kind == 6) out.most = out.least + random() % 40;
  if (kind == 7) {
    for (int i = 0; i < 5; ++i) {
      const size_t begin = random() % text.size();
      out.values.push_back(text.substr(begin, 1 + random() % 8) + (i % 2 == 0 ? "" : "Q"));
    }
    std::ranges::sort(out.values);
    out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
  }
  return out;
}

// By place at which a span may begin: the lengths of those that fit.
std::map<size_t, std::vector<size_t>> FittingSpans(const std::string& text,
                                                   const Conditions& conditions, size_t most) {
  const std::regex pattern(conditions.pattern, std::regex::ECMAScript | std::regex::optimize);
  std::map<size_t, std::vector<size_t>> out;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!conditions.any && text[begin] == ' ') continue;
    if (!conditions.any && begin > 0 && IsWordChar(text[begin]) && IsWordChar(text[begin - 1]))
      continue;
    std::vector<size_t> lengths;
    for (size_t end = begin + 1; end <= std::min(text.size(), begin + most); ++end) {
      const bool inside = end < text.size() && IsWordChar(text[end - 1]) && IsWordChar(text[end]);
      if (!conditions.any && (text[end - 1] == ' ' || inside)) continue;
      const std::string span = text.substr(begin, end - begin);
      if (span.size() < conditions.least || span.size() > conditions.most) continue;
      if (!conditions.values.empty() &&
          std::ranges::find(conditions.values, span) == conditions.values.end())
        continue;
      if (!conditions.pattern.empty() && !std::regex_search(span, pattern)) continue;
      lengths.push_back(span.size());
    }
    if (!lengths.empty()) out[begin] = std::move(lengths);
  }
  return out;
}

class SourceConditionsTest : public testing::Test {
 protected:
  SourceConditionsTest() {
    options_.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    options_.bind_source = true;
  }
  Result<Grammar> Bind(const std::string& schema, const std::string& text) const {
    Result<Grammar> grammar = compiler_.CompileJsonSchema(schema, options_);
    EXPECT_TRUE(grammar.ok()) << schema;
    return grammar->Bind(text);
  }
  // The bytes that go on, of a vocabulary of single bytes.
  std::set<std::string> Following(const State& state) const {
    std::set<std::string> out;
    const auto mask = state.mask();
    for (TokenId token = 0; token < vocabulary_->size(); ++token) {
      if (mask->Allows(token) && !vocabulary_->bytes(token).empty())
        out.insert(std::string(vocabulary_->bytes(token)));
    }
    return out;
  }
  // The most steps of a mask, and of the token behind it, on random walks; with the shortest
  // completion where `completes`.
  uint64_t DearestStep(const Grammar& grammar, std::mt19937_64& random, bool completes) const {
    const auto machine = GrammarAccess::Of(grammar).machine;
    uint64_t dearest = 0;
    for (int i = 0; i < 5; ++i) {
      State state = grammar.Start();
      for (int step = 0; step < 40 && !state.accepting(); ++step) {
        const uint64_t before = machine->steps();
        std::vector<TokenId> allowed;
        const auto mask = state.mask();
        for (TokenId token = 0; token < vocabulary_->size(); ++token) {
          if (mask->Allows(token)) allowed.push_back(token);
        }
        EXPECT_FALSE(allowed.empty());
        if (allowed.empty()) return UINT64_MAX;
        state = *state.Advance(allowed[random() % allowed.size()]);
        EXPECT_TRUE(!completes || state.CompletionBytes().has_value());
        dearest = std::max(dearest, machine->steps() - before);
      }
    }
    return dearest;
  }

  const std::shared_ptr<const Vocabulary> vocabulary_ = Bytes();
  const Compiler compiler_{vocabulary_};
  JsonSchemaOptions options_;
};

TEST_F(SourceConditionsTest, EqualsBruteForce) {
  std::mt19937_64 random(41);
  int fitting = 0, none = 0;
  const char* const asked = std::getenv("PAWL_SOURCE_CASES");
  const int cases = asked != nullptr ? std::atoi(asked) : 40;
  for (int i = 0; i < cases; ++i) {
    const std::string text = RepeatedWords(random, 500 + random() % 2500);
    Conditions conditions = RandomConditions(random, text);
    // Brute force over long spans takes long, so they are short in most cases.
    const bool whole = i % 8 == 0;
    conditions.any = i % 5 == 4;
    if (!whole) conditions.most = std::min<size_t>(conditions.most, conditions.any ? 20 : 60);
    conditions.least = std::min(conditions.least, conditions.most);
    const std::string short_text = whole ? text.substr(0, 400) + "b" : text;
    const auto spans = FittingSpans(short_text, conditions, std::min<size_t>(conditions.most, 500));
    const std::string keywords = conditions.Keywords();
    const std::string schema = R"({"type":"string",)" + keywords + "}";
    // Some conditions contradict each other whatever the text is.
    if (spans.empty() && !compiler_.CompileJsonSchema(schema, options_).ok()) continue;
    const auto plain = Bind(schema, short_text);
    ASSERT_EQ(plain.ok(), !spans.empty()) << keywords << "\n" << short_text;
    const auto nullable =
        Bind(conditions.values.empty()
                 ? R"({"type":["string","null"],)" + keywords + "}"
                 : R"({"anyOf":[{"type":"null"},{"type":"string",)" + keywords + "}]}",
             short_text);
    ASSERT_TRUE(nullable.ok()) << nullable.error().ToString();
    if (spans.empty()) {
      ++none;
      EXPECT_EQ(plain.error().place, "#/x-pawl-source") << keywords;
      EXPECT_EQ(Following(nullable->Start()), (std::set<std::string>{"n"})) << keywords;
      continue;
    }
    ++fitting;
    for (int walk = 0; walk < 4; ++walk) {
      State state = *nullable->Start().Advance("\"");
      std::string value;
      while (!state.accepting()) {
        // Those that go on with one more character, and the nearest end.
        std::set<std::string> expected;
        size_t nearest = SIZE_MAX;
        for (const auto& [begin, lengths] : spans) {
          if (short_text.compare(begin, value.size(), value) != 0) continue;
          for (const size_t length : lengths) {
            if (length < value.size()) continue;
            nearest = std::min(nearest, length - value.size());
            expected.insert(length == value.size() ? "\""
                                                   : short_text.substr(begin + value.size(), 1));
          }
        }
        ASSERT_EQ(Following(state), expected) << keywords << " " << value << "\n" << short_text;
        ASSERT_EQ(state.CompletionBytes()->size(), nearest + 1) << keywords << " " << value;
        const auto next =
            std::next(expected.begin(), static_cast<ptrdiff_t>(random() % expected.size()));
        if (*next != "\"") value += *next;
        state = *state.Advance(*next);
      }
    }
  }
  EXPECT_GT(fitting, 10);
  EXPECT_GT(none, 5);
}

TEST_F(SourceConditionsTest, ConditionsThatExcludeAndListsHold) {
  std::mt19937_64 random(7);
  const std::string text = RepeatedWords(random, 3000) + " Acme GmbH, Apex GmbH";
  const auto names =
      Bind(R"({"type":"array","items":{"type":"string","x-pawl-source":"span","pattern":"GmbH$",)"
           R"("maxLength":9,"not":{"pattern":"^Acme"}},"minItems":2,"uniqueItems":true})",
           text);
  ASSERT_TRUE(names.ok()) << names.error().ToString();
  EXPECT_EQ(Following(*names->Start().Advance("[\"")), (std::set<std::string>{"A", "G"}));
  EXPECT_TRUE(names->Start().Advance(R"(["Apex GmbH","GmbH"])")->accepting());
  EXPECT_FALSE(names->Start().Advance(R"(["Ac)"));
  EXPECT_EQ(*names->Start().Advance(R"(["Apex GmbH",")")->CompletionBytes(), "GmbH\"]");
  // Two records in one text: no span crosses the border.
  const auto two = Bind(R"({"type":"string","x-pawl-source":"span","pattern":"a b"})",
                        std::string("a\xFF") + "b");
  EXPECT_FALSE(two.ok());
}

TEST_F(SourceConditionsTest, VerbatimCopiesFormatsThatATextHas) {
  options_.verbatim = JsonSchemaOptions::Verbatim::kAll;
  const auto takes = [](const Grammar& grammar, const std::string& text) {
    const auto end = grammar.Start().Advance(text);
    return end && end->accepting();
  };
  const struct {
    const char *format, *text, *fits, *other;
  } kCases[] = {
      {"email", "Mail ann.lee+x@example.org.", "ann.lee+x@example.org", "ann@example.org"},
      {"email", "(bo_c@mail.example.com), please", "bo_c@mail.example.com", "bo_c@mail.example.co"},
      {"uri", "Shop: see <https://a.example/b?c=1&d=(2)>, now", "https://a.example/b?c=1&d=(2)",
       "https://a.example/b"},
      {"uri", "(at http://10.0.0.7:80/x).", "http://10.0.0.7:80/x", "Shop:"},
      {"hostname", "Ping db7.example.net. Then wait", "db7.example.net", "Ping"},
      {"ipv4", "Server 192.168.14.203, port 10.0.0.7:80", "10.0.0.7", "10.0.0.1"},
      {"ipv6", "At 12:30 route fe80::1ff:890a", "fe80::1ff:890a", "::1"},
      {"uuid", "Order 123e4567-e89b-12d3-a456-426614174000!",
       "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174001"},
  };
  for (const auto& it : kCases) {
    const std::string schema = R"({"type":"string","format":")" + std::string(it.format) + R"("})";
    const Grammar bound = *Bind(schema, it.text);
    EXPECT_TRUE(takes(bound, '"' + std::string(it.fits) + '"')) << it.text;
    EXPECT_FALSE(takes(bound, '"' + std::string(it.other) + '"')) << it.text;
    // A text without one leaves the field free.
    const Grammar free = *Bind(schema, "at 12:30, note: no a-b v1 here...");
    EXPECT_TRUE(takes(free, '"' + std::string(it.fits) + '"')) << it.text;
  }
}

TEST_F(SourceConditionsTest, OptionalFieldsAndListsOfWhichNothingFitsStayEmpty) {
  std::mt19937_64 random(8);
  const std::string text = RepeatedWords(random, 3000);
  const std::string field = R"({"x-pawl-source":"span","pattern":"GmbH","type":)";
  const auto record =
      Bind(R"({"type":"object","properties":{"ref":)" + field + R"(["string","null"]},"names":)" +
               R"({"type":"array","items":)" + field + R"("string"}},"more":)" + field +
               R"("string"},"note":{"type":"string"}},"required":["ref","names","note"],)"
               R"("additionalProperties":false})",
           text);
  ASSERT_TRUE(record.ok()) << record.error().ToString();
  EXPECT_EQ(Following(*record->Start().Advance(R"({"ref":)")), (std::set<std::string>{"n"}));
  EXPECT_EQ(Following(*record->Start().Advance(R"({"ref":null,"names":[)")),
            (std::set<std::string>{"]"}));
  EXPECT_FALSE(record->Start().Advance(R"({"ref":null,"names":[],"m)"));
  const auto needed =
      Bind(R"({"type":"object","properties":{"ref":)" + field + R"("string"}},"required":["ref"]})",
           text);
  ASSERT_FALSE(needed.ok());
  EXPECT_EQ(needed.error().place, "#/properties/ref/x-pawl-source");
}

// Spans and other strings: what is no span has to be one of the list.
TEST_F(SourceConditionsTest, SpansNextToOtherStrings) {
  std::mt19937_64 random(10);
  for (const char* pattern : {"GmbH", "b1", "^[ab].*1$"}) {
    const std::string text = RepeatedWords(random, 2000);
    Conditions conditions;
    conditions.pattern = pattern;
    conditions.most = 30;
    const auto spans = FittingSpans(text, conditions, 30);
    const std::string schema =
        R"({"anyOf":[{"enum":["a none","zz"]},{"type":"string",)" + conditions.Keywords() + "}]}";
    const auto grammar = Bind(schema, text);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    for (int walk = 0; walk < 20; ++walk) {
      State state = *grammar->Start().Advance("\"");
      std::string value;
      while (!state.accepting()) {
        std::set<std::string> expected;
        size_t nearest = SIZE_MAX;
        const auto goes_on = [&](const std::string& whole) {
          if (!whole.starts_with(value)) return;
          nearest = std::min(nearest, whole.size() - value.size());
          expected.insert(whole == value ? "\"" : whole.substr(value.size(), 1));
        };
        goes_on("a none");
        goes_on("zz");
        for (const auto& [begin, lengths] : spans) {
          for (const size_t length : lengths) goes_on(text.substr(begin, length));
        }
        ASSERT_EQ(Following(state), expected) << pattern << " " << value << "\n" << text;
        ASSERT_EQ(state.CompletionBytes()->size(), nearest + 1) << pattern << " " << value;
        const auto next =
            std::next(expected.begin(), static_cast<ptrdiff_t>(random() % expected.size()));
        if (*next != "\"") value += *next;
        state = *state.Advance(*next);
      }
    }
  }
}

// A walk over what the text goes on with would take a hundred times as many.
TEST_F(SourceConditionsTest, MasksTakeFewSteps) {
  std::mt19937_64 random(9);
  const std::string text = RepeatedWords(random, 4000);
  std::string pairs;
  for (int i = 0; i < 100'000; ++i) pairs += "a ";
  const auto steps = [&](const char* pattern, const std::string& of, uint64_t& bound) {
    const auto grammar = Bind(
        R"({"type":"string","x-pawl-source":"span","pattern":")" + std::string(pattern) + "\"}",
        of);
    EXPECT_TRUE(grammar.ok()) << pattern;
    if (!grammar.ok()) return UINT64_MAX;
    bound = GrammarAccess::Of(*grammar).machine->steps();
    return DearestStep(*grammar, random, of.size() < 10'000);
  };
  uint64_t bound = 0;
  for (const char* pattern : {"GmbH", "b1", "A.*B", "^[a-zA-Z1]+( [a-zA-Z1]+){2,5}$"}) {
    EXPECT_LE(steps(pattern, text + " b1 A B GmbH", bound), 40'000u) << pattern;
    EXPECT_LE(bound, 40 * text.size()) << pattern;
  }
  EXPECT_LE(steps("c$", pairs + "c", bound), 5'000u);
  EXPECT_LE(bound, 10 * pairs.size());
}

}  // namespace
}  // namespace pawl
