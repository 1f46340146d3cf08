// Large inputs cost what their length says: what a grammar has found after 2 n items, keys or rules
// is about twice what it has found after n. Bytes stand for steps, since each step that finds
// something keeps it.
#include <gtest/gtest.h>

#include <string>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "src/base/failure.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr size_t kUnbounded = size_t{8} << 30;

// What the compiler's grammars keep once the text has been read; fails where it is refused.
int64_t BytesAfter(const Compiler& compiler, const Result<Grammar>& grammar,
                   const std::string& text) {
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  if (!grammar.ok()) return 0;
  const std::optional<State> end = grammar->Start().Advance(text);
  EXPECT_TRUE(end.has_value());
  if (end) {
    end->mask();
    EXPECT_TRUE(end->accepting());
  }
  return static_cast<int64_t>(compiler.memory_bytes());
}

int64_t BytesOfReading(const std::string& schema, const std::string& text) {
  const Compiler compiler(Bytes(), {.memory_budget = kUnbounded});
  return BytesAfter(compiler, compiler.CompileJsonSchema(schema), text);
}

template <typename Item>
std::string Listed(int n, const char* open, const Item& item, const char* close) {
  std::string out = open;
  for (int i = 0; i < n; ++i) out += (i == 0 ? "" : ",") + item(std::to_string(i));
  return out + close;
}

// Bug: 1,600 integers took 7 GB.
TEST(LargeInputsTest, UniqueItemsWithContains) {
  const std::string schema =
      R"({"type":"array","uniqueItems":true,"items":{"type":"integer"},"contains":{"minimum":3}})";
  const auto bytes = [&](int n) {
    return BytesOfReading(schema, Listed(
                                      n, "[", [](const std::string& i) { return i; }, "]"));
  };
  const int64_t some = bytes(400), twice = bytes(800);
  EXPECT_LT(twice, 5 * some / 2) << some;
  EXPECT_LT(twice, int64_t{64} << 20);
}

TEST(LargeInputsTest, UniqueObjectsWithContains) {
  const std::string schema =
      R"({"type":"array","uniqueItems":true,"items":{"type":"object","required":["a"]},
          "contains":{"properties":{"a":{"minimum":3}}}})";
  const auto bytes = [&](int n) {
    const auto item = [](const std::string& i) { return "{\"a\":" + i + "}"; };
    return BytesOfReading(schema, Listed(n, "[", item, "]"));
  };
  const int64_t some = bytes(200), twice = bytes(400);
  EXPECT_LT(twice, 5 * some / 2) << some;
  EXPECT_LT(twice, int64_t{64} << 20);
}

// Bug: 20,000 keys took 28 seconds.
TEST(LargeInputsTest, KeysOfAFreeObject) {
  const auto bytes = [&](int n) {
    const auto member = [](const std::string& i) { return "\"k" + i + "\":" + i; };
    return BytesOfReading("{}", Listed(n, "{", member, "}"));
  };
  const int64_t some = bytes(2000), twice = bytes(4000);
  EXPECT_LT(twice, 5 * some / 2) << some;
  EXPECT_LT(twice, int64_t{64} << 20);
}

// Bug: 8,000 rules took 47 seconds.
TEST(LargeInputsTest, AChainOfRules) {
  const auto bytes = [&](int n) {
    std::string rules = "root ::= r0\n";
    for (int i = 0; i < n; ++i) {
      const std::string k = std::to_string(i);
      rules += "r" + k + " ::= r" + std::to_string(i + 1) + " | \"x" + k + "\"\n";
    }
    rules += "r" + std::to_string(n) + " ::= \"end\"\n";
    const Compiler compiler(Bytes(), {.memory_budget = kUnbounded});
    return BytesAfter(compiler, compiler.CompileGrammar(rules, GrammarLanguage::kEbnf), "end");
  };
  const int64_t some = bytes(1000), twice = bytes(2000);
  EXPECT_LT(twice, 5 * some / 2) << some;
  EXPECT_LT(twice, int64_t{64} << 20);
}

