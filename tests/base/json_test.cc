// The JSON reader by examples, and its two parsers against each other: whatever one of them takes
// or refuses, the other has to take or refuse as well.
#include "src/base/json.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "src/base/stop_scope.h"

namespace pawl::json {
namespace {

TEST(JsonTest, KeepsOrderAndNumberText) {
  auto value = Parse(R"({"b": 1.50, "a": [12345678901234567890123, -0, 1e400x]})");
  EXPECT_FALSE(value.ok());
  value = Parse(R"({"b": 1.50, "a": [12345678901234567890123, -0, true, null, "\u00e9"]})");
  ASSERT_TRUE(value.ok()) << value.error().ToString();
  EXPECT_EQ(Dump(*value), "{\"b\":1.50,\"a\":[12345678901234567890123,-0,true,null,\"\xC3\xA9\"]}");
  EXPECT_EQ(value->Find("a")->items[0].text, "12345678901234567890123");
}

TEST(JsonTest, PointersAreReadAsTheyAreWritten) {
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(PointerTokens(""), Tokens());
  EXPECT_EQ(PointerTokens("/"), Tokens({""}));
  EXPECT_EQ(PointerTokens("/a//b~1c~0~2~"), Tokens({"a", "", "b/c~~2~"}));
  std::string pointer;
  const Tokens tokens = {"~1", "/~", "", "x"};
  for (const std::string& token : tokens) pointer = PointerJoin(pointer, token);
  EXPECT_EQ(PointerTokens(pointer), tokens);
}

TEST(JsonTest, PointersNameItemsByNumber) {
  const auto array = Parse("[10, 11]");
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(ItemAt(*array, "1"), &array->items[1]);
  for (const char* none : {"2", "", "-1", "+1", "01", "1x", "99999999999999999999"})
    EXPECT_EQ(ItemAt(*array, none), nullptr) << none;
  EXPECT_EQ(ItemAt(array->items[0], "0"), nullptr);
}

TEST(JsonTest, DuplicateKeysNameTheObject) {
  auto value = Parse(R"({"a": [1, {"x": 1, "x": 2}]})");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().place, "#/a/1");
  EXPECT_EQ(value.error().message, "duplicate key \"x\"");
}

TEST(JsonTest, DepthIsLimitedWithoutRecursion) {
  const std::string deep(1000000, '[');
  auto value = Parse(deep);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::kLimit);
}

TEST(JsonTest, SyntaxErrorsNameTheByte) {
  auto value = Parse(R"({"a": })");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().place, "1:7 (byte 6)");
}

TEST(JsonTest, NulIsNoEndOfInput) {
  auto value = Parse(std::string_view("{}\0 garbage", 11));
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().place, "1:3 (byte 2)");
}

TEST(JsonTest, MessagesAreUtf8) {
  auto value = Parse("\"\xFF\"");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().message.find('\xFF'), std::string::npos);
  EXPECT_NE(value.error().message.find("\\xFF"), std::string::npos);
}

TEST(JsonTest, NumbersBeyondEveryFormatAreALimit) {
  auto value = Parse("[1e99999]");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::kLimit);
  EXPECT_EQ(value.error().message.find("exception"), std::string::npos);
}

TEST(JsonTest, HugeNumbersAreKept) {
  auto value = Parse("[1e400]");
  ASSERT_TRUE(value.ok()) << value.error().ToString();
  EXPECT_EQ(value->items[0].text, "1e400");
}

// Numbers are told from their digits: what a parser whose numbers are long doubles takes, is taken,
// and each number stays as it is written.
TEST(JsonTest, LargeNumbersAreToldFromTheirDigits) {
  using Wide = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t,
                                    long double>;
  ASSERT_GT(std::numeric_limits<long double>::max_exponent10, 4000) << "no oracle here";
  std::mt19937 engine(4932);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(engine() % n); };
  const auto digits = [&](unsigned most) {
    std::string text;
    for (unsigned left = 1 + below(most); left > 0; --left)
      text += static_cast<char>('0' + (below(3) == 0 ? below(10) : 0));
    return text;
  };
  for (int i = 0; i < 20000; ++i) {
    std::string number = below(2) == 0 ? "-" : "";
    const std::string whole = digits(below(40) == 0 ? 400 : 3);
    const size_t first = whole.find_first_not_of('0');
    number += first == std::string::npos ? "0" : whole.substr(first);
    if (below(2) == 0) number += "." + digits(below(40) == 0 ? 400 : 4);
    if (below(4) != 0) {
      static constexpr int kNear[] = {0, 300, 305, 308, 310, 400, 1200, 4500, 4920};
      number += below(2) == 0 ? "e" : "E+";
      number += std::to_string(kNear[below(9)] + static_cast<int>(below(7)));
    }
    const std::string text = "[\"1e400\", 1e000," + number + (below(9) == 0 ? ".x" : ", -1e0]");
    const auto value = ParseWithReasons(text, {});
    ASSERT_EQ(value.ok(), Wide::accept(text)) << text;
    if (!value.ok()) continue;
    ASSERT_EQ(value->items.size(), 4u);
    EXPECT_EQ(value->items[0].text, "1e400");
    EXPECT_EQ(value->items[1].text, "1e000");
    EXPECT_EQ(value->items[2].text, number);
    EXPECT_EQ(value->items[3].text, "-1e0");
  }
  EXPECT_TRUE(ParseWithReasons("1e4932", {}).ok());
  EXPECT_FALSE(ParseWithReasons("2e4932", {}).ok());
  EXPECT_EQ(ParseWithReasons("[1e4933]", {}).error().code, ErrorCode::kLimit);
  EXPECT_EQ(ParseWithReasons("[1e400, 1e4933]", {}).error().place,
            ParseWithReasons("[1e000, 1e4933]", {}).error().place);
}

