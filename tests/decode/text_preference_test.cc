// Values that stand in a text are preferred: against a slow twin, which writes the whole output
// anew for each question, with values that have left the text replaced by null.
#include "src/decode/text_preference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "src/base/json.h"
#include "src/decode/constraint.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr const char* kSchema = R"({"type": "object", "properties": {
  "a": {"type": ["string", "null"], "maxLength": 6}, "b": {"type": ["integer", "null"]},
  "c": {"type": "array", "maxItems": 2, "items": {"type": ["string", "null"], "maxLength": 4}}},
  "required": ["a", "b", "c"], "additionalProperties": false})";
constexpr const char* kText = "ab cd, 17 b";

JsonSchemaOptions Options() {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.bind_source = true;
  return options;
}

std::shared_ptr<const Vocabulary> Tokens() {
  std::vector<std::string> tokens = {"{\"", "\":", "\":\"", ",\"", "\",\"", "ab",
                                     "ab ", "17",  "\"]",   "\"a", "b c",   "d,"};
  for (const char c : std::string_view("{}[]\":,abcd 0123456789nulx-")) tokens.emplace_back(1, c);
  return VocabularyOf(tokens, {"<end>"});
}

struct Parts {
  std::shared_ptr<const Vocabulary> vocabulary = Tokens();
  Grammar grammar = *Compiler(vocabulary).CompileJsonSchema(kSchema, Options());
  Grammar copied = *GrammarAccess::CopiedFrom(grammar, kText);
};

// The output with each whole value that is not of the text as null; whether the value that is being
// written, if there is one, has left the text is told by the copied grammar refusing the result.
// `open`: what is there of that value.
std::string Replaced(const Parts& parts, const std::string& output, std::string& open) {
  std::string out;
  open.clear();
  for (size_t i = 0; i < output.size();) {
    const bool starts = i > 0 && (output[i - 1] == ':' || output[i - 1] == '[' ||
                                  (output[i - 1] == ',' && output.find('[') < i));
    if (!starts || output[i] == '[' || output[i] == ']') {
      out += output[i++];
      continue;
    }
    size_t end = i + 1;
    if (output[i] == '"') {
      while (end < output.size() && output[end] != '"') ++end;
      ++end;
    } else {
      while (end < output.size() &&
             std::string_view(",]}").find(output[end]) == std::string_view::npos)
        ++end;
    }
    const bool whole = output[i] == '"' ? end <= output.size() : end < output.size();
    std::string value = output.substr(i, end - i);
    if (whole && !parts.copied.Start().Advance(out + value)) value = "null";
    if (!whole) open = value;
    out += value;
    i = std::min(end, output.size());
  }
  return out;
}