int64_t BytesOfMask(const std::string& schema, const std::string& prefix) {
  const Compiler compiler(Bytes(), {.memory_budget = kUnbounded});
  const auto grammar = compiler.CompileJsonSchema(schema);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  if (!grammar.ok()) return 0;
  const std::optional<State> state = grammar->Start().Advance(prefix);
  EXPECT_TRUE(state.has_value());
  if (!state) return 0;
  const auto before = static_cast<int64_t>(compiler.memory_bytes());
  state->mask();
  return static_cast<int64_t>(compiler.memory_bytes()) - before;
}

// Bug: the mask took 170 ms, since all of the product of format and pattern was looked at.
TEST(LargeInputsTest, OneMask) {
  const int64_t format = BytesOfMask(R"({"type":"string","format":"date-time"})", "\"");
  const int64_t both =
      BytesOfMask(R"({"type":"string","format":"date-time","pattern":"[0-9]{3}"})", "\"");
  // The outline of the product is made with the first mask.
  EXPECT_LT(both, 5 * format + (int64_t{128} << 10)) << format;
}

// What is found for the shortest completion of the empty text.
int64_t BytesOfCompletion(const std::string& schema, int64_t* length = nullptr) {
  const Compiler compiler(Bytes(), {.memory_budget = kUnbounded});
  const auto grammar = compiler.CompileJsonSchema(schema);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  if (!grammar.ok()) return 0;
  const auto before = static_cast<int64_t>(compiler.memory_bytes());
  const auto rest = grammar->Start().CompletionBytes();
  EXPECT_TRUE(rest.has_value());
  if (rest && length != nullptr) *length = static_cast<int64_t>(rest->size());
  const auto after = static_cast<int64_t>(compiler.memory_bytes());
  // Which fits.
  EXPECT_TRUE(rest && grammar->Start().Advance(*rest).has_value());
  return after - before;
}

// Bug: 3,000 keys took 30 seconds and 2 GB. For each key of the completion there was a search of
// its own, which was asked about all keys before it; and all spare keys were looked for again.
TEST(LargeInputsTest, ACompletionOfManyKeysWithoutANameInTheSchema) {
  const auto keys = [](int n) {
    return Listed(
        n, "[", [](const std::string& i) { return "\"k" + i + "\""; }, "]");
  };
  const auto schema = [&](const std::string& names, int n) {
    return R"({"type":"object","propertyNames":)" + names + R"(,"minProperties":)" +
           std::to_string(n - 1) + "}";
  };
  for (const bool listed : {true, false}) {
    const auto bytes = [&](int n) {
      return BytesOfCompletion(
          schema(listed ? R"({"enum":)" + keys(n) + "}" : R"({"pattern":"^k[0-9]{5}$"})", n));
    };
    const int64_t some = bytes(300), twice = bytes(600);
    EXPECT_LT(twice, 5 * some / 2) << some;
    EXPECT_LT(twice, int64_t{8} << 20);
  }
}

// Bug: the values that were left were listed anew behind each item that could come.
TEST(LargeInputsTest, AMaskUnderUniqueItemsOfAnEnum) {
  const auto bytes = [](int n) {
    const auto item = [](const std::string& i) { return i; };
    return BytesOfMask(R"({"type":"array","uniqueItems":true,"items":{"enum":)" +
                           Listed(n, "[", item, "]") + R"(},"minItems":)" + std::to_string(n) + "}",
                       "[1,2,3,");
  };
  const int64_t some = bytes(500), twice = bytes(1000);
  EXPECT_LT(twice, 5 * some / 2 + (int64_t{1} << 20)) << some;
  EXPECT_LT(twice, int64_t{16} << 20);
}

// Bug: 6,000 free texts in a row took 900 MB for one mask, whatever the budget: what each of them
// opens was not counted.
TEST(LargeInputsTest, AMaskThatFindsTooMuchIsEnded) {
  const Compiler compiler(Bytes(), {.memory_budget = size_t{16} << 20});
  const auto item = [](const std::string&) -> std::string { return R"({"type":"any_text"})"; };
  const auto grammar = compiler.CompileStructuralTag(
      R"({"type":"structural_tag","format":{"type":"sequence","elements":)" +
      Listed(6000, "[", item, "]") + "}}");
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  EXPECT_THROW((void)grammar->Start().mask(), TooMuchMemory);
}

}  // namespace
}  // namespace pawl