// What the fast parser takes and what it makes of it must be what the other one says.
void ExpectTheSame(const std::string& text, const ParseLimits& limits = {}) {
  Value tree;
  const bool valid = ParseValid(text, limits, tree);
  const auto expected = ParseWithReasons(text, limits);
  ASSERT_EQ(valid, expected.ok()) << text;
  if (valid) {
    ASSERT_EQ(Dump(tree), Dump(*expected)) << text;
  }
}

TEST(JsonTest, BothParsersAgree) {
  const char* const kTexts[] = {
      "{}",
      "[]",
      " [ ] ",
      "{\"a\":1,\"a\":2}",
      "[1,]",
      "[,1]",
      "{\"a\"}",
      "{\"a\":}",
      "{,}",
      "01",
      "-",
      "-0",
      "-0.0e-0",
      "1.",
      ".5",
      "1e",
      "1e+",
      "1E+5",
      "+1",
      "nul",
      "nulll",
      "true false",
      "\"\\u0000\"",
      "\"\\ud83d\\ude00\"",
      "\"\\ud83d\"",
      "\"\\ude00\"",
      "\"\\ud83d\\u0041\"",
      "\"\\x\"",
      "\"\\u12g4\"",
      "\"\t\"",
      "\"a",
      "\"\xC0\x80\"",
      "\"\xED\xA0\x80\"",
      "\"\xF4\x90\x80\x80\"",
      "\"\xC3\xA9 \xF0\x9F\x98\x80 plain text behind it\"",
      "",
      " ",
      "[[[[1]]]]",
      "{\"a\":{\"b\":[{\"c\":null},[]]},\"d\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
      "[1 2]",
      "{\"a\":1 \"b\":2}",
      "]",
      "18446744073709551616",
      "-9223372036854775809",
      "[1]]"};
  for (const char* text : kTexts) ExpectTheSame(text);
  ExpectTheSame("[[[[1]]]]", {.max_depth = 3});
  ExpectTheSame("[[[[]]]]", {.max_depth = 3});
  ExpectTheSame("[[[{}]]]", {.max_depth = 4});
  ExpectTheSame(R"({"a":1,"b":{"a":1},"a":2})", {.allow_duplicate_keys = true});
}

TEST(JsonTest, BothParsersAgreeOnBrokenTexts) {
  const std::string good =
      R"({"name":"Ann \u00e9\n \"x\"","list":[1,-2.5e3,true,null,{"":[]}],"many":{"a":0,"b":0,)"
      R"("c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0}})";
  ExpectTheSame(good);
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "{}[]\",:\\ue0-.19tn \xC3\xA9\x01";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const char byte = kBytes[random() % kBytes.size()];
      switch (random() % 3) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1 + random() % 3);
      }
    }
    ExpectTheSame(text);
  }
}

TEST(JsonTest, ValuesHaveABound) {
  const ParseLimits limits{.max_values = 5};
  EXPECT_TRUE(Parse(R"({"a":[1,{}],"b":null})", limits).ok());
  for (const char* text : {R"({"a":[1,{}],"b":[null]})", "[1,2,3,4,5]", "[[[[[[]]]]]]"}) {
    const auto value = Parse(text, limits);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().code, ErrorCode::kLimit);
    EXPECT_EQ(value.error().message, "holds more than 5 values");
    EXPECT_EQ(ParseWithReasons(text, limits).error().message, value.error().message);
  }
}

// Both parsers: of the text that is good and of the one that is not.
TEST(JsonTest, TheStopFlagEndsIt) {
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  std::string many = "[0", members = "{\"a\":0";
  for (int i = 0; i < 1100; ++i) {
    many += ",0";
    members += ",\"" + std::to_string(i) + "\":0";
  }
  for (const std::string& text :
       {many + "]", members + "}", '"' + std::string(100000, 'x') + '"'}) {
    EXPECT_THROW((void)Parse(text), Stopped);
  }
  EXPECT_THROW((void)ParseWithReasons(many + "]", {}), Stopped);
  EXPECT_THROW((void)ParseWithReasons(members + "}", {}), Stopped);
  EXPECT_TRUE(Parse("[1,2,3]").ok());
}

}  // namespace
}  // namespace pawl::json