// The longest token that the text begins with, again and again. None goes on behind the end of a
// word.
Encoder LongestFirst(std::shared_ptr<const Vocabulary> vocabulary) {
  return [vocabulary](std::string_view text) {
    std::vector<TokenId> out;
    while (!text.empty()) {
      TokenId best = kNoToken;
      for (TokenId t = 0; t < vocabulary->size(); ++t) {
        const std::string_view bytes = vocabulary->bytes(t);
        if (vocabulary->is_special(t) || !text.starts_with(bytes)) continue;
        if (bytes.find(' ', 1) != std::string_view::npos) continue;
        if (best == kNoToken || bytes.size() > vocabulary->bytes(best).size()) best = t;
      }
      if (best == kNoToken) break;
      out.push_back(best);
      text.remove_prefix(vocabulary->bytes(best).size());
    }
    return out;
  };
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Whether the token is the first one of the rest of a value of the text behind `open`; where the
// value begins, the beginning of that token will do. Each part of the text is tried.
bool IsSpelled(const Parts& parts, const Encoder& encode, const std::string& before,
               const std::string& open, std::string_view token) {
  const bool string = open.starts_with('"') || (open.empty() && token.starts_with('"'));
  if (string ? token.find('"', open.empty() ? 1 : 0) != std::string_view::npos || token == "\""
             : !IsDigits(token))
    return true;
  const std::string_view text = kText;
  for (size_t from = 0; from < text.size(); ++from) {
    for (size_t size = 1; from + size <= text.size(); ++size) {
      std::string value(text.substr(from, size));
      if (!string && !IsDigits(value)) continue;
      if (string) value.insert(0, 1, '"');
      if (!value.starts_with(open) || value.size() == open.size()) continue;
      const auto ends = [&](std::string_view end) {
        return parts.copied.Start().Advance(before + value + std::string(end)).has_value();
      };
      if (!(string ? ends("\"") : ends(",") || ends("]") || ends("}"))) continue;
      const TokenId first = encode(value.substr(open.size()))[0];
      const std::string_view whole = parts.vocabulary->bytes(first);
      const bool begins = open.empty() || open == "\"";
      if (begins ? whole.starts_with(token) : whole == token) return true;
    }
  }
  return false;
}

void CheckAgainstTwin(const Encoder& encode, int rounds, int& left, int& preferred, int& astray) {
  const Parts parts;
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    auto at = std::static_pointer_cast<const LoopConstraint>(
        PreferText(MakeConstraint(parts.grammar), parts.copied,
                   {.nats = {2, 5}, .encode = encode, .text = kText}));
    std::string output;
    bool off = false;  // the value goes on in another spelling
    while (!at->accepting()) {
      std::string open;
      const std::string twin = Replaced(parts, output, open);
      const std::optional<State> state = parts.copied.Start().Advance(twin);
      const LoopConstraint::Preference found = at->preference();
      const std::vector<TokenId> allowed = at->mask()->Tokens();
      ASSERT_FALSE(allowed.empty());
      std::vector<TokenId> expected;
      if (found.mask != nullptr) {
        ASSERT_FALSE(off) << output;
        ASSERT_TRUE(state.has_value()) << output << " | " << twin;
        const bool begins = open.size() < (open.starts_with('"') ? 2 : 1);
        EXPECT_EQ(found.nats, begins ? 2 : 5) << output;
        const auto copies = [&](TokenId t) {
          return state->Advance(parts.vocabulary->bytes(t)).has_value();
        };
        const bool all = std::ranges::all_of(allowed, copies);
        for (const TokenId token : allowed) {
          const std::string_view bytes = parts.vocabulary->bytes(token);
          bool expect = copies(token);
          if (expect && encode && !all) {
            expect =
                IsSpelled(parts, encode, twin.substr(0, twin.size() - open.size()), open, bytes);
            astray += expect ? 0 : 1;
          }
          EXPECT_EQ(found.mask->Allows(token), expect) << output << " + " << bytes;
          preferred += expect ? 1 : 0;
        }
      } else {
        left += off || !state.has_value() ? 1 : 0;
      }
      const TokenId token = allowed[random() % allowed.size()];
      output += parts.vocabulary->bytes(token);
      auto next = at->Next(token);
      // What is known without work is the same place.
      if (const auto known = at->KnownNext(token)) {
        next->preference();
        EXPECT_EQ(known->preference().mask, next->preference().mask) << output;
      }
      off = off || (found.mask != nullptr && !found.mask->Allows(token));
      Replaced(parts, output, open);
      off = off && !open.empty();
      at = std::move(next);
    }
    EXPECT_TRUE(json::Parse(output).ok()) << output;
  }
}

TEST(TextPreferenceTest, PrefersWhatTheTwinPrefers) {
  int left = 0, preferred = 0, astray = 0;
  CheckAgainstTwin({}, 300, left, preferred, astray);
  EXPECT_GT(left, 300);
  EXPECT_GT(preferred, 1000);
  EXPECT_EQ(astray, 0);
}

TEST(TextPreferenceTest, PrefersTheSpellingOfTheTokenizer) {
  int left = 0, preferred = 0, astray = 0;
  CheckAgainstTwin(LongestFirst(Tokens()), 300, left, preferred, astray);
  EXPECT_GT(left, 300);
  EXPECT_GT(preferred, 1000);
  EXPECT_GT(astray, 30);
}

