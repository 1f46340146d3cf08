// Reading the texts of an evaluation.
#include "src/eval/eval_data.h"

#include <gtest/gtest.h>

#include <string>

namespace pawl::eval {
namespace {

TEST(EvalDataTest, LinesWithTheNamesOfTheRecord) {
  const auto texts = ReadEvalTexts(
      "{\"id\": 7, \"text\": \"a\", \"record\": {\"x\": 1}}\r\n\n"
      "{\"text\": \"b\", \"expected\": [], \"schema\": {\"type\": \"array\"}, \"n\": 2}\n"
      "{\"text\": \"c\", \"output\": null, \"n\": 2}",
      {});
  ASSERT_TRUE(texts.ok()) << texts.error().ToString();
  ASSERT_EQ(texts->size(), 3u);
  EXPECT_EQ((*texts)[0].id, "7");
  EXPECT_EQ((*texts)[1].line, 3);
  EXPECT_EQ((*texts)[1].schema, "{\"type\":\"array\"}");
  EXPECT_EQ((*texts)[2].record.type, json::Type::kNull);
}

TEST(EvalDataTest, WhereAndTheMostTexts) {
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    lines += "{\"text\": \"" + std::to_string(i) +
             "\", \"record\": 0, \"n\": " + std::to_string(i % 2) + "}\n";
  }
  const auto odd = ReadEvalTexts(lines, {.where = {{"n", "1"}}, .most = 2});
  ASSERT_TRUE(odd.ok());
  ASSERT_EQ(odd->size(), 2u);
  EXPECT_EQ((*odd)[1].text, "3");
  const auto none = ReadEvalTexts(lines, {.where = {{"n", "5"}}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "has no texts that fit --where");
}

TEST(EvalDataTest, WhatIsWrongHasItsLine) {
  for (const auto& [line, message] :
       {std::pair("[]", "must be an object"),
        std::pair("{\"text\": 1}", "must have a string \"text\""),
        std::pair("{\"text\": \"a\"}", "must have a \"record\""), std::pair("{", "")}) {
    const auto texts =
        ReadEvalTexts("{\"text\": \"a\", \"record\": 1}\n" + std::string(line) + "\n", {});
    ASSERT_FALSE(texts.ok()) << line;
    EXPECT_EQ(texts.error().place.substr(0, 6), "line 2") << line;
    EXPECT_NE(texts.error().message.find(message), std::string::npos) << texts.error().message;
  }
  EXPECT_FALSE(ReadEvalTexts("\n \n", {}).ok());
}

TEST(EvalDataTest, AThirdIsHeldOut) {
  int held = 0;
  for (size_t i = 0; i < 300; ++i) held += HeldOut(i);
  EXPECT_EQ(held, 100);
}

}  // namespace
}  // namespace pawl::eval
