#include "src/base/json.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pawl::json