TEST(TextPreferenceTest, FieldsHaveTheirOwn) {
  const Parts parts;
  const TextPreference preference{.nats = {1, 1}, .by_field = {{"/a", {}}, {"/c/*", {4, 8}}}};
  auto at = std::static_pointer_cast<const LoopConstraint>(
      PreferText(MakeConstraint(parts.grammar), parts.copied, preference));
  std::string written;
  const auto write = [&](std::string_view text) {
    for (const char c : text) {
      for (TokenId t = 0; t < parts.vocabulary->size(); ++t) {
        if (parts.vocabulary->bytes(t) == std::string_view(&c, 1)) at = at->Next(t);
      }
      ASSERT_NE(at, nullptr) << text;
    }
  };
  write(R"({"a":)");
  EXPECT_EQ(at->preference().mask, nullptr);
  write(R"("ab","b":)");
  EXPECT_EQ(at->preference().nats, 1);
  write(R"(17,"c":[)");
  EXPECT_EQ(at->preference().nats, 4);
  write(R"("a)");
  EXPECT_EQ(at->preference().nats, 8);
  EXPECT_TRUE(at->prefers());
  // Without any, and where the text has nothing for a field, the constraint is as it was.
  const auto plain = MakeConstraint(parts.grammar);
  EXPECT_EQ(PreferText(plain, parts.copied, {}), plain);
}

TEST(TextPreferenceTest, AFieldThatTheTextHasNothingForLosesNothing) {
  const auto vocabulary = Tokens();
  const Grammar grammar =
      *Compiler(vocabulary).CompileJsonSchema(R"({"type": ["integer", "null"]})", Options());
  const Grammar copied = *GrammarAccess::CopiedFrom(grammar, "ab");
  auto at = std::static_pointer_cast<const LoopConstraint>(
      PreferText(MakeConstraint(grammar), copied, {.nats = {3, 3}}));
  EXPECT_EQ(at->preference().mask, at->mask());
  // A text without a span for a field that needs one prefers nothing.
  const Grammar needs =
      *Compiler(vocabulary).CompileJsonSchema(R"({"type": "integer"})", Options());
  EXPECT_FALSE(GrammarAccess::CopiedFrom(needs, "ab").has_value());
  EXPECT_TRUE(GrammarAccess::CopiedFrom(needs, "ab 7").has_value());
}

// A number at the root has no sign behind its end: the output ends.
TEST(TextPreferenceTest, ANumberAtTheRoot) {
  constexpr const char* kNumbers = "d 17, b 238";
  const auto vocabulary = Tokens();
  const Grammar grammar =
      *Compiler(vocabulary).CompileJsonSchema(R"({"type": "integer"})", Options());
  const Grammar copied = *GrammarAccess::CopiedFrom(grammar, kNumbers);
  for (const bool spelled : {false, true}) {
    auto at = std::static_pointer_cast<const LoopConstraint>(
        PreferText(MakeConstraint(grammar), copied,
                   {.nats = {3, 6},
                    .encode = spelled ? LongestFirst(vocabulary) : Encoder(),
                    .text = kNumbers}));
    const auto preferred = [&] {
      std::string out;
      for (const TokenId token : at->preference().mask->Tokens())
        out += std::string(vocabulary->bytes(token)) + " ";
      return out;
    };
    const auto write = [&](std::string_view text) {
      for (TokenId t = 0; t < vocabulary->size(); ++t) {
        if (vocabulary->bytes(t) == text) return at = at->Next(t);
      }
      return at = nullptr;
    };
    EXPECT_EQ(preferred(), "17 1 2 ");
    EXPECT_EQ(at->preference().nats, 3);
    ASSERT_NE(write("17"), nullptr);
    EXPECT_TRUE(at->accepting());
    // Nothing but the end: 173 is not of the text.
    EXPECT_EQ(preferred(), "<end> ");
    EXPECT_EQ(at->preference().nats, 6);
  }
}

TEST(TextPreferenceTest, PlacesInJson) {
  JsonPlace place;
  const auto feed = [&](std::string_view text) {
    for (const char c : text) place.Feed(c);
    return place.at_value() ? place.Field() : "-";
  };
  EXPECT_EQ(feed(""), "");
  EXPECT_EQ(feed("{ \"a"), "-");
  EXPECT_EQ(feed("/b\\\"\": "), "/a~1b\"");
  EXPECT_FALSE(place.inside());
  EXPECT_EQ(feed("\"x\\\""), "/a~1b\"");
  EXPECT_TRUE(place.inside());
  EXPECT_EQ(feed("\", "), "-");
  EXPECT_EQ(feed("\"l\":[{\"n\":1"), "/l/*/n");
  EXPECT_EQ(feed("}, "), "/l/*");
  EXPECT_EQ(feed("[2, "), "/l/*/*");
  EXPECT_EQ(feed("null]]"), "-");
}

}  // namespace
}  // namespace pawl
